"""Standard deviations, draws and likelihoods are those of the Gaussian process of the fit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

import ridgefold
from cases import rows, targets
from namespaces import LIBRARIES, to_numpy
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    Search,
)
from ridgefold.errors import (
    BudgetError,
    InvalidInputError,
    NumericalError,
    UnsupportedInputError,
)
from ridgefold.kernels import RBF, Linear, Matern, Polynomial

X, NEW = rows(60), rows(12, seed=7)
Y = targets(X)
WEIGHTS = np.random.default_rng(3).random(60) + 0.3
PAIRS = {
    "rbf": (RBF(1.5), SklearnRBF(1.5)),
    "scales": (RBF((0.7, 1.0, 2.0)), SklearnRBF([0.7, 1.0, 2.0])),
    "matern": (Matern(1.2, nu=1.5), SklearnMatern(1.2, nu=1.5)),
}


def process(kernel, alpha, variance, y=Y):
    model = GaussianProcessRegressor(
        ConstantKernel(variance) * kernel, alpha=variance * alpha, optimizer=None
    )
    return model.fit(X, y)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS.values(), ids=list(PAIRS))
@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_without_a_bias_all_is_as_scikit_learn_has_it(ours, theirs, alpha):
    model = KernelRidge(alpha, kernel=ours).fit(X, Y)
    for variance in (2.5, model.prior_variance_):
        given = {} if variance == model.prior_variance_ else {"variance": variance}
        expected = process(theirs, alpha, variance)
        for asked in ("return_std", "return_cov"):
            for a, b in zip(
                model.predict(NEW, **{asked: True}, **given),
                expected.predict(NEW, **{asked: True}),
                strict=True,
            ):
                close(a, b)
        close(model.log_marginal_likelihood(**given), expected.log_marginal_likelihood())


def test_the_likelihood_of_several_ridges_is_that_of_each():
    model = KernelRidge(0.1, kernel=RBF(1.5)).fit(X, np.column_stack([Y, Y**2]))
    found = model.log_marginal_likelihood([0.01, 0.1, 1.0], variance=2.0)
    expected = [
        process(SklearnRBF(1.5), a, 2.0, model.y_fit_).log_marginal_likelihood()
        for a in (0.01, 0.1, 1.0)
    ]
    close(found, expected)
    assert found[1] == pytest.approx(model.log_marginal_likelihood(variance=2.0))
    assert model.log_marginal_likelihood(0.1) == pytest.approx(model.log_marginal_likelihood())


def test_the_prior_variance_is_the_most_likely_one():
    model = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(X, Y)
    best, s2 = model.log_marginal_likelihood(), model.prior_variance_
    assert best == pytest.approx(model.log_marginal_likelihood(variance=s2))
    for factor in (0.9, 1.1):
        assert model.log_marginal_likelihood(variance=factor * s2) < best


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_a_bias_is_an_unpenalised_column_of_ones(weights):
    """The limit of a constant kernel of very large variance."""
    model = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(X, Y, weights)
    flat = KernelRidge(0.1, kernel=RBF(1.5) + 1e6).fit(X, Y, weights)
    _, found = model.predict(NEW, return_std=True, variance=1.0)
    _, expected = flat.predict(NEW, return_std=True, variance=1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_repeated_rows_and_weights_have_the_same_posterior():
    counts = np.arange(60) % 3
    weighted = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(X, Y, counts)
    chosen = np.repeat(np.arange(60), counts)
    repeated = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(X[chosen], Y[chosen])
    for a, b in zip(
        weighted.predict(NEW, return_std=True, variance=1.0),
        repeated.predict(NEW, return_std=True, variance=1.0),
        strict=True,
    ):
        close(a, b)


def test_the_noise_of_a_new_observation_is_added_if_asked_for():
    model = KernelRidge(0.1, kernel=RBF(1.5)).fit(X, Y)
    _, plain = model.predict(NEW, return_std=True)
    _, whole = model.predict(NEW, return_std=True, noise=True)
    close(whole**2 - plain**2, 0.1 * model.prior_variance_)
    _, covariances = model.predict(NEW, return_cov=True, noise=True)
    close(np.diagonal(covariances), whole**2)


def test_several_targets_have_ridges_and_variances_of_their_own():
    both = np.column_stack([Y, 3 * Y**2])
    model = KernelRidge([0.1, 0.5], kernel=RBF(1.5)).fit(X, both)
    mean, std = model.predict(NEW, return_std=True)
    _, covariances = model.predict(NEW, return_cov=True)
    assert (mean.shape, std.shape, covariances.shape) == ((12, 2), (12, 2), (12, 12, 2))
    assert model.sample_y(NEW, 3).shape == (12, 2, 3)
    likelihood = 0.0
    for j, alpha in enumerate((0.1, 0.5)):
        alone = KernelRidge(alpha, kernel=RBF(1.5)).fit(X, both[:, j])
        close(std[:, j], alone.predict(NEW, return_std=True)[1])
        close(covariances[:, :, j], alone.predict(NEW, return_cov=True)[1])
        close(model.prior_variance_[j], alone.prior_variance_)
        likelihood += alone.log_marginal_likelihood()
    close(model.log_marginal_likelihood(), likelihood)


def test_draws_have_the_mean_and_the_covariance_of_the_posterior():
    model = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(X, Y)
    mean, covariance = model.predict(NEW, return_cov=True)
    drawn = model.sample_y(NEW, 20_000, random_state=0)
    assert drawn.shape == (12, 20_000)
    spread = np.sqrt(np.diagonal(covariance))
    assert np.all(np.abs(drawn.mean(axis=1) - mean) < 5 * spread / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(drawn), covariance, atol=0.05 * spread.max() ** 2)
    assert np.array_equal(drawn[:, :2], model.sample_y(NEW, 20_000, random_state=0)[:, :2])


def test_predictions_are_the_same_with_and_without_their_spread():
    model = LSSVMRegressorCV(cv=3).fit(X, Y)
    assert np.array_equal(model.predict(NEW), model.predict(NEW, return_std=True)[0])


def test_the_factor_is_in_no_file_pickle_or_copy(tmp_path):
    model = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(X, Y, WEIGHTS)
    before, size = model.predict(NEW, return_std=True), len(pickle.dumps(model))
    model.save(tmp_path / "m")
    assert len(pickle.dumps(model)) == size < 60 * 60 * 8
    for again in (ridgefold.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):  # noqa: S301
        for a, b in zip(again.predict(NEW, return_std=True), before, strict=True):
            assert np.array_equal(a, b)
        assert again.log_marginal_likelihood() == model.log_marginal_likelihood()
    other = copy.copy(model).fit(X, 2 * Y)
    assert other.prior_variance_ == pytest.approx(
        LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(X, 2 * Y).prior_variance_
    )


def test_rows_in_float32_have_standard_deviations_computed_in_float64():
    exact = LSSVMRegressor(1e-3, kernel=RBF(1.5)).fit(X, Y)
    single = LSSVMRegressor(1e-3, kernel=RBF(1.5)).fit(X.astype(np.float32), Y)
    _, found = single.predict(NEW.astype(np.float32), return_std=True)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact.predict(NEW, return_std=True)[1], rtol=1e-3)


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_array_libraries_give_the_same(library):
    convert = LIBRARIES[library]
    model = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(convert(X), convert(Y), WEIGHTS)
    plain = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(X, Y, WEIGHTS)
    _, found = model.predict(convert(NEW), return_std=True)
    assert type(found) is type(convert(NEW))
    close(to_numpy(found), plain.predict(NEW, return_std=True)[1])
    close(model.log_marginal_likelihood([0.1, 1.0]), plain.log_marginal_likelihood([0.1, 1.0]))


def test_sparse_rows_have_the_posterior_of_dense_ones():
    sparse = scipy.sparse.csr_array(np.where(X > 0, X, 0.0))
    weights = np.arange(60) % 3
    ours = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(sparse, Y, weights)
    dense = LSSVMRegressor(0.1, kernel=RBF(1.5)).fit(sparse.toarray(), Y, weights)
    new = scipy.sparse.csr_array(np.where(NEW > 0, NEW, 0.0))
    close(ours.predict(new, return_std=True)[1], dense.predict(new.toarray(), return_std=True)[1])
    close(ours.log_marginal_likelihood(), dense.log_marginal_likelihood())


def test_a_precomputed_kernel_has_a_likelihood_but_no_variances_at_new_rows():
    kernel = RBF(1.5)
    model = LSSVMRegressor(0.1, kernel="precomputed").fit(kernel(X), Y)
    plain = LSSVMRegressor(0.1, kernel=kernel).fit(X, Y)
    close(model.log_marginal_likelihood(), plain.log_marginal_likelihood())
    with pytest.raises(UnsupportedInputError, match="k\\(x, x\\)"):
        model.predict(kernel(NEW, X), return_std=True)


def test_what_has_no_posterior_says_so():
    with pytest.raises(InvalidInputError, match="compressed"):
        KernelRidge(0.1, kernel=RBF()).fit(X, Y).compress(9).predict(NEW, return_std=True)
    model = KernelRidgeCV(alpha=[0.1], kernel=["rbf", "laplacian", Matern(0.5)])
    model.set_params(search__stack=True)
    model.fit(X, Y)
    for ask in (
        lambda: model.predict(NEW, return_std=True),
        model.log_marginal_likelihood,
        lambda: model.prior_variance_,
    ):
        with pytest.raises(UnsupportedInputError, match="stack"):
            ask()
    averaged = KernelRidgeCV(search=Search(average_folds=True)).fit(X, Y)
    with pytest.raises(UnsupportedInputError, match="average_folds"):
        averaged.predict(NEW, return_std=True)


def test_a_factor_beyond_the_memory_budget_is_refused_before_the_work():
    model = KernelRidge(0.1, kernel=RBF()).fit(X, Y).set_params(memory_budget=20_000)
    for ask in (
        lambda: model.predict(NEW, return_std=True),
        model.log_marginal_likelihood,
        model.diagnostics,
    ):
        with pytest.raises(BudgetError, match="raise memory_budget"):
            ask()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"return_std": True, "return_cov": True}, "both"),
        ({"noise": True}, "return_std=True"),
        ({"variance": 1.0}, "return_std=True"),
        ({"return_std": True, "variance": -1.0}, "number > 0"),
        ({"return_std": True, "variance": "much"}, "number > 0"),
    ],
    ids=str,
)
def test_arguments_that_are_wrong_are_named(arguments, message):
    model = KernelRidge(0.1, kernel=RBF()).fit(X, Y)
    with pytest.raises(InvalidInputError, match=message):
        model.predict(NEW, **arguments)


def test_likelihoods_of_impossible_ridges_are_refused():
    model = KernelRidge(0.1, kernel=RBF()).fit(X, Y)
    for alpha in (-1.0, [], "all", [[0.1]]):
        with pytest.raises(InvalidInputError, match="alpha must be"):
            model.log_marginal_likelihood(alpha)
    with pytest.raises(InvalidInputError, match="n_samples"):
        model.sample_y(NEW, 0)
    with pytest.raises(NumericalError, match="larger alpha"):
        KernelRidge(1.0, kernel=RBF(30.0)).fit(X, Y).log_marginal_likelihood(1e-18)


@pytest.mark.parametrize("weights", [None, np.arange(60.0) % 4], ids=["equal", "zeros"])
@pytest.mark.parametrize("settings", [{}, {"fit_intercept": True}, {"fixed": [0, 2]}], ids=str)
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2, coef0=1.0)], ids=["linear", "square"])
def test_few_features_give_the_variances_of_the_kernel_matrix(kernel, settings, weights):
    random = np.random.default_rng(4)
    rows, new = random.standard_normal((60, 3)), random.standard_normal((9, 3))
    alphas = np.array([0.3, 2.0])
    y = np.column_stack([np.arange(60.0) % 7, rows[:, 0] + random.standard_normal(60)])
    model = KernelRidge(alphas, kernel=kernel, **settings).fit(rows, y, weights)
    kept = np.arange(60) if weights is None else np.flatnonzero(weights > 0)
    w = np.ones(60) if weights is None else weights

    def columns(some):
        ones = np.ones((len(some), int("fit_intercept" in settings)))
        return np.hstack([ones, some[:, settings.get("fixed", [])]])

    F, phi, K = columns(rows[kept]), columns(new).T, kernel(rows[kept])
    a = kernel(rows[kept], new)
    for j, alpha in enumerate(alphas):
        H = np.linalg.inv(K + alpha * np.diag(1.0 / w[kept]))
        M = np.linalg.inv(F.T @ H @ F)
        s2 = y[kept, j] @ (H - H @ F @ M @ F.T @ H) @ y[kept, j] / (len(kept) - len(phi))
        u = phi - F.T @ H @ a
        unit = np.diagonal(kernel(new) - a.T @ H @ a + u.T @ M @ u)
        assert model.prior_variance_[j] == pytest.approx(s2, rel=1e-7)
        for noise in (False, True):
            _, std = model.predict(new, return_std=True, noise=noise)
            np.testing.assert_allclose(std[:, j] ** 2, s2 * (unit + noise * alpha), rtol=1e-6)


def test_a_linear_model_of_many_rows_needs_no_matrix_of_them():
    rows = np.random.default_rng(6).standard_normal((3000, 2))
    model = KernelRidge(1.0, kernel="linear", memory_budget=30_000_000).fit(rows, rows[:, 0])
    assert np.all(np.isfinite(model.predict(rows[:5], return_std=True)[1]))


def test_an_explanation_says_what_the_factor_took_once_it_is_there(tmp_path):
    model = KernelRidge(0.1, kernel=RBF(), fit_intercept=True).fit(X, Y)
    assert len(model.explain().steps) == 1
    model.predict(NEW, return_std=True)
    step = model.explain().steps[1]
    assert step["step"] == "a factor for standard deviations, kept in memory"
    assert step["predicted_bytes"] == 8.0 * 60**2
    assert step["measured_seconds"] > 0
    assert "standard deviations" in str(model.explain())
    assert len(copy.deepcopy(model).explain().steps) == 1
    model.save(tmp_path / "model.rfm")
    assert len(ridgefold.load(tmp_path / "model.rfm").explain().steps) == 1
    assert len(model.fit(X, Y).explain().steps) == 1
