"""How fast the eigenvalues of the kernel matrix fall, and how many the ridge lets through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.cells.computed_rows import in_metric
from ridgefold.cells.partition_count import effective_dimension
from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.estimators.facts import CellFacts, ModelFacts, to_numpy
from ridgefold.kernels import Kernel, KernelGram, PrecomputedGram
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import setting
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import ACCENT, SIGNAL, axes_or_new, dress, note, plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SAMPLE_ROWS = 500
"""Rows whose kernel matrix is decomposed: enough for the large eigenvalues, in a moment."""
_SMALLEST = 1e-12
"""Eigenvalues below this share of the largest are rounding errors."""


class SpectrumDisplay(Display):
    """Eigenvalues of the kernel matrix, estimated from a sample of the rows.

    Parameters
    ----------
    eigenvalues : array, falling
        Of the kernel matrix of all rows, as a sample shows them.
    alpha : float
        The ridge.
    dimension : float
        Effective dimension tr K(K + alpha·I)⁻¹, from the same sample.
    sample_rows, rows : int
        Rows of the sample, and those it stands for.
    whose : str
        What the matrix belongs to: all rows, or one cell.
    """

    def __init__(
        self,
        *,
        eigenvalues: np.ndarray,
        alpha: float,
        dimension: float,
        sample_rows: int,
        rows: int,
        whose: str = "all rows",
    ) -> None:
        self.eigenvalues = eigenvalues
        self.alpha = alpha
        self.dimension = dimension
        self.sample_rows = sample_rows
        self.rows = rows
        self.whose = whose

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the spectrum of a fitted model's kernel matrix."""
        return cls.of(facts_of(estimator)).plot(ax)

    @classmethod
    def of(cls, facts: ModelFacts) -> Self:
        """The display before it is drawn."""
        if facts.compressed:
            raise InvalidInputError(
                "a compressed model keeps few of its rows: draw the spectrum of the model that it "
                "came from"
            )
        sample = _sample(facts) if facts.cells is None else _cell_sample(facts, facts.cells)
        m = sample.matrix.shape[0]
        if not np.all(np.isfinite(sample.matrix)):
            raise NumericalError(
                "the kernel matrix has no spectrum, as its values overflow: scale the columns of X"
            )
        values = np.linalg.eigvalsh(sample.matrix)[::-1]
        return cls(
            eigenvalues=values * sample.rows / m,
            alpha=sample.alpha,
            dimension=_dimension(values, sample.alpha * m / sample.rows),
            sample_rows=m,
            rows=sample.rows,
            whose=sample.whose,
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        values = self.eigenvalues
        kept = values > _SMALLEST * values[0] if values[0] > 0 else np.zeros(len(values), bool)
        values = values[kept]
        if len(values) == 0:
            raise InvalidInputError("the kernel matrix has no positive eigenvalue to draw")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.plot(np.arange(1, len(values) + 1), values, color=ACCENT, linewidth=1.8)
        if self.alpha > 0:
            ax.axhline(self.alpha, color=SIGNAL, linewidth=1.0)
            note(
                ax, 1.0, self.alpha, f"ridge {setting(self.alpha)}", color=SIGNAL,
                xytext=(2, 3), textcoords="offset points",
            )  # fmt: skip
        dress(ax, x="eigenvalue number", y="eigenvalue")
        plain_ticks(ax)
        return self


@dataclass(frozen=True)
class _Sample:
    """The kernel matrix of some rows, and what they stand for."""

    matrix: np.ndarray
    alpha: float
    rows: int
    whose: str


def _dimension(values: np.ndarray, alpha: float) -> float:
    """The effective dimension; without a ridge, the rank."""
    if alpha > 0:
        return effective_dimension(values, alpha)
    return float(np.sum(values > _SMALLEST * values[0]))


def _evenly_spread(n: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, _SAMPLE_ROWS)).astype(np.intp))


def _sample(facts: ModelFacts) -> _Sample:
    X, kernel = facts.rows, facts.kernels[0]
    gram = KernelGram(kernel, X) if isinstance(kernel, Kernel) else PrecomputedGram(X)
    rows = int(X.shape[0])
    matrix = to_numpy(gram.restricted(_evenly_spread(rows)).full()).astype(np.float64)
    return _Sample(matrix, float(facts.alphas[0]), rows, "all rows")


def _cell_sample(facts: ModelFacts, facts_of_cells: CellFacts) -> _Sample:
    """A sample of the cell of middle size: a partitioned model solves the matrix of each cell."""
    cells, models = facts_of_cells.cells, facts_of_cells.models
    sizes = np.diff(cells.offsets)
    c = int(np.argsort(sizes, kind="stable")[len(sizes) // 2])
    rows = cells.rows[cells.offsets[c] : cells.offsets[c + 1]]
    X = np.asarray(facts.rows[rows[_evenly_spread(len(rows))]], dtype=np.float64)
    if facts.metric is not None:
        X = in_metric(X, facts.metric.length_scales)
    kernel = models.kernels[int(models.kernel_of_cell[c])]
    whose = f"cell {c + 1}" if len(sizes) > 1 else "all rows"
    return _Sample(KernelGram(kernel, X).full(), float(models.alpha[c]), len(rows), whose)
