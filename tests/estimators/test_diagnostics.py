"""Diagnostics of a fit are what refitting without each row finds."""

from __future__ import annotations

import numpy as np
import pytest

from cases import rows, targets
from ridgefold import KernelRidge, KernelRidgeCV, LSSVMRegressor
from ridgefold.errors import NumericalError, UnsupportedInputError
from ridgefold.kernels import RBF, Linear

N = 30
X = rows(N)
Y = targets(X)
WEIGHTS = np.random.default_rng(3).random(N) + 0.3
WEIGHTS[4] = 0.0


def fitted(X, y, weights=None, **options):
    return LSSVMRegressor(0.3, kernel=RBF(1.5), **options).fit(X, y, weights)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_every_figure_is_that_of_refitting(weights, fit_intercept):
    options = {"fit_intercept": fit_intercept}
    model = fitted(X, Y, weights, **options)
    found = model.diagnostics()
    w = np.ones(N) if weights is None else weights
    columns = [fitted(X, e, weights, **options).predict(X) for e in np.eye(N)]
    smoother = np.stack(columns, axis=1)
    degrees = np.trace(smoother)
    residuals = Y - model.predict(X)
    noise = np.sqrt((w * residuals**2).sum() / ((w > 0).sum() - degrees))
    without, moved = np.empty(N), np.empty(N)
    for i in range(N):
        others = np.arange(N) != i
        part = fitted(X[others], Y[others], None if weights is None else w[others], **options)
        without[i] = Y[i] - part.predict(X[i : i + 1])[0]
        moved[i] = (w * (model.predict(X) - part.predict(X)) ** 2).sum() / (degrees * noise**2)
    for ours, expected in (
        (found.degrees_of_freedom, degrees),
        (found.noise_std, noise),
        (found.leverage, np.diagonal(smoother)),
        (found.residuals, residuals),
        (found.leave_one_out_residuals, without),
        (found.influence, moved),
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-9)
    counted = w > 0
    np.testing.assert_allclose(
        found.standardised_residuals[counted],
        (np.sqrt(w) * residuals / (noise * np.sqrt(1 - found.leverage)))[counted],
        rtol=1e-8,
    )
    assert np.isnan(found.standardised_residuals[~counted]).all()


def test_of_least_squares_they_are_those_of_every_textbook():
    """A tiny ridge on a linear kernel is least squares with an intercept: h from the hat matrix."""
    model = KernelRidge(1e-7, kernel=Linear(), fit_intercept=True).fit(X, Y)
    found = model.diagnostics()
    design = np.column_stack([np.ones(N), X])
    hat = design @ np.linalg.pinv(design)
    residuals, h = Y - hat @ Y, np.diagonal(hat)
    variance = residuals @ residuals / (N - 4)
    np.testing.assert_allclose(found.leverage, h, atol=1e-6)
    assert found.degrees_of_freedom == pytest.approx(4, abs=1e-6)
    cook = residuals**2 * h / (4 * variance * (1 - h) ** 2)
    np.testing.assert_allclose(found.influence, cook, atol=1e-5)


def test_targets_with_ridges_of_their_own_have_leverages_of_their_own():
    both = np.column_stack([Y, Y**2])
    found = KernelRidge([0.1, 1.0], kernel=RBF(1.5)).fit(X, both).diagnostics()
    for j, alpha in enumerate((0.1, 1.0)):
        alone = KernelRidge(alpha, kernel=RBF(1.5)).fit(X, both[:, j]).diagnostics()
        assert found.degrees_of_freedom[j] == pytest.approx(alone.degrees_of_freedom)
        np.testing.assert_allclose(found.leverage[:, j], alone.leverage)
        np.testing.assert_allclose(found.influence[:, j], alone.influence)
    assert "largest leverage" in str(found)


def test_leave_one_out_residuals_are_those_of_the_search():
    model = KernelRidgeCV(alpha=[0.1, 1.0], kernel=RBF(1.5), cv="loo").fit(X, Y)
    np.testing.assert_allclose(
        model.diagnostics().leave_one_out_residuals, Y - model.held_out_predictions_, atol=1e-10
    )


def test_the_printed_form_names_the_rows_that_count_most():
    far = Y.copy()
    far[7] += 20.0
    found = fitted(X, far).diagnostics()
    assert found.most_influential[0] == 7
    lines = str(found).splitlines()
    assert lines[0].startswith("effective degrees of freedom")
    assert lines[-1].split("rows")[1].strip().startswith("7 (")


def test_a_fit_through_all_targets_leaves_no_noise_to_tell():
    with pytest.raises(NumericalError, match="larger alpha"):
        KernelRidge(0.0, kernel=RBF(0.5)).fit(X, Y).diagnostics()


def test_a_stack_has_none():
    model = KernelRidgeCV(alpha=[0.1], kernel=["rbf", "laplacian"])
    model.set_params(search__stack=True)
    model.fit(X, Y)
    with pytest.raises(UnsupportedInputError, match="stack"):
        model.diagnostics()
