"""Unpenalised columns in cells: every cell has coefficients of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fixed_effects_oracle import bordered_fit, bordered_predictions
from ridgefold import (
    CellOptions,
    Compute,
    KernelRidge,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    load,
)
from ridgefold.cells.average_search import error_of_average
from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.cells.cut import PARTITIONERS
from ridgefold.executors import Serial
from ridgefold.kernels import RBF, Columns

N, D = 240, 3
rng = np.random.default_rng(5)
X = rng.uniform(-3, 3, (N, D))
Y = np.stack([np.sin(X[:, 0]) + 2.0 * X[:, 1], X[:, 2] * X[:, 0]], axis=1)
Y += 0.1 * rng.standard_normal(Y.shape)
WEIGHTS = rng.uniform(0.3, 2.0, N)
ZEROS = np.where(np.arange(N) % 9 == 0, 0.0, WEIGHTS)
KERNEL = RBF(1.5)
NEW = rng.uniform(-3, 3, (15, D))
GIVEN = {
    "alpha": 0.2,
    "kernel": KERNEL,
    "n_partitions": 4,
    "cells": CellOptions(clip=False),
    "random_state": 0,
}


def columns(rows, bias):
    return np.hstack([np.ones((len(rows), int(bias))), rows[:, [1, 2]]])


def rows_of(model, cell):
    at = model._cells.offsets
    return model._cells.rows[at[cell] : at[cell + 1]]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS, ZEROS], ids=["equal", "weighted", "zeros"])
@pytest.mark.parametrize("combine", ["route", "blend"])
def test_every_cell_solves_its_own_bordered_system(bias, weights, combine):
    model = PartitionedKernelRidge(**GIVEN, combine=combine, fit_intercept=bias, fixed=[1, 2]).fit(
        X, Y, weights
    )
    assert model.fixed_coef_.shape == (4, 2, 2)
    for cell in range(4):
        rows = rows_of(model, cell)
        kept = rows if weights is None else rows[weights[rows] > 0]
        w = None if weights is None else weights[kept]
        _, beta = bordered_fit(KERNEL(X[kept]), columns(X[kept], bias), Y[kept], 0.2, w)
        np.testing.assert_allclose(model.fixed_coef_[cell], beta[int(bias) :], atol=1e-8)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, ZEROS], ids=["equal", "zeros"])
def test_residuals_and_predictions_of_routed_cells_are_those_of_refits(bias, weights):
    model = PartitionedKernelRidge(
        **GIVEN, combine="route", fit_intercept=bias, fixed=[1, 2], intervals="jackknife+"
    ).fit(X, Y, weights)
    K, F = KERNEL(X), columns(X, bias)
    for cell in range(4):
        rows = rows_of(model, cell)
        for row in rows[:6]:
            train = rows[rows != row]
            own = bordered_predictions(K, F, Y, 0.2, train, np.array([row]), weights)
            np.testing.assert_allclose(model.held_out_residuals_[row], (Y[row] - own)[0], atol=1e-8)
    everything = np.vstack([X, NEW])
    assigned = model._assignment(NEW)
    for cell in range(4):
        places, _ = assigned.of_cell(cell)
        expected = bordered_predictions(
            KERNEL(everything),
            columns(everything, bias),
            np.vstack([Y, np.zeros((len(NEW), 2))]),
            0.2,
            rows_of(model, cell),
            N + places,
            None if weights is None else np.concatenate([weights, np.ones(len(NEW))]),
        )
        np.testing.assert_allclose(model.predict(NEW)[places], expected, atol=1e-8)


def test_one_cell_is_the_model_of_all_rows():
    one = PartitionedKernelRidge(**{**GIVEN, "n_partitions": 1}, fixed=[1], fit_intercept=True)
    whole = KernelRidge(0.2, kernel=KERNEL, fixed=[1], fit_intercept=True)
    np.testing.assert_allclose(one.fit(X, Y).predict(NEW), whole.fit(X, Y).predict(NEW), atol=1e-9)
    np.testing.assert_allclose(one.fixed_coef_[0], whole.fixed_coef_, atol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
def test_intervals_of_cells_are_those_of_refits_without_each_row(bias):
    """With one cell, jackknife+ in cells is that of the exact model."""
    settings = {"fixed": [1], "fit_intercept": bias, "intervals": "jackknife+"}
    one = PartitionedKernelRidge(**{**GIVEN, "n_partitions": 1}, **settings).fit(X, Y)
    whole = KernelRidge(0.2, kernel=KERNEL, **settings).fit(X, Y)
    mine, theirs = one.predict_interval(NEW), whole.predict_interval(NEW)
    np.testing.assert_allclose(mine[0], theirs[0], atol=1e-8)
    np.testing.assert_allclose(mine[1], theirs[1], atol=1e-8)


def test_cells_that_choose_their_ridge_go_on_with_a_trend_where_a_kernel_falls_back():
    rows = np.sort(rng.uniform(0, 10, (400, 1)), axis=0)
    y = 5.0 * rows[:, 0] + 0.1 * rng.standard_normal(400)
    far = np.array([[14.0]])
    settings = {"fit_intercept": True, "n_partitions": 4, "cells": CellOptions(clip=False)}
    drift = PartitionedKernelRidge(fixed="linear", **settings).fit(rows, y)
    assert abs(drift.predict(far)[0] - 70.0) < 2.0
    np.testing.assert_allclose(drift.fixed_coef_[:, 0, 0], 5.0, atol=0.5)
    kept = PartitionedKernelRidge(fixed="linear", fit_intercept=True, n_partitions=4).fit(rows, y)
    # Unless told, no cell goes far beyond the range of its own targets.
    assert kept.predict(far)[0] <= y.max() + 0.25 * np.ptp(y)


def test_a_level_with_a_single_row_in_a_cell_is_left_out_by_a_fit_without_it():
    table = X.copy()
    table[:, 1] = 0.0
    table[7, 1] = 1.0
    model = PartitionedKernelRidge(
        **GIVEN, combine="route", fit_intercept=True, fixed=[1], intervals="jackknife+"
    ).fit(table, Y)
    assert np.all(np.isfinite(model.held_out_residuals_))
    (cell,) = (c for c in range(4) if 7 in rows_of(model, c))
    others = rows_of(model, cell)
    others = others[others != 7]
    ones = np.ones((N, 1))
    expected = bordered_predictions(KERNEL(table), ones, Y, 0.2, others, np.array([7]))
    np.testing.assert_allclose(model.held_out_residuals_[7], (Y[7] - expected)[0], atol=1e-8)
    lower, upper = model.predict_interval(NEW)
    assert np.all(np.isfinite(lower) & np.isfinite(upper))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_file_gives_the_same_cells_back(tmp_path, workers):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = PartitionedKernelRidge(
        n_partitions=4, fixed=["c", "a"], compute=Compute(n_jobs=workers)
    ).fit(table, Y[:, 0])
    assert list(model.fixed_names_) == ["c", "a"]
    model.save(tmp_path / "model.rfm")
    again = load(tmp_path / "model.rfm")
    new = pd.DataFrame(NEW, columns=table.columns)
    np.testing.assert_array_equal(model.predict(new), again.predict(new))
    np.testing.assert_array_equal(model.fixed_coef_, again.fixed_coef_)
    assert list(again.fixed_names_) == ["c", "a"]


def test_cells_of_rows_on_disk_have_the_same_columns(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    settings = {**GIVEN, "fixed": [1], "fit_intercept": True}
    disk = PartitionedKernelRidge(**settings).fit(tmp_path / "X.npy", tmp_path / "y.npy")
    memory = PartitionedKernelRidge(**settings).fit(X, Y)
    np.testing.assert_allclose(disk.predict(NEW), memory.predict(NEW), atol=1e-9)


def test_classes_in_cells_take_them_too():
    model = PartitionedLSSVMClassifier(n_partitions=2, fixed=[0, 1], probability=True)
    model.fit(X, Y[:, 0] > 0)
    assert model.fixed_coef_.shape == (2, 2, 1)
    assert model.score(X, Y[:, 0] > 0) > 0.9


@pytest.mark.parametrize("combine", ["route", "blend"])
def test_cells_in_a_learned_metric_have_coefficients_in_the_units_of_the_columns(combine, tmp_path):
    """The kernel is that of scaled columns, the linear effect that of the columns as given."""
    table = np.column_stack([X, rng.standard_normal((N, 2))]) * [1.0, 100.0, 1.0, 1.0, 1.0]
    model = PartitionedKernelRidge(
        **{**GIVEN, "kernel": "rbf"}, combine=combine, metric="learned", fit_intercept=True
    )
    model.set_params(fixed=[4, 1]).fit(table, Y)
    scales = model.length_scales_
    assert np.isfinite(scales[[4, 1]]).all()
    scaled = table[:, np.isfinite(scales)] / scales[np.isfinite(scales)]
    F = np.column_stack([np.ones(N), table[:, [4, 1]]])
    for cell in range(4):
        rows = rows_of(model, cell)
        K = model.kernels_[cell](scaled[rows])
        _, beta = bordered_fit(K, F[rows], Y[rows], 0.2)
        np.testing.assert_allclose(model.fixed_coef_[cell], beta[1:], rtol=1e-6)
    assert list(model.fixed_names_) == ["x4", "x1"]
    step = 1e-4 * np.eye(5)[1] * 100.0
    new = table[:9]
    by_differences = (model.predict(new + step) - model.predict(new - step)) / 2e-2
    np.testing.assert_allclose(model.predict_gradient(new)[:, 1], by_differences, atol=1e-5)
    model.save(tmp_path / "model.rfm")
    again = load(tmp_path / "model.rfm")
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    np.testing.assert_array_equal(again.fixed_coef_, model.fixed_coef_)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, ZEROS], ids=["equal", "zeros"])
def test_an_average_is_the_mean_of_bordered_systems(bias, weights):
    average = {"partition": "random", "combine": "average"}
    model = PartitionedKernelRidge(**GIVEN, **average, fit_intercept=bias, fixed=[1, 2])
    model.fit(X, Y, weights)
    everything = np.vstack([X, NEW])
    total = np.zeros((len(NEW), 2))
    for cell in range(4):
        rows = rows_of(model, cell)
        total += bordered_predictions(
            KERNEL(everything),
            columns(everything, bias),
            np.vstack([Y, np.zeros((len(NEW), 2))]),
            model.alpha_[cell],  # 0.2 times the share of the rows
            rows,
            N + np.arange(len(NEW)),
            None if weights is None else np.concatenate([weights, np.ones(len(NEW))]),
        )
    np.testing.assert_allclose(model.predict(NEW), total / 4, atol=1e-8)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_the_error_of_an_average_is_that_of_leaving_each_row_out(bias, weights):
    """Also of a row that alone has a level: it is predicted as if it had none."""
    table, y = np.column_stack([X[:60], np.arange(60) == 7]), Y[:60]
    fixed, alpha = [1, 3], np.array([0.1, 1.0])
    training = RowsToFit(table, y, weights if weights is None else weights[:60], False)
    cells = PARTITIONERS["random"].fit(table, 3, 0.0, np.random.default_rng(1))
    kernel = Columns(KERNEL, [0, 1, 2])
    K = kernel(table)
    w = np.ones(60) if weights is None else weights[:60]
    groups = [np.sort(g) for g in np.split(cells.rows, cells.offsets[1:-1])]
    expected = np.zeros(2)
    for a in range(2):
        errors = []
        for row in range(60):
            total = np.zeros((1, 2))
            for group in groups:
                ridge, train = alpha[a] * len(group) / 60, group[group != row]
                known = fixed if table[train, 3].any() else [1]
                F = np.hstack([np.ones((60, int(bias))), table[:, known]])
                total += bordered_predictions(K, F, y, ridge, train, np.array([row]), w)
            errors.append(np.mean((total / 3 - y[row]) ** 2))
        expected[a] = np.mean(errors)
    found = [
        error_of_average(
            training,
            cells,
            (kernel, ridge),
            Serial(),
            rng=np.random.default_rng(0),
            bias=bias,
            fixed=(1, 3),
        )
        for ridge in alpha
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, ZEROS], ids=["equal", "zeros"])
@pytest.mark.parametrize("combine", ["blend", "average"])
def test_refining_to_the_end_gives_the_model_of_all_rows(bias, weights, combine, tmp_path):
    settings = {"fit_intercept": bias, "fixed": [1, 2]}
    asked = {**GIVEN, "cells": CellOptions(refine="exact", tuning="shared")}
    model = PartitionedKernelRidge(**asked, combine=combine, **settings).fit(X, Y, weights)
    whole = KernelRidge(0.2, kernel=KERNEL, **settings).fit(X, Y, weights)
    np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), atol=1e-7)
    np.testing.assert_allclose(model.fixed_coef_[0], whole.fixed_coef_, atol=1e-7)
    assert model.fixed_coef_.shape == (1, 2, 2)
    model.save(tmp_path / "model.rfm")
    np.testing.assert_array_equal(load(tmp_path / "model.rfm").predict(NEW), model.predict(NEW))


def test_a_few_steps_of_refining_come_nearer_to_the_model_of_all_rows():
    whole = KernelRidge(0.2, kernel=KERNEL, fixed=[1], fit_intercept=True).fit(X, Y).predict(NEW)
    off = []
    for steps in (1, 8):
        asked = {**GIVEN, "cells": CellOptions(refine=steps, tuning="shared")}
        model = PartitionedKernelRidge(**asked, fixed=[1], fit_intercept=True).fit(X, Y)
        off.append(np.abs(model.predict(NEW) - whole).max())
    assert off[1] < 0.1 * off[0]
