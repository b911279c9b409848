"""The cells of a partitioned model on a map: where they lie, and how well each does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.cells.computed_rows import in_metric
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import ModelFacts
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import clean, number, percent
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import (
    FONT,
    INK,
    MUTED,
    RULE,
    SEQUENCE,
    SURFACE,
    axes_or_new,
    dress,
    plain_ticks,
)
from ridgefold.report.unseen_intervals import owners
from ridgefold.report.unseen_rows import UnseenClasses, UnseenNumbers, unseen_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SAMPLE_ROWS = 1500
"""Rows that are drawn: enough to show the shape of cells, few enough for a small page."""
_MOST_NUMBERS = 40
"""Cells that carry their number: those of more would cover each other."""
_LARGEST = 1e150
"""Sums of squares of larger numbers would overflow: such columns are divided by their largest."""
_STEPS = (2, 4, 6, 8)
"""The steps of the colours that quarters of the cells get, by their error."""


class CellsDisplay(Display):
    """Cells on the two principal directions of the rows, coloured by their held-out error.

    Parameters
    ----------
    points : array of shape (n_sample, 2)
        A sample of the rows on the map.
    owner : array of shape (n_sample,)
        The cell that each of them belongs to most.
    centres : array of shape (n_cells, 2)
    sizes : array of shape (n_cells,)
        Rows of each cell.
    errors : array of shape (n_cells,) or None
        Held-out error of the rows of each cell.
    axis_names : (str, str)
    error_name : str

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import CellsDisplay, PartitionedKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(120, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(120)
    >>> model = PartitionedKernelRidge(n_partitions=4).fit(X, y)
    >>> display = CellsDisplay.from_estimator(model)
    >>> len(display.sizes)
    4
    """

    def __init__(
        self,
        *,
        points: np.ndarray,
        owner: np.ndarray,
        centres: np.ndarray,
        sizes: np.ndarray,
        errors: np.ndarray | None,
        axis_names: tuple[str, str],
        error_name: str = "error",
    ) -> None:
        self.points = points
        self.owner = owner
        self.centres = centres
        self.sizes = sizes
        self.errors = errors
        self.axis_names = axis_names
        self.error_name = error_name
        self.keys: dict[str, str] = {}

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the cells of a fitted `PartitionedKernelRidge` or `PartitionedLSSVMClassifier`."""
        return cls.of(facts_of(estimator)).plot(ax)

    @classmethod
    def of(cls, facts: ModelFacts) -> Self:
        """The display before it is drawn."""
        if facts.cells is None or not facts.cells.side_by_side:
            raise InvalidInputError(
                f"{facts.name} has no cells that lie side by side: fit a "
                'PartitionedKernelRidge with combine="blend" or "route" and cells.refine=None'
            )
        cells, n, m = facts.cells.cells, facts.n_rows, len(facts.cells.sizes)
        owner = owners(cells, n)
        sample = np.unique(np.linspace(0, n - 1, min(n, 4 * _SAMPLE_ROWS)).astype(np.intp))
        rows = np.asarray(facts.rows[sample], dtype=np.float64)
        columns = facts.column_names
        if facts.metric is not None:
            scales = facts.metric.length_scales
            rows = in_metric(rows, scales)
            columns = tuple(
                name for name, scale in zip(columns, scales, strict=True) if np.isfinite(scale)
            )
        targets = None if facts.targets is None else facts.targets[sample]
        flat, names = _on_a_map(rows, targets, columns)
        centres = np.full((m, 2), np.nan)
        for c in range(m):
            inside = owner[sample] == c
            if inside.any():
                centres[c] = flat[inside].mean(axis=0)
        errors, name = errors_by_cell(facts, owner, m)
        drawn = slice(None, None, max(1, len(sample) // _SAMPLE_ROWS))
        return cls(
            points=flat[drawn],
            owner=owner[sample][drawn],
            centres=centres,
            sizes=facts.cells.sizes,
            errors=errors,
            axis_names=names,
            error_name=name,
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        steps, limits = self._quarters()
        colours = np.asarray(SEQUENCE)[steps]
        for step in np.unique(steps):
            inside = steps[self.owner] == step
            if inside.any():
                points = self.points[inside]
                ax.scatter(points[:, 0], points[:, 1], s=5, color=SEQUENCE[step], linewidth=0)
        big = float(self.sizes.max())
        numbered = len(self.sizes) <= _MOST_NUMBERS
        for c, centre in enumerate(self.centres):
            if not np.all(np.isfinite(centre)):
                continue
            key = f"cell-{c + 1}"
            self.keys[key] = self._about(c)
            area = (
                40 + 130 * float(self.sizes[c]) / big if numbered else 8 + 40 * self.sizes[c] / big
            )
            ax.scatter(
                [centre[0]], [centre[1]], s=area, facecolor=colours[c], edgecolor=SURFACE,
                linewidth=1.2, zorder=3, gid=key,
            )  # fmt: skip
            if numbered:
                ax.annotate(
                    str(c + 1), centre, ha="center", va="center_baseline", fontsize=FONT - 2,
                    color=SURFACE if steps[c] >= 5 else INK, zorder=4,
                )  # fmt: skip
        dress(ax, x=self.axis_names[0], y=self.axis_names[1], grid=None)
        for side in ("left", "bottom"):
            ax.spines[side].set_color(RULE)
        plain_ticks(ax)
        if limits:
            self._draw_legend(ax, limits)
        return self

    def _about(self, c: int) -> str:
        about = f"cell {c + 1}: {int(self.sizes[c]):,} rows"
        return about if self.errors is None else f"{about}, {self.error_name} {self.shown_error(c)}"

    def shown_error(self, c: int) -> str:
        """The error of one cell, as people write it."""
        assert self.errors is not None
        value = float(self.errors[c])
        return percent(value) if "share" in self.error_name else number(value)

    def _quarters(self) -> tuple[np.ndarray, list[float]]:
        """A colour for every cell by the quarter that its error is in, and the borders of these."""
        if self.errors is None or len(self.errors) < 2:
            return np.full(len(self.sizes), 4), []
        known = self.errors[np.isfinite(self.errors)]
        if len(known) == 0:
            return np.full(len(self.sizes), 4), []
        limits = [float(q) for q in np.quantile(known, (0.25, 0.5, 0.75))]
        place = np.searchsorted(limits, np.nan_to_num(self.errors), side="left")
        return np.asarray(_STEPS)[place], limits

    def _draw_legend(self, ax: Axes, limits: list[float]) -> None:
        from matplotlib.patches import Rectangle

        inset = ax.inset_axes((0.0, 1.02, 1.0, 0.11))
        inset.set_axis_off()
        inset.set_xlim(0, 10)
        inset.set_ylim(0, 2)
        inset.annotate(
            f"{self.error_name} of a cell", (0, 1.2), va="center", fontsize=FONT, color=MUTED
        )
        for i, step in enumerate(_STEPS):
            inset.add_patch(
                Rectangle((6 + i, 0.75), 0.96, 0.9, facecolor=SEQUENCE[step], linewidth=0)
            )
        for i, limit in enumerate(limits):
            shown = percent(limit) if "share" in self.error_name else number(limit)
            inset.annotate(
                shown, (7 + i, 0.3), ha="center", va="center", fontsize=FONT - 1.2, color=MUTED
            )


def errors_by_cell(
    facts: ModelFacts, owner: np.ndarray, n_cells: int
) -> tuple[np.ndarray | None, str]:
    """Held-out error of the rows of each cell, and its name."""
    unseen = unseen_rows(facts)
    if unseen is None or unseen.rows is None:
        return None, "error"
    if isinstance(unseen, UnseenClasses):
        losses, name = (
            (unseen.truth != unseen.predicted).astype(np.float64),
            "share of wrong answers",
        )
    else:
        assert isinstance(unseen, UnseenNumbers)
        # Targets differ in their units: each counts by its own spread.
        spread = unseen.spread if unseen.truth.shape[1] > 1 else np.ones(1)
        scaled = unseen.residuals / np.where(spread > 0, spread, 1.0)
        losses, name = np.mean(scaled**2, axis=1), "error"
    cell = owner[unseen.rows]
    totals = np.bincount(cell, weights=losses, minlength=n_cells)
    counts = np.bincount(cell, minlength=n_cells)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = totals / counts
    return (np.sqrt(means) if name == "error" else means), name


def _drawable(values: np.ndarray) -> np.ndarray:
    """Values whose squares are numbers: in parts of the largest if that is beyond them."""
    largest = float(np.max(np.abs(values)))
    return values / largest if largest > _LARGEST else values


def _on_a_map(
    rows: np.ndarray, targets: np.ndarray | None, names: tuple[str, ...]
) -> tuple[np.ndarray, tuple[str, str]]:
    """Two coordinates for each row: principal directions, or the only column and the target."""
    rows = _drawable(rows)
    if rows.shape[1] == 1:
        name = clean(names[0], 30)
        if targets is None:
            return np.column_stack([rows[:, 0], np.zeros(len(rows))]), (name, "")
        y = targets.astype(np.float64).reshape(len(rows), -1)[:, 0]
        return np.column_stack([rows[:, 0], _drawable(y)]), (name, "target")
    centred = rows - rows.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(rows))
    flat = centred @ directions[:, [-1, -2]]
    total = float(variances.sum()) or 1.0
    shares = [percent(float(variances[-1 - i]) / total) for i in range(2)]
    return flat, (
        f"first principal direction ({shares[0]} of the variance)",
        f"second ({shares[1]})",
    )
