"""Models in the company of scikit-learn, pandas and polars."""

from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cases import rows, targets
from ridgefold import KernelRidge, LSSVMClassifier, LSSVMRegressor
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF, Linear
from ridgefold.tables import load_bundled

X, Y, X_NEW = rows(60, 3), targets(rows(60, 3)), rows(15, 3, seed=8)
LABELS = np.where(X[:, 0] > 0, "up", "down")


def fitted_models():
    return [
        KernelRidge(0.1, kernel="rbf").fit(X, Y),
        KernelRidge(0.1).fit(X, Y),
        LSSVMRegressor(0.1, kernel=RBF(0.5) + Linear()).fit(X, targets(X, 2)),
        LSSVMClassifier(0.1).fit(X, LABELS),
        KernelRidge(0.1, kernel="rbf").fit(X, Y).compress(6),
    ]


def test_models_work_in_pipelines():
    model = make_pipeline(StandardScaler(), KernelRidge(0.1, kernel="rbf")).fit(X, Y)
    scaler = StandardScaler().fit(X)
    alone = KernelRidge(0.1, kernel="rbf").fit(scaler.transform(X), Y)
    np.testing.assert_allclose(model.predict(X_NEW), alone.predict(scaler.transform(X_NEW)))


def test_models_work_in_grid_searches():
    grid = {"alpha": [1e-2, 1.0], "kernel": ["rbf", "linear", RBF(2.0)]}
    search = GridSearchCV(KernelRidge(), grid, cv=3).fit(X, Y)
    assert search.best_params_["alpha"] in grid["alpha"]
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()


def test_precomputed_kernels_are_split_on_both_sides():
    K = RBF()(X)
    by_matrix = cross_val_score(KernelRidge(0.1, kernel="precomputed"), K, Y, cv=4)
    by_rows = cross_val_score(KernelRidge(0.1, kernel=RBF()), X, Y, cv=4)
    np.testing.assert_allclose(by_matrix, by_rows, rtol=1e-9)


@pytest.mark.parametrize("model", fitted_models(), ids=lambda m: repr(m).replace(" ", "")[:60])
def test_models_survive_pickle_joblib_and_clone(model):
    expected = model.predict(X_NEW)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - written a moment ago
    np.testing.assert_array_equal(again.predict(X_NEW), expected)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    np.testing.assert_array_equal(joblib.load(buffer).predict(X_NEW), expected)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "X_fit_")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_are_taken_and_their_columns_checked(frame):
    names = ["a", "b", "c"]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = KernelRidge(0.1, kernel="rbf").fit(table, frame({"y": Y})["y"])
    assert list(model.feature_names_in_) == names
    expected = KernelRidge(0.1, kernel="rbf").fit(X, Y).predict(X)
    np.testing.assert_allclose(model.predict(table), expected, rtol=1e-12)
    renamed = frame(dict(zip(["a", "b", "z"], X.T, strict=True)))
    with pytest.raises(InvalidInputError, match="feature names should match"):
        model.predict(renamed)


def test_refitting_on_an_array_forgets_the_column_names():
    import torch

    model = KernelRidge(0.1).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    model.fit(torch.from_numpy(X), Y)
    assert not hasattr(model, "feature_names_in_")


def test_text_labels_in_a_frame_are_taken():
    model = LSSVMClassifier(1e-3).fit(pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(LABELS))
    assert model.score(pd.DataFrame(X, columns=["a", "b", "c"]), LABELS) > 0.95


def test_refitting_with_the_same_data_changes_nothing():
    model = LSSVMRegressor(0.1).fit(X, Y)
    first = model.dual_coef_.copy()
    np.testing.assert_array_equal(model.fit(X, Y).dual_coef_, first)


def test_the_plan_is_kept():
    model = KernelRidge(0.1, kernel="rbf").fit(X, Y)
    assert model.plan_.method == "cholesky"
    assert model.plan_.problem.n_rows == 60
    assert {r.method for r in model.plan_.rejected} == {
        "primal",
        "eigendecomposition",
        "conjugate_gradient",
    }
    assert model.kernel_ == RBF(gamma=1 / 3)


def test_german_credit_is_classified_better_than_by_the_larger_class():
    data = load_bundled("german")
    A = StandardScaler().fit_transform(data.X)
    order = np.random.default_rng(0).permutation(len(A))
    train, test = order[:700], order[700:]
    model = LSSVMClassifier(10.0, kernel="rbf").fit(A[train], data.y[train])
    larger = np.bincount(np.unique(data.y[test], return_inverse=True)[1]).max() / len(test)
    assert model.score(A[test], data.y[test]) > larger
