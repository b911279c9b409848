"""Cholesky factorisation of K + αI in the storage of K: the default for one ridge value."""

from __future__ import annotations

from ridgefold.linalg import Array
from ridgefold.linalg.centring import Centring, solve_centred
from ridgefold.linalg.symmetric import factorise
from ridgefold.records import Cost, FittedModel, Problem
from ridgefold.solvers.base import (
    RidgeSystem,
    for_each_alpha,
    write_system_matrix,
)


class Cholesky:
    """One factorisation for each distinct α; nothing of size n² but K itself."""

    name = "cholesky"
    exact = True
    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        return None

    def cost(self, problem: Problem) -> Cost:
        n = problem.n_rows
        return Cost(
            flops={
                "kernel": problem.n_alphas * 0.5 * n**2,
                "cholesky": problem.n_alphas * n**3 / 3,
                "product": 2.0 * n**2 * problem.n_targets,
                "calls": 10.0 * problem.n_alphas,
            },
            size=n,
            peak_bytes=problem.itemsize
            * (n**2 + n * (2.0 * problem.n_columns + 4 * problem.n_targets)),
        )

    def solve(self, system: RidgeSystem) -> FittedModel:
        namespace = system.namespace
        n = system.targets.shape[0]
        gram, space = system.weighted_gram(), system.unpenalised()
        matrix = namespace.empty((n, n), system.targets)

        def solve_for(alpha: float, right: Array) -> tuple[Array, Array]:
            def fill(storage: Array) -> Centring | None:
                centring = write_system_matrix(gram, space, storage)
                namespace.add_to_diagonal_in_place(storage, alpha)
                return centring

            centring = fill(matrix)
            factor = factorise(namespace, matrix, refill=fill)
            factor.warn_if_ill_conditioned(f"K + alpha·I (alpha={alpha:g})")
            return solve_centred(factor, centring, right)

        solution, unpenalised = for_each_alpha(system, system.weighted_targets(), solve_for)
        return system.model(system.unweighted(solution), space, unpenalised)
