"""The cells that the rows were cut into."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.estimators.facts import CellFacts, ModelFacts
from ridgefold.report.displays.cells import CellsDisplay
from ridgefold.report.formatting import clean, count, number, percent, plural, setting
from ridgefold.report.kernel_description import described_kernel
from ridgefold.report.layout import Canvas, Cell, Picture, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel

_MOST_ROWS = 200
"""Cells that the table lists: of more, nobody reads the rest."""
_MOST_SHARES = 8
"""Targets whose share of the coarse model is named."""


def cells(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """Sizes, errors and settings of the cells, and a map of them."""
    facts = reported.facts
    if facts.cells is None:
        return None
    sizes = facts.cells.sizes
    lead = (
        f"The rows were cut into {plural(len(sizes), 'cell')} of {count(int(sizes.min()))} to "
        f"{count(int(sizes.max()))} rows (partition: {clean(facts.cells.partition)}, combined by "
        f"{facts.cells.combine})"
    )
    shared = float(np.mean(np.bincount(facts.cells.cells.rows, minlength=facts.n_rows) > 1))
    lead += f"; {percent(shared)} of the rows lie in several." if shared > 0 else "."
    if facts.cells.coarse_share is not None:
        named = facts.cells.coarse_share[:_MOST_SHARES]
        shares = ", ".join(percent(float(share)) for share in named)
        lead += f" A coarse model of all rows counts {shares} in predictions."
    if facts.cells.linear_coef is not None:
        lead += " Under the cells lies a linear model of all rows; they learn what it leaves."
    pictures: list[Picture] = []
    tables: list[Table] = []
    if facts.cells.side_by_side:
        display = CellsDisplay.of(facts)
        pictures.append(
            canvas.draw(
                display.plot,
                title="Where the cells lie",
                caption="A sample of the rows on the two directions in which they vary most; "
                "numbers stand in the middle of a cell. Strong colours: larger errors.",
                height=3.9,
                keys=lambda: display.keys,
            )
        )
        tables.append(_by_cell(facts, display))
    elif facts.cells.refining_steps:
        steps = plural(facts.cells.refining_steps, "step")
        lead += f" {steps} of conjugate gradients then made one model of them."
    if facts.cells.trials:
        tables.append(_trials(facts.cells))
    return Section("cells", "The cells", lead, tuple(pictures), tuple(tables))


def _by_cell(facts: ModelFacts, display: CellsDisplay) -> Table:
    rows, keys = [], []
    scales = [_one_scale(kernel) for kernel in facts.kernels]
    families = {type(kernel) for kernel in facts.kernels}
    plain = len(families) == 1 and all(scale is not None for scale in scales)
    for c, size in enumerate(display.sizes[:_MOST_ROWS]):
        row = [Cell(str(c + 1), float(c)), Cell(count(int(size)), float(size))]
        if display.errors is not None:
            row.append(Cell(display.shown_error(c), float(display.errors[c])))
        alpha, scale = float(facts.alphas[c]), scales[c]
        row.append(Cell(setting(alpha), alpha))
        row.append(
            Cell(setting(scale), scale)
            if plain and scale is not None
            else text(described_kernel(facts.kernels[c]))
        )
        rows.append(row)
        keys.append(f"cell-{c + 1}")
    short = display.error_name.removeprefix("share of ")
    with_errors = (short,) if display.errors is not None else ()
    titles = ("cell", "rows", *with_errors, "alpha", "length scale" if plain else "kernel")
    distinct_kernels = {repr(kernel) for kernel in facts.kernels}
    chosen = len(distinct_kernels) > 1 or len(set(facts.alphas)) > 1
    caption = "Each cell chose its own kernel width and ridge by leave-one-out." if chosen else ""
    if len(display.sizes) > _MOST_ROWS:
        caption += f" The first {_MOST_ROWS} are listed."
    return Table(
        titles,
        rows_of(rows),
        caption=caption.strip(),
        numbers=frozenset(range(len(titles) if plain else len(titles) - 1)),
        keys=tuple(keys),
        sortable=True,
    )


def _one_scale(kernel: Any) -> float | None:
    """The length scale of a kernel that has one number for it."""
    scale = getattr(kernel, "length_scale", None)
    return float(scale) if isinstance(scale, (int, float)) else None


def _trials(facts: CellFacts) -> Table:
    rows = [
        [
            Cell(count(trial.cell_rows), float(trial.cell_rows)),
            Cell(number(trial.error, 4), trial.error),
        ]
        for trial in facts.trials
    ]
    return Table(
        ("rows a cell", "held-out error"),
        rows_of(rows),
        caption="Sizes that were tried: the smallest that loses at most "
        f"{percent(facts.tolerance)} was taken.",
        numbers=frozenset((0, 1)),
        folded="How the number of cells was chosen",
    )
