"""Solve for the weights of the features when there are fewer features than rows.

w = (ΦᵀΦ + αI)⁻¹Φᵀy is the same function as a = (ΦΦᵀ + αI)⁻¹y (Welling); the first inverts
D×D, the second n×n. The dual coefficients follow as a = (y − Φw − b)/α.
"""

from __future__ import annotations

from ridgefold.linalg import Array
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.linalg.symmetric import factorise
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
        mean, mean_target = self._means(system, blocks)

        def features(rows: slice) -> Array:
            phi = gram.features(rows)
            return phi if mean is None else phi - mean[None, :]

        root = system.root_weights()
        normal = namespace.zeros((width, width), system.targets)
        right = namespace.zeros((width, t), system.targets)
        for rows in blocks:
            phi = features(rows)
            y = system.targets[rows, :]
            if mean_target is not None:
                y = y - mean_target[None, :]
            if root is not None:
                phi, y = phi * root[rows][:, None], y * root[rows][:, None]
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
        intercept = namespace.zeros(t, system.targets)
        if mean is not None and mean_target is not None:
            intercept = mean_target - mean @ coefficients
        dual = namespace.empty((n, t), system.targets)
        alphas = namespace.asarray(system.alphas, system.targets)
        for rows in blocks:
            fitted = gram.features(rows) @ coefficients + intercept[None, :]
            residual = system.targets[rows, :] - fitted
            if system.weights is not None:
                residual = residual * system.weights[rows][:, None]
            dual[rows, :] = residual / alphas[None, :]
        return FittedModel(dual, intercept, primal_coef=coefficients)

    @staticmethod
    def _means(system: RidgeSystem, blocks: list[slice]) -> tuple[Array | None, Array | None]:
        """Weighted means of features and targets: the bias is what centring leaves out."""
        if not system.bias:
            return None, None
        namespace, gram = system.namespace, system.gram
        weights = system.weights
        if weights is None:
            weights = namespace.ones(system.targets.shape[0], system.targets)
        total = float(namespace.xp.sum(weights))
        mean = namespace.zeros(gram.feature_dimension or 0, system.targets)
        for rows in blocks:
            mean += weights[rows] @ gram.features(rows)
        return mean / total, (weights @ system.targets) / total
