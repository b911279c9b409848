"""The held-out error is that of refitting, and its gradient that of finite differences."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from namespaces import LIBRARIES, to_numpy
from ridgefold import KernelRidge
from ridgefold.errors import InvalidInputError, UnsupportedInputError
from ridgefold.kernels import RBF, Linear
from ridgefold.kernels.distances import EuclideanKernel
from ridgefold.metric import FAMILIES, HeldOutError
from ridgefold.metric.families import with_scales

N, D = 60, 4


def problem(targets: int = 1, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * [1.0, 0.1, 10.0, 1.0] + 5.0
    X[7] = X[8]  # two equal rows: where Matérn 1/2 has no derivative
    waves = np.sin(X[:, :1] * np.arange(1, targets + 1)) + 0.1 * X[:, 2:3]
    return X, waves + 0.3 * rng.normal(size=(N, targets)), rng.uniform(0.5, 2.0, N)


SCALES = np.asarray([1.5, 0.4, 20.0, 3.0])
FOLDS = [np.arange(0, 20), np.asarray([50, 21, 33, 25]), np.arange(34, 45)]


def kernel(name: str, log_moves=0.0):
    return with_scales(FAMILIES[name], SCALES * np.exp(log_moves))


@pytest.mark.parametrize("fixed", [(), (2,), (0, 1, 3)], ids=len)
@pytest.mark.parametrize("folds", [None, FOLDS], ids=["leave-one-out", "folds"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_error_is_that_of_refitting(bias, weighted, folds, fixed):
    X, y, weights = problem(targets=2)
    w = weights if weighted else None
    columns = X[:, list(fixed)] if fixed else None
    criterion = HeldOutError(X, y, folds=folds, bias=bias, weights=w, columns=columns)
    found = criterion.value(kernel("matern32"), 0.2)
    squares, tested = 0.0, 0
    for rows in folds or np.arange(N)[:, None]:
        train = np.setdiff1d(np.arange(N), rows)
        model = KernelRidge(0.2, kernel=kernel("matern32"), fit_intercept=bias, fixed=fixed)
        model.fit(X[train], y[train], sample_weight=weights[train] if weighted else None)
        squares += np.sum((model.predict(X[rows]) - y[rows]) ** 2)
        tested += 2 * len(rows)
    assert found == pytest.approx(squares / tested, rel=1e-9)


@pytest.mark.parametrize("held_out", ["a row", "rows"])
@pytest.mark.parametrize("bias", [False, True])
def test_what_only_the_fold_itself_knows_of_a_level_is_not_used(bias, held_out):
    """The rows of a level are predicted as if they had none, if no other row has it."""
    X, y, _ = problem()
    y = y / np.max(np.abs(y))
    X[:, 3] = (np.arange(N) >= 57) if held_out == "rows" else (np.arange(N) == 57)
    folds = [np.arange(57, 60), np.arange(20)] if held_out == "rows" else None
    spatial = with_scales(FAMILIES["matern32"], np.append(SCALES[:3], 1e6))
    criterion = HeldOutError(X, y, folds=folds, bias=bias, columns=X[:, [0, 3]])
    squares, tested = 0.0, 0
    for rows in folds or np.arange(N)[:, None]:
        train = np.setdiff1d(np.arange(N), rows)
        known = (0, 3) if X[train, 3].any() else (0,)
        model = KernelRidge(0.2, kernel=spatial, fit_intercept=bias, fixed=known)
        squares += np.sum((model.fit(X[train], y[train]).predict(X[rows]) - y[rows]) ** 2)
        tested += len(rows)
    found = criterion.value_and_gradient(spatial, 0.2)
    assert found.error == pytest.approx(squares / tested, rel=1e-4)
    step = 1e-3
    sides = [criterion.value(spatial, 0.2 * np.exp(s)) for s in (step, -step)]
    assert found.alpha_gradient == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=3e-4)


CASES = [
    (*case, ())
    for case in itertools.product(
        FAMILIES, (False, True), (False, True), (1, 2), ("leave-one-out", "folds")
    )
] + list(
    itertools.product(
        ("laplacian", "rbf"),
        (False, True),
        (False, True),
        (2,),
        ("leave-one-out", "folds"),
        ((1,), (0, 1, 3)),
    )
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_is_that_of_finite_differences(case):
    name, bias, weighted, targets, held_out, fixed = case
    X, y, weights = problem(targets)
    criterion = HeldOutError(
        X,
        y,
        folds=None if held_out == "leave-one-out" else FOLDS,
        bias=bias,
        weights=weights if weighted else None,
        score_weights=weights[::-1].copy() if weighted else None,
        columns=X[:, list(fixed)] if fixed else None,
    )
    found = criterion.value_and_gradient(kernel(name), 0.1)
    step = 1e-5
    by_scale = [
        (criterion.value(kernel(name, move), 0.1) - criterion.value(kernel(name, -move), 0.1))
        / (2 * step)
        for move in step * np.eye(D)
    ]
    by_alpha = (
        criterion.value(kernel(name), 0.1 * np.exp(step))
        - criterion.value(kernel(name), 0.1 * np.exp(-step))
    ) / (2 * step)
    size = np.max(np.abs([*by_scale, by_alpha]))
    np.testing.assert_allclose(found.scale_gradient, by_scale, rtol=0, atol=1e-7 * size)
    assert found.alpha_gradient == pytest.approx(by_alpha, abs=1e-7 * size)
    assert found.error == pytest.approx(criterion.value(kernel(name), 0.1), rel=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("folds", [None, FOLDS], ids=["leave-one-out", "folds"])
def test_libraries_agree_with_numpy(library, name, folds):
    X, y, weights = problem(targets=2)
    convert = LIBRARIES[library]
    F = X[:, [2, 0]]
    expected = HeldOutError(X, y, folds=folds, weights=weights, columns=F)
    found = HeldOutError(
        convert(X), convert(y), folds=folds, weights=convert(weights), columns=convert(F)
    )
    a, b = (c.value_and_gradient(kernel(name), 0.1) for c in (expected, found))
    assert b.error == pytest.approx(a.error, rel=1e-9)
    size = np.max(np.abs(a.scale_gradient))
    np.testing.assert_allclose(b.scale_gradient, a.scale_gradient, rtol=0, atol=1e-8 * size)
    assert b.alpha_gradient == pytest.approx(a.alpha_gradient, rel=1e-6)
    np.testing.assert_allclose(to_numpy(b.coefficients), a.coefficients, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(to_numpy(b.fixed_coef), a.fixed_coef, rtol=1e-6)


def test_coefficients_are_those_of_a_fit_on_all_rows():
    X, y, weights = problem()
    criterion = HeldOutError(X, y, folds=FOLDS, weights=weights)
    found = criterion.value_and_gradient(kernel("rbf"), 0.3)
    model = KernelRidge(0.3, kernel=kernel("rbf"), fit_intercept=True)
    model.fit(X, y[:, 0], sample_weight=weights)
    np.testing.assert_allclose(found.coefficients[:, 0], model.dual_coef_[criterion.order])
    assert found.intercept[0] == pytest.approx(model.intercept_)


def test_more_rows_than_a_panel_give_the_same_gradient_as_an_isotropic_derivative():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(300, 1))
    criterion = HeldOutError(X, y)
    for name, family in FAMILIES.items():
        found = criterion.value_and_gradient(with_scales(family, np.full(3, 2.0)), 0.1)
        up, down = (
            criterion.value(with_scales(family, np.full(3, 2.0 * np.exp(s))), 0.1)
            for s in (1e-5, -1e-5)
        )
        assert found.scale_gradient.sum() == pytest.approx((up - down) / 2e-5, rel=1e-6), name


def test_a_matrix_without_a_factor_gives_no_evaluation():
    X = np.ones((6, 1))
    criterion = HeldOutError(X, np.arange(6.0)[:, None], bias=False)
    assert criterion.value_and_gradient(RBF(1.0), 0.0) is None
    assert criterion.value(RBF(1.0), 0.0) == np.inf


def test_bad_input_is_named():
    X, y, weights = problem()
    with pytest.raises(InvalidInputError, match="a row is tested twice"):
        HeldOutError(X, y, folds=[np.asarray([0, 1]), np.asarray([1, 2])])
    with pytest.raises(InvalidInputError, match="rows to test and rows to train"):
        HeldOutError(X, y, folds=[np.arange(N)])
    with pytest.raises(InvalidInputError, match="rows of weight zero"):
        HeldOutError(X, y, weights=np.where(np.arange(N) == 3, 0.0, weights))
    with pytest.raises(InvalidInputError, match="at least 2 rows"):
        HeldOutError(X[:1], y[:1])
    with pytest.raises(InvalidInputError, match="zero for every row"):
        HeldOutError(X, y, score_weights=np.zeros(N))
    with pytest.raises(UnsupportedInputError, match="kernels of distances"):
        HeldOutError(X, y).value(Linear(), 0.1)
    with pytest.raises(UnsupportedInputError, match="Cauchy kernel cannot be learned"):
        HeldOutError(X, y).value(Cauchy(), 0.1)


@dataclass(frozen=True)
class Cauchy(EuclideanKernel):
    """Somebody's kernel without a slope."""

    def of_exponent(self, namespace, exponent):
        exponent *= -2.0
        exponent += 1.0
        exponent **= -1.0


@pytest.mark.parametrize("fixed", [(), (1,), (0, 1, 2, 3)], ids=len)
def test_single_precision_is_enough_where_there_are_many_rows(fixed):
    rng = np.random.default_rng(0)
    X = rng.normal([0.0, 2000.0, 0.0, 0.0], size=(620, D))
    y = (np.sin(X[:, :1]) + 0.1 * X[:, 1:2] - 200.0 + 0.1 * rng.normal(size=(620, 1))) / 3.0
    columns = X[:, list(fixed)] if fixed else None
    exact, single = (
        HeldOutError(X, y, folds=FOLDS, columns=columns, single=each).value_and_gradient(
            kernel("matern32"), 0.05
        )
        for each in (False, True)
    )
    assert single.error == pytest.approx(exact.error, rel=1e-4)
    size = np.max(np.abs(exact.scale_gradient))
    np.testing.assert_allclose(single.scale_gradient, exact.scale_gradient, atol=1e-3 * size)
