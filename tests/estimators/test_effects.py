"""`marginal_effects`: averages are means of slopes and differences, errors those of refitting."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from cases import rows
from namespaces import LIBRARIES
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    MarginalEffects,
)
from ridgefold.errors import BudgetError, InvalidInputError, NoSlopeError, UnsupportedInputError
from ridgefold.estimators.effect_errors import LinkedErrors
from ridgefold.estimators.effects import Difference, Slope, effects_of
from ridgefold.estimators.posterior import posterior_of
from ridgefold.kernels import RBF, Categorical, Columns, Laplacian, Matern

N = 80
X = rows(N)
X[:, 2] = np.arange(N) % 2
NEW = rows(15, seed=7)
NEW[:, 2] = np.arange(15) % 2
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * np.random.default_rng(1).standard_normal(N)
WEIGHTS = np.random.default_rng(3).random(N) + 0.3
KERNELS = pytest.mark.parametrize(
    "kernel", [RBF(1.5), Matern((1.0, 2.0, 1.5), nu=2.5)], ids=["rbf", "matern"]
)


def fitted(y=Y, weights=None, kernel=None, alpha=0.3):
    return LSSVMRegressor(alpha, kernel=kernel or RBF(1.5)).fit(X, y, weights)


def close(found, expected, rtol=1e-7):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-9)


@KERNELS
@pytest.mark.parametrize("at", [None, NEW], ids=["training", "new"])
def test_averages_are_means_of_slopes_and_of_differences(kernel, at):
    model = fitted(kernel=kernel)
    found = model.marginal_effects(at)
    where = X if at is None else at
    assert found.names == ("column 0", "column 1", "column 2: 0 → 1")
    assert found.kinds == ("slope", "slope", "difference")
    slopes = model.predict_gradient(where)
    high, low = where.copy(), where.copy()
    high[:, 2], low[:, 2] = 1.0, 0.0
    close(found.pointwise[:, :2], slopes[:, :2])
    close(found.pointwise[:, 2], model.predict(high) - model.predict(low))
    close(found.average, found.pointwise.mean(axis=0))
    close(found.quartiles, np.quantile(found.pointwise, (0.25, 0.5, 0.75), axis=0))


@KERNELS
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_standard_errors_are_those_of_the_weights_of_the_targets(kernel, weights):
    """An average is Lᵀy; L from a fit to every unit vector."""
    model = fitted(weights=weights, kernel=kernel)
    found = model.marginal_effects(NEW)
    units = [fitted(e, weights, kernel) for e in np.eye(N)]
    L = np.stack([u.marginal_effects(NEW, standard_errors=False).average for u in units])
    close(L.T @ Y, found.average)
    smoother = np.stack([u.predict(X) for u in units], axis=1)
    w = np.ones(N) if weights is None else weights
    variance = (w * (Y - smoother @ Y) ** 2).sum() / (N - np.trace(smoother))
    close(found.standard_error, np.sqrt(variance * (L**2 / w[:, None]).sum(axis=0)))


@KERNELS
def test_posterior_deviations_are_those_of_the_values_that_slopes_are_made_of(kernel):
    model, step = fitted(kernel=kernel), 1e-3
    found = model.marginal_effects(NEW)
    signs = np.repeat([1.0, -1.0], len(NEW)) / len(NEW)
    for j, (up, down, scale) in enumerate([(step, -step, 2 * step)] * 2 + [(1.0, 0.0, 1.0)]):
        pair = np.concatenate([NEW, NEW])
        half = np.repeat([up, down], len(NEW))
        pair[:, j] = half if j == 2 else pair[:, j] + half
        _, covariance = model.predict(pair, return_cov=True)
        expected = np.sqrt(signs @ covariance @ signs) / scale
        assert found.posterior_std[j] == pytest.approx(expected, rel=1e-4)


def bootstrap(draws):
    """Standard deviations of averages over fits to f + resampled residuals, X and ridge held."""
    model = fitted()
    f, rng = model.predict(X), np.random.default_rng(0)
    residuals = (Y - f) / np.sqrt(1 - model.diagnostics().degrees_of_freedom / N)
    new = f[:, None] + rng.choice(residuals - residuals.mean(), (N, draws))
    averages = fitted(new).marginal_effects(NEW, standard_errors=False).average
    return averages.std(axis=1, ddof=1), model.marginal_effects(NEW).standard_error


@pytest.mark.full
def test_standard_errors_are_those_of_a_bootstrap_of_the_residuals():
    found, expected = bootstrap(500)
    np.testing.assert_allclose(found, expected, rtol=0.10)


def test_standard_errors_are_about_those_of_a_short_bootstrap():
    found, expected = bootstrap(150)
    np.testing.assert_allclose(found, expected, rtol=0.25)


def test_over_the_population_the_spread_of_the_effects_counts():
    model = fitted()
    rows_only, whole = (model.marginal_effects(NEW, estimand=e) for e in ("rows", "population"))
    of_rows = rows_only.pointwise.var(axis=0) / len(NEW)
    close(whole.average, rows_only.average)
    close(whole.standard_error**2, rows_only.standard_error**2 + of_rows)
    close(whole.posterior_std**2, rows_only.posterior_std**2 + of_rows)
    assert "population" in str(whole)


def test_weights_count_rows():
    counts = np.arange(15) % 3
    model = fitted()
    weighted = model.marginal_effects(NEW, sample_weight=counts)
    repeated = model.marginal_effects(np.repeat(NEW, counts, axis=0))
    close(weighted.average, repeated.average)
    close(weighted.standard_error, repeated.standard_error)
    close(weighted.posterior_std, repeated.posterior_std)
    assert weighted.quartiles.shape == (3, 3)
    own = fitted(weights=WEIGHTS)
    close(own.marginal_effects().average, own.marginal_effects(X, sample_weight=WEIGHTS).average)


def test_rows_of_weight_zero_take_no_part():
    weights = np.where(np.arange(N) < 60, 1.0, 0.0)
    found = fitted(weights=weights).marginal_effects()
    part = LSSVMRegressor(0.3, kernel=RBF(1.5)).fit(X[:60], Y[:60]).marginal_effects()
    assert len(found.pointwise) == 60
    for name in ("average", "standard_error", "posterior_std"):
        close(getattr(found, name), getattr(part, name))


def test_several_targets_have_an_axis_of_their_own():
    both = np.column_stack([Y, 3 * Y**2])
    found = KernelRidge([0.3, 1.0], kernel=RBF(1.5)).fit(X, both).marginal_effects(NEW)
    assert found.pointwise.shape == (15, 3, 2)
    for j, alpha in enumerate((0.3, 1.0)):
        alone = KernelRidge(alpha, kernel=RBF(1.5)).fit(X, both[:, j]).marginal_effects(NEW)
        close(found.average[:, j], alone.average)
        close(found.standard_error[:, j], alone.standard_error)
        close(found.posterior_std[:, j], alone.posterior_std)
        close(found.quartiles[:, :, j], alone.quartiles)
    assert found.to_dict()["output"] == ["target 0"] * 3 + ["target 1"] * 3
    assert found.to_dict()["average"][3:] == found.average[:, 1].tolist()


def test_rough_kernels_have_standard_errors_but_no_posterior_of_slopes():
    found = fitted(kernel=Laplacian(2.0)).marginal_effects(NEW)
    assert np.isfinite(found.standard_error).all()
    assert np.isnan(found.posterior_std).tolist() == [True, True, False]
    assert "Laplacian" in found.note
    assert "–" in str(found)


def test_a_stack_has_the_errors_of_its_weighted_members():
    kernels = ["rbf", "laplacian", Matern(0.5)]
    model = KernelRidgeCV(kernel=kernels, alpha=[0.01, 0.1])
    model.set_params(search__stack=True)
    positive = rows(60, 3, positive=True)
    y = np.sin(positive.sum(axis=1)) + 0.1 * np.random.default_rng(1).standard_normal(60)
    model.fit(positive, y)
    assert len(model.stack_.members) > 1
    found = model.marginal_effects()
    close(found.average, model.predict_gradient(positive).mean(axis=0))
    L, smoother = np.zeros((60, 3)), np.zeros((60, 60))
    for each in model.stack_.members:
        units = KernelRidge(each.alpha[0], kernel=each.kernel).fit(positive, np.eye(60))
        own = units.marginal_effects(standard_errors=False).average
        L += each.weight[0] * own.T
        smoother += each.weight[0] * units.predict(positive)
    residuals = y - model.predict(positive)
    variance = residuals @ residuals / (60 - np.trace(smoother))
    close(found.standard_error, np.sqrt(variance) * np.linalg.norm(L, axis=0), rtol=1e-6)
    assert found.posterior_std is None


def test_tensors_have_the_same_effects():
    convert = LIBRARIES["torch"]
    theirs = LSSVMRegressor(0.3, kernel=RBF(1.5)).fit(convert(X), convert(Y), WEIGHTS)
    found, expected = theirs.marginal_effects(), fitted(weights=WEIGHTS).marginal_effects()
    for name in ("pointwise", "average", "standard_error", "posterior_std"):
        close(getattr(found, name), getattr(expected, name))


# -- categories ------------------------------------------------------------------------------


def test_columns_named_as_categories_have_differences_against_a_base():
    levels = np.column_stack([X[:, :2], np.arange(N) % 3])
    model = LSSVMRegressor(0.3, kernel=RBF(1.5)).fit(levels, Y)
    assert model.marginal_effects().kinds == ("slope",) * 3
    found = model.marginal_effects(categories=[2])
    assert found.names[2:] == ("column 2: 0 → 1", "column 2: 0 → 2")
    against = model.marginal_effects(categories={2: 2})
    assert against.names[2:] == ("column 2: 2 → 0", "column 2: 2 → 1")
    assert against.average[2] == pytest.approx(-found.average[3])
    assert against.standard_error[2] == pytest.approx(found.standard_error[3])
    assert fitted().marginal_effects(categories=[]).kinds == ("slope",) * 3


@pytest.mark.parametrize("kernel", [Columns(RBF(0.5), [0, 1]) * Columns(Categorical(0.5), [2])])
def test_columns_of_codes_have_differences_without_being_asked(kernel):
    codes = np.column_stack([X[:, :2], np.arange(N) % 3])
    found = KernelRidge(0.1, kernel=kernel).fit(codes, Y).marginal_effects(categories=[])
    assert found.kinds == ("slope", "slope", "difference", "difference")
    only = KernelRidge(0.1, kernel=Categorical(0.5)).fit(codes[:, 2:], Y).marginal_effects()
    assert only.kinds == ("difference", "difference")
    assert np.isfinite(only.posterior_std).all()


def test_columns_are_known_by_their_names():
    frame = pd.DataFrame(X, columns=["size", "age", "garden"])
    model = LSSVMRegressor(0.3, kernel=RBF(1.5)).fit(frame, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.marginal_effects(frame, categories={"garden": 1.0})
    assert found.names == ("size", "age", "garden: 1 → 0")
    table = found.to_frame()
    assert table["effect"].tolist() == list(found.names)
    assert table["average"].tolist() == found.average.tolist()
    assert str(found).splitlines()[2].startswith("size ")
    assert "<td>size</td>" in found._repr_html_()


# -- classes ---------------------------------------------------------------------------------

CLASSES = {"two": Y > 0, "three": np.digitize(Y, (-0.5, 0.5))}


@pytest.mark.parametrize("name", CLASSES)
def test_effects_on_probabilities_are_those_of_differences(name):
    model = LSSVMClassifierCV([0.1, 1.0], probability=True, cv=3).fit(X, CLASSES[name])
    found = model.marginal_effects(NEW)
    several = name == "three"
    step = 1e-6
    for j in range(2):
        e = step * np.eye(3)[j]
        slopes = (model.predict_proba(NEW + e) - model.predict_proba(NEW - e)) / (2 * step)
        np.testing.assert_allclose(
            found.pointwise[:, j], slopes if several else slopes[:, 1], atol=1e-6
        )
    high, low = NEW.copy(), NEW.copy()
    high[:, 2], low[:, 2] = 1.0, 0.0
    change = model.predict_proba(high) - model.predict_proba(low)
    close(found.pointwise[:, 2], change if several else change[:, 1])
    assert found.outputs == (("0", "1", "2") if several else ("True",))
    assert found.posterior_std is None
    assert np.all(found.standard_error > 0)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_errors_of_probabilities_follow_how_they_change_with_the_labels(name, fit_intercept):
    """The weights of the labels, against fits to labels that are changed a little."""
    model = LSSVMClassifier(0.3, gamma=0.3, probability=True, fit_intercept=fit_intercept)
    model.fit(X, CLASSES[name])
    effects = [Slope("a", 0), Slope("b", 1), Difference("c", (2,), (1.0,), (0.0,))]
    shares = np.full(len(NEW), 1 / len(NEW))
    errors = LinkedErrors(model, NEW, shares, model.calibration_)
    t = model._model.intercept.shape[0]
    found = posterior_of(model, 0.3, errors.known)
    output, column, row, step = t - 1, 0, 5, 1e-4
    each = errors._functionals(model.kernel_, effects, output, column)
    expected = []
    for sign in (1, -1):
        labels = errors.known.targets.copy()
        labels[row, column] += sign * step
        other = KernelRidge(0.3, kernel=model.kernel_, fit_intercept=fit_intercept)
        model._model = other.fit(X, labels)._model
        table = effects_of(
            model, NEW, shares, effects, estimand="rows", errors=False, decision=False
        )
        expected.append(table.average.reshape(3, -1)[:, output])
    L = found.weights_of_targets(each.a, each.phi)[row]
    np.testing.assert_allclose(L, (expected[0] - expected[1]) / (2 * step), rtol=1e-5, atol=1e-9)


def test_decision_values_have_effects_without_probabilities():
    model = LSSVMClassifier(0.3, gamma=0.3).fit(X, Y > 0)
    with pytest.raises(InvalidInputError, match="probability=True"):
        model.marginal_effects()
    found = model.marginal_effects(decision=True)
    plain = LSSVMRegressor(0.3, gamma=0.3).fit(X, np.where(Y > 0, 1.0, -1.0)).marginal_effects()
    close(found.average, plain.average)
    close(found.standard_error, plain.standard_error)
    with pytest.raises(InvalidInputError, match="classifiers"):
        fitted().marginal_effects(decision=True)


# -- what cannot be had ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimand": "everyone"}, "estimand must be"),
        ({"categories": "column 2"}, "categories must be"),
        ({"categories": ["no such"]}, "no such"),
        ({"categories": [3]}, "positions from 0 to 2"),
        ({"categories": {2: 7}}, "base 7"),
        ({"categories": [0]}, "different values"),
        ({"sample_weight": np.ones(N)}, "give X"),
        ({"X": NEW, "sample_weight": np.zeros(15)}, "not all zero"),
        ({"X": NEW, "sample_weight": "many"}, "sample_weight"),
    ],
    ids=str,
)
def test_arguments_that_are_wrong_are_named(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        fitted().marginal_effects(**arguments)


def test_models_without_columns_slopes_or_dense_rows_say_so():
    import scipy.sparse

    kernel = RBF(1.5)
    with pytest.raises(NoSlopeError, match="precomputed"):
        LSSVMRegressor(0.3, kernel="precomputed").fit(kernel(X), Y).marginal_effects()
    with pytest.raises(NoSlopeError, match="no slope"):
        KernelRidge(0.3, kernel=lambda a, b: float(a @ b)).fit(X, Y).marginal_effects()
    with pytest.raises(UnsupportedInputError, match="toarray"):
        KernelRidge(0.3).fit(scipy.sparse.csr_matrix(X), Y).marginal_effects()


def test_without_memory_for_a_factor_there_are_effects_without_errors():
    model = fitted().set_params(memory_budget=40_000)
    with pytest.raises(BudgetError):
        model.marginal_effects()
    found = model.marginal_effects(standard_errors=False)
    assert isinstance(found, MarginalEffects)
    assert found.standard_error is None
    assert "std. error" not in str(found)
    with pytest.raises(InvalidInputError, match="posterior"):
        found.interval()


def test_intervals_are_normal_ones_of_the_posterior():
    found = fitted().marginal_effects()
    low, high = found.interval(0.95)
    close(high - found.average, 1.959963984540054 * found.posterior_std)
    close(found.average - low, high - found.average)
    with pytest.raises(InvalidInputError, match="coverage"):
        found.interval(1.0)
