"""Which classes are taken for which, and whether probabilities mean what they say."""

from __future__ import annotations

import numpy as np

from ridgefold.report.displays.confusion import MOST_CLASSES, ConfusionDisplay
from ridgefold.report.displays.reliability import ReliabilityDisplay
from ridgefold.report.formatting import clean, count, number, percent
from ridgefold.report.layout import Canvas, Cell, Picture, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel
from ridgefold.report.unseen_rows import UnseenClasses


def classes(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """Confusion matrix and reliability of probabilities."""
    unseen = reported.unseen
    if not isinstance(unseen, UnseenClasses) or reported.class_names is None:
        return None
    names = reported.class_names
    matrix = ConfusionDisplay.from_unseen(unseen, names)
    pictures: list[Picture] = []
    if len(names) <= MOST_CLASSES:
        pictures.append(
            canvas.draw(
                matrix.plot,
                title="True and predicted classes",
                caption="Shares of every true class: each row adds up to 100 %.",
                height=3.2 if len(names) == 2 else 3.9,
                keys=lambda: matrix.keys,
            )
        )
    if unseen.probabilities is not None:
        reliability = ReliabilityDisplay.from_unseen(unseen, names[-1])
        pictures.append(
            canvas.draw(
                reliability.plot,
                title="Do probabilities come true?",
                caption="Points on the line: what is given 70 % happens in 70 % of the cases. Bars "
                "show how often a probability is given, upright lines how sure the frequency is.",
                height=3.9,
            )
        )
    lead = (
        f"Every row was classified by a model that had not seen it ({unseen.source})."
        if unseen.rows is not None
        else f"The model had not seen the {unseen.source}."
    )
    return Section(
        "classes", "Classes of unseen rows", lead, tuple(pictures), (_by_class(matrix, unseen),)
    )


def _by_class(matrix: ConfusionDisplay, unseen: UnseenClasses) -> Table:
    rows = []
    right = np.diag(matrix.counts)
    true, named = matrix.counts.sum(axis=1), matrix.counts.sum(axis=0)
    for k, name in enumerate(matrix.names):
        recognised = right[k] / true[k] if true[k] else float("nan")
        trusted = right[k] / named[k] if named[k] else float("nan")
        row = [
            text(clean(name)),
            Cell(count(int(true[k])), float(true[k])),
            Cell(percent(float(recognised)), float(recognised)),
            Cell(percent(float(trusted)), float(trusted)),
        ]
        if unseen.probabilities is not None:
            brier = float(np.mean((unseen.probabilities[:, k] - (unseen.truth == k)) ** 2))
            row.append(Cell(number(brier), brier))
        rows.append(row)
    last = ("Brier score",) if unseen.probabilities is not None else ()
    titles = ("class", "rows", "recognised", "right when named", *last)
    return Table(
        titles,
        rows_of(rows),
        caption="Recognised: the share of the class that was found (recall). Right when named: how "
        "often the answer is right (precision).",
        numbers=frozenset(range(1, len(titles))),
        sortable=True,
    )
