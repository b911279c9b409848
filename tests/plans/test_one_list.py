"""The steps that are explained from shapes alone are the steps that a fit then does."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ridgefold import (
    CellOptions,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMRegressorCV,
    MetricLearning,
    PartitionedKernelRidge,
    PartitionedLSSVMRegressor,
    explain,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((420, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.2 * RNG.standard_normal(420)
SHORT = {"metric": MetricLearning(rows=60)}

MODELS = {
    "a ridge": KernelRidge(0.1, kernel="rbf"),
    "a ridge with intervals": KernelRidge(0.1, kernel="rbf", intervals="cv+"),
    "a classifier with probabilities": LSSVMClassifier(0.1, probability=True),
    "a grid": KernelRidgeCV(alpha=[0.1, 1.0]),
    "learned scales": KernelRidgeCV(alpha=[0.1, 1.0], **SHORT),
    "a choice of families": LSSVMRegressorCV(
        kernel="auto", metric=MetricLearning(scales=False, rows=60)
    ),
    "cells": PartitionedLSSVMRegressor(random_state=0),
    "cells in learned scales": PartitionedKernelRidge(random_state=0, **SHORT),
    "cells of one pair": PartitionedLSSVMRegressor(
        random_state=0, cells=CellOptions(tuning="shared")
    ),
    "a given number of cells": PartitionedLSSVMRegressor(n_partitions=3, random_state=0),
    "given cells and pair": PartitionedLSSVMRegressor(
        n_partitions=3, alpha=0.1, kernel_params={"length_scale": 1.0}, random_state=0
    ),
    "cells without slopes": PartitionedLSSVMRegressor("kmeans", 3, random_state=0),
    "refined cells": PartitionedLSSVMRegressor(
        n_partitions=3, random_state=0, cells=CellOptions(refine=2)
    ),
    "averaged cells": PartitionedLSSVMRegressor("random", 3, "average", random_state=0),
}


def steps_of(explanation):
    """Their names, without how many cells there are."""
    return [re.sub(r"\d[\d,]* ", "", step["step"]) for step in explanation.steps]


@pytest.mark.parametrize("name", MODELS)
def test_what_is_explained_is_what_is_done_and_measured(name):
    model = MODELS[name]
    targets = (Y > 0).astype(int) if isinstance(model, LSSVMClassifier) else Y
    foreseen = explain(model, n_samples=len(X), n_features=X.shape[1], memory_budget="2GB")
    assert all(step["predicted_seconds"] > 0 for step in foreseen.steps)
    done = model.fit(X, targets).explain()
    expected = steps_of(foreseen)
    if getattr(model, "n_partitions_", 2) == 1:  # fewer cells were chosen than are likely
        expected = [step for step in expected if "coarse" not in step]
    assert steps_of(done) == expected
    assert all(step["measured_seconds"] >= 0 for step in done.steps)
    assert ("learned" in name) == ("learning scales" in steps_of(done))


def test_learning_is_explained_before_there_are_rows():
    model = LSSVMRegressorCV(kernel="auto", metric="learned")
    found = explain(model, n_samples=8000, n_features=8, memory_budget="8GB")
    assert steps_of(found) == ["learning scales", "choosing kernel and alpha", "fitting"]
    assert all(step["predicted_seconds"] > 0 for step in found.steps)
    assert "25 ridge values" not in str(found)  # a few around the learned one


def test_all_families_take_longer_to_learn_than_one():
    shapes = {"n_samples": 3000, "n_features": 8, "memory_budget": "8GB"}
    one, every = (
        explain(KernelRidgeCV(kernel=kernel, metric="learned"), **shapes).steps[0]
        for kernel in ("rbf", "auto")
    )
    assert 1.5 * one["predicted_seconds"] < every["predicted_seconds"]


def test_learning_that_the_budget_cannot_hold_is_refused_in_the_plan():
    model = KernelRidgeCV(metric="learned")
    found = explain(model, n_samples=3000, n_features=8, memory_budget="9MB").steps[0]
    assert "raise memory_budget" in found["refused"]


def test_a_stack_has_a_step_for_what_it_learns_and_for_its_members():
    model = LSSVMRegressorCV(kernel="auto", metric="learned")
    model.set_params(search__stack=True)
    found = explain(model, n_samples=3000, n_features=8, memory_budget="8GB")
    assert steps_of(found) == ["learning scales", "choosing kernel and alpha", "fitting"]
    assert "5 kernels" in found.steps[1]["problem"]
    assert "5 kernels" in found.steps[2]["problem"]


def test_a_grid_is_predicted_as_all_of_its_kernels():
    shapes = {"n_samples": 900, "n_features": 4, "memory_budget": "2GB"}
    every = explain(KernelRidgeCV(alpha=[0.1, 1.0]), **shapes).steps[0]
    one = explain(
        KernelRidgeCV(alpha=[0.1, 1.0], kernel_params={"length_scale": 1.0}), **shapes
    ).steps[0]
    assert "7 kernels" in every["problem"]
    assert every["predicted_seconds"] == pytest.approx(7 * one["predicted_seconds"])


@pytest.mark.parametrize("rows", [400, 5000, 50_000, 1_000_000])
def test_one_worker_of_a_cluster_is_this_machine_with_files(rows):
    shapes = {"n_samples": rows, "n_features": 6, "memory_budget": "8GB"}
    here = explain(PartitionedKernelRidge(), **shapes)
    (there,) = explain(PartitionedKernelRidge(), n_workers=1, **shapes).steps
    seconds = sum(step["predicted_seconds"] for step in here.steps)
    reading = there["disk_bytes"] / 2e8 + 10 * rows * 6 * 8 / 2e8
    assert seconds <= there["predicted_seconds"] <= 1.1 * seconds + reading
    cells = f"fitting {there['cells']:,} cells"
    assert cells in {step["step"] for step in here.steps} | {"fitting 1 cells"}
    further = {"looking at all rows", "placing rows"}
    names = [part["step"] for part in there["parts"]]
    kept = [name for name in names if name not in further and "from" not in name]
    assert kept == [s["step"] for s in here.steps if not s["step"].startswith("cutting")]
