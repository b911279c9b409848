"""On tables of many kinds, importance without a test set has the order of that on test rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.inspection import permutation_importance

from ridgefold import LSSVMClassifierCV, LSSVMRegressorCV, PartitionedLSSVMRegressor

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
REGRESSION, CLASSES = ("ccpp", "cpusmall", "california", "kin8nm"), ("magic",)
N_TEST = 3000


def table(name: str, n: int, *, identifier: bool = False):
    path = SHARED / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name} is not at hand")
    with np.load(path, allow_pickle=False) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"]
    order = np.random.default_rng(0).permutation(len(X))[: n + N_TEST]
    X, y = X[order], y[order]
    if name == "california":
        y = np.log(y)
    if identifier:
        X = np.column_stack([X, np.random.default_rng(5).permutation(len(X))])
    mean, spread = X[:n].mean(axis=0), X[:n].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    return X[:n], y[:n], X[n:], y[n:]


def assert_order_of_test_rows(model, X_test, y_test, scoring=None, unit=1.0):
    found = model.held_out_importances()
    test = permutation_importance(
        model, X_test, y_test, scoring=scoring, n_repeats=5, random_state=0
    )
    on_test, errors = test.importances_mean / unit, found.standard_errors
    clear = np.flatnonzero(found.rises > 2 * errors)
    ours = clear[np.argsort(-found.rises[clear])]
    assert ours[0] in np.argsort(-on_test)[:2]
    for a in ours:
        for b in ours:
            if found.rises[a] - found.rises[b] > 3 * np.hypot(errors[a], errors[b]):
                # Test rows are a sample, too.
                assert 1.15 * on_test[a] > on_test[b], (a, b)
    unclear = np.setdiff1d(np.arange(len(on_test)), clear)
    assert np.all(on_test[unclear] < 0.2 * on_test[ours[0]])
    return found


@pytest.mark.full
@pytest.mark.parametrize("identifier", [False, True], ids=["plain", "identifier"])
@pytest.mark.parametrize("learned", ["learned", None], ids=["learned", "one width"])
@pytest.mark.parametrize("name", REGRESSION)
def test_importance_of_numbers_has_the_order_of_test_rows(name, learned, identifier):
    X, y, X_test, y_test = table(name, 2000, identifier=identifier)
    model = LSSVMRegressorCV(metric=learned).fit(X, y)
    found = assert_order_of_test_rows(model, X_test, y_test)
    if identifier:
        assert found.rises[-1] < 2 * found.standard_errors[-1] + 0.002


@pytest.mark.full
@pytest.mark.parametrize("name", REGRESSION)
def test_importance_in_cells_has_the_order_of_test_rows(name):
    X, y, X_test, y_test = table(name, 5000)
    assert_order_of_test_rows(PartitionedLSSVMRegressor().fit(X, y), X_test, y_test)


@pytest.mark.full
@pytest.mark.parametrize("name", CLASSES)
def test_importance_of_classes_has_the_order_of_test_rows(name):
    X, y, X_test, y_test = table(name, 2000)
    model = LSSVMClassifierCV(metric="learned", probability=True).fit(X, y)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    unit = -shares @ np.log(shares)
    assert_order_of_test_rows(model, X_test, y_test, "neg_log_loss", unit)
