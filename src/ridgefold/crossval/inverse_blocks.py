"""One inverse for every α, then one small system for every fold.

An, Liu and Venkatesh 2007 ('Fast' in Tanaka and Imai's figures); with a bias, Algorithm 1
of do Nascimento et al. with the sign of its rank-one term corrected, for any unpenalised columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ridgefold.crossval.shared.base import (
    HeldOut,
    Judge,
    Progress,
    needs_complement,
    no_progress,
)
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.shortcut import Layout, Position, held_out_from_inverses, lay_out
from ridgefold.crossval.shared.weight_spread import needs_weight_in_training
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.blocks import WORKSPACE_BYTES
from ridgefold.linalg.centring import Centring, multiply_symmetric
from ridgefold.linalg.symmetric import SpectralFactor, factorise
from ridgefold.records import Cost, Problem
from ridgefold.solvers.base import write_system_matrix


class _DenseInverse:
    """C for one α as a whole matrix, in the storage that held K."""

    def __init__(
        self, layout: Layout, matrix: Array, centring: Centring | None, alpha: float, y: Array
    ) -> None:
        self._layout, self._matrix, self._y = layout, matrix, y
        self.alpha = alpha
        namespace = layout.namespace

        def refill(storage: Array) -> None:
            write_system_matrix(layout.system_gram(), layout.unpenalised(), storage)
            namespace.add_to_diagonal_in_place(storage, alpha)

        factor = factorise(namespace, matrix, refill)
        if isinstance(factor, SpectralFactor):
            factor = factor.regular(alpha)
        self.condition = factor.known_condition()
        # By the factor, for what predicts with them: Cỹ would lose as many digits again.
        self.coefficients = factor.solve(y)
        if centring is not None:
            self.coefficients = centring.project(self.coefficients)
        inverse = factor.inverse_in_place()
        if inverse is not matrix:
            matrix[...] = inverse
        in_order = all(isinstance(position, slice) for position in layout.positions)
        if centring is not None or not in_order:
            namespace.fill_upper_in_place(matrix)
        if centring is not None:
            centring.take_off_all(matrix, alpha)

    def one_by_one(self) -> tuple[Array, Array]:
        diagonal = self._layout.namespace.diagonal(self._matrix)
        product = multiply_symmetric(self._layout.namespace, self._matrix, self._y)
        return diagonal, product - diagonal[:, None] * self._y

    def others(self, position: Position, block: Array) -> Array:
        matrix, y, namespace = self._matrix, self._y, self._layout.namespace
        if isinstance(position, slice):  # then the upper triangle may be empty
            before, after = slice(None, position.start), slice(position.stop, None)
            return matrix[position, before] @ y[before, :] + matrix[after, position].T @ y[after, :]
        outside = np.delete(np.arange(y.shape[0]), position)
        columns = namespace.indices(outside, matrix)
        rows = namespace.xp.take(namespace.take_rows(matrix, position), columns, axis=1)
        return rows @ namespace.take_rows(y, outside)

    def block(self, position: Position) -> Array:
        namespace = self._layout.namespace
        if isinstance(position, slice):
            return namespace.copy(self._matrix[position, position])
        rows = namespace.take_rows(self._matrix, position)
        return namespace.xp.take(rows, namespace.indices(position, rows), axis=1)

    def columns_times(self, position: Position, d: Array) -> Array:
        namespace, n = self._layout.namespace, self._matrix.shape[0]
        if not isinstance(position, slice):  # then the upper triangle has been filled too
            columns = namespace.indices(position, self._matrix)
            return namespace.xp.take(self._matrix, columns, axis=1) @ d
        padded = namespace.zeros((n, d.shape[1]), d)
        padded[position, :] = d
        return multiply_symmetric(namespace, self._matrix, padded)


class InverseBlocks:
    """C = (K + αI)⁻¹ in place for each α; d_k = C_kk⁻¹ a_k."""

    name = "inverse_blocks"
    exact = True
    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        return needs_complement(problem) or needs_weight_in_training(problem)

    def cost(self, problem: Problem) -> Cost:
        n, a = problem.n_rows, problem.n_alphas
        largest = max(fold.test for fold in problem.folds)
        return Cost(
            flops={
                "kernel": a * 0.5 * n**2,
                "cholesky": a * (n**3 + sum(f.count * f.test**3 for f in problem.folds)) / 3.0,
                "inverse": a * 2.0 * n**3 / 3,
                "product": a * 2.0 * n**2 * problem.n_targets,
                "calls": a * (8.0 + 2.0 * (largest > 1) * problem.n_folds),
            },
            size=n,
            peak_bytes=WORKSPACE_BYTES
            + problem.itemsize * (n**2 + 3.0 * largest**2 + problem.held_out_numbers),
        )

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> Layout:
        return lay_out(gram, folds, weights, bias)

    def held_out(
        self,
        state: Layout,
        targets: Array,
        alphas: np.ndarray,
        progress: Progress = no_progress,
        judge: Judge | None = None,
    ) -> HeldOut:
        def inverses(y: Array) -> Iterator[_DenseInverse]:
            n = len(state.rows)
            matrix = state.namespace.empty((n, n), targets)
            for alpha in alphas:
                centring = write_system_matrix(state.system_gram(), state.unpenalised(), matrix)
                state.namespace.add_to_diagonal_in_place(matrix, float(alpha))
                yield _DenseInverse(state, matrix, centring, float(alpha), y)

        return held_out_from_inverses(state, targets, inverses, len(alphas), progress)
