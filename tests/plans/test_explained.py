"""Plans for problems of all kinds: a changed decision shows here, and so do changed words.

Decisions are kept as what runs, what runs if it gives up, and the order of the others, among the
methods that there were when they were written: a new method changes none of them, and neither does
a charge that changes no order. The words are those of a few plans, most of them made by hand.

To write the files anew, after a decision was changed on purpose or with a new method:
RIDGEFOLD_WRITE_PLANS=1 python -m pytest -n 0 tests/plans, then read the difference.
"""

import html
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut

from ridgefold import (
    CellOptions,
    Compute,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    PartitionedLSSVMRegressor,
    RidgefoldRegressor,
    Search,
    explain,
)
from ridgefold.crossval import METHODS
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.metric import FAMILIES
from ridgefold.planning import explain_plans
from ridgefold.planning import resources as planning_resources
from ridgefold.records import Cost, FoldShape, Plan, Problem, Rejection, Resources
from ridgefold.solvers import SOLVERS

EXPECTED = Path(__file__).parent / "expected"
CASES = {
    "small": (KernelRidgeCV(), 300, 5, "1GB"),
    "desk": (KernelRidgeCV(), 8000, 12, "8GB"),
    "twenty-six-thousand": (KernelRidgeCV(), 26_000, 20, "16GB"),
    "leave-one-out": (KernelRidgeCV(cv="loo"), 3000, 8, "4GB"),
    "one-alpha": (KernelRidgeCV(alpha=[0.1]), 6000, 8, "4GB"),
    "little-memory": (KernelRidgeCV(alpha=[0.1], cv=3), 12_000, 8, "400MB"),
    "too-large": (KernelRidgeCV(), 1_000_000, 20, "4GB"),
    "linear": (KernelRidge(kernel="linear"), 100_000, 30, "2GB"),
    "precomputed": (LSSVMRegressorCV(kernel="precomputed"), 2000, 2000, "4GB"),
    "laplacian": (LSSVMClassifierCV(kernel="laplacian"), 5000, 10, "4GB"),
    "time-budget": (KernelRidge(time_budget=2.0), 40_000, 10, "64GB"),
    "given-method": (KernelRidgeCV(search=Search(method="eigendecomposition")), 4000, 10, "1GB"),
    "classifier": (LSSVMClassifier(), 20_000, 40, "8GB"),
    "cells": (PartitionedLSSVMRegressor(), 20_000, 5, "4GB"),
    "cells-of-many-rows": (PartitionedLSSVMRegressor(), 1_000_000, 10, "4GB"),
    "cells-given": (
        PartitionedLSSVMRegressor(n_partitions=50, metric="learned", cells=CellOptions(refine=3)),
        20_000,
        5,
        "4GB",
    ),
    "cells-averaged": (PartitionedLSSVMRegressor("random", combine="average"), 20_000, 5, "4GB"),
}

DEVICE_CASES = {
    "device-ten-thousand": (KernelRidgeCV(), 10_000, 64, "130GB"),
    "device-fifty-thousand": (KernelRidgeCV(), 50_000, 64, "130GB"),
    "device-leave-one-out": (KernelRidgeCV(alpha=[0.01, 0.1, 1.0], cv="loo"), 10_000, 64, "130GB"),
    "device-precomputed": (LSSVMRegressorCV(kernel="precomputed"), 10_000, 10_000, "130GB"),
    "device-hundred-thousand": (KernelRidge(kernel="rbf"), 100_000, 64, "130GB"),
    "device-too-large-a-matrix": (KernelRidge(kernel="rbf"), 200_000, 64, "130GB"),
}
"""On a device that is not here: built-in rates, those of one NVIDIA H200."""


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(planning_resources, "thread_count", lambda: 1)


ALL_CASES = {**CASES, **DEVICE_CASES}
WRITES = bool(os.environ.get("RIDGEFOLD_WRITE_PLANS"))
REGISTRIES = {"methods": METHODS, "solvers": SOLVERS}


def explained(name):
    model, rows, columns, memory = ALL_CASES[name]
    device = "cuda:99" if name in DEVICE_CASES else None
    shapes = {"n_samples": rows, "n_features": columns}
    return explain(model, **shapes, memory_budget=memory, device=device)


def decided(step):
    """What was decided in a step, without words and numbers."""
    if step["method"] is None:
        return {"step": step["step"], "refused": True}
    later, too_much, impossible = [], [], []
    for method, why in step["not_chosen"].items():
        kind = later if "; " in why else too_much if ", the budget is" in why else impossible
        kind.append(method)
    found = {
        "step": step["step"],
        "runs": step["method"],
        "if it gives up": step["if_it_gives_up"],
        "next best": later,
        "beyond the budget": sorted(too_much),
        "impossible": sorted(impossible),
    }
    return {key: value for key, value in found.items() if value}


def decisions(name):
    return [decided(step) for step in json.loads(explained(name).to_json())]


def written_decisions():
    return json.loads((EXPECTED / "decisions.json").read_text())


@pytest.fixture
def known_methods(monkeypatch):
    """Only the methods that there were when the decisions were written."""
    for kind, registry in REGISTRIES.items():
        for name in set(registry) - set(written_decisions()["known"][kind]):
            monkeypatch.delitem(registry, name)


def test_every_method_is_known_to_the_decisions():
    if WRITES:
        known = {kind: sorted(registry) for kind, registry in REGISTRIES.items()}
        found = {"known": known, **{name: decisions(name) for name in ALL_CASES}}
        (EXPECTED / "decisions.json").write_text(json.dumps(found, indent=1) + "\n")
    known = written_decisions()["known"]
    missing = {kind: set(registry) - set(known[kind]) for kind, registry in REGISTRIES.items()}
    assert not any(missing.values()), f"{missing}: write the decisions anew"


@pytest.mark.parametrize("name", ALL_CASES)
def test_the_decision_is_the_expected_one(name, known_methods):
    assert decisions(name) == written_decisions()[name]


class Newcomer:
    """A method that was added: plain refits in next to no memory, so many times as long."""

    def __init__(self, factor):
        self.factor = factor

    def __getattr__(self, name):
        return getattr(METHODS["refit"], name)

    def cost(self, problem):
        cost = METHODS["refit"].cost(problem)
        flops = {kind: self.factor * amount for kind, amount in cost.flops.items()}
        return replace(cost, flops=flops, peak_bytes=1.0)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_a_new_method_changes_no_decision_among_the_others(factor, monkeypatch, request):
    monkeypatch.setitem(METHODS, "newcomer", Newcomer(factor))
    some = ("desk", "little-memory", "device-leave-one-out")
    assert all("newcomer" in str(decisions(name)) for name in some)
    request.getfixturevalue("known_methods")
    assert [decisions(name) for name in some] == [written_decisions()[name] for name in some]


def test_a_refusal_says_what_would_do():
    for step in json.loads(explained("too-large").to_json()):
        assert re.fullmatch(
            r"no (method|solver) fits memory_budget=4 GB with 1000000 rows: "
            r"(\w+ needs [\d.]+ [GT]B and about \d+ days(; )?){3}\. "
            r"What would do: raise memory_budget; fit on at most \d+ rows; "
            r"PartitionedKernelRidge, in 1000 cells about \d+ s and [\d.]+ MB",
            step["refused"],
        )


PROBLEM = Problem(n_rows=8000, n_columns=12, n_alphas=25, folds=(FoldShape(1600, 6400, 5),))
LIMITS = Resources(memory_bytes=8e9, threads=2)
TEXTS = {
    "of-a-choice": lambda: explain_plans(
        [
            (
                "choosing kernel and alpha",
                Plan(
                    PROBLEM,
                    LIMITS,
                    "low_rank",
                    Cost({}, 7.6e8),
                    0.23,
                    (
                        Rejection("anchored", "needs 16 GB, the budget is 8 GB"),
                        Rejection("banded", "predicted 52 s; low_rank: 0.23 s"),
                    ),
                    seconds_at_most=52.0,
                    fallbacks=("krylov", "banded"),
                    where="4 threads of this process, one kernel a task",
                ),
            ),
            ("fitting", BudgetError("no solver fits memory_budget=8 GB")),
        ]
    ),
    "on-a-device": lambda: explain_plans(
        [
            (
                "fitting",
                Plan(
                    replace(PROBLEM, folds=(), n_alphas=1, n_targets=3, bias=True, itemsize=4),
                    replace(LIMITS, seconds=60.0, device="cuda:99"),
                    "cholesky",
                    Cost({}, 5.1e8),
                    0.02,
                    (),
                ),
            )
        ]
    ),
    "of-cells": lambda: explained("cells"),
    "of-cells-that-are-given": lambda: explained("cells-given"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_plan_reads_as_expected(name):
    path, text = EXPECTED / f"{name}.txt", str(TEXTS[name]()) + "\n"
    if WRITES:
        path.write_text(text)
    assert text == path.read_text()


def test_three_forms_say_the_same():
    explanation = explain(n_samples=500, n_features=3, memory_budget="1GB")
    steps = json.loads(explanation.to_json())
    text, page = str(explanation), explanation._repr_html_()
    assert [step["method"] for step in steps] == ["low_rank", "cholesky"]
    for step in steps:
        assert step["method"] in text
        assert step["method"] in page
        for name, reason in step["not_chosen"].items():
            assert f"not {name}: {reason}" in text
            assert html.escape(f"not {name}: {reason}") in page


def test_text_in_html_is_escaped():
    refusal = explain_plans([("<script>alert(1)</script>", ValueError("a <b> & c"))])
    assert "<script>" not in refusal._repr_html_()
    assert "a &lt;b&gt; &amp; c" in refusal._repr_html_()


def test_a_fitted_model_says_what_was_measured():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    model = KernelRidgeCV(alpha=[0.1, 1.0], cv=3).fit(X, X[:, 0] + rng.standard_normal(120))
    steps = json.loads(model.explain().to_json())
    assert [step["step"].split(",")[0] for step in steps] == [
        "choosing kernel and alpha",
        "fitting",
    ]
    assert all(step["measured_seconds"] > 0 for step in steps)
    assert "measured" in str(model.explain())
    assert str(explain(model)) == str(model.explain())
    assert model.run_record_.seconds > 0


@pytest.mark.parametrize("value", [None, 0, -3, 2.5, True, "many"])
def test_shapes_must_be_numbers(value):
    with pytest.raises(InvalidInputError, match="n_samples must be a whole number"):
        explain(n_samples=value, n_features=3)


@pytest.mark.parametrize(
    ("cv", "folds"),
    [
        (LeaveOneOut(), 60),
        ("loo", 60),
        (np.int64(10), 10),
        ([(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))], 2),
        (KFold(4), 4),
    ],
)
def test_folds_are_counted_without_the_rows(cv, folds):
    found = explain(KernelRidgeCV(cv=cv), n_samples=60, n_features=2, memory_budget="1GB")
    assert f"{folds} folds" in str(found) or ("leave-one-out" in str(found) and folds == 60)


@pytest.mark.parametrize("cv", ["all", 2.5, GroupKFold])
def test_folds_that_cannot_be_counted_are_refused(cv):
    with pytest.raises(InvalidInputError, match="cv"):
        explain(KernelRidgeCV(cv=cv), n_samples=60, n_features=2, memory_budget="1GB")


def test_the_model_of_a_table_is_explained():
    table = RidgefoldRegressor(model=KernelRidgeCV())
    found = explain(table, n_samples=60, n_features=2, memory_budget="1GB")
    plain = explain(KernelRidgeCV(), n_samples=60, n_features=2, memory_budget="1GB")
    assert str(found) == str(plain)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    assert str(explain(table.fit(X, y))) == str(table.model_.explain())


def steps_of(model):
    given = {"n_samples": 20_000, "n_features": 5, "memory_budget": "4GB"}
    return {step["step"]: step for step in json.loads(explain(model, **given).to_json())}


def test_a_choice_of_kernels_is_planned_as_all_of_them():
    settings = {"n_partitions": 50, "cells__tuning": "shared"}
    step = "choosing a pair for all cells"
    auto = steps_of(PartitionedLSSVMRegressor(kernel="auto").set_params(**settings))[step]
    one = steps_of(PartitionedLSSVMRegressor(kernel="laplacian").set_params(**settings))[
        step
    ]  # the dearest
    # All are looked at widely, and the best one closely.
    assert 3 * one["predicted_seconds"] < auto["predicted_seconds"]
    assert auto["predicted_seconds"] < 1.01 * len(FAMILIES) * one["predicted_seconds"]


@pytest.mark.parametrize(
    "settings",
    [
        {"n_partitions": 50},
        {"n_partitions": 50, "cells__tuning": "cell"},
        {},
        {"partition": "random", "combine": "average"},
    ],
    ids=str,
)
def test_nothing_is_searched_where_kernel_and_ridge_are_given(settings):
    chosen = steps_of(PartitionedLSSVMRegressor().set_params(**settings))
    given = steps_of(
        PartitionedLSSVMRegressor(kernel_params={"length_scale": 1.0}, alpha=0.1).set_params(
            **settings
        )
    )
    assert any("pair" in name or step["method"] == "search" for name, step in chosen.items())
    assert not any("pair" in name or step["method"] == "search" for name, step in given.items())
    sizes = "choosing how many cells"
    if sizes in given:
        assert given[sizes]["predicted_seconds"] < 0.7 * chosen[sizes]["predicted_seconds"]


def test_a_model_with_a_cluster_is_planned_on_it():
    shapes = {"n_samples": 20_000, "n_features": 5, "memory_budget": "4GB"}
    cluster = PartitionedLSSVMRegressor(compute=Compute(executor="dask", n_jobs=3))
    paper = explain(PartitionedLSSVMRegressor(), n_workers=3, **shapes)
    assert str(explain(cluster, **shapes)) == str(paper)
    assert "on 3 workers" in str(paper)


def test_counts_of_nothing_are_refused():
    for settings in ({"n_targets": 0}, {"n_workers": 0}):
        with pytest.raises(InvalidInputError, match=r"must be a whole number >= 1, got 0$"):
            explain(PartitionedLSSVMRegressor(), n_samples=60, n_features=2, **settings)
