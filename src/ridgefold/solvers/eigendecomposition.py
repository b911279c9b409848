"""One eigendecomposition K = PΛPᵀ, then any number of ridge values at n² each."""

from __future__ import annotations

from ridgefold.linalg import Array
from ridgefold.linalg.centring import solve_centred
from ridgefold.linalg.symmetric import SpectralFactor, factorise_spectrally
from ridgefold.records import Cost, FittedModel, Problem
from ridgefold.solvers.base import (
    RidgeSystem,
    for_each_alpha,
    write_system_matrix,
)


class Eigendecomposition:
    """a(α) = P(Λ + αI)⁻¹Pᵀy: for a ridge value per target."""

    name = "eigendecomposition"
    exact = True
    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        return None

    def cost(self, problem: Problem) -> Cost:
        n = problem.n_rows
        return Cost(
            flops={
                "kernel": 0.5 * n**2,
                "eigendecomposition": 9.0 * n**3,
                "product": 4.0 * n**2 * problem.n_targets,
                "calls": 10.0 * problem.n_alphas,
            },
            size=n,
            peak_bytes=problem.itemsize
            * (3.0 * n**2 + n * (2.0 * problem.n_columns + 4 * problem.n_targets)),
        )

    def solve(self, system: RidgeSystem) -> FittedModel:
        namespace = system.namespace
        n = system.targets.shape[0]
        gram, space = system.weighted_gram(), system.unpenalised()
        matrix = namespace.empty((n, n), system.targets)
        centring = write_system_matrix(gram, space, matrix)
        spectrum = factorise_spectrally(namespace, matrix)

        def solve_for(alpha: float, right: Array) -> tuple[Array, Array]:
            factor = SpectralFactor(namespace, spectrum.values + alpha, spectrum.vectors)
            factor.warn_if_ill_conditioned(f"K + alpha·I (alpha={alpha:g})")
            return solve_centred(factor, centring, right)

        solution, unpenalised = for_each_alpha(system, system.weighted_targets(), solve_for)
        return system.model(system.unweighted(solution), space, unpenalised)
