"""The mean of the models of the folds, from one fit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit

from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    Search,
)
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF
from ridgefold.tables import load_bundled


def plant(n):
    data = load_bundled("ccpp")
    return data.X[:n] / data.X.std(axis=0), data.y[:n] - data.y.mean()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intervals", [None, "cv+", "jackknife+"])
def test_the_mean_of_the_folds_models(bias, weighted, intervals):
    X, y = plant(120)
    weights = np.random.default_rng(0).integers(0, 3, 120).astype(float) if weighted else None
    folds = KFold(4, shuffle=True, random_state=1)
    model = KernelRidgeCV(
        [0.1],
        kernel=RBF(1.3),
        cv=folds,
        fit_intercept=bias,
        intervals=intervals,
        search=Search(average_folds=True),
    ).fit(X, y, sample_weight=weights)
    new = X[::7] + 0.3
    single = KernelRidge(0.1, kernel=RBF(1.3), fit_intercept=bias)
    expected = [
        clone(single)
        .fit(X[train], y[train], sample_weight=None if weights is None else weights[train])
        .predict(new)
        for train, _ in folds.split(X)
    ]
    np.testing.assert_allclose(model.predict(new), np.mean(expected, axis=0), rtol=1e-8, atol=1e-8)


def test_several_targets():
    X, y = plant(60)
    both = np.column_stack([y, y**2 / 100])
    model = KernelRidgeCV([0.1], kernel=RBF(1.3), cv=3, search=Search(average_folds=True)).fit(
        X, both
    )
    single = KernelRidge(0.1, kernel=RBF(1.3))
    expected = [
        clone(single).fit(X[train], both[train]).predict(X[:9]) for train, _ in KFold(3).split(X)
    ]
    np.testing.assert_allclose(model.predict(X[:9]), np.mean(expected, axis=0), rtol=1e-8)


def test_classifiers_average_decisions():
    data = load_bundled("german")
    X, y = data.X[:90] / (data.X.std(axis=0) + 1e-9), data.y[:90]
    folds = KFold(3)
    model = LSSVMClassifierCV(
        [1.0], kernel=RBF(4.0), cv=folds, search=Search(average_folds=True)
    ).fit(X, y)
    single = LSSVMClassifier(1.0, kernel=RBF(4.0))
    expected = [
        clone(single).fit(X[train], y[train]).decision_function(X) for train, _ in folds.split(X)
    ]
    np.testing.assert_allclose(
        model.decision_function(X), np.mean(expected, axis=0), rtol=1e-8, atol=1e-9
    )


def test_folds_that_do_not_hold_every_row_out_once_are_refused():
    X, y = plant(40)
    with pytest.raises(InvalidInputError, match="average_folds=True needs a cv that holds every"):
        KernelRidgeCV(cv=ShuffleSplit(3, random_state=0), search=Search(average_folds=True)).fit(
            X, y
        )
