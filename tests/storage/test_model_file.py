"""Model files give back what was saved, to the last bit, for every kernel and estimator."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import stat
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from safetensors import safe_open
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import ridgefold
from cases import rows, targets
from ridgefold import (
    CellOptions,
    Compute,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
    Search,
)
from ridgefold.errors import InvalidInputError, LeftOutWarning, UnsupportedInputError
from ridgefold.estimators.saving import STORABLE
from ridgefold.kernels import (
    RBF,
    AdditiveChi2,
    Categorical,
    Chi2,
    Columns,
    Constant,
    Cosine,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    RationalQuadratic,
    Rotated,
    Scaled,
    Sigmoid,
    Sobolev,
    Sum,
    Warped,
)
from ridgefold.options import OptionObject
from ridgefold.records import Quantile, SignedLog, Standardise
from ridgefold.storage import read_model
from ridgefold.storage.tree import KERNELS, RECORDS

X, X_NEW = np.abs(rows(40, 3)), np.abs(rows(15, 3, seed=8))
Y = targets(X)
LABELS = np.where(X[:, 0] > np.median(X[:, 0]), "high", "low")
THREE = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.6]))

ONE_OF_EACH_KERNEL = [
    RBF(0.5),
    RBF((0.5, 1.0, 2.0)),
    RBF(gamma=0.0),
    Matern(0.7, nu=2.5),
    RationalQuadratic(1.5, shape=0.3),
    Rotated(Matern((1.0, 2.0), nu=1.5), [[1.0, 0.5, 0.0], [0.0, -1.0, 3.0]]),
    Warped(
        Laplacian((1.0, 2.0, 3.0)),
        (Standardise(1.0, 2.0), SignedLog(0.5, 2.0, 3.0), Quantile((0.0, 1.0), (-1.0, 1.0))),
    ),
    Laplacian((1.0, 2.0, 3.0)),
    Columns(RBF((1.0, 2.0)), (2, 0)) * Columns(Categorical(0.5), (1,)),
    Linear(),
    Polynomial(2, gamma=0.5, coef0=0.1),
    Polynomial(2.5),
    Sigmoid(0.1, 0.2),
    Cosine(),
    Constant(0.25),
    Chi2(0.7),
    AdditiveChi2(),
    Sobolev(),
    RBF(0.5) + 1,
    2 * Matern((1.0, 2.0, 0.1), nu=0.5) * Linear() + 0.1 * (RBF(3.0) + Sobolev()) * Chi2(),
]

ESTIMATORS = [
    (KernelRidge(0.1), Y),
    (KernelRidge((0.1, 1.0), kernel="rbf", fit_intercept=True), np.stack([Y, -Y], axis=1)),
    (KernelRidge(0.1, kernel="polynomial", compute=Compute(solver="primal")), Y),
    (KernelRidge(0.1, kernel="rbf", compute=Compute(solver="conjugate_gradient")), Y),
    (LSSVMRegressor(0.1, kernel="laplacian", compute=Compute(tol=1e-8)), Y),
    (LSSVMClassifier(0.1, class_weight={"high": 2.0, "low": 1}), LABELS),
    (LSSVMClassifier(0.1, class_weight="balanced"), THREE),
    (LSSVMClassifier(0.1, probability=True), THREE),
    (KernelRidgeCV(cv=3), Y),
    (
        KernelRidgeCV(
            [0.1, 1.0], kernel=["rbf", Linear()], cv="loo", search=Search(alpha_per_target=True)
        ),
        Y,
    ),
    (
        KernelRidgeCV([0.1, 1.0], kernel="rbf", cv=4, search=Search(race="race")),
        np.stack([Y, -Y], axis=1),
    ),
    (KernelRidgeCV([0.1, 1.0], cv=[(np.arange(20), np.arange(20, 40))]), Y),
    (LSSVMRegressorCV(np.logspace(-2, 1, 4), kernel_params={"length_scale": [0.5, 1.0]}, cv=3), Y),
    (LSSVMClassifierCV([0.1, 1.0], cv=3, scoring="balanced_accuracy"), LABELS),
    (LSSVMClassifierCV([0.1, 1.0], cv=[(np.arange(20), np.arange(20, 40))]), THREE),
    (PartitionedLSSVMRegressor(n_partitions=3), Y),
    (PartitionedLSSVMRegressor("kmeans", 3), np.stack([Y, -Y], axis=1)),
    (PartitionedLSSVMRegressor("random", "auto", "average"), Y),
    (PartitionedLSSVMRegressor("stratified", 3, "average"), Y),
    (PartitionedLSSVMRegressor(n_partitions=2, alpha=0.1, cells=CellOptions(refine="exact")), Y),
    (PartitionedLSSVMClassifier("hyperplanes", 2, "route"), THREE),
]


def same(a, b):  # noqa: PLR0911 - one line a kind of value
    """Equal in type, shape and every number; NaN equals NaN."""
    if isinstance(a, np.ma.MaskedArray):
        assert same(np.ma.getmaskarray(a), np.ma.getmaskarray(b))
        assert a.dtype == b.dtype
        return list(a.compressed()) == list(b.compressed())
    if isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray)
        assert a.dtype == b.dtype
        if a.dtype.kind == "f":
            return np.array_equal(a, b, equal_nan=True)
        return np.array_equal(a, b)
    if scipy.sparse.issparse(a):
        return type(a) is type(b) and (a != b).nnz == 0
    if isinstance(a, dict):
        assert list(a) == list(b)
        return all(same(a[key], b[key]) for key in a)
    if isinstance(a, OptionObject):
        return type(a) is type(b) and same(a.get_params(), b.get_params())
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a)
        )
    return a == b


def through_a_file(model, folder, **options):
    path = folder / "model.ridgefold"
    model.save(path, **options)
    return ridgefold.load(path)


def identifier(value):
    return type(value).__name__ if not isinstance(value, np.ndarray) else ""


def test_every_kernel_is_in_the_list_above():
    used = set()

    def collect(kernel):
        used.add(type(kernel).__name__)
        for field in dataclasses.fields(kernel):
            part = getattr(kernel, field.name)
            if type(part).__name__ in KERNELS:
                collect(part)

    for kernel in ONE_OF_EACH_KERNEL:
        collect(kernel)
    assert used == set(KERNELS) >= {Sum.__name__, Product.__name__, Scaled.__name__}


@pytest.mark.parametrize("kernel", ONE_OF_EACH_KERNEL, ids=repr)
def test_every_kernel_comes_back_equal(kernel, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sigmoid and χ² are not positive definite
        model = KernelRidge(0.1, kernel=kernel).fit(X, Y)
    again = through_a_file(model, tmp_path)
    assert again.kernel_ == kernel
    assert again.kernel == kernel
    np.testing.assert_allclose(again.predict(X_NEW), model.predict(X_NEW), rtol=1e-13)


def test_every_estimator_is_in_the_list_above():
    assert {type(model).__name__ for model, _ in ESTIMATORS} <= set(STORABLE)
    exported = {n for n in ridgefold.__all__ if hasattr(getattr(ridgefold, n), "fit")}
    assert exported == set(STORABLE)


@pytest.mark.parametrize(("model", "y"), ESTIMATORS, ids=identifier)
def test_every_estimator_comes_back_with_all_that_it_had(model, y, tmp_path):
    model.fit(X, y)
    again = through_a_file(model, tmp_path)
    assert type(again) is type(model)
    assert set(vars(again)) == set(vars(model))
    assert again.compute is None
    for name in vars(model).keys() - {"compute"}:
        assert same(getattr(model, name), getattr(again, name)), name
    expected = model.predict(X_NEW)
    assert again.predict(X_NEW).dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(again.predict(X_NEW), expected, rtol=1e-13)
    else:
        np.testing.assert_array_equal(again.predict(X_NEW), expected)
        np.testing.assert_allclose(
            again.decision_function(X_NEW), model.decision_function(X_NEW), rtol=1e-13
        )


@pytest.mark.parametrize(("model", "y"), ESTIMATORS, ids=identifier)
def test_files_without_targets_and_measured_costs_can_be_read(model, y, tmp_path):
    model.fit(X, y)
    for name in ("y_fit_", "run_record_", "held_out_decisions_"):
        if name != "held_out_decisions_" or not hasattr(model, "cv_results_"):
            vars(model).pop(name, None)
    again = through_a_file(model, tmp_path)
    assert not hasattr(again, "y_fit_")
    assert again.predict(X_NEW).shape == model.predict(X_NEW).shape


@pytest.mark.parametrize(("model", "y"), ESTIMATORS, ids=identifier)
def test_every_estimator_survives_pickle_and_joblib(model, y, tmp_path):
    expected = model.fit(X, y).predict(X_NEW)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - written a moment ago
    np.testing.assert_array_equal(again.predict(X_NEW), expected)
    joblib.dump(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").predict(X_NEW), expected)


def test_the_kernels_and_records_that_files_may_name_are_ours():
    assert all(cls.__module__.startswith("ridgefold.kernels") for cls in KERNELS.values())
    assert all(cls.__module__.startswith("ridgefold.records") for cls in RECORDS.values())
    assert "CallableKernel" not in KERNELS


def test_other_readers_of_safetensors_can_open_a_file(tmp_path):
    model = KernelRidge(0.1, kernel="rbf").fit(X, Y)
    model.save(tmp_path / "model.ridgefold", notes={"made for": "a test"})
    with safe_open(tmp_path / "model.ridgefold", framework="np") as file:
        assert file.metadata()["format"] == "ridgefold-model"
        np.testing.assert_array_equal(file.get_tensor("model/state/rows"), X)
        document = json.loads(file.get_tensor("document.json").tobytes())
    assert document["notes"] == {"made for": "a test"}
    assert set(document["written_by"]) >= {"ridgefold", "numpy", "scipy", "scikit-learn", "python"}


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = KernelRidgeCV([0.1, 1.0], cv=3).fit(X, Y)
    model.save(tmp_path / "a")
    model.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    ridgefold.load(tmp_path / "a").save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_sparse_rows_come_back_sparse(tmp_path):
    for make in (scipy.sparse.csr_matrix, scipy.sparse.csr_array):
        model = KernelRidge(0.1, kernel="rbf").fit(make(np.where(X > 1, X, 0)), Y)
        again = through_a_file(model, tmp_path)
        assert same(model.X_fit_, again.X_fit_)
        np.testing.assert_allclose(again.predict(X_NEW), model.predict(X_NEW), rtol=1e-13)


def test_column_names_are_kept_and_checked(tmp_path):
    names = ["a", "</script><script>alert(1)</script>", '" onload=']
    model = KernelRidge(0.1).fit(pd.DataFrame(X, columns=names), Y)
    again = through_a_file(model, tmp_path)
    assert list(again.feature_names_in_) == names
    with pytest.raises(InvalidInputError, match="feature names should match"):
        again.predict(pd.DataFrame(X, columns=["a", "b", "c"]))


def test_precomputed_and_compressed_models_are_stored(tmp_path):
    K = RBF()(X)
    model = KernelRidge(0.1, kernel="precomputed").fit(K, Y)
    np.testing.assert_allclose(through_a_file(model, tmp_path).predict(K), model.predict(K))
    small = KernelRidge(0.1, kernel="rbf").fit(X, Y).compress(7)
    again = through_a_file(small, tmp_path)
    assert again.compression_bound_ == small.compression_bound_
    assert again.X_fit_.shape == (7, 3)


def test_torch_models_come_back_on_numpy(tmp_path):
    torch = pytest.importorskip("torch")

    model = LSSVMClassifierCV([0.1, 1.0], cv=3).fit(
        torch.from_numpy(X), torch.from_numpy(THREE.astype(np.int64))
    )
    again = through_a_file(model, tmp_path)
    assert isinstance(again.X_fit_, np.ndarray)
    assert isinstance(again.classes_, np.ndarray)
    np.testing.assert_array_equal(again.predict(X), model.predict(torch.from_numpy(X)).numpy())


def test_float32_files_are_half_as_large_and_nearly_right(tmp_path):
    A, b = rows(400, 8), targets(rows(400, 8))
    model = KernelRidgeCV([0.1, 1.0], cv=3).fit(A, b)
    model.save(tmp_path / "double")
    again = through_a_file(model, tmp_path, dtype="float32")
    assert again.X_fit_.dtype == again.dual_coef_.dtype == np.float32
    assert again.cv_results_["mean_test_score"].dtype == np.float64
    sizes = [(tmp_path / name).stat().st_size for name in ("model.ridgefold", "double")]
    assert sizes[0] < 0.7 * sizes[1]
    # Coefficients of size max|a| are rounded to float32, and so is each product with them.
    rounding = 2e-7 * np.sum(np.abs(model.dual_coef_))
    assert np.max(np.abs(again.predict(A) - model.predict(A))) < rounding
    huge = KernelRidge(0.1).fit(A, 1e200 * b)
    with pytest.raises(InvalidInputError, match="float32"):
        huge.save(tmp_path / "huge", dtype="float32")
    assert not (tmp_path / "huge").exists()


def test_functions_are_refused_as_kernels(tmp_path):
    def mine(a, b):
        return float(a @ b)

    model = KernelRidge(0.1, kernel=mine).fit(X, Y)
    with pytest.raises(UnsupportedInputError, match="model files hold no code"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_classes_of_other_people_are_refused(tmp_path):
    class Mine(KernelRidge):
        pass

    with pytest.raises(UnsupportedInputError, match="keep it by pickle"):
        Mine(0.1).fit(X, Y).save(tmp_path / "m")

    @dataclasses.dataclass(frozen=True)
    class Wide(RBF):
        pass

    with pytest.raises(UnsupportedInputError, match="a class of your own"):
        KernelRidge(0.1, kernel=Wide(1.0)).fit(X, Y).save(tmp_path / "m")


def test_splitters_and_scorers_are_left_out_with_a_warning(tmp_path):
    model = KernelRidgeCV([0.1, 1.0], cv=KFold(3, shuffle=True, random_state=0)).fit(X, Y)
    with pytest.warns(LeftOutWarning, match="does not keep cv=KFold"):
        again = through_a_file(model, tmp_path)
    assert again.cv == 5
    np.testing.assert_allclose(again.predict(X_NEW), model.predict(X_NEW), rtol=1e-13)
    assert "KFold" in read_model(tmp_path / "model.ridgefold").model["left_out"]["cv"]


def test_bad_arguments_of_save_are_named(tmp_path):
    model = KernelRidge(0.1).fit(X, Y)
    with pytest.raises(InvalidInputError, match="dtype must be"):
        model.save(tmp_path / "m", dtype="float16")
    with pytest.raises(InvalidInputError, match="notes must be"):
        model.save(tmp_path / "m", notes={"n": 3})
    with pytest.raises(InvalidInputError, match="there is no folder"):
        model.save(tmp_path / "none" / "m")
    with pytest.raises(InvalidInputError, match="is a folder"):
        model.save(tmp_path)
    with pytest.raises(NotFittedError):
        KernelRidge().save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model.ridgefold"
    KernelRidge(0.1).fit(X, Y).save(path)
    before = path.read_bytes()

    def disk_full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match="No space left"):
        KernelRidge(0.5).fit(X, Y).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_files_get_ordinary_permissions(tmp_path):
    before = os.umask(0o022)
    try:
        KernelRidge(0.1).fit(X, Y).save(tmp_path / "m")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o644


def test_a_partitioned_model_in_single_precision_predicts_alike(tmp_path):
    model = PartitionedLSSVMRegressor(n_partitions=3, alpha=0.1).fit(X, Y)
    again = through_a_file(model, tmp_path, dtype="float32")
    assert np.allclose(again.predict(X_NEW.astype(np.float32)), model.predict(X_NEW), atol=1e-3)


def test_a_router_that_would_never_end_is_refused():
    from ridgefold.cells.cut import PARTITIONERS

    tree = PARTITIONERS["tree"]
    cells = tree.fit(X, 4, 0.0, np.random.default_rng(0))
    assert tree.accepts(cells.router, 4, 3)
    loop = {**cells.router, "children": np.zeros_like(cells.router["children"])}
    assert not tree.accepts(loop, 4, 3)
    assert not tree.accepts(cells.router, 5, 3)
    assert not tree.accepts(cells.router, 4, 2)
