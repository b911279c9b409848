"""The cells that the rows were cut into."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.options import cells_of
from ridgefold.report.displays.cells import CellsDisplay, has_map
from ridgefold.report.kernel_words import kernel_in_words
from ridgefold.report.parts import Canvas, Cell, Picture, Section, Table, rows_of, text
from ridgefold.report.subject import Subject
from ridgefold.report.words import clean, count, number, percent, plural, setting

_MOST_ROWS = 200


_MOST_SHARES = 8


def cells(subject: Subject, canvas: Canvas) -> Section | None:
    """Sizes, errors and settings of the cells, and a map of them."""
    inner = subject.inner
    if not hasattr(inner, "partition_sizes_"):
        return None
    sizes = np.asarray(inner.partition_sizes_)
    cut = inner.partition if isinstance(inner.partition, str) else type(inner.partition).__name__
    lead = (
        f"The rows were cut into {plural(len(sizes), 'cell')} of {count(int(sizes.min()))} to "
        f"{count(int(sizes.max()))} rows (partition: {clean(cut)}, combined by {inner.combine})"
    )
    shared = float(np.mean(np.bincount(inner._cells.rows, minlength=subject.n_rows) > 1))
    lead += f"; {percent(shared)} of the rows lie in several." if shared > 0 else "."
    if inner.coarse_model_share_ is not None:
        shares = ", ".join(
            percent(float(share)) for share in inner.coarse_model_share_[:_MOST_SHARES]
        )
        lead += f" A coarse model of all rows counts {shares} in predictions."
    pictures: list[Picture] = []
    tables: list[Table] = []
    if has_map(inner):
        display = CellsDisplay.of(subject.model)
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
        tables.append(_by_cell(inner, display))
    elif inner.n_steps_:
        lead += (
            f" {plural(inner.n_steps_, 'step')} of conjugate gradients then made one model of them."
        )
    if inner.trials_:
        tables.append(_trials(inner))
    return Section("cells", "The cells", lead, tuple(pictures), tuple(tables))


def _by_cell(inner: Any, display: CellsDisplay) -> Table:
    rows, keys = [], []
    scales = [_one_scale(kernel) for kernel in inner.kernels_]
    families = {type(kernel) for kernel in inner.kernels_}
    plain = len(families) == 1 and all(scale is not None for scale in scales)
    for c, size in enumerate(display.sizes[:_MOST_ROWS]):
        row = [Cell(str(c + 1), float(c)), Cell(count(int(size)), float(size))]
        if display.errors is not None:
            row.append(Cell(display.shown_error(c), float(display.errors[c])))
        alpha, scale = float(inner.alpha_[c]), scales[c]
        row.append(Cell(setting(alpha), alpha))
        row.append(
            Cell(setting(scale), scale)
            if plain and scale is not None
            else text(kernel_in_words(inner.kernels_[c]))
        )
        rows.append(row)
        keys.append(f"cell-{c + 1}")
    short = display.error_name.removeprefix("share of ")
    with_errors = (short,) if display.errors is not None else ()
    titles = ("cell", "rows", *with_errors, "alpha", "length scale" if plain else "kernel")
    chosen = len({repr(kernel) for kernel in inner.kernels_}) > 1 or len(set(inner.alpha_)) > 1
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


def _trials(inner: Any) -> Table:
    rows = [
        [
            Cell(count(trial.cell_rows), float(trial.cell_rows)),
            Cell(number(trial.error, 4), trial.error),
            text("measured" if trial.measured else "extrapolated"),
        ]
        for trial in inner.trials_
    ]
    return Table(
        ("rows a cell", "held-out error", ""),
        rows_of(rows),
        caption="Sizes that were tried: the smallest that loses at most "
        f"{percent(cells_of(inner).tolerance)} was taken.",
        numbers=frozenset((0, 1)),
        folded="How the number of cells was chosen",
    )
