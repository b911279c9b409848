"""Partitioned models: against plain fits in every cell, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import ridgefold
from ridgefold import (
    CellOptions,
    Compute,
    KernelRidge,
    LSSVMClassifier,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
)
from ridgefold.cells import shared_pair
from ridgefold.cells.combine import COMBINERS, cell_alpha
from ridgefold.cells.computed_rows import scaled_rows
from ridgefold.cells.cut import PARTITIONERS, KMeansCells
from ridgefold.cells.run_cells import limits_of
from ridgefold.errors import InvalidInputError, UnsupportedInputError
from ridgefold.kernels import RBF, Linear, Polynomial

PAIRS = [
    (partition, combine)
    for partition in PARTITIONERS
    for combine in COMBINERS
    if PARTITIONERS[partition].in_space or not COMBINERS[combine].needs_space
]
KERNEL = RBF(1.0)
FIXED = {"alpha": 0.1, "kernel_params": {"length_scale": 1.0}, "cells__clip": False}


def data(n=240, d=2, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    y = np.sin(2 * X[:, 0])[:, None] * np.arange(1, targets + 1) + X[:, 1:].sum(axis=1)[:, None]
    y = y + 0.1 * rng.standard_normal(y.shape)
    return X, y[:, 0] if targets == 1 else y


def by_hand(model, X, y, new, weights=None, *, alpha=0.1, kernel=KERNEL):
    """The combined prediction from plain fits in the model's own cells."""
    cells, combiner = model._cells, COMBINERS[model.combine]
    partitioner = PARTITIONERS[model.partition]
    m = len(cells.offsets) - 1
    assignment = combiner.assign(partitioner, cells.router, m, new)
    total = 0.0
    n = len(X) if weights is None else int(np.sum(weights > 0))
    for cell in range(m):
        rows = cells.rows[cells.offsets[cell] : cells.offsets[cell + 1]]
        plain = KernelRidge(
            cell_alpha(combiner, alpha, len(rows), n),
            kernel=kernel,
            fit_intercept=model.fit_intercept,
        ).fit(X[rows], y[rows], None if weights is None else weights[rows])
        where, weight = assignment.of_cell(cell)
        share = np.zeros(len(new))
        share[where] = weight
        values = plain.predict(new)
        total = total + values * (share if values.ndim == 1 else share[:, None])
    return total


@pytest.mark.parametrize(("partition", "combine"), PAIRS)
@pytest.mark.parametrize("bias", [False, True])
def test_every_pair_combines_plain_fits_of_its_cells(partition, combine, bias):
    X, y = data(targets=2)
    new = data(80, seed=1)[0]
    model = (
        PartitionedKernelRidge(
            partition, 5, combine, fit_intercept=bias, cells=CellOptions(overlap=0.4)
        )
        .set_params(**FIXED)
        .fit(X, y)
    )
    assert model.predict(new).shape == (80, 2)
    assert np.allclose(model.predict(new), by_hand(model, X, y, new), rtol=1e-9, atol=1e-9)


def noise_columns(n: int = 1000, d: int = 24):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 3]) + 0.5 * X[:, 5] + 0.2 * rng.normal(size=n)


def test_cells_are_cut_without_the_columns_that_do_not_matter(tmp_path):
    X, y = noise_columns()
    model = PartitionedLSSVMRegressor(n_partitions=6, metric="learned").fit(X[:600], y[:600])
    kept = np.isfinite(model.length_scales_)
    assert kept[[3, 5]].all()
    assert kept.sum() < 20
    assert model._cells.router["directions"].shape == (5, kept.sum())
    assert model.score(X[600:], y[600:]) > 0.85
    moved = X[600:].copy()
    moved[:, ~kept] = 1e3
    np.testing.assert_array_equal(model.predict(moved), model.predict(X[600:]))
    lower, upper = model.predict_interval(X[600:])
    assert 0.8 < np.mean((lower <= y[600:]) & (y[600:] <= upper)) < 0.97
    model.save(tmp_path / "m")
    again = ridgefold.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    plain = PartitionedLSSVMRegressor(n_partitions=6).fit(X[:600], y[:600])
    assert plain.score(X[600:], y[600:]) < 0.7


@pytest.mark.parametrize("combine", ["route", "blend", "average"])
def test_weights_enter_every_cell(combine):
    X, y = data()
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    new = data(50, seed=1)[0]
    model = PartitionedLSSVMRegressor("tree", 4, combine).set_params(**FIXED).fit(X, y, weights)
    expected = by_hand(model, X, y, new, weights)
    assert np.allclose(model.predict(new), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("combine", ["route", "blend"])
def test_one_cell_is_the_whole_fit(combine):
    X, y = data()
    model = PartitionedLSSVMRegressor("tree", 1, combine).set_params(**FIXED).fit(X, y)
    whole = KernelRidge(0.1, kernel=RBF(1.0), fit_intercept=True).fit(X, y)
    assert np.allclose(model.predict(X), whole.predict(X), rtol=1e-10)


SINGULAR = {"alpha": 1e-15, "cells__clip": False}
LOW_RANK = [Linear(), Polynomial(2, coef0=0.0)]


@pytest.mark.filterwarnings("ignore::ridgefold.errors.SingularSystemWarning")
@pytest.mark.parametrize("kernel", LOW_RANK, ids=["linear", "quadratic"])
@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_one_cell_with_a_ridge_below_rounding_is_the_whole_fit(kernel, device, weighted, targets):
    X, y = data(40, 3, targets)
    y = y + 5.0  # far from zero, where a bias tells
    weights = np.arange(40.0) % 3 if weighted else None
    model = PartitionedLSSVMRegressor(
        n_partitions=1, kernel=kernel, compute=Compute(device=device)
    ).set_params(**SINGULAR)
    whole = KernelRidge(1e-15, kernel=kernel, fit_intercept=True)
    found, expected = (fitted.fit(X, y, weights).predict(X) for fitted in (model, whole))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.filterwarnings("ignore::ridgefold.errors.SingularSystemWarning")
@pytest.mark.parametrize("kernel", LOW_RANK, ids=["linear", "quadratic"])
@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("combine", ["route", "blend", "average"])
def test_cells_with_a_ridge_below_rounding_combine_plain_fits(kernel, device, combine):
    X, y = data(150, 3)
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    new = data(50, 3, seed=1)[0]
    model = (
        PartitionedLSSVMRegressor("tree", 3, combine, kernel=kernel, compute=Compute(device=device))
        .set_params(**SINGULAR)
        .fit(X, y, weights)
    )
    expected = by_hand(model, X, y, new, weights, alpha=1e-15, kernel=kernel)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_single_precision_with_a_ridge_below_rounding_is_the_whole_fit(device):
    X, y = data(40, 3)
    model = PartitionedLSSVMRegressor(
        n_partitions=1, kernel="linear", compute=Compute(device=device)
    ).set_params(**SINGULAR)
    found = model.fit(X.astype(np.float32), y.astype(np.float32)).predict(X.astype(np.float32))
    assert found.dtype == np.float32
    expected = KernelRidge(1e-15, kernel="linear", fit_intercept=True).fit(X, y).predict(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_held_out_residuals_with_a_ridge_below_rounding_are_those_of_refits(device):
    X, y = data(40, 3)
    model = (
        PartitionedLSSVMRegressor(
            n_partitions=1, kernel="linear", intervals="jackknife+", compute=Compute(device=device)
        )
        .set_params(**SINGULAR)
        .fit(X, y)
    )
    for i in range(40):
        rest = np.delete(np.arange(40), i)
        plain = KernelRidge(1e-15, kernel="linear", fit_intercept=True).fit(X[rest], y[rest])
        expected = y[i] - plain.predict(X[[i]])[0]
        assert model.held_out_residuals_[i, 0] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("combine", ["route", "blend"])
def test_held_out_residuals_are_those_of_refits_without_the_row(combine, bias):
    X, y = data(90)
    model = PartitionedKernelRidge(
        "tree",
        3,
        combine,
        kernel_params={"length_scale": 1.0},
        alpha=[0.1, 1.0],
        fit_intercept=bias,
        cells=CellOptions(tuning="cell"),
    ).fit(X, y)
    residuals = model.held_out_residuals_
    assert residuals.shape == (90, 1)
    cells = model._cells
    for i in range(0, 90, 7):
        predicted = 0.0
        for cell in range(model.n_partitions_):
            some = slice(cells.offsets[cell], cells.offsets[cell + 1])
            rows = cells.rows[some]
            if i not in rows:
                continue
            share = 1.0 if cells.weights is None else cells.weights[some][rows == i][0]
            rest = rows[rows != i]
            plain = KernelRidge(model.alpha_[cell], kernel=RBF(1.0), fit_intercept=bias)
            predicted += share * plain.fit(X[rest], y[rest]).predict(X[i : i + 1])[0]
        assert np.isclose(residuals[i, 0], y[i] - predicted, rtol=1e-7, atol=1e-9)


def test_every_cell_chooses_the_best_pair_of_the_grid():
    X, y = data(300)
    widths, alphas = [0.3, 1.0, 3.0], [1e-3, 1e-1, 10.0]
    model = PartitionedLSSVMRegressor(
        "tree",
        3,
        "route",
        kernel_params={"length_scale": widths},
        alpha=alphas,
        cells=CellOptions(tuning="cell"),
    ).fit(X, y)
    for cell, rows in enumerate(np.split(model._cells.rows, model._cells.offsets[1:-1])):
        best = (np.inf, None, None)
        for width in widths:
            K = RBF(width)(X[rows])
            for alpha in alphas:
                H = np.linalg.inv(K + alpha * np.eye(len(rows)))
                C = H - np.outer(H.sum(1), H.sum(1)) / H.sum()
                best = min(best, (np.mean((C @ y[rows] / np.diag(C)) ** 2), width, alpha))
        assert model.kernels_[cell] == RBF(best[1])
        assert model.alpha_[cell] == best[2]


def test_widths_are_found_from_far_away():
    X, y = data(300)
    near = PartitionedLSSVMRegressor("tree", 3, "route").fit(X, y)
    far = PartitionedLSSVMRegressor("tree", 3, "route").fit(1e3 * X, y)
    ratio = [
        b.length_scale / a.length_scale for a, b in zip(near.kernels_, far.kernels_, strict=True)
    ]
    assert np.allclose(ratio, 1e3, rtol=1e-6)
    assert np.allclose(near.predict(X), far.predict(1e3 * X), rtol=1e-4, atol=1e-4)


def test_a_shared_pair_is_the_same_in_all_cells():
    X, y = data(400)
    model = PartitionedLSSVMRegressor("tree", 6, cells=CellOptions(tuning="shared")).fit(X, y)
    assert len(set(model.kernels_)) == 1
    assert len(set(model.alpha_)) == 1


def test_averages_take_the_ridge_of_all_rows_by_shares():
    X, y = data(200)
    model = PartitionedLSSVMRegressor("random", 4, "average").set_params(**FIXED).fit(X, y)
    assert np.allclose(model.alpha_, 0.1 / 4)


def test_averages_choose_the_ridge_by_the_error_of_the_mean():
    X, y = data(400, seed=3)
    new, truth = data(400, seed=4)
    errors = {}
    for alpha in (1e-4, 1e-1, 1e2):
        model = PartitionedLSSVMRegressor(
            "random", 4, "average", kernel_params={"length_scale": 1.0}, alpha=alpha
        )
        errors[alpha] = np.mean((model.fit(X, y).predict(new) - truth) ** 2)
    model = PartitionedLSSVMRegressor(
        "random", 4, "average", kernel_params={"length_scale": 1.0}, alpha=list(errors)
    ).fit(X, y)
    assert np.isclose(model.alpha_.sum(), min(errors, key=errors.get))


def test_cells_drawn_from_strata_average_closer_to_the_whole_fit():
    x = np.random.default_rng(1).uniform(size=(512, 1))
    y = np.minimum(x[:, 0], 1 - x[:, 0]) + 0.4 * np.random.default_rng(2).standard_normal(512)
    settings = {"kernel": "sobolev", "alpha": 8.0, "fit_intercept": False}
    whole = KernelRidge(8.0, kernel="sobolev").fit(x, y).predict(x)

    def distance(partition, seed):
        model = PartitionedLSSVMRegressor(partition, 16, "average", random_state=seed).set_params(
            **settings
        )
        return np.sum((model.fit(x, y).predict(x) - whole) ** 2)

    random, stratified = (
        sum(distance(name, seed) for seed in range(5)) for name in ("random", "stratified")
    )
    assert stratified < random / 2


# -- exact again ----------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("partition", ["tree", "kmeans", "hyperplanes", "random", "stratified"])
def test_refining_to_the_end_gives_the_whole_fit(partition, bias, weighted):
    X, y = data(300, targets=2)
    weights = np.random.default_rng(0).integers(0, 4, 300).astype(float) if weighted else None
    model = PartitionedKernelRidge(
        partition,
        5,
        "average" if partition in ("random", "stratified") else "blend",
        kernel_params={"length_scale": 0.7},
        fit_intercept=bias,
        alpha=1e-2,
        cells=CellOptions(refine="exact"),
    ).fit(X, y, weights)
    whole = KernelRidge(1e-2, kernel=RBF(0.7), fit_intercept=bias).fit(X, y, weights)
    new = data(100, seed=5)[0]
    assert np.max(np.abs(model.predict(new) - whole.predict(new))) < 1e-8
    assert np.all(model.certificate_ < 1e-6)
    assert model.n_steps_ > 0


def test_each_step_of_refining_comes_closer():
    X, y = data(600, d=3)
    whole = KernelRidge(1e-3, kernel=RBF(0.4), fit_intercept=True).fit(X, y).predict(X)
    errors = []
    for steps in (1, 4, 16):
        model = PartitionedLSSVMRegressor(
            "tree",
            8,
            kernel_params={"length_scale": 0.4},
            alpha=1e-3,
            cells=CellOptions(refine=steps),
        )
        errors.append(np.max(np.abs(model.fit(X, y).predict(X) - whole)))
        assert model.n_steps_ <= steps
    assert errors[2] < errors[1] < errors[0]


def test_refining_an_average_begins_with_that_average():
    X, y = data(600, d=3)
    settings = {
        "combine": "average",
        "alpha": 1e-2,
        "kernel_params": {"length_scale": 0.7},
        "fit_intercept": False,
    }
    whole = KernelRidge(1e-2, kernel=RBF(0.7)).fit(X, y).predict(X)
    average = PartitionedLSSVMRegressor("random", 6).set_params(**settings).fit(X, y).predict(X)
    refined = (
        PartitionedLSSVMRegressor("random", 6, cells=CellOptions(refine=1))
        .set_params(**settings)
        .fit(X, y)
        .predict(X)
    )
    assert np.mean((refined - whole) ** 2) < np.mean((average - whole) ** 2)


def test_refining_in_single_precision_loses_no_more_than_rounding_of_the_model():
    X, y = data(600, d=3)
    settings = {"cells__refine": "exact", "alpha": 1e-2, "kernel_params": {"length_scale": 2.0}}
    exact = KernelRidge(1e-2, kernel=RBF(2.0), fit_intercept=True).fit(X, y)
    model = PartitionedLSSVMRegressor(n_partitions=5).set_params(**settings)
    model.fit(X.astype(np.float32), y.astype(np.float32))
    assert model.predict(X.astype(np.float32)).dtype == np.float32
    rounding = np.finfo(np.float32).eps * np.abs(exact.dual_coef_).sum()
    assert np.max(np.abs(model.predict(X.astype(np.float32)) - exact.predict(X))) < rounding


def test_refining_needs_one_pair_for_all_cells():
    X, y = data(60)
    with pytest.raises(InvalidInputError, match='tuning="shared"'):
        PartitionedLSSVMRegressor(
            n_partitions=3, cells=CellOptions(refine="exact", tuning="cell")
        ).fit(X, y)


# -- edges ----------------------------------------------------------------------------------


@pytest.mark.parametrize("partition", PARTITIONERS)
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_few_rows_are_fitted_however_many_cells_are_asked_for(partition, n):
    X, y = data(n)
    combine = "average" if partition in ("random", "stratified") else "blend"
    for m in (1, 4, 50, "auto"):
        model = PartitionedLSSVMRegressor(partition, m, combine).fit(X, y)
        assert model.n_partitions_ <= n
        assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.parametrize("combine", COMBINERS)
def test_constant_columns_and_repeated_rows(combine):
    X, y = data(60)
    X = np.column_stack([X, np.ones(60)])
    X[:20] = X[0]
    model = PartitionedLSSVMRegressor("tree", 4, combine).fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))
    same = PartitionedLSSVMRegressor("tree", 4, combine).fit(np.ones((30, 2)), y[:30])
    assert np.allclose(same.predict(np.ones((1, 2))), y[:30].mean(), atol=0.3)


WAYS = [
    {"partition": "tree", "n_partitions": 4, "combine": "blend"},
    {"partition": "hyperplanes", "n_partitions": 3, "combine": "route"},
    {"partition": "kmeans", "n_partitions": 4, "combine": "blend"},
    {"partition": "random", "n_partitions": 3, "combine": "average"},
    {"n_partitions": "auto", "cells__weighted_scores": True},
    {"n_partitions": 3, "metric": "learned", "alpha": 0.1},
    {
        "n_partitions": 3,
        "cells__refine": "exact",
        "alpha": 0.1,
        "kernel_params": {"length_scale": 1.0},
    },
]
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))


@ways
def test_a_weight_is_that_many_rows_and_none_is_no_row(way):
    X, y = data(300)
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 4, 300)
    shuffled = rng.permutation(np.repeat(np.arange(300), weights))
    weighted = PartitionedLSSVMRegressor().set_params(**way).fit(X, y, weights.astype(float))
    repeated = PartitionedLSSVMRegressor().set_params(**way).fit(X[shuffled], y[shuffled])
    new = data(50, seed=1)[0]
    np.testing.assert_allclose(weighted.predict(new), repeated.predict(new), rtol=1e-6, atol=1e-6)
    assert weighted.n_partitions_ == repeated.n_partitions_


@ways
def test_rows_of_weight_zero_change_nothing(way):
    X, y = data(300)
    weights = np.random.default_rng(5).choice([0.0, 0.7, 1.3], 300)
    y[weights == 0] = 1e3
    used = weights > 0
    model = PartitionedLSSVMRegressor().set_params(**way).fit(X, y, weights)
    without = PartitionedLSSVMRegressor().set_params(**way).fit(X[used], y[used], weights[used])
    new = data(50, seed=1)[0]
    np.testing.assert_allclose(model.predict(new), without.predict(new), rtol=1e-10, atol=1e-12)
    if model.held_out_residuals_ is not None:
        np.testing.assert_allclose(
            model.held_out_residuals_[~used, 0], y[~used] - model.predict(X[~used])
        )


def test_repeated_rows_have_coefficients_and_residuals_of_their_own():
    X, y = data(120)
    X[60:90] = X[:30]  # the same rows with other targets
    X[100:110], y[100:110] = X[50], y[50]
    settings = {
        "cells__tuning": "cell",
        "alpha": [0.1, 1.0],
        "kernel_params": {"length_scale": 1.0},
    }
    model = (
        PartitionedLSSVMRegressor("tree", 3, "route", cells=CellOptions(clip=False))
        .set_params(**settings)
        .fit(X, y)
    )
    cells = model._cells
    for cell in range(3):
        rows = cells.rows[cells.offsets[cell] : cells.offsets[cell + 1]]
        assert np.all(np.diff(rows) > 0)
        kernel, alpha = model.kernels_[cell], model.alpha_[cell]
        whole = KernelRidge(alpha, kernel=kernel, fit_intercept=True).fit(X[rows], y[rows])
        dual = model._models.dual_coef[cells.offsets[cell] : cells.offsets[cell + 1], 0]
        np.testing.assert_allclose(dual, whole.dual_coef_, rtol=1e-6, atol=1e-8)
        for i in rows[::9]:
            others = rows[rows != i]
            less = KernelRidge(alpha, kernel=kernel, fit_intercept=True).fit(X[others], y[others])
            residual = y[i] - less.predict(X[i : i + 1])[0]
            assert model.held_out_residuals_[i, 0] == pytest.approx(residual, rel=1e-6, abs=1e-8)


def test_what_a_row_alone_in_its_cell_leaves_behind_is_not_known():
    X = np.array([[0.0], [1.0], [2.0], [100.0]])
    y = np.array([1.0, 2.0, 3.0, 50.0])
    settings = {"alpha": 0.1, "kernel_params": {"length_scale": 1.0}, "intervals": "jackknife+"}
    model = PartitionedLSSVMRegressor("kmeans", 2, "route").set_params(**settings).fit(X, y)
    assert model.partition_sizes_.min() == 1
    assert np.isfinite(model.held_out_residuals_[:, 0]).tolist() == [True, True, True, False]
    # Two rows there, of the same x: each is predicted by the other.
    X, y = np.append(X, X[-1:], axis=0), np.append(y, 60.0)
    model = PartitionedLSSVMRegressor("kmeans", 2, "route").set_params(**settings).fit(X, y)
    assert model.held_out_residuals_[3:, 0] == pytest.approx([-10.0, 10.0])


@pytest.mark.parametrize("tuning", ["cell", "shared"])
@pytest.mark.parametrize("intervals", ["auto", None, "jackknife+"])
@pytest.mark.parametrize("n_partitions", ["auto", 3])
def test_residuals_are_kept_where_they_are_promised(tuning, intervals, n_partitions):
    X, y = data(300)
    model = PartitionedLSSVMRegressor(
        n_partitions=n_partitions,
        intervals=intervals,
        alpha=[0.1, 1.0],
        cells=CellOptions(tuning=tuning),
    ).fit(X, y)
    wanted = intervals == "jackknife+" or (intervals == "auto" and tuning == "cell")
    assert (model.held_out_residuals_ is not None) == wanted


def test_the_order_in_which_ridge_values_are_given_does_not_matter():
    X, y = data(300)
    alphas = [1e-3, 1e-2, 0.1, 1.0, 10.0]
    models = [
        PartitionedLSSVMRegressor(n_partitions=4, alpha=order).fit(X, y)
        for order in (alphas, alphas[::-1], [10.0, 1e-3, 1.0, 0.1, 1e-2])
    ]
    for other in models[1:]:
        assert np.array_equal(other.alpha_, models[0].alpha_)
        assert np.array_equal(other.predict(X), models[0].predict(X))


def test_large_cells_look_for_the_ridge_of_a_given_width_on_more_rows(monkeypatch):
    asked = []
    near = shared_pair.search_near

    def watched(score_of, grid):
        asked.append(len(grid.kernels))
        return near(score_of, grid)

    monkeypatch.setattr(shared_pair, "search_near", watched)
    X, y = data(1000)
    PartitionedLSSVMRegressor(kernel_params={"length_scale": 0.7}, n_partitions=1).fit(X, y)
    assert asked == [1]
    PartitionedLSSVMRegressor(kernel_params={"length_scale": 0.7}, n_partitions=8).fit(X, y)
    assert asked == [1]


def test_more_averaged_cells_than_rows_are_as_many_as_rows():
    X, y = data(40)
    model = PartitionedLSSVMRegressor("random", 10**9, "average", alpha=1.0).fit(X, y)
    assert model.n_partitions_ <= 40


def test_cells_of_repeated_rows_are_kept_in_files(tmp_path):
    X, y = data(200)
    weights = np.arange(200) % 3.0
    model = PartitionedLSSVMRegressor(n_partitions=4).fit(X, y, weights)
    model.save(tmp_path / "m")
    again = ridgefold.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    lower, upper = again.predict_interval(X[:10])
    assert np.all(lower < upper)


def test_blended_predictions_have_no_seams_and_routed_ones_do():
    X, y = data(400, d=1)
    line = np.linspace(-2, 2, 4001)[:, None]
    blend = (
        PartitionedLSSVMRegressor("tree", 8, "blend", cells=CellOptions(overlap=0.3))
        .set_params(**FIXED)
        .fit(X, y)
    )
    route = PartitionedLSSVMRegressor("tree", 8, "route").set_params(**FIXED).fit(X, y)
    jump = {
        name: np.max(np.abs(np.diff(model.predict(line))))
        for name, model in {"blend": blend, "route": route}.items()
    }
    assert jump["blend"] < 0.01 < jump["route"]


@pytest.mark.parametrize("partition", ["tree", "kmeans"])
def test_memory_mapped_rows_give_the_same_model(tmp_path, partition):
    X, y = data(300)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    ours = PartitionedLSSVMRegressor(partition, 5).fit(mapped, y)
    assert np.shares_memory(ours.X_fit_, mapped)
    theirs = PartitionedLSSVMRegressor(partition, 5).fit(X, y)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_results_do_not_depend_on_executor_or_workers(monkeypatch):
    from ridgefold.cells import cell_rows

    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 64)
    X, y = data(400)
    reference = PartitionedLSSVMRegressor("tree", 8).fit(X, y)
    for executor in ("threads", "processes"):
        for workers in (1, 2, 3):
            model = PartitionedLSSVMRegressor(
                "tree", 8, compute=Compute(executor=executor, n_jobs=workers)
            )
            model.fit(X, y)
            assert np.array_equal(model._models.dual_coef, reference._models.dual_coef)
            assert np.array_equal(model.predict(X), reference.predict(X))


def test_float32_stays_float32():
    X, y = data(200)
    model = PartitionedLSSVMRegressor("tree", 4).fit(X.astype(np.float32), y.astype(np.float32))
    single = model.predict(X.astype(np.float32))
    assert single.dtype == np.float32
    double = PartitionedLSSVMRegressor("tree", 4).fit(X, y).predict(X)
    assert np.max(np.abs(single - double)) < 0.2


# -- how many cells -------------------------------------------------------------------------


def test_the_number_of_cells_is_chosen_within_the_stated_loss():
    X, y = data(3000, seed=7)
    model = PartitionedLSSVMRegressor().fit(X, y)
    errors = [trial.error for trial in model.trials_]
    counts = [round(3000 / trial.cell_rows) for trial in model.trials_]
    assert errors[counts.index(model.n_partitions_)] <= 1.02 * min(errors)
    assert model.n_partitions_ > 1


def test_a_smooth_function_of_many_columns_gets_larger_cells_than_a_rough_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1100, 6))
    smooth = np.sin(X.sum(axis=1)) + X[:, 0] * X[:, 1]
    rough = rng.standard_normal(1100)
    few = PartitionedLSSVMRegressor().fit(X, smooth + 0.01 * rough)
    many = PartitionedLSSVMRegressor().fit(X, rough)
    assert few.n_partitions_ < many.n_partitions_


def test_averages_report_the_effective_dimension():
    X, y = data(800)
    model = PartitionedLSSVMRegressor("random", "auto", "average").fit(X, y)
    assert 1.0 < model.effective_dimension_ < 800
    assert model.trials_
    best = min(trial.error for trial in model.trials_)
    assert any(
        trial.error <= 1.02 * best and abs(800 / trial.cell_rows - model.n_partitions_) <= 1
        for trial in model.trials_
    )


# -- a learned metric -----------------------------------------------------------------------


def test_learned_scales_find_the_columns_that_matter(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (900, 8)) * [1, 1, 1, 1, 1, 1, 1, 50]
    y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.05 * rng.standard_normal(900)
    plain = PartitionedLSSVMRegressor(n_partitions=3).fit(X[:600], y[:600])
    learned = PartitionedLSSVMRegressor(n_partitions=3, metric="learned").fit(X[:600], y[:600])
    assert np.argsort(learned.length_scales_)[:2].tolist() == [0, 1]
    errors = [np.mean((m.predict(X[600:]) - y[600:]) ** 2) for m in (plain, learned)]
    assert errors[1] < 0.5 * errors[0]
    # Cells of the scaled rows are those of a model that is given the scaled rows.
    scales, rows = learned.length_scales_, scaled_rows(X, learned.length_scales_)[:]
    kept = np.isfinite(scales)
    scaled = (
        PartitionedLSSVMRegressor(n_partitions=3)
        .set_params(**FIXED)
        .fit(X[:, kept] / scales[kept], y)
    )
    same = PartitionedLSSVMRegressor(n_partitions=3).set_params(**FIXED).fit(rows, y)
    assert np.array_equal(scaled.predict(rows[:5]), same.predict(rows[:5]))
    learned.save(tmp_path / "model.ridgefold")
    again = ridgefold.load(tmp_path / "model.ridgefold")
    assert np.array_equal(again.predict(X), learned.predict(X))


def test_scales_of_a_kernel_without_distances_cannot_be_learned():
    X, y = data(60)
    with pytest.raises(InvalidInputError, match=r"metric=.learned"):
        PartitionedLSSVMRegressor(kernel="polynomial", metric="learned").fit(X, y)


# -- classification -------------------------------------------------------------------------


def test_the_classifier_with_one_cell_is_the_whole_one():
    X, _ = data(150)
    labels = np.where(X[:, 0] > np.sin(3 * X[:, 1]), "up", "down")
    model = PartitionedLSSVMClassifier(n_partitions=1).set_params(**FIXED).fit(X, labels)
    whole = LSSVMClassifier(0.1, kernel=RBF(1.0)).fit(X, labels)
    assert np.allclose(model.decision_function(X), whole.decision_function(X))
    assert np.array_equal(model.predict(X), whole.predict(X))


@pytest.mark.parametrize(("partition", "combine"), PAIRS)
def test_the_classifier_learns_three_classes_with_every_pair(partition, combine):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((360, 2))
    labels = np.digitize(np.sum(X**2, axis=1), [0.7, 2.5])
    model = PartitionedLSSVMClassifier(partition, 4, combine).fit(X, labels)
    assert model.decision_function(X).shape == (360, 3)
    assert np.mean(model.predict(X) == labels) > (0.7 if combine == "average" else 0.9)


def test_a_cell_of_one_class_is_no_obstacle_and_class_weights_count():
    X = np.linspace(0, 10, 200)[:, None]
    labels = (X[:, 0] > 9).astype(int)
    model = PartitionedLSSVMClassifier("tree", 4, "route", class_weight="balanced").fit(X, labels)
    assert np.mean(model.predict(X) == labels) > 0.95


# -- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"partition": "grid"}, "partition must be one of .*tree.* got 'grid'"),
        ({"combine": "sum"}, "combine must be one of .*blend.* got 'sum'"),
        ({"partition": "random", "combine": "route"}, 'combine="average"'),
        ({"n_partitions": 0}, 'n_partitions must be "auto" or a whole number >= 1, got 0'),
        ({"n_partitions": "many"}, "n_partitions must be"),
        ({"cells__overlap": 1.5}, "overlap.* must be from 0 to 1, got 1.5"),
        ({"cells__tolerance": -0.1}, "cells.tolerance.* must be from 0 to 1, got -0.1"),
        ({"cells__tuning": "none"}, 'cells.tuning must be one of "auto", "cell", "shared"'),
        ({"combine": "average", "cells__tuning": "cell"}, 'tuning="shared"'),
        ({"cells__refine": 0}, 'refine must be None, "exact" or a number of steps'),
        ({"compute__executor": "cloud"}, "executor must be one of auto"),
        ({"compute__n_jobs": 0}, "n_jobs must be"),
        ({"kernel": "precomputed"}, "no rows to cut"),
        ({"alpha": -1.0}, "alpha"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_bad_arguments_are_named_with_the_way_out(arguments, message):
    X, y = data(40)
    with pytest.raises(InvalidInputError, match=message):
        PartitionedLSSVMRegressor().set_params(**arguments).fit(X, y)


def test_sparse_rows_and_arrays_of_other_libraries_are_refused():
    import array_api_strict
    import scipy.sparse

    X, y = data(40)
    with pytest.raises(UnsupportedInputError, match=r"[Ss]parse"):
        PartitionedLSSVMRegressor().fit(scipy.sparse.csr_array(X), y)
    strict = array_api_strict.asarray(X), array_api_strict.asarray(y)
    with pytest.raises(UnsupportedInputError, match="arrays of NumPy and tensors of torch, got"):
        PartitionedLSSVMRegressor().fit(*strict)


def test_no_cell_predicts_beyond_the_range_of_all_targets():
    X, y = data(200)
    far = 3.0 * data(200, seed=1)[0]
    model = PartitionedLSSVMRegressor("tree", 6, kernel="polynomial", alpha=1e-3).fit(X, y)
    assert model.predict(far).max() <= y.max()
    assert model.predict(far).min() >= y.min()
    free = PartitionedLSSVMRegressor(
        "tree", 6, kernel="polynomial", alpha=1e-3, cells=CellOptions(clip=False)
    )
    assert np.abs(free.fit(X, y).predict(far)).max() > np.abs(y).max()


def test_a_cell_may_predict_a_little_beyond_its_own_targets():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((600, 3))
    y = X @ [1.0, -2.0, 0.5]
    model = PartitionedLSSVMRegressor("tree", 6, "route", kernel="linear", alpha=1e-6).fit(X, y)
    new = rng.standard_normal((400, 3))
    truth = new @ [1.0, -2.0, 0.5]
    inside = (truth > y.min()) & (truth < y.max())
    assert np.allclose(model.predict(new)[inside], truth[inside], atol=1e-3)


def test_limits_widen_by_a_quarter_and_stay_within_the_range_of_all():
    low, high = np.array([[0.0], [4.0], [7.0]]), np.array([[2.0], [8.0], [7.0]])
    for errors in (np.inf, np.array([[0.1], [0.1], [np.nan]])):
        lowest, highest = limits_of(low, high, errors)
        assert lowest.ravel().tolist() == [0.0, 3.0, 7.0]
        assert highest.ravel().tolist() == [2.5, 8.0, 7.0]
    huge = np.finfo(np.float64).max
    for errors in (np.inf, np.zeros((1, 1))):
        lowest, highest = limits_of(np.array([[-huge]]), np.array([[huge]]), errors)
        assert (lowest.item(), highest.item()) == (-huge, huge)


def test_limits_of_cells_without_noise_are_their_own():
    low, high = np.array([[0.0], [4.0]]), np.array([[2.0], [8.0]])
    lowest, highest = limits_of(low, high, np.array([[0.01], [0.5]]))
    assert lowest.ravel().tolist() == [-0.5, 3.0]
    assert highest.ravel().tolist() == [2.5, 8.0]


def test_what_is_kept_for_intervals_changes_no_prediction():
    X = np.random.default_rng(3).uniform(-1, 1, (900, 2))
    fixed = {"alpha": 1e-4, "kernel_params": {"length_scale": 1.0}, "n_partitions": 4}
    one, other = (
        PartitionedLSSVMRegressor(intervals=kept)
        .set_params(**fixed)
        .fit(X, X[:, 0] + 0.3 * X[:, 1])
        for kept in (None, "jackknife+")
    )
    new = np.array([[1.04, 1.0], [-1.04, -1.0]])
    np.testing.assert_array_equal(one.predict(new), other.predict(new))


@pytest.mark.parametrize("repeated", [False, True])
def test_a_function_without_noise_goes_beyond_all_targets(repeated):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (900, 2))
    y = X[:, 0] + 0.3 * X[:, 1]
    new = np.array([[1.04, 1.0], [-1.04, -1.0]])
    noise = 0.2 * rng.standard_normal(900)
    if repeated:
        X, y, noise = (np.concatenate([part, part[:300]]) for part in (X, y, noise))
    clean = PartitionedLSSVMRegressor(n_partitions=4).fit(X, y)
    np.testing.assert_allclose(clean.predict(new), [1.34, -1.34], atol=0.01)
    without = PartitionedLSSVMRegressor(n_partitions=4, intervals=None).fit(X, y)
    np.testing.assert_array_equal(without.predict(new), clean.predict(new))
    noisy = PartitionedLSSVMRegressor(n_partitions=4).fit(X, y + noise)
    assert noisy._models.highest.max() == (y + noise).max()
    assert noisy._models.lowest.min() == (y + noise).min()


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = data(60)
    model = PartitionedLSSVMRegressor(n_partitions=3).fit(X, y)
    before = model.predict(X)
    with pytest.raises(InvalidInputError):
        model.fit(X, y[:-1])
    assert np.array_equal(model.predict(X), before)


def test_a_partitioner_object_can_be_given():
    X, y = data(200)
    model = PartitionedLSSVMRegressor(KMeansCells(kernel=RBF(1.0)), 4, "route").fit(X, y)
    assert model.n_partitions_ <= 4
    assert np.mean((model.predict(X) - y) ** 2) < 0.1 * np.var(y)


def test_weights_of_classes_count_where_pairs_are_chosen():
    """A rare class of weight 50: an unweighted score would rather never predict it."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((600, 2))
    y = (X[:, 0] + 0.5 * draw.standard_normal(600) > 1.6).astype(int)
    settings = {"n_partitions": 2, "class_weight": {0: 1.0, 1: 50.0}}
    plain, asked = (
        PartitionedLSSVMClassifier(cells=CellOptions(weighted_scores=given))
        .set_params(**settings)
        .fit(X, y)
        for given in (False, True)
    )
    np.testing.assert_array_equal(plain.decision_function(X), asked.decision_function(X))


def test_a_fit_explains_its_steps(tmp_path):
    X, y = data(700)
    model = PartitionedLSSVMRegressor(metric="learned").fit(X, y)
    names = [step.name for step in model.run_record_.steps]
    assert names[:4] == [
        "fitting a linear part",
        "learning scales",
        "finding slopes",
        "choosing how many cells",
    ]
    text = str(ridgefold.explain(model))
    assert "learning scales: 700 rows, 2 columns, bias, float64" in text
    assert text.count("predicted") == text.count("measured") == len(names)
    for step in model.run_record_.steps:
        assert step.plan.seconds > 0
        assert step.plan.cost.peak_bytes > 0
    refined = PartitionedLSSVMRegressor(n_partitions=2, alpha=0.1, cells=CellOptions(refine=3)).fit(
        X, y
    )
    assert [step.name for step in refined.run_record_.steps][-1] == "refining"
    average = PartitionedLSSVMRegressor("random", 3, "average").fit(X, y)
    assert average.run_record_.steps[0].plan.method == "random"
    model.save(tmp_path / "m")
    assert ridgefold.load(tmp_path / "m").run_record_ == model.run_record_


@pytest.mark.parametrize(
    "settings", [{"cells__refine": 2}, {"partition": "random", "combine": "average"}], ids=str
)
@pytest.mark.parametrize(
    ("model", "argument"),
    [
        (PartitionedLSSVMRegressor(intervals="jackknife+"), 'intervals="jackknife\\+"'),
        (PartitionedLSSVMClassifier(probability=True), "probability=True"),
    ],
)
def test_held_out_values_that_cannot_be_had_are_refused_before_the_fit(model, argument, settings):
    X, y = data(100)
    model = clone(model).set_params(n_partitions=3, alpha=0.1, **settings)
    with pytest.raises(InvalidInputError, match=f"{argument} needs held-out values"):
        model.fit(X, (y > 0).astype(int))
    assert not hasattr(model, "X_fit_")


def test_a_ridge_of_zero_is_named_as_the_argument_is():
    X, y = data(60)
    with pytest.raises(InvalidInputError, match=r"^alpha must be finite and > 0, got 0"):
        PartitionedLSSVMRegressor(n_partitions=2, alpha=0.0).fit(X, y)


# -- what cannot be ------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict", "predict_interval"])
def test_sparse_rows_are_refused_as_they_are_by_the_fit(method):
    X, y = data()
    model = PartitionedLSSVMRegressor(n_partitions=3).fit(X, y)
    for ask in (lambda A: model.fit(A, y), getattr(model, method)):
        with pytest.raises(UnsupportedInputError, match="Sparse data"):
            ask(scipy.sparse.csr_array(X))


def test_probabilities_need_a_cell_of_two_rows():
    model = PartitionedLSSVMClassifier(n_partitions=4, probability=True)
    with pytest.raises(InvalidInputError, match="all of the 4 cells have one row: use fewer"):
        model.fit(np.arange(4.0)[:, None], [0, 1, 0, 1])


def test_cells_are_those_of_the_fit_whatever_is_set_later(tmp_path):
    X, y = data()
    model = PartitionedLSSVMRegressor("tree", 4).fit(X, y)
    expected = model.predict(X)
    model.set_params(partition="kmeans")
    np.testing.assert_array_equal(model.predict(X), expected)
    with pytest.raises(InvalidInputError, match="was set after the fit"):
        model.save(tmp_path / "m.ridgefold")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel_params": 3}, "kernel_params must be a dict"),
        ({"partition": KMeansCells}, "partition must be one of"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        PartitionedLSSVMRegressor().set_params(**settings).fit(*data())
