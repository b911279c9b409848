"""Predictions in blocks are those at once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from cases import KERNELS, rows, targets
from ridgefold import KernelRidge, LSSVMClassifier
from ridgefold.exact import predict as engine_predict

X, X_NEW = rows(50, 3, positive=True), rows(333, 3, seed=8, positive=True)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("budget", [1, 3000, "20KB"])
def test_predictions_in_little_memory_are_those_at_once(kernel, budget):
    model = KernelRidge(0.1, kernel=kernel, fit_intercept=True).fit(X, targets(X, 2))
    at_once = model.predict(X_NEW)
    in_blocks = model.set_params(memory_budget=budget).predict(X_NEW)
    # Rounding in a_i k(x_i, x) is relative to the terms, which may be larger than their sum.
    size = np.abs(kernel(X_NEW, X) @ np.abs(model.dual_coef_)).max() + 1.0
    np.testing.assert_allclose(in_blocks, at_once, rtol=0, atol=1e-14 * size)


@pytest.mark.parametrize("name", ["linear", "rbf", "laplacian", "cosine"])
def test_sparse_rows_are_predicted_in_blocks(name):
    thinned, new = np.where(X > 0.4, X, 0.0), np.where(X_NEW > 0.4, X_NEW, 0.0)
    model = KernelRidge(0.1, kernel=KERNELS[name])
    expected = model.fit(thinned, targets(X)).predict(new)
    model.fit(scipy.sparse.csr_array(thinned), targets(X)).set_params(memory_budget=2000)
    np.testing.assert_allclose(model.predict(scipy.sparse.csr_array(new)), expected, atol=1e-11)


def test_classifiers_predict_in_blocks():
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.3, 0.6])]
    model = LSSVMClassifier(0.1).fit(X, labels)
    at_once = model.predict(X_NEW)
    np.testing.assert_array_equal(model.set_params(memory_budget=1).predict(X_NEW), at_once)


def test_blocks_stay_within_the_budget(monkeypatch):
    heights = []
    real = engine_predict.row_blocks

    def watched(n, bytes_per_row, limit):
        for block in real(n, bytes_per_row, limit):
            heights.append(((block.stop - block.start) * bytes_per_row, limit))
            yield block

    monkeypatch.setattr(engine_predict, "row_blocks", watched)
    model = KernelRidge(0.1, kernel="rbf").fit(X, targets(X)).set_params(memory_budget="40KB")
    model.predict(X_NEW)
    assert len(heights) > 1
    assert all(used <= limit <= 20_000 for used, limit in heights)


def test_precomputed_kernels_are_predicted_in_blocks():
    kernel = KERNELS["rbf"]
    model = KernelRidge(0.1, kernel="precomputed").fit(kernel(X), targets(X))
    at_once = model.predict(kernel(X_NEW, X))
    in_blocks = model.set_params(memory_budget=2000).predict(kernel(X_NEW, X))
    np.testing.assert_allclose(in_blocks, at_once, atol=1e-13)
