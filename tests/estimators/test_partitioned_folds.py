"""Cells that predict with the mean of the models of their folds, against plain refits of each."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import ridgefold
from cases import bordered, condition
from ridgefold import CellOptions, Compute, PartitionedLSSVMClassifier, PartitionedLSSVMRegressor
from ridgefold.cells import cell_rows
from ridgefold.cells.backdrop import mix_predictions
from ridgefold.errors import InvalidInputError, RunDirectoryMismatchError

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (420, 2))
Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1]], axis=1)
Y += 0.1 * rng.standard_normal(Y.shape)
NEW = rng.uniform(-2, 2, (200, 2))
WEIGHTS = {
    "equal": None,
    "weighted": rng.uniform(0.2, 2.0, 420),
    "zeros": np.where(rng.random(420) < 0.1, 0.0, rng.uniform(0.2, 2.0, 420)),
}


def refit(X, y, weights, new, *, kernel, alpha, bias):
    """Predictions of a plain fit."""
    K = kernel(X)
    if not bias:
        return kernel(new, X) @ np.linalg.solve(K + np.diag(alpha / weights), y)
    right = np.concatenate([np.zeros((1, y.shape[1])), y])
    solved = np.linalg.solve(bordered(K, alpha, weights), right)
    return kernel(new, X) @ solved[1:] + solved[:1]


def mean_of_refits(model, X, y, *, folds=3, weights=None, by_value=False):
    """The combined prediction of NEW, and how far rounding may take the model's from it.

    Rows are dealt out in their order, or (`by_value`) those of one x together, in that of x.
    """
    dtype = model._models.dual_coef.dtype
    X, y, new = (np.asarray(a.astype(dtype), dtype=np.float64) for a in (X, y, NEW))
    weights = np.ones(len(X)) if weights is None else weights.astype(dtype).astype(np.float64)
    cells, assignment = model._cells, model._assignment(new)
    total, worst = np.zeros((len(new), y.shape[1])), 0.0
    for cell, (kernel, alpha) in enumerate(zip(model.kernels_, model.alpha_, strict=True)):
        rows = cells.rows[cells.offsets[cell] : cells.offsets[cell + 1]]
        rows = rows[weights[rows] > 0]
        places = np.arange(len(rows))
        if by_value:
            places = np.unique(X[rows], axis=0, return_inverse=True)[1].ravel()
        pair = {"kernel": kernel, "alpha": alpha, "bias": model.fit_intercept}
        trained = [rows[places % folds != k] for k in range(folds)]
        values = [refit(X[some], y[some], weights[some], new, **pair) for some in trained]
        where, share = assignment.of_cell(cell)
        total[where] += np.reshape(share, (-1, 1)) * np.mean(values, axis=0)[where]
        roots = np.sqrt(weights[rows])
        K = roots[:, None] * kernel(X[rows]) * roots[None, :]
        worst = max(worst, len(rows) + condition(K + alpha * np.eye(len(rows))))
    if model._backdrop is not None:
        mix_predictions(model._backdrop, new, total)
    return total, 10.0 * worst * float(np.finfo(dtype).eps) * np.abs(total).max()


CASES = {
    "own pairs, blended": {"n_partitions": 4},
    "own pairs, routed": {"n_partitions": 4, "combine": "route", "partition": "kmeans"},
    "a shared pair": {"n_partitions": 4, "cells__tuning": "shared"},
    "a given pair": {
        "n_partitions": 5,
        "alpha": 0.1,
        "kernel_params": {"length_scale": 1.0},
        "combine": "route",
    },
    "a mean of cells": {"n_partitions": 4, "partition": "random", "combine": "average"},
    "no bias": {"n_partitions": 4, "fit_intercept": False},
    "another kernel": {"n_partitions": 4, "kernel": "laplacian", "alpha": [0.01, 0.1]},
    "a number that is chosen": {},
    "a number that is chosen for one pair": {"cells__tuning": "shared"},
    "one cell": {"n_partitions": 1, "alpha": 0.05},
}


def distances(dtype=np.float64, weights=None, **settings):
    """How far a model of three folds, and one fit a cell, are from the mean of refits; a bound."""
    rows, y, new = (a.astype(dtype) for a in (X, Y, NEW))
    given = None if weights is None else weights.astype(dtype)
    alone = {"cells__clip": False, "cells__coarse_model": None}
    models = [
        PartitionedLSSVMRegressor(cells=CellOptions(average_folds=folds))
        .set_params(**alone, **settings)
        .fit(rows, y, given)
        for folds in (3, False)
    ]
    predicted = [model.predict(new) for model in models]
    assert all(values.dtype == dtype for values in predicted)
    expected, bound = mean_of_refits(models[0], X, Y, weights=weights)
    return *(np.abs(values - expected).max() for values in predicted), bound


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_cells_predict_with_the_mean_of_refits(name, weights):
    off, change, bound = distances(weights=WEIGHTS[weights], **CASES[name])
    assert off <= bound < 1e-3 * change


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("combine", ["blend", "route", "average"])
def test_float32_stays_float32(combine, weights):
    settings = {
        "n_partitions": 4,
        "combine": combine,
        "kernel_params": {"length_scale": [0.5, 0.7]},
    }
    settings["alpha"] = [20.0] if combine == "average" else [1.0, 5.0]
    off, change, bound = distances(np.float32, WEIGHTS[weights], **settings)
    assert off <= bound < 0.1 * change


def test_true_means_five_folds_of_the_rows_in_turn():
    settings = {"n_partitions": 3, "cells__clip": False}
    model = (
        PartitionedLSSVMRegressor(cells=CellOptions(average_folds=True))
        .set_params(**settings)
        .fit(X, Y)
    )
    expected, bound = mean_of_refits(model, X, Y, folds=5)
    assert np.abs(model.predict(NEW) - expected).max() <= bound
    five = (
        PartitionedLSSVMRegressor(cells=CellOptions(average_folds=np.int64(5)))
        .set_params(**settings)
        .fit(X, Y)
    )
    np.testing.assert_array_equal(five.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("tuning", ["cell", "shared"])
def test_what_is_chosen_and_held_out_is_that_of_one_fit_a_cell(tuning):
    X_repeated, y = np.concatenate([X, X[:150]]), np.concatenate([Y, Y[:150] + 0.3])
    for rows, targets in ((X, Y), (X_repeated, y)):
        plain, mean = (
            PartitionedLSSVMRegressor(cells=CellOptions(tuning=tuning, average_folds=folds)).fit(
                rows, targets
            )
            for folds in (False, 4)
        )
        assert mean.trials_ == plain.trials_
        assert mean.kernels_ == plain.kernels_
        np.testing.assert_array_equal(mean.alpha_, plain.alpha_)
        np.testing.assert_array_equal(mean.partition_sizes_, plain.partition_sizes_)
        np.testing.assert_array_equal(mean._models.highest, plain._models.highest)
        np.testing.assert_equal(mean.held_out_residuals_, plain.held_out_residuals_)
        assert (mean.held_out_residuals_ is None) == (tuning == "shared")
        assert not np.array_equal(mean.predict(NEW), plain.predict(NEW))


@pytest.mark.parametrize("combine", ["blend", "average"])
def test_a_weight_of_two_is_the_row_twice(combine):
    counts = np.random.default_rng(1).integers(0, 3, len(X))
    settings = {
        "n_partitions": 3,
        "combine": combine,
        "cells__average_folds": True,
        "cells__clip": False,
    }
    weighted = PartitionedLSSVMRegressor().set_params(**settings).fit(X, Y, counts)
    repeated = (
        PartitionedLSSVMRegressor()
        .set_params(**settings)
        .fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    )
    expected, bound = mean_of_refits(weighted, X, Y, weights=counts, by_value=True)
    assert np.abs(weighted.predict(NEW) - expected).max() <= bound
    assert np.abs(repeated.predict(NEW) - weighted.predict(NEW)).max() <= bound


def test_rows_of_one_x_with_different_targets_are_in_one_fold():
    rows, y = np.concatenate([X, X[:150]]), np.concatenate([Y, Y[:150] + 0.3])
    model = PartitionedLSSVMRegressor(
        n_partitions=3, cells=CellOptions(average_folds=True, clip=False)
    ).fit(rows, y)
    expected, bound = mean_of_refits(model, rows, y, folds=4, by_value=True)
    assert np.abs(model.predict(NEW) - expected).max() <= bound


def test_cells_with_fewer_than_two_rows_a_fold_are_one_fit():
    settings = {
        "partition": "principal",
        "alpha": 0.1,
        "kernel_params": {"length_scale": 1.0},
        "combine": "route",
    }
    plain = PartitionedLSSVMRegressor(n_partitions=8).set_params(**settings).fit(X, Y)
    smallest, largest = plain.partition_sizes_.min(), plain.partition_sizes_.max()
    assert smallest == 52
    assert largest == 53
    few, some = (
        PartitionedLSSVMRegressor(n_partitions=8, cells=CellOptions(average_folds=folds))
        .set_params(**settings)
        .fit(X, Y)
        for folds in (27, 26)
    )
    np.testing.assert_array_equal(few.predict(NEW), plain.predict(NEW))
    assert not np.array_equal(some.predict(NEW), plain.predict(NEW))
    # Rows of weight zero do not count.
    weights = np.where(np.arange(420) % 2, 0.5, 0.0)
    one, other = (
        PartitionedLSSVMRegressor(n_partitions=4, cells=CellOptions(average_folds=folds))
        .set_params(**settings)
        .fit(X, Y, weights)
        for folds in (40, False)
    )
    np.testing.assert_array_equal(one.predict(NEW), other.predict(NEW))


def test_cells_without_rows_of_weight_and_of_one_row_are_fitted(tmp_path):
    np.save(tmp_path / "X.npy", X)
    weights = np.where(X[:, 0] < 0, 0.0, 1.0)
    for budget in ("auto", "10kB"):  # rows on disk are cut as they are
        model = PartitionedLSSVMRegressor(
            n_partitions=6, memory_budget=budget, cells=CellOptions(average_folds=True)
        )
        model.fit(tmp_path / "X.npy", Y, weights)
        assert np.all(np.isfinite(model.predict(NEW)))
    many = PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 1.0},
        n_partitions=300,
        alpha=0.1,
        cells=CellOptions(average_folds=True),
    )
    assert np.all(np.isfinite(many.fit(X, Y).predict(NEW)))


# -- wherever cells are worked on -----------------------------------------------------------


def test_results_do_not_depend_on_executor_or_workers(monkeypatch):
    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 64)
    settings = {"n_partitions": 6, "cells__average_folds": True}
    reference = PartitionedLSSVMRegressor().set_params(**settings).fit(X, Y)
    for executor in ("threads", "processes"):
        for workers in (1, 2):
            model = PartitionedLSSVMRegressor(
                compute=Compute(executor=executor, n_jobs=workers)
            ).set_params(**settings)
            model.fit(X, Y)
            np.testing.assert_array_equal(model._models.dual_coef, reference._models.dual_coef)
            np.testing.assert_array_equal(model._models.intercept, reference._models.intercept)


@pytest.mark.parametrize("name", ["own pairs, blended", "a shared pair", "a mean of cells"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_cells_on_a_device_predict_with_the_same_mean(name, weights):
    pytest.importorskip("torch")
    given, settings = (
        WEIGHTS[weights],
        {"cells__average_folds": True, "cells__clip": False, **CASES[name]},
    )
    model = (
        PartitionedLSSVMRegressor(compute=Compute(device="cpu"))
        .set_params(**settings)
        .fit(X, Y, given)
    )
    expected, bound = mean_of_refits(model, X, Y, weights=given)
    assert isinstance(model._models.dual_coef, np.ndarray)
    assert np.abs(model.predict(NEW) - expected).max() <= bound


@pytest.mark.parametrize("tuning", ["cell", "shared"])
def test_rows_on_disk_give_the_model_of_rows_in_memory(tmp_path, tuning):
    np.save(tmp_path / "X.npy", X)
    settings = {"n_partitions": 5, "cells__average_folds": True, "cells__tuning": tuning}
    expected = PartitionedLSSVMRegressor().set_params(**settings).fit(X, Y)
    model = (
        PartitionedLSSVMRegressor(memory_budget="10kB")
        .set_params(**settings)
        .fit(tmp_path / "X.npy", Y)
    )
    assert model._stored is not None
    np.testing.assert_array_equal(model._models.dual_coef, expected._models.dual_coef)
    np.testing.assert_array_equal(model.predict(NEW), expected.predict(NEW))
    np.testing.assert_equal(model.held_out_residuals_, expected.held_out_residuals_)


def test_a_finished_run_gives_the_model_again_and_knows_its_folds(tmp_path):
    rows, y = np.concatenate([X, X[:150]]), np.concatenate([Y, Y[:150] + 0.3])
    settings = {"n_partitions": 3, "compute__run_dir": tmp_path / "run"}
    first, again = (
        PartitionedLSSVMRegressor(cells=CellOptions(average_folds=True))
        .set_params(**settings)
        .fit(rows, y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(again.predict(NEW), first.predict(NEW))
    np.testing.assert_array_equal(again.held_out_residuals_, first.held_out_residuals_)
    with pytest.raises(RunDirectoryMismatchError, match="average_folds was 3 and is 4"):
        PartitionedLSSVMRegressor(cells=CellOptions(average_folds=True)).set_params(**settings).fit(
            rows, y
        )


def test_a_model_file_holds_the_mean(tmp_path):
    model = PartitionedLSSVMRegressor(n_partitions=3, cells=CellOptions(average_folds=True)).fit(
        X, Y
    )
    model.save(tmp_path / "m")
    again = ridgefold.load(tmp_path / "m")
    assert again.average_folds == 4
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    with pytest.raises(InvalidInputError, match=r"\(average_folds=True\) has no intervals"):
        again.predict_interval(NEW)


def test_a_clone_gives_the_same_model():
    model = PartitionedLSSVMRegressor(n_partitions=3, cells=CellOptions(average_folds=True)).fit(
        X, Y
    )
    again = clone(model).fit(X, Y)
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


def test_the_step_says_what_the_folds_cost():
    steps = [
        PartitionedLSSVMRegressor(n_partitions=3, cells=CellOptions(average_folds=folds))
        .fit(X, Y)
        .run_record_.steps[-2]
        for folds in (False, 2, 5)
    ]
    assert {step.name for step in steps} == {"fitting cells"}
    plain, few, five = (step.plan.seconds for step in steps)
    assert plain < five
    assert plain < few


# -- classification -------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_decide_by_the_mean_and_are_calibrated_by_one_fit(n_classes):
    labels = np.digitize(Y[:, 0], [0.0, 1.0][: n_classes - 1])
    settings = {"n_partitions": 3, "probability": True, "cells__clip": False}
    model = (
        PartitionedLSSVMClassifier(cells=CellOptions(average_folds=True))
        .set_params(**settings)
        .fit(X, labels)
    )
    signs = np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
    signs = signs[:, 1:] if n_classes == 2 else signs
    expected, bound = mean_of_refits(model, X, signs)
    decisions = model.decision_function(NEW).reshape(len(NEW), -1)
    assert np.abs(decisions - expected).max() <= bound
    plain = PartitionedLSSVMClassifier().set_params(**settings).fit(X, labels)
    np.testing.assert_array_equal(model.calibration_, plain.calibration_)
    np.testing.assert_allclose(model.predict_proba(NEW).sum(axis=1), 1.0)


# -- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, 0, -3, 2.0, "auto", None, [5]])
@pytest.mark.parametrize("estimator", [PartitionedLSSVMRegressor, PartitionedLSSVMClassifier])
def test_what_is_no_number_of_folds_is_named_with_the_way_out(estimator, value):
    with pytest.raises(InvalidInputError, match=r"average_folds must be False, True .* >= 2, got"):
        estimator(average_folds=value).fit(X, Y[:, 0] > 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"cells__refine": 3, "alpha": 0.1},
            "refine=3 improves one fit .* use average_folds=False",
        ),
        ({"cells__refine": "exact"}, "refine='exact' improves one fit .* use average_folds=False"),
        ({"intervals": "jackknife+"}, r'intervals="jackknife\+" .* use average_folds=False'),
    ],
)
def test_what_is_of_one_fit_does_not_go_with_a_mean(settings, message):
    model = PartitionedLSSVMRegressor(
        n_partitions=3, cells=CellOptions(average_folds=True)
    ).set_params(**settings)
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "X_fit_")


@pytest.mark.parametrize("average_folds", [True, 3])
def test_a_mean_has_no_intervals_whatever_the_argument_says_later(average_folds):
    model = PartitionedLSSVMRegressor(
        n_partitions=3, cells=CellOptions(average_folds=average_folds)
    ).fit(X, Y)
    assert model.held_out_residuals_ is not None
    model.set_params(cells__average_folds=False)
    with pytest.raises(InvalidInputError, match="fit with average_folds=False"):
        model.predict_interval(NEW)
    model.fit(X, Y).predict_interval(NEW[:3])
