"""A time budget is compared with predictions before the work, and with the clock on the way."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from ridgefold import KernelRidgeCV, Search, cross_val_path
from ridgefold.crossval import METHODS, Deadline, make_folds
from ridgefold.errors import BudgetError, MethodGaveUpError, TimeBudgetWarning
from ridgefold.estimators import validation
from ridgefold.kernels import RBF, KernelGram
from ridgefold.planning import plan_cross_validation
from ridgefold.records import FoldShape, Problem, Resources
from ridgefold.selection.cross_validate import run_cross_validation

N = 140
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(N)
TOO_NARROW = 0.05
"""A width with which the kernel matrix is next to the identity, and no low-rank factor will do."""
ALPHAS = np.array([0.1, 1.0])


class Clock:
    """Moves on by a number of seconds whenever it is looked at."""

    def __init__(self, seconds=0.0):
        self.now, self.seconds, self.looks = 0.0, seconds, 0

    def __call__(self):
        self.now += self.seconds
        self.looks += 1
        return self.now


def test_a_deadline_counts_down_and_gives_grace_to_what_was_begun():
    clock = Clock()
    deadline = Deadline(10.0, clock)
    assert deadline.left == 10.0
    clock.now = 9.0
    assert deadline.left == pytest.approx(1.0)
    assert not deadline.has_time_for(2.0)
    deadline.begun = True
    assert deadline.has_time_for(2.0)  # until 1.15 times the budget and a second
    assert not deadline.has_time_for(4.0)
    deadline.check("nothing")
    clock.now = 11.6
    with pytest.raises(BudgetError, match=r"searching was stopped.*time_budget=10 s.*raise"):
        deadline.check("searching")


def test_a_deadline_that_is_sent_takes_along_what_is_left():
    clock = Clock()
    deadline = Deadline(100.0, clock)
    clock.now = 60.0
    sent = pickle.loads(pickle.dumps(deadline))  # noqa: S301 - our own
    assert 35.0 < sent.left <= 40.0


def planned(method, seconds_at_most=0.1):
    problem = Problem(N, 4, 1, 2, folds=(FoldShape(N // 5, N - N // 5, 5),))
    plan = plan_cross_validation(problem, Resources(1e9), method)
    object.__setattr__(plan, "seconds_at_most", seconds_at_most)
    return plan


def folds():
    rows = np.arange(N)
    return make_folds([(rows[rows % 5 != k], rows[rows % 5 == k]) for k in range(5)], N)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "anchored"])
def test_every_method_looks_at_the_clock_and_stops(method):
    deadline = Deadline(1.0, Clock(seconds=5.0))
    with pytest.raises(BudgetError, match=rf"cross-validation by {method} was stopped"):
        run_cross_validation(
            planned(method),
            KernelGram(RBF(1.0), X),
            folds(),
            Y[:, None],
            ALPHAS,
            deadline=deadline,
        )


def test_what_cannot_be_stopped_is_not_begun_without_time_for_it():
    """After a method has given up, a long one would end far beyond the budget."""
    plan = planned("low_rank", seconds_at_most=100.0)
    object.__setattr__(plan, "fallbacks", ("refit",))
    gram, given = KernelGram(RBF(TOO_NARROW), X), (folds(), Y[:, None], np.array([1e-3, 1e-2]))
    with pytest.raises(BudgetError, match=r"low_rank.*; what then would do, refit, is predicted"):
        run_cross_validation(plan, gram, *given, deadline=Deadline(10.0, Clock()))
    in_time = run_cross_validation(plan, gram, *given, deadline=Deadline(1e3, Clock()))
    assert in_time.method == "refit"


def only_methods_that_may_give_up(budget_of):
    """A time budget that holds none of the others, by their predicted times."""
    sure = [name for name, method in METHODS.items() if not method.may_give_up]
    return 0.9 * min(budget_of(name).seconds for name in sure)


def test_auto_never_ends_in_a_method_giving_up():
    settings = {"kernel": "rbf", "gamma": 1 / (2 * TOO_NARROW**2), "alpha": [1e-3, 1e-2]}
    with pytest.raises(MethodGaveUpError):
        cross_val_path(X, Y, method="low_rank", **settings)
    budget = only_methods_that_may_give_up(
        lambda name: cross_val_path(X, Y, method=name, **settings).plan
    )
    with pytest.raises(BudgetError, match=r"gave up too|was stopped|no method fits"):
        cross_val_path(X, Y, time_budget=budget, **settings)
    with pytest.raises(BudgetError):
        KernelRidgeCV(
            kernel="rbf",
            kernel_params={"length_scale": [TOO_NARROW]},
            alpha=[1e-3, 1e-2],
            time_budget=budget,
        ).fit(X, Y)


def test_a_search_of_which_every_part_fits_is_refused_as_a_whole_before_it():
    n, rng = 1500, np.random.default_rng(1)
    rows = rng.standard_normal((n, 3))
    problem = Problem(n, 3, 1, 2, folds=(FoldShape(n // 5, n - n // 5, 5),))
    one = plan_cross_validation(problem, Resources(1e9), "refit").seconds
    model = KernelRidgeCV(
        kernel="rbf",
        kernel_params={"length_scale": np.geomspace(0.3, 0.6, 12).tolist()},
        alpha=[0.1, 1.0],
        time_budget=4 * one,
        search=Search(method="refit"),
    )
    with pytest.raises(BudgetError, match=rf"choosing among 12 kernels on {n} rows, and the fit"):
        model.fit(rows, rows[:, 0] + rng.standard_normal(n))
    assert not hasattr(model, "cv_results_")


def test_a_refusal_for_want_of_time_says_what_would_do():
    rows = np.random.default_rng(1).standard_normal((2000, 3))
    with pytest.raises(BudgetError) as refusal:
        KernelRidgeCV(kernel="rbf", time_budget=0.4).fit(rows, rows[:, 0])
    assert re.search("raise .*time_budget", str(refusal.value))
    assert "PartitionedKernelRidge" in str(refusal.value)


class NoTimeForMore(Deadline):
    """Has time for what was asked for, and none for what is added to it."""

    asked = 0

    def has_time_for(self, seconds):
        self.asked += 1
        return self.asked <= 3


def test_a_grid_that_is_not_extended_for_want_of_time_says_so(monkeypatch):
    monkeypatch.setattr(
        validation.Deadline, "of", classmethod(lambda cls, budget: NoTimeForMore(1e6))
    )
    asked = {
        "kernel": "rbf",
        "kernel_params": {"length_scale": 2.0},
        "search__method": "eigendecomposition",
    }
    model = KernelRidgeCV(time_budget=1e6).set_params(**asked)
    with pytest.warns(TimeBudgetWarning, match="edge of the grid, which was not extended"):
        model.fit(X, X[:, 0])
    monkeypatch.undo()
    free = KernelRidgeCV().set_params(**asked).fit(X, X[:, 0])
    assert len(free.cv_results_["params"]) > len(model.cv_results_["params"])


def test_learning_scales_looks_at_the_clock(monkeypatch):
    clock = Clock(seconds=3.0)
    monkeypatch.setattr(
        validation.Deadline, "of", classmethod(lambda cls, budget: Deadline(10.0, clock))
    )
    with pytest.raises(BudgetError, match="learning scales was stopped"):
        KernelRidgeCV(time_budget=10.0, metric="learned").fit(X, Y)
