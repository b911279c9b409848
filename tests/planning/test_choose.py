"""Which solver is chosen, and what is said about the others."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from cases import rows, targets
from ridgefold import KernelRidge
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.planning import plan_cross_validation, plan_fit
from ridgefold.records import FoldShape, Problem, Resources
from ridgefold.solvers import SOLVERS

PLENTY = Resources(memory_bytes=1e15)


def problem(**settings):
    return Problem(**{"n_rows": 5000, "n_columns": 10, **settings})


def test_one_alpha_is_solved_by_cholesky():
    assert plan_fit(problem(), PLENTY).method == "cholesky"


def test_many_alphas_are_solved_by_one_eigendecomposition():
    many = problem(n_targets=500, n_alphas=500)
    assert plan_fit(many, PLENTY).method == "eigendecomposition"


def test_few_features_are_solved_in_the_primal():
    assert plan_fit(problem(feature_dimension=10), PLENTY).method == "primal"
    assert plan_fit(problem(feature_dimension=5000), PLENTY).method == "cholesky"


def test_a_matrix_that_does_not_fit_is_never_stored():
    plan = plan_fit(problem(n_rows=100_000), Resources(memory_bytes=4e9))
    assert plan.method == "conjugate_gradient"
    assert plan.cost.peak_bytes <= 4e9
    reasons = {r.method: r.reason for r in plan.rejected}
    assert reasons["cholesky"] == "needs 80 GB, the budget is 4 GB"
    assert "infinite" in reasons["primal"]


def test_every_solver_is_chosen_or_rejected_with_a_reason():
    for settings in ({}, {"feature_dimension": 10}, {"smallest_alpha": 0.0}, {"kernel": "given"}):
        plan = plan_fit(problem(**settings), PLENTY)
        assert {plan.method, *(r.method for r in plan.rejected)} == set(SOLVERS)
        assert all(r.reason for r in plan.rejected)
        assert plan.seconds > 0


def test_exact_solvers_come_before_faster_ones():
    plan = plan_fit(problem(n_rows=200_000), Resources(memory_bytes=1e15))
    assert SOLVERS[plan.method].exact


def test_a_budget_that_nothing_fits_names_what_each_needs():
    with pytest.raises(BudgetError) as caught:
        plan_fit(problem(n_rows=100_000), Resources(memory_bytes=1e6))
    text = str(caught.value)
    assert "memory_budget=1 MB with 100000 rows" in text
    assert "cholesky needs 80 GB" in text
    assert "conjugate_gradient needs" in text
    assert "raise memory_budget; fit on at most" in text
    assert "PartitionedKernelRidge, in 100 cells" in text


def test_the_rows_that_a_refusal_names_do_fit():
    with pytest.raises(BudgetError) as caught:
        plan_fit(problem(n_rows=100_000), Resources(memory_bytes=1e8), "cholesky")
    most = int(re.search(r"at most (\d+) rows", str(caught.value))[1])
    assert plan_fit(problem(n_rows=most), Resources(memory_bytes=1e8), "cholesky")
    assert 8.0 * most**2 > 0.9e8


def test_a_time_budget_rules_out_what_is_slower():
    assert plan_fit(problem(), Resources(1e15, seconds=60.0)).method == "cholesky"
    with pytest.raises(BudgetError, match=r"time_budget=1 s .*raise memory_budget or time_budget"):
        plan_fit(problem(n_rows=50_000), Resources(1e15, seconds=1.0))


def test_a_spectrum_that_falls_slowly_rules_methods_out_unless_they_are_asked_for():
    spectrum = (*(50.0 / (i + 1) ** 0.2 for i in range(255)), 1e-8)
    slow = problem(
        n_alphas=20, smallest_alpha=1e-4, folds=(FoldShape(1000, 4000, 5),), spectrum=spectrum
    )
    plan = plan_cross_validation(slow, PLENTY)
    reasons = {r.method: r.reason for r in plan.rejected}
    assert "falls so slowly" in reasons["krylov"]
    assert "rank of about 5000" in reasons["low_rank"]
    assert plan_cross_validation(slow, PLENTY, "krylov").method == "krylov"
    assert plan_cross_validation(slow, PLENTY, "low_rank").method == "low_rank"


def test_a_spectrum_with_a_floor_is_well_conditioned():
    """Rows far from each other: K is little else than its diagonal, and few steps will do."""
    apart = problem(
        n_alphas=20, smallest_alpha=1e-4, folds=(FoldShape(1000, 4000, 5),), spectrum=(1.0,) * 256
    )
    assert plan_cross_validation(apart, PLENTY).method == "krylov"


def steep(alpha):
    """A spectrum that falls by half from one eigenvalue to the next."""
    return problem(
        n_alphas=20,
        smallest_alpha=alpha,
        folds=(FoldShape(1000, 4000, 5),),
        spectrum=tuple(5000.0 * 0.5 ** np.arange(96)),
    )


def test_a_spectrum_that_falls_fast_brings_them_in():
    assert plan_cross_validation(steep(1e-1), PLENTY).method == "low_rank"


def test_what_rounding_would_spoil_is_not_tried():
    plan = plan_cross_validation(steep(1e-6), PLENTY)
    reasons = {r.method: r.reason for r in plan.rejected}
    assert "rounding alone" in reasons["low_rank"]
    assert "condition number of about 5e+09" in reasons["anchored"]


def test_a_factor_of_all_but_rounding_is_as_good_as_exact():
    assert plan_cross_validation(steep(1e-4), PLENTY).method == "low_rank"


def test_short_work_runs_on_one_thread():
    assert plan_fit(problem(n_rows=100), Resources(1e15, threads=8)).resources.threads == 1
    assert plan_fit(problem(n_rows=20_000), Resources(1e15, threads=8)).resources.threads == 8


def test_a_plan_is_made_in_no_time():
    small = problem(n_rows=300, n_alphas=25, folds=(FoldShape(60, 240, 5),))
    plan_cross_validation(small, PLENTY)
    started = time.process_time()
    for _ in range(20):
        plan_cross_validation(small, PLENTY)
    assert (time.process_time() - started) / 20 < 5e-3  # about 0.3 ms on an idle machine


def test_a_requested_solver_is_obeyed_or_refused():
    assert plan_fit(problem(), PLENTY, "eigendecomposition").method == "eigendecomposition"
    with pytest.raises(BudgetError, match="eigendecomposition needs"):
        plan_fit(problem(), Resources(memory_bytes=1e6), "eigendecomposition")
    with pytest.raises(InvalidInputError, match=r"primal.*infinite"):
        plan_fit(problem(), PLENTY, "primal")
    with pytest.raises(InvalidInputError, match=r"solver must be one of auto.*got 'svd'"):
        plan_fit(problem(), PLENTY, "svd")


def test_a_fit_whose_matrix_does_not_fit_gives_the_same_predictions():
    X = rows(3400, 2)
    y = targets(X)
    exact = KernelRidge(1.0, kernel="rbf").fit(X, y)
    frugal = KernelRidge(1.0, kernel="rbf", memory_budget="90MB").fit(X, y)
    assert exact.plan_.method == "cholesky"
    assert frugal.plan_.method == "conjugate_gradient"
    bound = frugal._model.certificate[0] / 2 + 1e-9
    assert np.abs(frugal.predict(X[:100]) - exact.predict(X[:100])).max() <= bound
