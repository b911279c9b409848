"""Which columns the learned metric looks at."""

from __future__ import annotations

import sys

import numpy as np

from ridgefold.estimators.scale_names import NamedScales, column_shares, named_scales
from ridgefold.report.displays.relevance import RelevanceDisplay
from ridgefold.report.parts import Canvas, Cell, Section, Table, rows_of, text
from ridgefold.report.subject import Subject
from ridgefold.report.words import clean, number, percent, plural

_MOST_BARS = 12
_MOST_ROWS = 200
_NOTHING = 0.005
_LAST = sys.float_info.max
"""Where columns without a scale stand when they are sorted by it."""


def relevance(subject: Subject, canvas: Canvas) -> Section | None:
    """Shares of the columns in distance, and their length scales."""
    shares = column_shares(subject.inner)
    if shares is None:
        return None
    named = named_scales(subject.model, subject.column_names, shares)
    names, shares = named.names, named.shares
    display = RelevanceDisplay(names=names, relevance=shares, most=_MOST_BARS)
    bars = min(len(names), _MOST_BARS)
    picture = canvas.draw(
        display.plot,
        title="Share of every column in the distance between two rows",
        caption=""
        if bars == len(names)
        else f"The {bars} most relevant of {plural(len(names), 'column')}.",
        height=0.5 + 0.27 * bars,
    )
    metric = getattr(subject.inner, "metric_", None)
    unused = int(np.sum(shares < _NOTHING))
    lead = (
        "One length scale was learned for every column by the gradient of the held-out error. A "
        "column with a large share decides which rows are alike"
    )
    lead += (
        f"; {plural(unused, 'column')} of {len(names)} hardly count (below {percent(_NOTHING)})."
        if unused
        else "."
    )
    remarks = []
    left_out = int(np.sum(np.isinf(np.asarray(subject.inner.length_scales_)[named.first_columns])))
    if left_out:
        remarks.append(
            f"{plural(left_out, 'column')} of {len(names)} {'are' if left_out > 1 else 'is'} left "
            "out of the kernel, which saves time: without them predictions changed by at most 3% "
            "of their error."
        )
    if metric is not None and metric.isotropic:
        remarks.append(
            "Scales that differ by more than the columns' spreads did not do better on rows that "
            "took no part, so the kernel is the same in all directions."
        )
    elif metric is not None and metric.isotropic_error > 0:
        gain = 1.0 - np.sqrt(metric.outside_error / metric.isotropic_error)
        remarks.append(
            f"On rows that took no part in the learning, the learned scales have an error "
            f"{percent(float(gain))} below that of one scale for all columns."
        )
    return Section(
        "relevance",
        "Which columns count",
        lead,
        (picture,),
        (_table(subject, named),),
        tuple(remarks),
    )


def _table(subject: Subject, named: NamedScales) -> Table:
    scales = np.asarray(subject.inner.length_scales_, dtype=np.float64)
    metric = getattr(subject.inner, "metric_", None)
    transforms = None if metric is None else metric.transforms
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
