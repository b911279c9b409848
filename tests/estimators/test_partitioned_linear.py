"""A linear model of all rows under the cells: what it is, and when it is taken."""

import numpy as np
import pytest

from ridgefold import (
    CellOptions,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
    load,
)
from ridgefold.errors import InvalidInputError, ModelFileError

rng = np.random.default_rng(5)
X = rng.uniform(-1.0, 1.0, (900, 3))
STEEP = 20.0 * X[:, 0] - 8.0 * X[:, 2]
Y = STEEP + np.sin(3.0 * X[:, 1]) + 0.1 * rng.standard_normal(900)
NEW = rng.uniform(-1.0, 1.0, (200, 3))
FIXED = {"alpha": 0.1, "kernel": "rbf", "gamma": 1.0, "n_partitions": 3}


def fitted(part, rows=X, targets=Y, weights=None, *, cls=PartitionedLSSVMRegressor, **options):
    settings = {**FIXED, "intervals": "jackknife+", **options}
    return cls(cells=CellOptions(linear_part=part), **settings).fit(rows, targets, weights)


def line(model, rows):
    """What the linear part predicts, from its coefficients and the model itself."""
    return rows @ model.linear_coef_


def test_cells_are_those_of_what_the_linear_part_leaves():
    model = fitted("always")
    left = Y - line(model, X)[:, 0]
    cells = fitted(None, X, left)
    np.testing.assert_allclose(
        model.predict(NEW), cells.predict(NEW) + line(model, NEW)[:, 0], atol=1e-8
    )
    np.testing.assert_allclose(model.held_out_residuals_, cells.held_out_residuals_, atol=1e-8)
    for mine, theirs in zip(model.predict_interval(NEW), cells.predict_interval(NEW), strict=True):
        np.testing.assert_allclose(mine, theirs + line(model, NEW)[:, 0], atol=1e-8)


@pytest.mark.parametrize("weights", [None, rng.uniform(0.5, 2.0, 900)])
def test_the_linear_part_is_ridge_of_all_rows_on_columns_of_unit_spread(weights):
    model = fitted("always", weights=weights)
    w = np.ones(len(X)) if weights is None else weights
    spread = X.std(axis=0)
    centred = (X - np.average(X, axis=0, weights=w)) / spread
    y = Y - np.average(Y, weights=w)
    gram, right = centred.T @ (w[:, None] * centred), centred.T @ (w * y)
    errors = {}
    for power in np.arange(-8.0, -0.5, 0.5):
        inverse = np.linalg.inv(gram + 10.0**power * w.sum() * np.eye(3))
        leverage = w * (1.0 / w.sum() + np.einsum("ij,jk,ik->i", centred, inverse, centred))
        off = (y - centred @ inverse @ right) / (1.0 - leverage)
        errors[power] = np.average(off**2, weights=w), inverse @ right / spread
    best = min(errors.values(), key=lambda pair: pair[0])[1]
    np.testing.assert_allclose(model.linear_coef_[:, 0], best, rtol=1e-8)


def test_residuals_are_those_of_refits_but_for_the_rows_part_in_the_line():
    """What a refit of line and cells without the row differs by is less than its leverage."""
    model = fitted("always", n_partitions=1)
    centred = np.column_stack([np.ones(len(X)), X])
    leverage = np.einsum("ij,ji->i", centred, np.linalg.pinv(centred))
    off = Y - Y.mean() - (X - X.mean(axis=0)) @ model.linear_coef_[:, 0]
    for i in (0, 17, 400):
        others = np.delete(np.arange(len(X)), i)
        refit = fitted("always", X[others], Y[others], n_partitions=1)
        residual = Y[i] - refit.predict(X[i : i + 1])[0]
        allowed = 1.5 * leverage[i] * np.abs(off[i]) + 1e-6
        assert abs(residual - model.held_out_residuals_[i, 0]) <= allowed


def test_a_steep_plane_with_little_else_is_taken_and_helps():
    few = X[:400]
    wavy = 0.2 * np.sin(8.0 * few[:, 1]) + 0.02 * np.random.default_rng(1).standard_normal(400)
    targets = 20.0 * few[:, 0] + 10.0 * few[:, 2] + wavy
    truth = 20.0 * NEW[:, 0] + 10.0 * NEW[:, 2] + 0.2 * np.sin(8.0 * NEW[:, 1])
    errors = {}
    for part in ("auto", None):
        model = PartitionedLSSVMRegressor(n_partitions=4, cells=CellOptions(linear_part=part))
        model.fit(few, targets)
        errors[part] = np.sqrt(np.mean((model.predict(NEW) - truth) ** 2))
        assert (model.linear_coef_ is not None) == (part == "auto")
    assert errors["auto"] < 0.9 * errors[None]


@pytest.mark.parametrize(
    "targets", [np.sin(5.0 * X[:, 0]) * np.cos(5.0 * X[:, 1]), np.sign(X[:, 0] * X[:, 1])]
)
def test_it_is_left_out_where_it_does_not_lower_held_out_errors(targets):
    model = PartitionedLSSVMRegressor(n_partitions=3).fit(X, targets)
    assert model.linear_coef_ is None
    plain = PartitionedLSSVMRegressor(n_partitions=3, cells=CellOptions(linear_part=None))
    np.testing.assert_array_equal(model.predict(NEW), plain.fit(X, targets).predict(NEW))


@pytest.mark.parametrize(
    "settings", [{"alpha": 0.1}, {"kernel": "rbf", "gamma": 1.0}, {"fit_intercept": False}]
)
def test_it_is_not_looked_for_where_users_fix_the_model(settings):
    model = PartitionedLSSVMRegressor(n_partitions=2, **settings).fit(X[:400], STEEP[:400])
    assert model.linear_coef_ is None
    assert "fitting a linear part" not in [step.name for step in model.run_record_.steps]


def test_every_target_has_a_line_of_its_own():
    both = fitted("always", targets=np.column_stack([Y, -2.0 * X[:, 1]]))
    assert both.linear_coef_.shape == (3, 2)
    np.testing.assert_allclose(both.linear_coef_[:, 1], [0.0, -2.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(both.predict(NEW)[:, 1], -2.0 * NEW[:, 1], atol=1e-5)


def test_a_weight_of_two_is_the_row_twice():
    weights = np.ones(300)
    weights[::3] = 2.0
    twice = np.concatenate([np.arange(300), np.arange(0, 300, 3)])
    settings = {"n_partitions": 2, "cells": CellOptions(linear_part="always")}
    one = PartitionedLSSVMRegressor(**settings).fit(X[:300], Y[:300], weights)
    other = PartitionedLSSVMRegressor(**settings).fit(X[twice], Y[twice])
    np.testing.assert_allclose(one.linear_coef_, other.linear_coef_, rtol=1e-9)
    np.testing.assert_allclose(one.predict(NEW), other.predict(NEW), rtol=1e-7)


def test_scales_are_learned_for_what_the_line_leaves():
    targets = 30.0 * X[:, 0] + np.sin(4.0 * X[:, 1])
    model = PartitionedLSSVMRegressor(
        n_partitions=2, metric="learned", cells=CellOptions(linear_part="always")
    ).fit(X, targets)
    assert model.length_scales_[1] < 0.1 * min(model.length_scales_[0], model.length_scales_[2])
    truth = 30.0 * NEW[:, 0] + np.sin(4.0 * NEW[:, 1])
    assert np.sqrt(np.mean((model.predict(NEW) - truth) ** 2)) < 0.05


def test_a_slip_of_the_keyboard_is_predicted_as_if_at_the_edge():
    model = PartitionedLSSVMRegressor(n_partitions=2, cells=CellOptions(linear_part="always"))
    model.fit(X, Y)
    far = NEW[:1].copy()
    far[0, 0] = 1e9
    more = 0.26 * np.ptp(Y)
    assert Y.min() - more <= model.predict(far)[0] <= Y.max() + more


def test_rows_on_disk_give_the_model_of_rows_in_memory(tmp_path):
    np.save(tmp_path / "X.npy", X)
    settings = {"n_partitions": 3, "cells": CellOptions(linear_part="always")}
    one = PartitionedLSSVMRegressor(**settings).fit(X, Y)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    disk = PartitionedLSSVMRegressor(**settings, memory_budget="1MB").fit(mapped, Y)
    assert disk.__dict__.get("_stored") is not None
    np.testing.assert_allclose(disk.linear_coef_, one.linear_coef_, rtol=1e-9)
    np.testing.assert_allclose(disk.predict(NEW), one.predict(NEW), rtol=1e-6)
    np.testing.assert_allclose(disk.held_out_residuals_, one.held_out_residuals_, atol=1e-6)


def test_an_interrupted_fit_goes_on_from_its_folder(tmp_path):
    settings = {"n_partitions": 3, "cells": CellOptions(linear_part="always")}
    one = PartitionedLSSVMRegressor(**settings).fit(X, Y)
    for _ in range(2):
        again = PartitionedLSSVMRegressor(**settings).set_params(compute__run_dir=tmp_path / "run")
        np.testing.assert_array_equal(again.fit(X, Y).predict(NEW), one.predict(NEW))


def test_slopes_are_those_of_line_and_cells():
    model = fitted("always", n_partitions=2)
    inside = 0.8 * NEW[:20]
    slopes = model.predict_gradient(inside)
    for j in range(3):
        step = 1e-5 * np.eye(3)[j]
        ahead, behind = model.predict(inside + step), model.predict(inside - step)
        np.testing.assert_allclose(slopes[:, j], (ahead - behind) / 2e-5, atol=1e-3)


def test_deviations_are_those_of_the_cells():
    model, left = fitted("always"), Y - X @ fitted("always").linear_coef_[:, 0]
    mean, deviation = model.predict(NEW, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(NEW))
    np.testing.assert_allclose(
        deviation, fitted(None, X, left).predict(NEW, return_std=True)[1], rtol=1e-6
    )


def test_classes_have_a_line_under_their_decision_values():
    labels = np.where(Y > 0, "above", "below")
    model = PartitionedLSSVMClassifier(
        n_partitions=2, probability=True, cells=CellOptions(linear_part="always")
    ).fit(X, labels)
    assert model.linear_coef_.shape == (3, 1)
    assert np.mean(model.predict(NEW) == np.where(NEW @ [20, 0, -8] > 0, "above", "below")) > 0.9
    np.testing.assert_allclose(model.predict_proba(NEW).sum(axis=1), 1.0)


def test_model_files_keep_it(tmp_path):
    model = fitted("always")
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(loaded.linear_coef_, model.linear_coef_)
    for mine, theirs in zip(loaded.predict_interval(NEW), model.predict_interval(NEW), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["coefficients", "intercept", "lowest", "least"])
def test_files_with_a_line_that_does_not_fit_are_refused(tmp_path, name):
    from dataclasses import replace

    model = PartitionedLSSVMRegressor(n_partitions=2, cells=CellOptions(linear_part="always"))
    model.fit(X, Y)
    model._linear = replace(model._linear, **{name: getattr(model._linear, name)[:0]})
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="do not fit together"):
        load(tmp_path / "model")


@pytest.mark.parametrize("settings", [{"combine": "average"}, {"cells__refine": 2}])
def test_means_and_refined_models_have_none(settings):
    model = PartitionedKernelRidge(n_partitions=2, alpha=0.1, gamma=1.0).set_params(
        cells__linear_part="always", **settings
    )
    with pytest.raises(InvalidInputError, match=r"cells\.linear_part"):
        model.fit(X, Y)
    model.set_params(cells__linear_part="auto").fit(X, Y)
    assert model.linear_coef_ is None
