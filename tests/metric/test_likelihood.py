"""The marginal likelihood and its gradient, against dense formulas and differences."""

from __future__ import annotations

import numpy as np
import pytest

from cases import rows, targets
from namespaces import LIBRARIES, to_numpy
from ridgefold import KernelRidge, LSSVMRegressorCV, MetricLearning
from ridgefold.exact.likelihood import spectrum
from ridgefold.kernels import RBF, KernelGram, Laplacian, Matern, RationalQuadratic
from ridgefold.metric.families import with_scales
from ridgefold.metric.likelihood import MarginalLikelihood, ascend

N, ALPHA = 40, 0.2
X = rows(N)
Y = targets(X, 2)
WEIGHTS = np.random.default_rng(3).random(N) + 0.3
SCALES = np.array([0.8, 1.5, 3.0])
BASES = {
    "nothing": np.empty((N, 0)),
    "a bias": np.ones((N, 1)),
    "a trend": np.column_stack([np.ones(N), X[:, 0]]),
}
FAMILIES = [RBF(), Matern(nu=0.5), Matern(nu=1.5), Matern(nu=2.5), Laplacian(), RationalQuadratic()]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
@pytest.mark.parametrize("basis", BASES.values(), ids=list(BASES))
def test_it_is_the_likelihood_of_one_decomposition_but_for_what_no_kernel_changes(basis, weights):
    found = MarginalLikelihood(X, Y, basis, weights)
    differences = []
    for kernel, alpha in ((RBF((0.8, 1.5, 3.0)), 0.2), (Matern(2.0), 0.01)):
        whole = spectrum(KernelGram(kernel, X), Y, weights, basis)
        value = whole.log_likelihoods(np.array([alpha]), None).sum()
        differences.append(found.value_and_gradient(kernel, alpha).value - value)
    assert differences[0] == pytest.approx(differences[1], abs=1e-8)
    assert differences[0] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_its_gradient_is_that_of_differences(family, weights):
    likelihood = MarginalLikelihood(X, Y, BASES["a trend"], weights)

    def value(logs):
        kernel = with_scales(family, np.exp(logs[:3]))
        return likelihood.value_and_gradient(kernel, float(np.exp(logs[3]))).value

    at, step = np.append(np.log(SCALES), np.log(ALPHA)), 1e-5
    expected = [(value(at + step * e) - value(at - step * e)) / (2 * step) for e in np.eye(4)]
    found = likelihood.value_and_gradient(with_scales(family, SCALES), ALPHA)
    np.testing.assert_allclose(found.scale_gradient, expected[:3], rtol=1e-5, atol=1e-6)
    assert found.alpha_gradient == pytest.approx(expected[3], rel=1e-5)


def test_it_is_the_same_in_torch():
    convert = LIBRARIES["torch"]
    theirs = MarginalLikelihood(convert(X), convert(Y), convert(BASES["a bias"]))
    ours = MarginalLikelihood(X, Y, BASES["a bias"])
    kernel = RBF(tuple(SCALES.tolist()))
    found, expected = (each.value_and_gradient(kernel, ALPHA) for each in (theirs, ours))
    assert found.value == pytest.approx(expected.value)
    np.testing.assert_allclose(to_numpy(found.scale_gradient), expected.scale_gradient, rtol=1e-8)


def test_an_ascent_ends_where_the_gradient_is_zero():
    likelihood = MarginalLikelihood(X, Y, BASES["a bias"])
    kernel, alpha, value = ascend(likelihood, RBF(2.0), 1.0, scale_of=np.arange(3), n_targets=2)
    found = likelihood.value_and_gradient(kernel, alpha)
    assert found.value == value > likelihood.value_and_gradient(RBF((2.0,) * 3), 1.0).value
    slopes = np.append(found.scale_gradient, found.alpha_gradient)
    assert np.abs(slopes).max() < 1e-2 * N
    tied, _, less = ascend(likelihood, RBF(2.0), 1.0, scale_of=np.zeros(3, int), n_targets=2)
    assert len(set(tied.length_scale)) == 1
    assert less <= value


def test_singular_matrices_and_constant_targets_have_none():
    likelihood = MarginalLikelihood(np.concatenate([X, X]), np.tile(Y, (2, 1)), np.ones((80, 1)))
    assert likelihood.value_and_gradient(RBF(50.0), 1e-18) is None
    flat = MarginalLikelihood(X, np.ones((N, 1)), np.ones((N, 1)))
    found = flat.value_and_gradient(RBF(1.0), 1.0)
    assert found is None or found.value > 1e2


@pytest.mark.parametrize(
    "asked", ["learned", MetricLearning(transforms="standardise"), MetricLearning(groups=[[1, 2]])]
)
def test_learned_scales_are_moved_to_a_larger_likelihood(asked):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((150, 4)) * [1.0, 10.0, 0.1, 1.0]
    y = np.sin(2 * table[:, 0]) + 0.1 * table[:, 1] + 0.2 * rng.standard_normal(150)
    weights = np.ones(150)
    weights[:10] = 0.0
    plain = LSSVMRegressorCV(metric=asked, kernel="rbf").fit(table, y, weights)
    likely = LSSVMRegressorCV(metric=asked, kernel="rbf", scoring="marginal_likelihood")
    likely.fit(table, y, weights)
    assert likely.best_score_ > plain.log_marginal_likelihood()
    assert likely.best_score_ == pytest.approx(likely.log_marginal_likelihood())
    assert likely.metric_.relevance.sum() == pytest.approx(1.0)
    same = KernelRidge(likely.alpha_, kernel=likely.kernel_, fit_intercept=True)
    assert same.fit(table, y, weights).log_marginal_likelihood() == pytest.approx(
        likely.best_score_
    )
    if isinstance(asked, MetricLearning) and asked.groups:
        kept = likely.length_scales_[1:3]
        assert kept[0] == pytest.approx(kept[1]) or np.isinf(kept).any()
