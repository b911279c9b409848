"""Probabilities are calibrated on held-out decision values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

import ridgefold
from cases import rows
from ridgefold import LSSVMClassifier, LSSVMClassifierCV, PartitionedLSSVMClassifier
from ridgefold.errors import InvalidInputError
from ridgefold.selection.probabilities import fit_curve, probabilities
from ridgefold.tables import load_bundled

X, X_NEW = rows(120, 3), rows(20, 3, seed=5)
NOISE = np.random.default_rng(2).normal(scale=0.5, size=120)
TWO = np.where(X[:, 0] + NOISE > 0, "up", "down")
THREE = np.digitize(X[:, 0] + NOISE, [-0.5, 0.5])


def models():
    return [
        (LSSVMClassifierCV([0.1, 1.0], cv=4, probability=True), TWO),
        (LSSVMClassifierCV([0.1, 1.0], cv=4, class_weight="balanced", probability=True), THREE),
        (LSSVMClassifierCV([0.1, 1.0], cv="loo", probability=True), TWO),
        (LSSVMClassifier(1.0, probability=True), TWO),
        (LSSVMClassifier(1.0, probability=True), THREE),
        (PartitionedLSSVMClassifier(n_partitions=3, probability=True), TWO),
        (PartitionedLSSVMClassifier(n_partitions=3, alpha=1.0, probability=True), THREE),
    ]


def name_of(value):
    return type(value).__name__ if hasattr(value, "fit") else ""


@pytest.mark.parametrize(("model", "y"), models(), ids=name_of)
def test_probabilities_sum_to_one_and_follow_the_decisions(model, y, tmp_path):
    model.fit(X, y)
    p = model.predict_proba(X_NEW)
    assert p.shape == (20, len(model.classes_))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert np.all((p > 0) & (p < 1))
    decisions = model.decision_function(X_NEW)
    if decisions.ndim == 1:
        assert np.all(np.diff(p[np.argsort(decisions), 1]) >= 0)
    model.save(tmp_path / "m")
    np.testing.assert_allclose(ridgefold.load(tmp_path / "m").predict_proba(X_NEW), p, rtol=1e-10)


@pytest.mark.parametrize(("model", "y"), models()[2:6], ids=name_of)
def test_probabilities_that_were_asked_for_after_the_fit_are_refused(model, y):
    model.set_params(probability=False).fit(X, y)
    model.set_params(probability=True)
    with pytest.raises(InvalidInputError, match="set after the fit"):
        model.predict_proba(X_NEW)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_curve_is_the_most_likely_one(weighted):
    generator = np.random.default_rng(0)
    f = generator.normal(size=300)
    inside = generator.random(300) < expit(2.0 * f - 0.5)
    w = generator.uniform(0, 2, 300) if weighted else np.ones(300)
    n_in, n_out = w[inside].sum(), w[~inside].sum()
    goal = np.where(inside, (n_in + 1) / (n_in + 2), 1 / (n_out + 2))

    def loss(p):
        z = p[0] * f + p[1]
        return w @ (np.logaddexp(0, z) - goal * z)

    best = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    np.testing.assert_allclose(fit_curve(f, inside, w), best.x, rtol=1e-5)


def test_separable_and_constant_decisions_give_finite_curves():
    inside = np.arange(10) < 5
    separated = fit_curve(np.where(inside, 1.0, -1.0), inside, np.ones(10))
    p = probabilities(np.array([[1.0], [-1.0]]), separated[None, :])[:, 1]
    np.testing.assert_allclose(p, [6 / 7, 1 / 7], rtol=1e-6)  # Platt's targets
    flat = fit_curve(np.zeros(10), inside, np.ones(10))
    np.testing.assert_allclose(probabilities(np.zeros((1, 1)), flat[None, :]), 0.5, atol=1e-9)
    one_class = fit_curve(np.linspace(-1, 1, 10), np.ones(10, dtype=bool), np.ones(10))
    assert np.all(np.isfinite(one_class))


def test_weights_count_as_repeated_rows():
    twice = np.where(np.arange(120) % 3 == 0, 2.0, 1.0)
    f = np.random.default_rng(1).normal(size=120)
    again = np.repeat(np.arange(120), twice.astype(int))
    np.testing.assert_allclose(
        fit_curve(f, TWO == "up", twice),
        fit_curve(f[again], (TWO == "up")[again], np.ones(len(again))),
        rtol=1e-6,
    )


def test_predict_proba_is_there_only_if_asked_for():
    for cls in (LSSVMClassifier, LSSVMClassifierCV, PartitionedLSSVMClassifier):
        assert not hasattr(cls().fit(X, TWO), "predict_proba")
        assert hasattr(cls(probability=True), "predict_proba")


def test_averages_of_random_cells_have_no_probabilities():
    model = PartitionedLSSVMClassifier("random", 3, "average", probability=True)
    with pytest.raises(InvalidInputError, match='combine="blend"'):
        model.fit(X, TWO)


def test_torch_tensors_give_torch_probabilities():
    torch = pytest.importorskip("torch")

    model = LSSVMClassifier(1.0, probability=True).fit(torch.from_numpy(X), torch.from_numpy(THREE))
    p = model.predict_proba(torch.from_numpy(X_NEW))
    assert isinstance(p, torch.Tensor)
    expected = LSSVMClassifier(1.0, probability=True).fit(X, THREE).predict_proba(X_NEW)
    np.testing.assert_allclose(p.numpy(), expected, rtol=1e-8)


def test_scores_of_probabilities_work_in_grid_searches():
    search = GridSearchCV(
        LSSVMClassifier(probability=True), {"alpha": [0.1, 1.0]}, scoring="neg_log_loss", cv=3
    ).fit(X, TWO)
    assert np.isfinite(search.best_score_)


def test_probabilities_of_good_credit_are_near_the_shares_observed():
    data = load_bundled("german")
    A = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    order = np.random.default_rng(0).permutation(1000)
    train, test = order[:600], order[600:]
    model = LSSVMClassifierCV([3.0, 10.0, 30.0], gamma=0.02, probability=True)
    model.fit(A[train], data.y[train])
    p = model.predict_proba(A[test])[:, 1]
    good = data.y[test] > 0
    assert log_loss(good, p) < log_loss(good, np.full(len(p), good.mean()))
    shares, means = calibration_curve(good, p, n_bins=4, strategy="quantile")
    assert np.max(np.abs(shares - means)) < 0.12  # 100 rows a bin: two standard errors are 0.1


def test_imbalance_weights_do_not_bias_the_probabilities():
    A, y = make_classification(1500, 5, weights=[0.9], random_state=0, flip_y=0.05)
    model = LSSVMClassifierCV([1.0], gamma=0.2, class_weight="balanced", probability=True)
    model.fit(A[:800], y[:800])
    assert abs(model.predict_proba(A[800:])[:, 1].mean() - y[800:].mean()) < 0.04
