"""How rich the kernel matrix is, and how much of it the ridge lets through."""

from __future__ import annotations

from ridgefold.errors import RidgefoldError
from ridgefold.report.displays.spectrum import SpectrumDisplay
from ridgefold.report.formatting import count, number
from ridgefold.report.layout import Canvas, Section
from ridgefold.report.reported_model import ReportedModel


def spectrum(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """Eigenvalues of a sample, and the effective dimension."""
    if reported.facts.compressed or reported.facts.tried is not None:
        return None  # of a sum of models there is no one matrix
    try:
        display = SpectrumDisplay.of(reported.facts)
    except RidgefoldError:
        return None  # a kernel of the user's own that cannot be evaluated on some of the rows
    if not display.eigenvalues[0] > 0:
        return None
    all_rows = display.sample_rows == display.rows
    where = "" if display.whose == "all rows" else f" in {display.whose}, one of middle size"
    lead = (
        f"The model uses about {number(display.dimension, 2)} effective parameters{where}, for "
        f"{count(display.rows)} rows: the sum of λ/(λ + alpha) over all eigenvalues λ. Directions "
        "above the ridge are fitted, those below are smoothed away."
    )
    caption = (
        f"Eigenvalues of the kernel matrix of {count(display.rows)} rows."
        if all_rows
        else f"Estimated from {count(display.sample_rows)} of {count(display.rows)} rows."
    )
    picture = canvas.draw(
        display.plot,
        title="Eigenvalues of the kernel matrix",
        caption=caption,
        height=3.2,
    )
    return Section("spectrum", "Effective dimension", lead, (picture,))
