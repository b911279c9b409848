"""What the mean of cells of random rows knows of its errors: by its smoother, made densely."""

from __future__ import annotations

import numpy as np
import pytest

from fixed_effects_oracle import bordered_fit
from ridgefold import (
    CellOptions,
    KernelRidge,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    load,
)
from ridgefold.errors import BudgetError, UnsupportedInputError
from ridgefold.kernels import RBF

N, CELLS, ALPHA = 240, 4, 0.2
rng = np.random.default_rng(11)
X = np.column_stack([rng.uniform(-2, 2, (N, 2)), rng.random(N) < 0.4])
NEW = np.column_stack([rng.uniform(-2.5, 2.5, (25, 2)), np.arange(25) % 2])
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * X[:, 2] + 0.2 * rng.standard_normal(N)
TWO = np.column_stack([Y, rng.standard_normal(N)])
WEIGHTS = rng.uniform(0.3, 2.0, N)
KERNEL = RBF(1.5)
CASES = {
    "plain": ({}, None),
    "a bias": ({"fit_intercept": True}, None),
    "weights": ({"fit_intercept": True}, WEIGHTS),
    "a fixed column": ({"fit_intercept": True, "fixed": [1]}, WEIGHTS),
    "fixed columns": ({"fixed": [0, 2]}, None),
}


def fitted(settings, weights, y=Y):
    model = PartitionedKernelRidge(
        "random", CELLS, "average", alpha=ALPHA, kernel=KERNEL, random_state=0, **settings
    )
    return model.fit(X, y, weights)


def columns(rows, settings):
    ones = np.ones((len(rows), int(settings.get("fit_intercept", False))))
    return np.hstack([ones, rows[:, settings.get("fixed", [])]])


def cells_of(model):
    at = model._cells.offsets
    return [model._cells.rows[at[c] : at[c + 1]] for c in range(len(at) - 1)]


def smoothers(model, new, settings, weights):
    """How the prediction of every cell changes with all targets: (cells, new, n)."""
    found = np.zeros((CELLS, len(new), N))
    for c, rows in enumerate(cells_of(model)):
        F, ridge = columns(X[rows], settings), ALPHA * len(rows) / N
        w = None if weights is None else weights[rows]
        a, beta = bordered_fit(KERNEL(X[rows]), F, np.eye(len(rows)), ridge, w)
        found[c][:, rows] = KERNEL(new, X[rows]) @ a + columns(new, settings) @ beta
    return found


def variance_of_process(model, settings, weights):
    """s² of the largest restricted likelihood of independent cells with the ridge of all rows."""
    total, free = 0.0, 0
    for rows in cells_of(model):
        F = columns(X[rows], settings)
        w = None if weights is None else weights[rows]
        a, _ = bordered_fit(KERNEL(X[rows]), F, Y[rows, None], ALPHA, w)
        total, free = total + float(Y[rows] @ a[:, 0]), free + len(rows) - F.shape[1]
    return total / free


@pytest.mark.parametrize("case", CASES)
def test_the_spread_is_the_noise_of_the_averaged_smoother_and_what_no_cell_knows(case):
    settings, weights = CASES[case]
    model = fitted(settings, weights)
    L = smoothers(model, NEW, settings, weights)
    whole, w = L.mean(axis=0), np.ones(N) if weights is None else weights
    np.testing.assert_allclose(model.predict(NEW), whole @ Y, atol=1e-8)
    s2, K, across = variance_of_process(model, settings, weights), KERNEL(X), KERNEL(NEW, X)
    noise = ALPHA * np.sum(whole**2 / w, axis=1)
    unknown = [
        1.0 - 2.0 * np.sum(own * across, axis=1) + np.sum((own @ K) * own, axis=1) for own in L
    ]
    expected = noise + np.mean(np.sqrt(unknown), axis=0) ** 2
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(NEW))
    np.testing.assert_allclose(std**2, s2 * expected, rtol=1e-6)
    _, noisy = model.predict(NEW, return_std=True, noise=True)
    np.testing.assert_allclose(noisy**2, s2 * (expected + ALPHA), rtol=1e-6)
    # The error of the whole smoother under that process, correlations between cells and all.
    exact = noise + 1.0 - 2.0 * np.sum(whole * across, axis=1) + np.sum((whole @ K) * whole, axis=1)
    assert np.all(expected >= exact * (1.0 - 1e-9))
    assert np.median(np.sqrt(expected / exact)) < 1.5


def test_the_spread_holds_draws_of_the_process():
    """Of 300 functions with noise, about as many errors are within two deviations as should be."""
    places = np.linspace(-2, 2, 160)[:, None]
    new = np.linspace(-1.8, 1.8, 12)[:, None]
    random = np.random.default_rng(0)
    both = np.vstack([places, new])
    values, vectors = np.linalg.eigh(RBF(0.7)(both))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = root @ random.standard_normal((len(both), 300))
    y = drawn[:160] + np.sqrt(0.3) * random.standard_normal((160, 300))
    model = PartitionedKernelRidge("random", 4, "average", alpha=0.3, kernel=RBF(0.7))
    mean, std = model.fit(places, y).predict(new, return_std=True, variance=1.0)
    inside = np.mean(np.abs(mean - drawn[160:]) <= 1.96 * std)
    assert 0.94 <= inside <= 0.995


@pytest.mark.parametrize("case", CASES)
def test_errors_of_averages_are_those_of_the_averaged_smoother(case):
    settings, weights = CASES[case]
    model = fitted(settings, weights)
    found = model.marginal_effects()
    assert found.names == ("column 0", "column 1", "column 2: 0 → 1")
    shares = np.full(N, 1.0 / N) if weights is None else weights / weights.sum()
    w = np.ones(N) if weights is None else weights
    S = smoothers(model, X, settings, weights).mean(axis=0)
    sides = [np.column_stack([X[:, :2], np.full(N, level)]) for level in (1.0, 0.0)]
    high, low = (smoothers(model, rows, settings, weights).mean(axis=0) for rows in sides)
    step = 1e-5
    moved = [
        smoothers(model, X + s * np.eye(3)[0], settings, weights).mean(axis=0)
        for s in (step, -step)
    ]
    L = np.stack([shares @ (moved[0] - moved[1]) / (2 * step), shares @ (high - low)])
    residuals = Y - S @ Y
    variance = w @ residuals**2 / (N - np.trace(S))
    expected = np.sqrt(variance * np.sum(L**2 / w, axis=1))
    np.testing.assert_allclose(found.standard_error[[0, 2]], expected, rtol=1e-5)
    np.testing.assert_allclose(found.average[[0, 2]], L @ Y, rtol=1e-6, atol=1e-8)
    assert found.posterior_std is None
    assert "smoother" in found.note


def test_errors_of_averages_in_a_learned_metric_are_in_the_units_of_the_columns():
    wide = np.column_stack([X * [1.0, 100.0, 1.0], rng.standard_normal((N, 3))])
    model = PartitionedKernelRidge(
        "random", CELLS, "average", alpha=ALPHA, kernel="rbf", metric="learned", random_state=0
    ).fit(wide, Y)
    scales, kernel = model.length_scales_, model.kernels_[0]
    kept = np.isfinite(scales)

    def averaged(rows):
        S = np.zeros((len(rows), N))
        for own in cells_of(model):
            inner = wide[own][:, kept] / scales[kept]
            H = np.linalg.inv(kernel(inner) + ALPHA * len(own) / N * np.eye(len(own)))
            S[:, own] = kernel(rows[:, kept] / scales[kept], inner) @ H / CELLS
        return S

    S, step = averaged(wide), 1e-3 * np.eye(6)[1]
    L = np.mean(averaged(wide + step) - averaged(wide - step), axis=0) / 2e-3
    residuals = Y - S @ Y
    variance = residuals @ residuals / (N - np.trace(S))
    found = model.marginal_effects()
    assert found.standard_error[1] == pytest.approx(np.sqrt(variance * L @ L), rel=1e-5)
    np.testing.assert_array_equal(found.standard_error[~kept], 0.0)


def test_one_cell_and_a_refined_model_have_the_posterior_of_all_rows():
    whole = KernelRidge(ALPHA, kernel=KERNEL, fit_intercept=True).fit(X, TWO)
    settings = {"alpha": ALPHA, "kernel": KERNEL, "fit_intercept": True}
    one = PartitionedKernelRidge("random", 1, "average", **settings).fit(X, TWO)
    refined = PartitionedKernelRidge(
        n_partitions=3, cells=CellOptions(refine="exact", tuning="shared"), **settings
    ).fit(X, TWO)
    for model in (one, refined):
        expected = whole.predict(NEW, return_std=True)[1]
        np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], expected, rtol=1e-6)
        ours, theirs = model.marginal_effects(NEW), whole.marginal_effects(NEW)
        np.testing.assert_allclose(ours.standard_error, theirs.standard_error, rtol=1e-6)


def test_a_file_gives_the_same_spread_back(tmp_path):
    model = fitted({"fit_intercept": True}, WEIGHTS)
    model.save(tmp_path / "model.rfm")
    again = load(tmp_path / "model.rfm")
    np.testing.assert_array_equal(
        again.predict(NEW, return_std=True)[1], model.predict(NEW, return_std=True)[1]
    )


def test_what_has_no_such_spread_says_so():
    asked = {"alpha": ALPHA, "kernel": KERNEL, "n_partitions": 3}
    stopped = PartitionedKernelRidge(cells=CellOptions(refine=2, tuning="shared"), **asked)
    stopped.fit(X, Y)
    with pytest.raises(UnsupportedInputError, match="stops on the way"):
        stopped.predict(NEW, return_std=True)
    assert stopped.marginal_effects().standard_error is None
    classes = PartitionedLSSVMClassifier("random", 3, "average", alpha=ALPHA, kernel=KERNEL)
    classes.fit(X, Y > 0)
    assert classes.marginal_effects(decision=True).standard_error is None
    model = fitted({}, None).set_params(memory_budget=20_000)
    with pytest.raises(BudgetError, match="factor of a cell"):
        model.predict(NEW, return_std=True)
