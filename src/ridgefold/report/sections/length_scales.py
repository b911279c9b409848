"""How finely the learned metric resolves every column."""

from __future__ import annotations

import sys

import numpy as np

from ridgefold.estimators.facts import MetricFacts
from ridgefold.report.displays.length_scales import LengthScalesDisplay
from ridgefold.report.formatting import clean, number, percent, plural
from ridgefold.report.kernel_description import number_of_directions
from ridgefold.report.layout import Canvas, Cell, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel

_MOST_BARS = 12
"""Columns that are drawn, those with the largest shares."""
_MOST_ROWS = 200
"""Columns that the table lists: of more, nobody reads the rest."""
_NOTHING = 0.005
"""Columns with a smaller share than this are straight lines, or nothing, to the model."""
_LAST = sys.float_info.max
"""Columns without a scale come last when the table is sorted by scales."""


def length_scales(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """Shares of the columns in distance, and their length scales."""
    metric = reported.facts.metric
    if metric is None:
        return None
    names, shares, learned = metric.named.names, metric.named.shares, metric.learned
    display = LengthScalesDisplay(names=names, shares=shares, most=_MOST_BARS)
    bars = min(len(names), _MOST_BARS)
    picture = canvas.draw(
        display.plot,
        title="Share of every column in the distance between two rows",
        caption=""
        if bars == len(names)
        else f"The {bars} largest shares of {plural(len(names), 'column')}.",
        height=0.5 + 0.27 * bars,
    )
    unused = int(np.sum(shares < _NOTHING))
    lead = (
        "One length scale was learned for every column by the gradient of the held-out error. A "
        "large share says that the model bends within a short way along the column, a small one "
        "that it is smooth there: a column with a strong straight effect has a small share, too"
    )
    lead += (
        f". Along {plural(unused, 'column')} of {len(names)} it hardly bends at all (below "
        f"{percent(_NOTHING)})."
        if unused
        else "."
    )
    remarks = []
    scales = np.asarray(metric.length_scales)[metric.named.first_columns]
    left_out = int(np.sum(np.isinf(scales)))
    if left_out:
        remarks.append(
            f"{plural(left_out, 'column')} of {len(names)} {'are' if left_out > 1 else 'is'} left "
            "out of the kernel, which saves time: without them predictions changed by at most 3% "
            "of their error."
        )
    if learned is not None and number_of_directions(learned.kernel):
        remarks.append(
            f"The kernel has scales of {number_of_directions(learned.kernel)} directions that mix "
            "columns, with which held-out rows were predicted better. Shown are the scales of "
            "every column while the others stay."
        )
    if learned is not None and learned.isotropic:
        remarks.append(
            "Scales that differ by more than the columns' spreads did not do better on rows that "
            "took no part, so the kernel is the same in all directions."
        )
    elif learned is not None and learned.isotropic_error > 0:
        gain = 1.0 - np.sqrt(learned.outside_error / learned.isotropic_error)
        remarks.append(
            f"On rows that took no part in the learning, the learned scales have an error "
            f"{percent(float(gain))} below that of one scale for all columns."
        )
    return Section(
        "length-scales",
        "How smooth it is along every column",
        lead,
        (picture,),
        (_table(metric),),
        tuple(remarks),
    )


def _table(metric: MetricFacts) -> Table:
    named, scales = metric.named, np.asarray(metric.length_scales, dtype=np.float64)
    transforms = None if metric.learned is None else metric.learned.transforms
    order = np.argsort(-named.shares, kind="stable")[:_MOST_ROWS]
    rows = []
    for k in order:
        j, share = int(named.first_columns[k]), float(named.shares[k])
        left_out = bool(np.isinf(scales[j]))
        row = [
            text(clean(named.names[k], 80)),
            Cell(percent(share), share),
            Cell("left out", _LAST) if left_out else Cell(number(scales[j]), float(scales[j])),
        ]
        rows.append([*row, *([text(clean(transforms[j]))] if transforms else [])])
    titles = ("column", "share", "length scale", *(("transform",) if transforms else ()))
    return Table(
        titles,
        rows_of(rows),
        numbers=frozenset((1, 2)),
        sortable=True,
        folded="" if len(rows) <= 10 else f"All {len(rows)} columns as a table",
    )
