"""The cells of a partitioned model on a map: where they lie, and how well each does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.cells.combine import COMBINERS
from ridgefold.cells.scaled_rows import in_metric
from ridgefold.errors import InvalidInputError
from ridgefold.report.displays.base import Display, column_names, fitted
from ridgefold.report.evidence import HeldOutClasses, HeldOutNumbers, held_out_of
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
from ridgefold.report.words import clean, number, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SAMPLE_ROWS = 1500
_MOST_NUMBERS = 40
_LARGEST = 1e150
"""Squares of larger numbers, added up, leave the range of numbers."""
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
        return cls.of(estimator).plot(ax)

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """The display before it is drawn."""
        inner = fitted(estimator)
        if not has_map(inner):
            raise InvalidInputError(
                f"{type(inner).__name__} has no cells that lie side by side: fit a "
                'PartitionedKernelRidge with combine="blend" or "route" and cells.refine=None'
            )
        cells = inner._cells
        n, m = int(inner.X_fit_.shape[0]), len(cells.offsets) - 1
        owner = owners(cells, n)
        sample = np.unique(np.linspace(0, n - 1, min(n, 4 * _SAMPLE_ROWS)).astype(np.intp))
        rows = np.asarray(inner.X_fit_[sample], dtype=np.float64)
        known = column_names(estimator)
        if inner.length_scales_ is not None:
            rows = in_metric(rows, inner.length_scales_)
            known = tuple(
                name
                for name, scale in zip(known, inner.length_scales_, strict=True)
                if np.isfinite(scale)
            )
        flat, names = _on_a_map(rows, inner, sample, known)
        centres = np.full((m, 2), np.nan)
        for c in range(m):
            inside = owner[sample] == c
            if inside.any():
                centres[c] = flat[inside].mean(axis=0)
        errors, name = errors_by_cell(estimator, owner, m)
        drawn = slice(None, None, max(1, len(sample) // _SAMPLE_ROWS))
        return cls(
            points=flat[drawn],
            owner=owner[sample][drawn],
            centres=centres,
            sizes=np.asarray(inner.partition_sizes_),
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


def has_map(inner: Any) -> bool:
    """Whether cells lie side by side, so that they can be drawn."""
    return (
        hasattr(inner, "partition_sizes_")
        and COMBINERS[inner._combine].needs_space
        and len(inner._cells.offsets) - 1 == inner.n_partitions_
    )


def owners(cells: Any, n_rows: int) -> np.ndarray:
    """For each row the cell that has the largest share in it."""
    m = len(cells.offsets) - 1
    cell = np.repeat(np.arange(m), np.diff(cells.offsets))
    found = np.zeros(n_rows, dtype=np.intp)
    if cells.weights is None:
        found[cells.rows] = cell
        return found
    order = np.argsort(cells.weights, kind="stable")  # the largest is written last
    found[cells.rows[order]] = cell[order]
    return found


def errors_by_cell(
    estimator: Any, owner: np.ndarray, n_cells: int
) -> tuple[np.ndarray | None, str]:
    """Held-out error of the rows of each cell, and its name."""
    found = held_out_of(estimator)
    if found is None or found.rows is None:
        return None, "error"
    if isinstance(found, HeldOutClasses):
        losses, name = (found.truth != found.predicted).astype(np.float64), "share of wrong answers"
    else:
        assert isinstance(found, HeldOutNumbers)
        # Targets differ in their units: each counts by its own spread.
        spread = found.spread if found.truth.shape[1] > 1 else np.ones(1)
        scaled = found.residuals / np.where(spread > 0, spread, 1.0)
        losses, name = np.mean(scaled**2, axis=1), "error"
    cell = owner[found.rows]
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
    rows: np.ndarray, inner: Any, sample: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, tuple[str, str]]:
    """Two coordinates for each row: principal directions, or what there is."""
    rows = _drawable(rows)
    if rows.shape[1] == 1:
        name = clean(names[0], 30)
        truth = getattr(inner, "y_fit_", None)
        if truth is None:
            return np.column_stack([rows[:, 0], np.zeros(len(rows))]), (name, "")
        y = np.asarray(truth)[sample].astype(np.float64).reshape(len(sample), -1)[:, 0]
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
