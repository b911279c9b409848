"""Of several kernels all cells take the one that suits them, and then do as if it were the only."""

import itertools

import numpy as np
import pytest

from ridgefold import Compute, PartitionedLSSVMClassifier, PartitionedLSSVMRegressor
from ridgefold.cells import partition_count
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF, Laplacian, Matern

BOTH = ["rbf", "laplacian"]
SHAPES = {"rbf": RBF, "laplacian": Laplacian}


def rows(n=1200):
    return np.random.default_rng(0).uniform(-1, 1, (n, 3))


def smooth(X):
    return np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def rough(X):
    """Steps and corners along the axes."""
    return np.floor(4 * X[:, 0]) + np.abs(X[:, 1]) - np.floor(3 * X[:, 2])


TARGETS = {"rbf": smooth, "laplacian": rough}
SETTINGS = {
    "number chosen": {},
    "number given": {"n_partitions": 4},
    "one pair": {"n_partitions": 4, "cells__tuning": "shared"},
    "routed": {"n_partitions": 4, "combine": "route"},
    "ridges given": {"n_partitions": 4, "alpha": [1e-3, 1e-2, 1e-1]},
    "average": {"n_partitions": 4, "partition": "random", "combine": "average"},
    "refined": {"n_partitions": 4, "cells__refine": 2},
}


@pytest.mark.parametrize("best", TARGETS)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_better_of_two_kernels_is_taken_for_all_cells(best, settings):
    X = rows()
    y = TARGETS[best](X)
    model = PartitionedLSSVMRegressor(kernel=BOTH).set_params(**settings).fit(X, y)
    assert {type(kernel) for kernel in model.kernels_} == {SHAPES[best]}
    alone = PartitionedLSSVMRegressor(kernel=best).set_params(**settings).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert model.kernels_ == alone.kernels_


def test_a_list_of_one_is_that_kernel():
    X = rows(600)
    models = [
        PartitionedLSSVMRegressor(kernel=kernel, n_partitions=2).fit(X, smooth(X))
        for kernel in ("rbf", ["rbf"])
    ]
    np.testing.assert_array_equal(*(model.predict(X) for model in models))


def test_cells_choose_among_given_kernels_for_themselves():
    """Steps on one side and a smooth function on the other."""
    X = rows()
    y = np.where(X[:, 0] < 0, np.floor(6 * X[:, 1]), np.sin(4 * X[:, 1]))
    kernels = [Matern(length_scale=0.5, nu=0.5), RBF(1.0)]
    model = PartitionedLSSVMRegressor(kernel=kernels, n_partitions=6, partition="principal").fit(
        X, y
    )
    assert set(model.kernels_) == set(kernels)


def test_names_and_given_kernels_stand_beside_each_other():
    X = rows(800)
    model = PartitionedLSSVMRegressor(kernel=[RBF(50.0), "laplacian"], n_partitions=3)
    model.fit(X, rough(X))
    assert {type(kernel) for kernel in model.kernels_} == {Laplacian}
    model.fit(X, X @ np.array([1.0, -2.0, 0.5]))
    assert set(model.kernels_) == {RBF(50.0)}


def test_classes_are_told_apart_by_the_better_kernel():
    X = rows()
    classes = np.where(np.floor(4 * X[:, 0]) + np.floor(4 * X[:, 1]) > 0, "above", "below")
    model = PartitionedLSSVMClassifier(kernel=BOTH, n_partitions=4).fit(X, classes)
    assert {type(kernel) for kernel in model.kernels_} == {Laplacian}


def test_an_interrupted_fit_goes_on_with_the_kernel_that_was_chosen(tmp_path):
    X = rows(800)
    for settings in ({"n_partitions": 3}, {}):
        folder = tmp_path / str(len(settings))
        model = PartitionedLSSVMRegressor(kernel=BOTH, compute=Compute(run_dir=folder)).set_params(
            **settings
        )
        first = model.fit(X, rough(X)).predict(X)
        for piece in (folder / "cells").glob("*.piece"):
            piece.unlink()
        np.testing.assert_array_equal(model.fit(X, rough(X)).predict(X), first)


def test_a_function_of_the_user_is_one_of_several():
    def linear(A, B):
        return A @ B.T + 1.0

    X = rows(400)
    model = PartitionedLSSVMRegressor(kernel=[linear, "laplacian"], n_partitions=2)
    assert {type(kernel) for kernel in model.fit(X, rough(X)).kernels_} == {Laplacian}


def test_an_empty_list_is_refused():
    with pytest.raises(InvalidInputError, match="kernel is an empty list"):
        PartitionedLSSVMRegressor(kernel=[]).fit(rows(50), np.ones(50))


def test_auto_is_the_best_of_all_families():
    X = rows(900)
    y = rough(X)
    model = PartitionedLSSVMRegressor(kernel="auto", n_partitions=3).fit(X, y)
    assert {type(kernel) for kernel in model.kernels_} == {Laplacian}
    alone = PartitionedLSSVMRegressor(kernel="laplacian", n_partitions=3).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_auto_learns_scales_too():
    X = np.random.default_rng(1).uniform(-1, 1, (600, 6))
    y = np.floor(4 * X[:, 0]) + np.abs(X[:, 1])
    model = PartitionedLSSVMRegressor(kernel="auto", n_partitions=2, metric="learned").fit(X, y)
    lengths = model.length_scales_
    assert max(lengths[0], lengths[1]) < np.min(lengths[2:])


@pytest.mark.parametrize(
    "given",
    [{"gamma": 1.0}, {"kernel_params": {"length_scale": 2.0}}, {"kernel_params": {"nu": 0.5}}],
)
def test_auto_takes_no_width(given):
    (name,) = given
    with pytest.raises(InvalidInputError, match=f"{name}=.* cannot be given with kernel=.auto"):
        PartitionedLSSVMRegressor(kernel="auto").set_params(**given).fit(rows(50), np.ones(50))


def test_several_kernels_are_planned_for():
    X = rows(800)
    steps = {}
    for kernel in ("rbf", BOTH, "auto"):
        model = PartitionedLSSVMRegressor(kernel=kernel, n_partitions=3).fit(X, smooth(X))
        (pair,) = [s for s in model.run_record_.steps if s.name.startswith("choosing a pair")]
        steps[str(kernel)] = pair.plan.seconds
    one, two, six = steps.values()
    assert one < two < six


def test_a_kernel_that_comes_close_may_win_with_larger_cells(monkeypatch):
    """Small cells hide what suits all: the one that is best at a size is taken for that size."""
    X = rows(3000)
    y = rough(X) + 0.3 * np.random.default_rng(2).standard_normal(3000)
    seen = []
    choose_pair = partition_count.choose_pair

    def watched(*args, **settings):
        found = choose_pair(*args, **settings)
        seen.append({type(each.kernels[0]).__name__ for each in found.each})
        return found

    monkeypatch.setattr(partition_count, "choose_pair", watched)
    PartitionedLSSVMRegressor(kernel="auto").fit(X, y)
    assert len(seen) > 1
    assert "Laplacian" in seen[-1]
    assert all(later <= earlier for earlier, later in itertools.pairwise(seen))
    assert "RBF" not in seen[-1]
