"""The linear system of a ridge problem, and what every solver of it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ridgefold.kernels import Gram, WeightedGram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.centring import Centring, centre_for_bias
from ridgefold.records import Cost, FittedModel, Problem


@dataclass(frozen=True)
class RidgeSystem:
    """(K + α W⁻¹) a + b = y with 1ᵀa = 0 for the bias b, if there is one.

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

    def bias_direction(self) -> Array | None:
        """s = √w (ones without weights) if there is a bias."""
        if not self.bias:
            return None
        root = self.root_weights()
        return self.namespace.ones(self.targets.shape[0], self.targets) if root is None else root


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


def write_system_matrix(gram: Gram, direction: Array | None, out: Array) -> Centring | None:
    """Write the lower triangle of a Gram matrix, centred along `direction` if there is a bias.

    The α of the ridge is not yet on the diagonal.
    """
    gram.write_lower(out)
    return None if direction is None else centre_for_bias(gram.namespace, out, direction)
