"""The linear system of a ridge problem, and what every solver of it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ridgefold.kernels import Gram, WeightedGram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.centring import Centring, centre
from ridgefold.linalg.unpenalised import Unpenalised, unpenalised_space
from ridgefold.records import Cost, FittedModel, Problem


@dataclass(frozen=True)
class RidgeSystem:
    """(K + α W⁻¹) a + Fβ = y with Fᵀa = 0 for unpenalised columns F, if there are any.

    They are the column of ones, if there is a bias, and the `fixed` columns of the Gram matrix.
    Solved as (K̃ + αI) ã = ỹ with K̃ = W^½ K W^½, ỹ = W^½ y, a = W^½ ã, so that one matrix
    serves every α. All weights are positive: rows of weight zero have been left out.
    """

    gram: Gram
    targets: Array
    """The targets y, of shape (n, t)."""
    alphas: np.ndarray
    """One ridge value for each target, shape (t,)."""
    weights: Array | None = None
    bias: bool = False
    tolerance: float = 1e-10
    """Iterative solvers stop at ‖residual‖ ≤ tolerance·‖y‖; others ignore it."""

    @property
    def namespace(self) -> Namespace:
        return self.gram.namespace

    def root_weights(self) -> Array | None:
        return None if self.weights is None else self.namespace.xp.sqrt(self.weights)

    def weighted_targets(self) -> Array:
        root = self.root_weights()
        return self.targets if root is None else self.targets * root[:, None]

    def unweighted(self, coefficients: Array) -> Array:
        """a from ã."""
        root = self.root_weights()
        return coefficients if root is None else coefficients * root[:, None]

    def weighted_gram(self) -> Gram:
        """K̃ as a source."""
        root = self.root_weights()
        return self.gram if root is None else WeightedGram(self.gram, root)

    def unpenalised(self) -> Unpenalised | None:
        """The space of the unpenalised columns."""
        return unpenalised_columns(self.gram, self.root_weights(), bias=self.bias)

    def model(
        self,
        dual: Array,
        space: Unpenalised | None,
        coefficients: Array,
        *,
        primal: Array | None = None,
        certificate: Array | None = None,
    ) -> FittedModel:
        """The model of dual coefficients a and of those of the unpenalised columns (q, t)."""
        if space is None:
            intercept = self.namespace.zeros(dual.shape[1], dual)
            return FittedModel(dual, intercept, primal, certificate)
        intercept, fixed = space.intercept(coefficients), space.others(coefficients)
        return FittedModel(dual, intercept, primal, certificate, fixed_coef=fixed)


def unpenalised_columns(gram: Gram, roots: Array | None, *, bias: bool) -> Unpenalised | None:
    """The space of the bias, if there is one, and of the Gram matrix's own unpenalised columns."""
    return unpenalised_space(
        gram.namespace,
        gram.fixed_columns(),
        roots,
        bias=bias,
        n_rows=gram.shape[0],
        like=gram.like,
    )


def with_unpenalised(gram: Gram, rows: np.ndarray, values: Array, model: FittedModel) -> Array:
    """Predictions of some rows of a Gram matrix, from K a alone."""
    values = values + model.intercept[None, :]
    columns = gram.fixed_columns()
    if columns is None:
        return values
    return values + gram.namespace.take_rows(columns, rows) @ model.fixed_coef


class Solver(Protocol):
    """One way to solve a ridge system. Registered in `solvers/__init__.py`."""

    name: str
    exact: bool
    """True if the solution is right to rounding error, False if to a tolerance."""
    may_give_up: bool
    """True if it can find out, at little cost, that the data do not suit it."""
    last_resort: bool
    """True if it is to be chosen only when nothing else fits the memory."""

    def can_run(self, problem: Problem) -> str | None:
        """None, or the reason why this solver cannot take the problem."""

    def cost(self, problem: Problem) -> Cost:
        """Work and memory, from shapes."""

    def solve(self, system: RidgeSystem) -> FittedModel:
        """Solve it; warn if digits are lost."""


def for_each_alpha(
    system: RidgeSystem, right: Array, solve: Callable[[float, Array], tuple[Array, ...]]
) -> tuple[Array, ...]:
    """Solve the targets that share an α together.

    `solve(alpha, columns of right)` gives arrays whose last axis runs over those columns;
    they come back put together in the order of the targets.
    """
    namespace, xp = system.namespace, system.namespace.xp
    distinct = np.unique(system.alphas)
    if len(distinct) == 1:
        return solve(float(distinct[0]), right)
    groups = [np.flatnonzero(system.alphas == alpha) for alpha in distinct]
    solutions = [
        solve(float(alpha), xp.take(right, namespace.indices(columns, right), axis=1))
        for alpha, columns in zip(distinct, groups, strict=True)
    ]
    order = namespace.indices(np.argsort(np.concatenate(groups)), right)
    return tuple(
        xp.take(xp.concat(groups_of_one, axis=-1), order, axis=-1)
        for groups_of_one in zip(*solutions, strict=True)
    )


def write_system_matrix(gram: Gram, space: Unpenalised | None, out: Array) -> Centring | None:
    """Write the lower triangle of a Gram matrix, without the space of the unpenalised columns.

    The α of the ridge is not yet on the diagonal.
    """
    gram.write_lower(out)
    return None if space is None else centre(gram.namespace, out, space)
