"""Edges that were wrong once."""

from __future__ import annotations

import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
import scipy.sparse
import torch

import ridgefold
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    PartitionedKernelRidge,
    TableModel,
)
from ridgefold.errors import (
    InvalidInputError,
    KernelDomainError,
    ModelFileError,
    SingularSystemWarning,
    TableError,
    UnsupportedInputError,
    WorkerLostError,
)
from ridgefold.estimators.saving import pack_estimator, unpack_estimator
from ridgefold.executors.processes import Processes
from ridgefold.kernels import RBF, Matern, Sobolev, Warped
from ridgefold.records import Quantile, Standardise
from ridgefold.storage import strict_json
from ridgefold.storage.table_stream import bytes_as_numbers
from ridgefold.storage.tables import open_table


def rows(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


# -- model files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [("executor", "tcp://127.0.0.1:1"), ("run_dir", "somewhere"), ("device", "cuda")],
)
def test_a_model_file_cannot_say_where_work_is_done(name, value):
    contents = pack_estimator(PartitionedKernelRidge(n_partitions=2).fit(*rows()))
    assert name not in contents["parameters"]
    contents["parameters"][name] = value
    with pytest.raises(ModelFileError, match=f"sets '{name}'"):
        unpack_estimator(contents)
    search = pack_estimator(KernelRidgeCV(alphas=[0.1, 1.0]).fit(*rows()))
    search["parameters"]["executor"] = "tcp://127.0.0.1:1"
    with pytest.raises(ModelFileError, match="sets 'executor'"):
        unpack_estimator(search)


@pytest.mark.parametrize("text", [b'{"a":1e999}', b"[-1e999]"])
def test_numbers_too_large_for_a_float_are_no_metadata(text):
    with pytest.raises(ModelFileError, match="too large"):
        strict_json.loads(text, most_values=10)


# -- tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 9])
def test_arguments_of_another_length_than_the_table_are_named(length):
    X, y = rows(4)
    model = TableModel(KernelRidge())
    with pytest.raises(InvalidInputError, match="sample_weight must have one entry a row: X has 4"):
        model.fit(X, y, sample_weight=np.ones(length))
    with pytest.raises(InvalidInputError, match="y must have one entry a row: X has 4 rows"):
        model.fit(X, y).score(X, np.ones(length))


def test_names_that_stand_for_two_columns_are_refused(tmp_path):
    X, y = rows(5, 2)
    np.savez(tmp_path / "t.npz", X=X, y=y, feature_names=["a", "y"])
    with pytest.raises(TableError, match="two columns are called 'y'"):
        open_table(tmp_path / "t.npz").names()
    doubled = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    pa_parquet.write_table(doubled, tmp_path / "t.parquet")
    with pytest.raises(TableError, match="two columns are called 'a'"):
        open_table(tmp_path / "t.parquet").names()


def test_tables_that_were_cut_off_are_named(tmp_path):
    X, y = rows(50)
    np.savez_compressed(tmp_path / "whole.npz", X=X, y=y)
    assert zipfile.is_zipfile(tmp_path / "whole.npz")
    data = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(TableError, match=r"half\.npz"):
        open_table(tmp_path / "half.npz")
    (tmp_path / "half.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(TableError, match=r"half\.parquet"):
        bytes_as_numbers(tmp_path / "half.parquet")


def test_a_missing_number_among_categories_is_missing_and_nothing_else():
    table = np.array([[0.0, 1.0], [1.0, np.nan], [2.0, 2.0], [3.0, 1.0]])
    model = TableModel(KernelRidge(), categorical=["x1"], missing="fill").fit(table, np.arange(4.0))
    names = [name for name in model.columns_.feature_names if name.startswith("x1")]
    assert len(names) == 3  # two levels, and missing
    assert not any("nan" in name.lower() for name in names)


# -- kernels ---------------------------------------------------------------------------------


def test_a_far_row_moves_no_other_prediction():
    X, y = rows(80)
    model = KernelRidge(0.1, kernel=Matern(1.0, nu=0.5)).fit(X, y)
    new = rows(20, seed=1)[0]
    with_far = model.predict(np.vstack([new, np.full((1, 3), 1e8)]))[:-1]
    np.testing.assert_allclose(with_far, model.predict(new), rtol=1e-9)
    twice = np.repeat(X[:3], 2, axis=0) + 1e3
    K = Matern(1.0, nu=0.5)(twice)
    assert K[0, 1] == K[2, 3] == K[4, 5] == 1.0


def test_a_warped_kernel_sees_warped_rows():
    X = np.linspace(0.1, 0.9, 20)[:, None]
    with pytest.raises(KernelDomainError):
        Warped(Sobolev(), [Standardise(0.5, 0.1)])(X)
    K = Warped(Sobolev(), [Quantile((-3.0, 3.0), (0.0, 1.0))])(X - 0.5)
    assert np.isfinite(K).all()


def test_sparse_whole_numbers_are_taken_as_dense_ones_are():
    whole = np.array([[1, 2], [0, 1]])
    np.testing.assert_allclose(RBF()(scipy.sparse.csr_array(whole)), RBF()(whole))


# -- estimators ------------------------------------------------------------------------------


def test_an_indefinite_kernel_is_not_compressed():
    X, y = rows()
    with pytest.warns(SingularSystemWarning):
        model = KernelRidge(0.1, kernel="additive_chi2").fit(np.abs(X), y)
    with pytest.raises(UnsupportedInputError, match="positive semi-definite"):
        model.compress(10)


def test_a_model_of_weights_is_compressed_within_its_bound():
    X, _ = rows(1000, 5)
    y = X @ np.arange(1.0, 6.0)
    model = KernelRidge(alpha=1e-12).fit(X, y)
    small = model.compress(5)
    new = rows(50, 5, seed=1)[0]
    error = np.abs(small.predict(new) - model.predict(new))
    assert np.all(error <= small.compression_bound_ * np.linalg.norm(new, axis=1) * (1 + 1e-6))
    assert model.compress(3, tol=1e200).compression_bound_ >= 0


def test_labels_keep_their_type_beside_tensors():
    X = torch.randn(10, 2, dtype=torch.float32, generator=torch.Generator().manual_seed(0))
    labels = np.repeat([16777216, 16777217], 5)  # one number in float32
    model = LSSVMClassifier().fit(X, labels)
    assert model.classes_.tolist() == [16777216, 16777217]
    assert not model.predict(X).dtype.is_floating_point


def test_tensors_that_record_gradients_are_taken_as_numbers():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(20, 3, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.randn(20, generator=generator, dtype=torch.float64).requires_grad_()
    model = KernelRidge(0.1, kernel="rbf").fit(X, y)
    plain = KernelRidge(0.1, kernel="rbf").fit(X.detach(), y.detach())
    assert torch.equal(model.predict(X), plain.predict(X.detach()))
    assert not model.predict(X).requires_grad
    assert not RBF()(X).requires_grad


def test_probabilities_asked_for_after_the_fit_need_another():
    X, y = rows()
    model = LSSVMClassifier().fit(X, y > 0).set_params(probability=True)
    with pytest.raises(InvalidInputError, match="fit again"):
        model.predict_proba(X)


def test_arguments_of_the_wrong_kind_are_named():
    X, y = rows()
    with pytest.raises(InvalidInputError, match="kernel_params must be a dict"):
        KernelRidge(kernel="rbf", kernel_params=5).fit(X, y)
    with pytest.raises(InvalidInputError, match="dtype must be float32 or float64"):
        ridgefold.explain(n_samples=100, n_features=3, dtype=np.float16)
    with pytest.raises(InvalidInputError, match="gamma is an empty list"):
        ridgefold.explain(KernelRidgeCV(kernel="rbf", gamma=[]), n_samples=100, n_features=3)


@pytest.mark.parametrize("size", [1e20, 1e-20])
def test_cells_of_huge_or_tiny_float32_rows_are_those_of_ordinary_ones(size):
    X, y = rows(120)
    single = X.astype(np.float32)
    arguments = {"n_partitions": 2, "alpha": [0.1, 1.0], "clip": False}
    plain = PartitionedKernelRidge(kernel=[RBF(1.0), RBF(2.0)], **arguments).fit(single, y)
    scaled = PartitionedKernelRidge(kernel=[RBF(size), RBF(2 * size)], **arguments)
    found = scaled.fit(single * np.float32(size), y).predict(single * np.float32(size))
    np.testing.assert_allclose(found, plain.predict(single), rtol=1e-3, atol=1e-3)


def _die(item):
    import os

    os._exit(1)


def test_a_process_that_dies_is_a_lost_worker():
    with pytest.raises(WorkerLostError, match="fewer processes"):
        list(Processes(2).map(_die, [1, 2]))
