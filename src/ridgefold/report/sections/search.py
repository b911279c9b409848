"""How kernel and ridge were chosen."""

from __future__ import annotations

import numpy as np

from ridgefold.report.displays.cv_surface import CVSurfaceDisplay, differing
from ridgefold.report.formatting import clean, count, setting
from ridgefold.report.kernel_description import described_kernel
from ridgefold.report.layout import Canvas, Cell, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel

_MOST_PAIRS = 8
"""Pairs that the table lists, the best ones."""
_SHORT = {"root mean square error": "RMS error", "share of wrong answers": "wrong answers"}


def search(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """The errors of all pairs that were tried, the best marked."""
    facts = reported.facts
    if facts.search is None:
        return None
    display = CVSurfaceDisplay.of(facts)
    tried = len(facts.search.results["params"])
    if tried < 2:
        return None
    gone = int(display.dropped.sum())
    best = float(display.scores[display.best])
    alphas = facts.alphas
    ridge = (
        f"alpha {setting(float(alphas[0]))}"
        if len(np.unique(alphas)) == 1
        else f"alphas from {setting(float(alphas.min()))} to {setting(float(alphas.max()))}"
    )
    lead = (
        f"Of {count(tried)} pairs of kernel and ridge, {described_kernel(facts.kernels[0])} with "
        f"{ridge} did best on held-out rows: {display.score_name} {display.shown(best)}."
    )
    if gone:
        lead += (
            f" {count(gone)} pairs were dropped on the way, as soon as bounds on their scores "
            "showed that they could not win."
        )
    caption = "The ring marks the choice."
    if display.width_name is not None:
        caption += " Point at a field to read it." + (
            " Small fields were dropped early: they are at least so far above the best."
            if gone
            else ""
        )
    elif display.by_fold is not None and len(display.kernels) == 1:
        caption += " Thin lines: every fold by itself."
    picture = canvas.draw(
        display.plot,
        title="Held-out error over kernel width and ridge"
        if display.width_name
        else "Held-out error over the ridge",
        caption=caption,
        height=3.6,
        keys=lambda: display.keys,
    )
    return Section(
        "search", "How kernel and ridge were chosen", lead, (picture,), (_pairs(display),)
    )


def _pairs(display: CVSurfaceDisplay) -> Table:
    """The best pairs, as a table."""
    finite = np.argwhere(np.isfinite(display.scores))
    values = display.scores[finite[:, 0], finite[:, 1]]
    chosen = np.all(finite == display.best, axis=1)
    # Of pairs that are as good, the chosen one first.
    order = np.lexsort((~chosen, values if display.errors else -values))[:_MOST_PAIRS]
    names = differing(display.kernels)
    rows = []
    for place in order:
        k, j = finite[place]
        row = []
        for name in names:
            value = display.kernels[k].get(name)
            plain = isinstance(value, (int, float)) and not isinstance(value, bool)
            row.append(
                Cell(setting(float(value)), float(value))
                if plain and value is not None
                else text("" if value is None else clean(value, 60))
            )
        row.append(Cell(setting(float(display.alphas[j])), float(display.alphas[j])))
        row.append(Cell(display.shown(values[place]), float(values[place])))
        rows.append(row)
    short = _SHORT.get(display.score_name, display.score_name)
    titles = (*(name.replace("_", " ") for name in names), "alpha", short)
    numeric = [i for i, name in enumerate(names) if any(row[i].order is not None for row in rows)]
    return Table(
        titles,
        rows_of(rows),
        numbers=frozenset([*numeric, len(names), len(names) + 1]),
        sortable=True,
        caption=f"The best {len(rows)} of the pairs that were tried to the end.",
    )
