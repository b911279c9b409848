"""How sure the model is, and whether it may be."""

from __future__ import annotations

import numpy as np

from ridgefold.report.displays.coverage import CoverageDisplay
from ridgefold.report.intervals import HeldOutIntervals, intervals_of
from ridgefold.report.parts import Canvas, Cell, Section, Table, rows_of, text
from ridgefold.report.subject import Subject
from ridgefold.report.words import number, percent

_DRAWN = 0.9


def coverage(subject: Subject, canvas: Canvas) -> Section | None:
    """Widths of intervals, and the share of true values in them."""
    found = intervals_of(subject.model, subject.X_test, subject.y_test)
    if found is None:
        return None
    place = found.coverages.index(_DRAWN)
    several = found.predictions.shape[1] > 1
    display = CoverageDisplay(
        predictions=found.predictions[:, 0],
        inside=found.inside[place][:, 0],
        coverage=_DRAWN,
        target_name=subject.target_names[0],
    )
    picture = canvas.draw(
        display.plot,
        title="Where intervals hold the truth",
        caption="Each point is a tenth of the rows, by predicted value. Below the line, intervals "
        "are too narrow; above, too wide.",
        height=3.3,
    )
    width = float(found.widths[place][0])
    whose = f" of {subject.target_names[0]}" if several else ""
    lead = (
        f"A {100 * _DRAWN:.0f} % interval{whose} is {number(width)} wide on average. Intervals are "
        f"{found.how}."
    )
    if not subject.tested:
        lead += (
            " Over all rows the share inside is close to what was asked for by their making; where "
            "the misses lie is what there is to see."
        )
    return Section("coverage", "How sure it is", lead, (picture,), (_table(subject, found),))


def _table(subject: Subject, found: HeldOutIntervals) -> Table:
    rows = []
    several = found.predictions.shape[1] > 1
    for share, inside, widths in zip(found.coverages, found.inside, found.widths, strict=True):
        for j, name in enumerate(subject.target_names):
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
