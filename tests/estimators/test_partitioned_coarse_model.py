"""A coarse model of all rows behind the cells of a partitioned model."""

from __future__ import annotations

import numpy as np
import pytest

import ridgefold
from ridgefold import CellOptions, PartitionedLSSVMClassifier, PartitionedLSSVMRegressor
from ridgefold.errors import InvalidInputError, ModelFileError

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (700, 3))
CLEAN = np.sin(X[:, 0]) + 0.5 * X[:, 1]
Y = CLEAN + 1.5 * rng.standard_normal(700)
TWO = np.column_stack([Y, np.cos(4 * X[:, 0]) * np.sin(4 * X[:, 1])])
NEW = rng.uniform(-2, 2, (200, 3))
TRUTH = np.sin(NEW[:, 0]) + 0.5 * NEW[:, 1]


def noisy(**settings):
    return PartitionedLSSVMRegressor(n_partitions=5).set_params(**settings)


def coarse(coarse_model, rows):
    psi = (
        coarse_model.kernel(rows, coarse_model.centres) @ coarse_model.projection
        - coarse_model.offset
    )
    return coarse_model.intercept + psi @ coarse_model.coefficients


def test_it_is_mixed_into_what_the_cells_predict():
    model, cells = noisy().fit(X, TWO), noisy(cells__coarse_model=None).fit(X, TWO)
    assert cells.coarse_model_share_ is None
    share = model.coarse_model_share_
    assert share.shape == (2,)
    assert 0 < share[0] <= 1
    np.testing.assert_array_equal(model._models.dual_coef, cells._models.dual_coef)
    expected = (1 - share) * cells.predict(NEW) + share * coarse(model._coarse_model, NEW)
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-10, atol=1e-12)


def test_it_lowers_the_error_where_targets_are_noise_for_the_most_part():
    errors = [
        np.sqrt(np.mean((noisy(cells__coarse_model=kept).fit(X, Y).predict(NEW) - TRUTH) ** 2))
        for kept in ("auto", None)
    ]
    assert errors[0] < 0.9 * errors[1]


def test_held_out_residuals_are_those_of_the_mixture():
    model, cells = noisy().fit(X, Y), noisy(cells__coarse_model=None).fit(X, Y)
    coarse_model, i = model._coarse_model, 17
    # With ψ and its penalty as they are, the coarse fit without row i by dense algebra.
    psi = (
        coarse_model.kernel(X, coarse_model.centres) @ coarse_model.projection - coarse_model.offset
    )
    penalty = np.eye(psi.shape[1]) - psi.T @ psi
    A = np.column_stack([psi, np.ones(len(X))])
    rest = np.delete(np.arange(len(X)), i)
    left = A[rest].T @ A[rest]
    left[:-1, :-1] += penalty
    without = A[i] @ np.linalg.solve(left, A[rest].T @ Y[rest])
    share = model.coarse_model_share_[0]
    expected = (1 - share) * cells.held_out_residuals_[i, 0] + share * (Y[i] - without)
    assert model.held_out_residuals_[i, 0] == pytest.approx(expected, rel=1e-8)
    both = [np.mean(each.held_out_residuals_**2) for each in (model, cells)]
    assert both[0] < both[1]


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.1},
        {"alpha": [0.1, 1.0]},
        {"kernel_params": {"length_scale": 1.0}},
        {"combine": "route"},
        {"cells__tuning": "shared"},
        {"n_partitions": 1},
        {"fit_intercept": False},
        {"kernel": "linear"},
        {"partition": "random", "combine": "average"},
        {"cells__refine": 3},
    ],
    ids=str,
)
def test_it_stands_only_behind_blended_cells_that_choose_everything(settings):
    model = PartitionedLSSVMRegressor().set_params(**{"n_partitions": 5, **settings}).fit(X, Y)
    assert model.coarse_model_share_ is None


def test_it_is_left_out_where_it_gains_nothing():
    assert noisy().fit(X, np.sin(6 * X[:, 0]) * np.sin(6 * X[:, 1])).coarse_model_share_ is None


@pytest.mark.parametrize("given", [True, False, "yes", 3])
def test_other_values_are_refused(given):
    with pytest.raises(
        InvalidInputError, match=r'cells.coarse_model must be one of "auto", None, got'
    ):
        noisy(cells__coarse_model=given).fit(X, Y)


def test_a_weight_of_two_is_the_row_twice():
    weights = rng.integers(0, 4, 700)
    repeated = np.repeat(np.arange(700), weights)
    one, other = noisy().fit(X, Y, weights), noisy().fit(X[repeated], Y[repeated])
    assert one.coarse_model_share_[0] > 0
    np.testing.assert_allclose(one.coarse_model_share_, other.coarse_model_share_, rtol=1e-6)
    np.testing.assert_allclose(one.predict(NEW), other.predict(NEW), rtol=1e-6, atol=1e-8)


def test_rows_that_share_x_are_left_out_one_by_one():
    places = np.round(1.5 * X)
    one = noisy().fit(places, Y)
    same = PartitionedLSSVMRegressor(n_partitions=5, intervals="jackknife+").fit(places, Y)
    np.testing.assert_array_equal(one.held_out_residuals_, same.held_out_residuals_)
    coarse_model = one._coarse_model
    i = 5
    psi = (
        coarse_model.kernel(places, coarse_model.centres) @ coarse_model.projection
        - coarse_model.offset
    )
    leverage = 1.0 / len(X) + psi[i] @ psi[i]
    own = (Y[i] - coarse(coarse_model, places[i : i + 1])[0, 0]) / (1 - leverage)
    cells = noisy(cells__coarse_model=None).fit(places, Y).held_out_residuals_[i, 0]
    share = one.coarse_model_share_[0]
    expected = (1 - share) * cells + share * own
    assert one.held_out_residuals_[i, 0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_it_is_the_same_wherever_cells_are_worked_on(executor):
    one, other = noisy().fit(X, Y), noisy(compute__executor=executor, compute__n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(one.predict(NEW), other.predict(NEW))
    np.testing.assert_array_equal(one.held_out_residuals_, other.held_out_residuals_)


def test_it_is_the_same_for_rows_on_disk_and_after_an_interruption(tmp_path):
    np.save(tmp_path / "X.npy", X)
    one = noisy().fit(X, Y)
    disk = noisy(memory_budget="10kB").fit(tmp_path / "X.npy", Y)
    np.testing.assert_allclose(disk.coarse_model_share_, one.coarse_model_share_, rtol=1e-9)
    np.testing.assert_allclose(disk.predict(NEW), one.predict(NEW), rtol=1e-9)
    np.testing.assert_allclose(disk.held_out_residuals_, one.held_out_residuals_, rtol=1e-8)
    run = tmp_path / "run"
    first = noisy(compute__run_dir=run).fit(X, Y)
    again = noisy(compute__run_dir=run).fit(X, Y)
    for model in (first, again):
        np.testing.assert_array_equal(model.predict(NEW), one.predict(NEW))
    assert (run / "steps" / "backdrop.piece").exists()


def test_it_is_stored_in_model_files(tmp_path):
    model = noisy().fit(X, TWO)
    model.save(tmp_path / "m")
    loaded = ridgefold.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(loaded.coarse_model_share_, model.coarse_model_share_)
    model.save(tmp_path / "half", dtype="float32")
    np.testing.assert_allclose(
        ridgefold.load(tmp_path / "half").predict(NEW.astype(np.float32)),
        model.predict(NEW),
        atol=1e-3,
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("share", lambda a: a + 2.0),
        ("centres", lambda a: a[:, :2]),
        ("projection", lambda a: a[:-1]),
        ("coefficients", lambda a: a * np.nan),
        ("offset", lambda a: a.astype(np.int64)),
    ],
)
def test_files_with_a_coarse_model_that_does_not_fit_are_refused(tmp_path, name, change):
    from dataclasses import replace

    model = noisy().fit(X, Y)
    model._coarse_model = replace(
        model._coarse_model, **{name: change(getattr(model._coarse_model, name))}
    )
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError):
        ridgefold.load(tmp_path / "m")


def test_float32_and_learned_scales_and_other_kernels():
    single = noisy().fit(X.astype(np.float32), Y.astype(np.float32))
    assert single.predict(NEW.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.predict(NEW), noisy().fit(X, Y).predict(NEW), atol=0.05)
    for settings in ({"kernel": "laplacian"}, {"kernel": ["rbf", "laplacian"]}):
        model = noisy(**settings).fit(X, Y)
        assert type(model._coarse_model.kernel) is type(model.kernels_[0])
    learned = noisy(metric="learned").fit(X, Y)
    assert np.all(np.isfinite(learned.predict(NEW)))


def test_classifiers_have_it_too():
    labels = np.where(Y > 0, "yes", "no")
    settings = {"n_partitions": 7, "probability": True}
    model = PartitionedLSSVMClassifier().set_params(**settings).fit(X, labels)
    without = (
        PartitionedLSSVMClassifier(cells=CellOptions(coarse_model=None))
        .set_params(**settings)
        .fit(X, labels)
    )
    assert model.coarse_model_share_[0] > 0
    right = np.where(TRUTH > 0, "yes", "no")
    assert model.score(NEW, right) >= without.score(NEW, right)
    assert np.all(model.predict_proba(NEW) >= 0)


def test_how_it_was_computed_says_so():
    text = str(noisy().fit(X, Y).explain())
    assert "coarse model of all rows" in text
