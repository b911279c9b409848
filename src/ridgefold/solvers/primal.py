"""Solve for the weights of the features when there are fewer features than rows.

w = (ΦᵀΦ + αI)⁻¹Φᵀy is the same function as a = (ΦΦᵀ + αI)⁻¹y (Welling); the first inverts
D×D, the second n×n. The dual coefficients follow as a = (y − Φw − Fβ)/α. Unpenalised columns F,
such as a bias, are taken out of features and targets first (QᵀΦ, Qᵀy of `linalg.unpenalised`).
"""

from __future__ import annotations

from dataclasses import replace

from ridgefold.linalg import Array
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.linalg.symmetric import factorise
from ridgefold.linalg.unpenalised import Unpenalised
from ridgefold.records import Cost, FittedModel, Problem
from ridgefold.solvers.base import RidgeSystem, for_each_alpha


class Primal:
    """Normal equations in feature space, accumulated over blocks of rows."""

    name = "primal"
    exact = True
    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        width = problem.feature_dimension
        if problem.kernel == "given":
            return "a precomputed kernel matrix has no features to solve for"
        if width is None:
            return "the kernel's feature space is infinite"
        if width >= problem.n_rows:
            return f"{width} features are not fewer than {problem.n_rows} rows"
        if problem.smallest_alpha <= 0:
            return "alpha = 0 leaves the dual coefficients undetermined"
        return None

    def cost(self, problem: Problem) -> Cost:
        n, width, t = problem.n_rows, problem.feature_dimension or 0, problem.n_targets
        return Cost(
            flops={
                "product": n * width**2 + 4.0 * n * width * t,
                "cholesky": problem.n_alphas * width**3 / 3,
                "calls": 8.0,
            },
            size=width,
            peak_bytes=problem.itemsize * (2.0 * width**2 + n * 3.0 * t) + 16 * CACHE_BYTES,
        )

    def solve(self, system: RidgeSystem) -> FittedModel:
        namespace, gram = system.namespace, system.gram
        n, t = system.targets.shape
        width = gram.feature_dimension or 0
        blocks = list(row_blocks(n, width * gram.itemsize, 4 * CACHE_BYTES))
        root, space = system.root_weights(), system.unpenalised()
        in_space = None if space is None else self._in_space(system, space, blocks)

        def features(rows: slice) -> tuple[Array, Array]:
            """Weighted features and targets, without what the unpenalised columns explain."""
            phi, y = gram.features(rows), system.targets[rows, :]
            if root is not None:
                phi, y = phi * root[rows][:, None], y * root[rows][:, None]
            if space is not None and in_space is not None:
                phi = phi - space.basis[rows, :] @ in_space[0]
                y = y - space.basis[rows, :] @ in_space[1]
            return phi, y

        normal = namespace.zeros((width, width), system.targets)
        right = namespace.zeros((width, t), system.targets)
        for rows in blocks:
            phi, y = features(rows)
            normal += phi.T @ phi
            right += phi.T @ y

        def solve_for(alpha: float, columns: Array) -> tuple[Array]:
            def fill(storage: Array) -> None:
                storage[...] = normal
                namespace.add_to_diagonal_in_place(storage, alpha)

            matrix = namespace.empty(normal.shape, normal)
            fill(matrix)
            factor = factorise(namespace, matrix, refill=fill)
            factor.warn_if_ill_conditioned(f"ΦᵀΦ + alpha·I (alpha={alpha:g})")
            return (factor.solve(columns),)

        (coefficients,) = for_each_alpha(system, right, solve_for)
        unpenalised = namespace.zeros((0, t), system.targets)
        if space is not None and in_space is not None:
            unpenalised = space.coefficients(in_space[1] - in_space[0] @ coefficients)
        model = system.model(right, space, unpenalised)
        columns = gram.fixed_columns()
        dual = namespace.empty((n, t), system.targets)
        alphas = namespace.asarray(system.alphas, system.targets)
        for rows in blocks:
            fitted = gram.features(rows) @ coefficients + model.intercept[None, :]
            if columns is not None:
                fitted += columns[rows, :] @ model.fixed_coef
            residual = system.targets[rows, :] - fitted
            if system.weights is not None:
                residual = residual * system.weights[rows][:, None]
            dual[rows, :] = residual / alphas[None, :]
        return replace(model, dual_coef=dual, primal_coef=coefficients)

    @staticmethod
    def _in_space(
        system: RidgeSystem, space: Unpenalised, blocks: list[slice]
    ) -> tuple[Array, Array]:
        """QᵀΦ̃ and Qᵀỹ: the parts of features and targets that unpenalised columns take up."""
        namespace, gram, root = system.namespace, system.gram, system.root_weights()
        features = namespace.zeros((space.rank, gram.feature_dimension or 0), system.targets)
        targets = namespace.zeros((space.rank, system.targets.shape[1]), system.targets)
        for rows in blocks:
            own = space.basis[rows, :]
            if root is not None:
                own = own * root[rows][:, None]
            features += own.T @ gram.features(rows)
            targets += own.T @ system.targets[rows, :]
        return features, targets
