"""How far off the model is on rows that it did not see."""

from __future__ import annotations

from ridgefold.report.displays.held_out import HeldOutDisplay
from ridgefold.report.evidence import HeldOutNumbers
from ridgefold.report.parts import Canvas, Cell, Picture, Section, Table, rows_of, text
from ridgefold.report.subject import Subject
from ridgefold.report.words import count, number, percent

_MOST_TARGETS = 4


def held_out(subject: Subject, canvas: Canvas) -> Section | None:
    """True against predicted, and residuals."""
    found = subject.held_out
    if not isinstance(found, HeldOutNumbers):
        return None
    n_targets = found.truth.shape[1]
    pictures: list[Picture] = []
    for j in range(min(n_targets, _MOST_TARGETS)):
        display = HeldOutDisplay(
            truth=found.truth[:, j],
            predictions=found.predictions[:, j],
            target_name=subject.target_names[j],
            source=found.source,
        )
        pictures += _two_pictures(display, canvas)
    lead = (
        f"Every row was predicted by a model that had not seen it ({found.source}). "
        if found.rows is not None
        else f"The model had not seen the {found.source}. "
    )
    lead += "On the line, prediction and truth agree."
    if n_targets > _MOST_TARGETS:
        lead += f" The first {_MOST_TARGETS} of {n_targets} targets are drawn."
    tables = (_by_target(subject, found),) if n_targets > 1 else ()
    return Section("held-out", "Predictions of unseen rows", lead, tuple(pictures), tables)


def _two_pictures(display: HeldOutDisplay, canvas: Canvas) -> list[Picture]:
    drawn = display.truth - display.predictions
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
            if len(drawn) >= 75
            else "A good model leaves a flat, even band.",
            height=3.9,
        ),
    ]


def _by_target(subject: Subject, found: HeldOutNumbers) -> Table:
    rows = []
    for name, error, spread in zip(subject.target_names, found.rmse, found.spread, strict=True):
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
        caption=f"Every target by itself, on {count(len(found.truth))} rows.",
        numbers=frozenset((1, 2, 3)),
        sortable=True,
    )
