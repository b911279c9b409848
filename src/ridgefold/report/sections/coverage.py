"""How sure the model is, and whether it may be."""

from __future__ import annotations

import numpy as np

from ridgefold.report.displays.coverage import CoverageDisplay
from ridgefold.report.formatting import number, percent
from ridgefold.report.layout import Canvas, Cell, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel
from ridgefold.report.unseen_intervals import UnseenIntervals, unseen_intervals

_DRAWN = 0.9
"""The coverage that is drawn: what most people ask intervals for."""


def coverage(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """Widths of intervals, and the share of true values in them."""
    intervals = unseen_intervals(reported.facts, reported.X_test, reported.y_test)
    if intervals is None:
        return None
    place = intervals.coverages.index(_DRAWN)
    several = intervals.predictions.shape[1] > 1
    display = CoverageDisplay(
        predictions=intervals.predictions[:, 0],
        inside=intervals.inside[place][:, 0],
        coverage=_DRAWN,
        target_name=reported.target_names[0],
    )
    picture = canvas.draw(
        display.plot,
        title="Where intervals hold the truth",
        caption="Each point is a tenth of the rows, by predicted value. Below the line, intervals "
        "are too narrow; above, too wide.",
        height=3.3,
    )
    width = float(intervals.widths[place][0])
    whose = f" of {reported.target_names[0]}" if several else ""
    lead = (
        f"A {100 * _DRAWN:.0f} % interval{whose} is {number(width)} wide on average. Intervals are "
        f"{intervals.how}."
    )
    if not reported.tested:
        lead += (
            " Over all rows the share inside is close to what was asked for by their making; where "
            "the misses lie is what there is to see."
        )
    return Section("coverage", "How sure it is", lead, (picture,), (_table(reported, intervals),))


def _table(reported: ReportedModel, intervals: UnseenIntervals) -> Table:
    rows = []
    several = intervals.predictions.shape[1] > 1
    for share, inside, widths in zip(
        intervals.coverages, intervals.inside, intervals.widths, strict=True
    ):
        for j, name in enumerate(reported.target_names):
            seen = float(np.mean(inside[:, j]))
            row = [text(name)] if several else []
            rows.append(
                [
                    *row,
                    Cell(percent(share, 2), share),
                    Cell(percent(seen), seen),
                    Cell(number(float(widths[j])), float(widths[j])),
                ]
            )
    head = ("target",) if several else ()
    titles = (*head, "asked for", "inside", "mean width")
    return Table(
        titles, rows_of(rows), numbers=frozenset(range(len(head), len(titles))), sortable=several
    )
