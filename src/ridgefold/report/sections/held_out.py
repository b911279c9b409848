"""How far off the model is on rows that it did not see."""

from __future__ import annotations

from ridgefold.report.displays.held_out import BANDED_ROWS, HeldOutDisplay
from ridgefold.report.formatting import count, number, percent
from ridgefold.report.layout import Canvas, Cell, Picture, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel
from ridgefold.report.unseen_rows import UnseenNumbers

_MOST_TARGETS = 4
"""Targets that are drawn, two figures each; the table has all of them."""


def held_out(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """True against predicted, and residuals."""
    unseen = reported.unseen
    if not isinstance(unseen, UnseenNumbers):
        return None
    n_targets = unseen.truth.shape[1]
    pictures: list[Picture] = []
    for j in range(min(n_targets, _MOST_TARGETS)):
        display = HeldOutDisplay(
            truth=unseen.truth[:, j],
            predictions=unseen.predictions[:, j],
            target_name=reported.target_names[j],
            source=unseen.source,
        )
        pictures += _two_pictures(display, canvas)
    lead = (
        f"Every row was predicted by a model that had not seen it ({unseen.source}). "
        if unseen.rows is not None
        else f"The model had not seen the {unseen.source}. "
    )
    lead += "On the line, prediction and truth agree."
    if n_targets > _MOST_TARGETS:
        lead += f" The first {_MOST_TARGETS} of {n_targets} targets are drawn."
    tables = (_by_target(reported, unseen),) if n_targets > 1 else ()
    return Section("held-out", "Predictions of unseen rows", lead, tuple(pictures), tables)


def _two_pictures(display: HeldOutDisplay, canvas: Canvas) -> list[Picture]:
    return [
        canvas.draw(
            display.plot,
            title=f"True against predicted {display.target_name}",
            caption=lambda: f"{display.how_drawn[:1].upper()}{display.how_drawn[1:]}.",
            height=3.9,
        ),
        canvas.draw(
            lambda ax: display.plot(ax, kind="residual_vs_predicted"),
            title="What is left: true minus predicted",
            caption="Solid: the median of neighbouring rows; between the broken lines lie 90 % of "
            "them. A good model leaves a flat, even band."
            if len(display.truth) >= BANDED_ROWS
            else "A good model leaves a flat, even band.",
            height=3.9,
        ),
    ]


def _by_target(reported: ReportedModel, unseen: UnseenNumbers) -> Table:
    rows = []
    for name, error, spread in zip(reported.target_names, unseen.rmse, unseen.spread, strict=True):
        r2 = 1.0 - (error / spread) ** 2 if spread > 0 else float("nan")
        rows.append(
            [
                text(name),
                Cell(number(error), float(error)),
                Cell(number(spread), float(spread)),
                Cell(percent(r2), float(r2)),
            ]
        )
    return Table(
        ("target", "error (RMS)", "error of the mean", "R²"),
        rows_of(rows),
        caption=f"Every target by itself, on {count(len(unseen.truth))} rows.",
        numbers=frozenset((1, 2, 3)),
        sortable=True,
    )
