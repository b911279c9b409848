"""Files that are damaged, cut off or made to mislead are refused with a typed error."""

from __future__ import annotations

import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from ridgefold import (
    CellOptions,
    Compute,
    KernelRidgeCV,
    MetricLearning,
    PartitionedLSSVMRegressor,
)
from ridgefold.errors import ModelFileError, TableError
from ridgefold.estimators.saving import pack_estimator, unpack_estimator
from ridgefold.storage import strict_json
from ridgefold.tables.table_stream import bytes_as_numbers
from ridgefold.tables.tables import open_table


def rows(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize(
    ("name", "value"),
    [("compute", {"executor": "tcp://127.0.0.1:1", "run_dir": "somewhere"}), ("memory_budget", 1)],
)
def test_a_model_file_cannot_say_where_work_is_done(name, value):
    contents = pack_estimator(PartitionedLSSVMRegressor(n_partitions=2).fit(*rows()))
    assert name not in contents["parameters"]
    contents["parameters"][name] = value
    with pytest.raises(ModelFileError, match=f"sets '{name}'"):
        unpack_estimator(contents)
    search = pack_estimator(KernelRidgeCV(alpha=[0.1, 1.0]).fit(*rows()))
    search["parameters"]["search"] = {"executor": "tcp://127.0.0.1:1"}
    with pytest.raises(ModelFileError, match="Search has no argument 'executor'"):
        unpack_estimator(search)


def test_a_loaded_model_has_the_defaults_of_all_that_says_how_to_work():
    fitted = PartitionedLSSVMRegressor(n_partitions=2).fit(*rows())
    fitted.set_params(compute=Compute(n_jobs=64, device="cuda"), memory_budget=1)
    contents = pack_estimator(fitted)
    assert not {"compute", "memory_budget"} & set(contents["parameters"])
    loaded = unpack_estimator(contents)
    assert (loaded.compute, loaded.memory_budget) == (None, "auto")


def test_options_of_the_model_are_kept_with_it():
    settings = {"cells": CellOptions(overlap=0.5), "metric": MetricLearning(groups=[[0, 1]])}
    fitted = PartitionedLSSVMRegressor(n_partitions=2, **settings).fit(*rows())
    loaded = unpack_estimator(pack_estimator(fitted))
    assert loaded.cells.get_params() == settings["cells"].get_params()
    assert loaded.metric.get_params() == settings["metric"].get_params()
    contents = pack_estimator(fitted)
    contents["parameters"]["cells"]["tolerance"] = 3.0
    with pytest.raises(ModelFileError, match=r"cells\.tolerance"):
        unpack_estimator(contents)
    contents["parameters"]["cells"] = "wide"
    with pytest.raises(ModelFileError, match=r"parameters.cells must hold options"):
        unpack_estimator(contents)


@pytest.mark.parametrize("text", [b'{"a":1e999}', b"[-1e999]"])
def test_numbers_too_large_for_a_float_are_no_metadata(text):
    with pytest.raises(ModelFileError, match="too large"):
        strict_json.loads(text, most_values=10)


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
