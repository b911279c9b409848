"""A problem as the planner sees it: shapes and settings, no data."""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.records.kinds import Count


@dataclass(frozen=True)
class FoldShape:
    """Folds of one size."""

    test: Count
    """Rows held out."""
    train: Count
    """Rows trained on."""
    count: Count = 1
    """How many folds are like this."""


@dataclass(frozen=True)
class Problem:
    """The shapes and settings of one ridge system, or of one cross-validation."""

    n_rows: Count
    n_columns: Count
    """Columns that the kernel computes with."""
    n_targets: Count = 1
    n_alphas: Count = 1
    """Distinct ridge values."""
    n_kernels: Count = 1
    """Kernels that are chosen from."""
    smallest_alpha: float = 1.0
    largest_alpha: float = 1.0
    itemsize: Count = 8
    """Bytes of one number: 4 for float32, 8 for float64."""
    feature_dimension: Count | None = None
    """Dimension of the kernel's feature space; None if infinite or unknown."""
    bias: bool = False
    fixed: Count = 0
    """Unpenalised columns beside the bias."""
    weighted: bool = False
    kernel: str = "euclidean"
    """How a kernel value is computed: from "euclidean" or "manhattan" distances, "dot" products,
    "given" in a matrix, or in some "other" way."""
    semidefinite: bool = True
    """True if the kernel matrix is known to be positive semi-definite."""
    folds: tuple[FoldShape, ...] = ()
    """The folds by their sizes; empty if nothing is cross-validated."""
    spectrum: tuple[float, ...] = ()
    """Eigenvalues of the kernel matrix as a small sample of the rows shows them: the largest,
    falling, and last the smallest; empty if nothing is known."""
    remainders: tuple[tuple[Count, float], ...] = ()
    """What pivoted low-rank factors leave of the trace of the kernel matrix, as (columns, trace)
    for a few numbers of columns; empty if nothing is known."""
    judged: bool = False
    """True if a search drops ridge values as soon as they cannot win, and has a good score."""
    complement_folds: bool = True
    """True if every fold is trained on all rows that it does not test."""
    columns_left_out: Count = 0
    """Further columns of X, which the kernel does not look at."""
    weight_range: float = 1.0
    """The largest weight over the smallest that is not zero."""
    least_training_share: float = 1.0
    """The smallest share of all weight that the training rows of a fold hold; 1 without weights.
    With unpenalised columns the smallest share of any direction in their space; 0 where the
    training rows of a fold leave coefficients undetermined that all rows determine."""

    @property
    def likely_share(self) -> float:
        """The share of the folds that a method going fold by fold will likely see.

        Widths beside the best one take all folds, those far from it one.
        """
        return 0.65 if self.judged else 1.0

    @property
    def n_folds(self) -> int:
        return sum(fold.count for fold in self.folds)

    @property
    def held_out_numbers(self) -> int:
        """How many held-out predictions there are."""
        rows = sum(fold.count * fold.test for fold in self.folds)
        return rows * self.n_targets * self.n_alphas
