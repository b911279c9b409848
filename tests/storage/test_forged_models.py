"""A model file decides nothing but what is predicted, and a forged one does no harm.

Files of every kind are changed by rules and signed anew (`forging`), and then used in all ways in
a process of its own (`forged_models`), which allows each of them two seconds of processor time and
300 MB, and no thread, process or connection. Each must end in a typed error, or be a model.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import forging
import ridgefold
from forging import FITTED, Forger, contents_of, nested_deeply, original, signed
from ridgefold import Compute, KernelRidge, PartitionedLSSVMRegressor
from ridgefold.errors import ModelFileError, UnsupportedInputError
from ridgefold.kernels import RBF, Linear, Polynomial

TESTS = Path(__file__).resolve().parents[1]
ALL = 5200
"""Forgeries of the full test,"""
SOME = 54
"""and of every run: two of each model."""
_PATIENCE = 1800.0
"""Seconds without a line of output after which a process counts as waiting for ever."""


def used(folder, first, count):
    """What became of forgeries; a process that dies of one is started again after it."""
    found, end = [], first + count
    while first < end:
        program = [sys.executable, str(TESTS / "forged_models.py"), str(folder)]
        ran = subprocess.run(  # noqa: S603 - our own program
            [*program, str(first), str(end - first)],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        begun = [line for line in lines if "begin" in line]
        done = [line for line in lines if "number" in line and "begin" not in line]
        assert begun, ran.stderr[-2000:]
        assert all(line["ended"].startswith("load, ") for line in lines if "whole" in line)
        found += done
        if len(done) < len(begun):  # beyond its processor time, or killed for memory
            found.append({**begun[-1], "ended": "", "bad": f"died: {ran.returncode} {ran.stderr}"})
        else:
            assert ran.returncode == 0, ran.stderr[-2000:]
        first = begun[-1]["begin"] + 1
    return found


def check(found, count):
    assert len(found) == count
    bad = [one for one in found if one["bad"]]
    assert not bad, json.dumps(bad[:3], indent=1)
    loaded = sum(one["ended"].startswith("load,") for one in found)
    # Else all that is tested is how files are refused.
    assert loaded > count / 8
    return loaded


def test_some_forged_files_end_in_typed_errors_or_models(tmp_path):
    check(used(tmp_path, 0, SOME), SOME)


@pytest.mark.full
@pytest.mark.parametrize("part", range(4))
def test_many_forged_files_end_in_typed_errors_or_models(part, tmp_path):
    count = ALL // 4
    check(used(tmp_path, 10_000 + part * count, count), count)


def changed(name, change, tmp_path):
    """Load the file of a model after a change of its document."""
    contents = original(name).copy()
    change(contents)
    path = tmp_path / "forged"
    path.write_bytes(signed(contents))
    return ridgefold.load(path)


def entry(value, *keys):
    """Walk {"dict": [[key, value], …]} and the fields of records by keys."""
    for key in keys:
        if "dict" in value:
            value = next(item for name, item in value["dict"] if name == key)
        else:
            value = value["record"]["fields"][key]
    return value


def put(contents, new, *keys):
    value = entry(contents.document["model"], *keys[:-1])
    if "dict" in value:
        value["dict"] = [[n, new if n == keys[-1] else item] for n, item in value["dict"]]
    else:
        value["record"]["fields"][keys[-1]] = new


@pytest.mark.parametrize("degree", [2**20, 1e300])
def test_a_degree_without_bound_takes_no_time(degree, tmp_path):
    kernel = {"kernel": {"name": "Polynomial", "degree": degree, "gamma": 1.0, "coef0": 1.0}}
    model = changed("wide", lambda c: put(c, kernel, "state", "kernel"), tmp_path)
    assert model.kernel_.feature_dimension(2**21) is None
    small = KernelRidge(0.1, kernel=Polynomial(degree, gamma=1e-9)).fit(np.zeros((3, 1)), [1, 2, 3])
    assert small.plan_.method != "primal"


def test_feature_spaces_are_counted_as_far_as_they_can_be_worked_in():
    assert Polynomial(3).feature_dimension(1 << 21) == 2**53
    assert (Polynomial(3) * Polynomial(3)).feature_dimension(1 << 20) == 2**53
    assert Polynomial(170).feature_dimension(1) == 171
    assert Polynomial(171).feature_dimension(1) is None
    assert (Polynomial(2) + Linear()).feature_dimension(3) == 13


def test_high_degrees_in_one_column_are_fitted_by_features():
    X = np.linspace(-0.9, 0.9, 300)[:, None]
    primal, dual = (
        KernelRidge(1.0, kernel=Polynomial(60, gamma=0.02), compute=Compute(solver=solver)).fit(
            X, np.cos(3 * X[:, 0])
        )
        for solver in ("primal", "cholesky")
    )
    np.testing.assert_allclose(primal.predict(X), dual.predict(X), atol=1e-10)


@pytest.mark.parametrize(
    ("name", "value", "keys"),
    [
        ("search", 2**63, ("state", "search", "n_splits")),
        ("search", -1, ("state", "search", "best_index")),
        ("search", 10**400, ("state", "search", "best_score")),
        ("search", {"float": "nan"}, ("state", "plan", "cost", "peak_bytes")),
        ("search", -1.0, ("state", "plan", "seconds")),
        ("ridge", "a", ("parameters", "alpha")),
        ("ridge", {"tuple": []}, ("parameters", "alpha")),
        ("cells", [["tree"]], ("parameters", "partition")),
        ("cells", "random", ("parameters", "partition")),
        ("cells", 3, ("parameters", "cells")),
        ("refined", {"dict": [["tolerance", 3]]}, ("parameters", "cells")),
        ("refined", {"dict": [["overlap", "wide"]]}, ("parameters", "cells")),
        ("table", 3, ("state", "fitted", "parameters", "metric")),
        ("table", {"dict": [["groups", "colour"]]}, ("state", "fitted", "parameters", "metric")),
        ("table", 3.5, ("state", "n_columns")),
        ("table", "a", ("state", "one_target")),
        ("table", {"dict": []}, ("state", "fitted")),
        ("table", 0.0, ("state", "columns", "columns")),
    ],
)
def test_values_beyond_what_is_declared_are_refused(name, value, keys, tmp_path):
    with pytest.raises(ModelFileError):
        changed(name, lambda c: put(c, value, *keys), tmp_path)


def test_offsets_whose_differences_leave_their_type_are_refused(tmp_path):
    def change(contents):
        offsets = contents.arrays["model/state/cells/offsets"]
        offsets[1:-1] = [2**62, -(2**63) + 2**61, -(2**62)]
        assert np.all(np.diff(offsets) > 0)  # modulo 2⁶⁴

    with pytest.raises(ModelFileError, match="do not fit together"):
        changed("cells", change, tmp_path)


def test_a_kernel_of_more_parts_than_nesting_allows_is_refused(tmp_path):
    def tree(depth):
        if depth == 0:
            return {"kernel": {"name": "Linear"}}
        return {"kernel": {"name": "Sum", "left": tree(depth - 1), "right": tree(depth - 1)}}

    assert changed("ridge", lambda c: put(c, tree(6), "parameters", "kernel"), tmp_path)
    with pytest.raises(ModelFileError, match="at most 200 parts"):
        changed("ridge", lambda c: put(c, tree(8), "parameters", "kernel"), tmp_path)


def test_sparse_rows_of_more_columns_than_files_hold_are_not_saved(tmp_path):
    places, starts = np.array([0, 5, 1 << 24], np.int32), np.arange(4, dtype=np.int32)
    X = scipy.sparse.csr_array((np.ones(3), places, starts), shape=(3, (1 << 24) + 1))
    model = KernelRidge(0.1, kernel=Linear()).fit(X, [1.0, 2.0, 3.0])
    with pytest.raises(UnsupportedInputError, match="at most 16,777,216"):
        model.save(tmp_path / "m")


def test_an_argument_that_no_loaded_model_could_read_is_left_out_with_a_word(tmp_path):
    model = KernelRidge(0.1, kernel=RBF(1.0)).fit(forging.X, forging.Y)
    model.set_params(fit_intercept=["yes"])
    with pytest.warns(ridgefold.errors.LeftOutWarning, match="fit_intercept"):
        model.save(tmp_path / "m")
    assert ridgefold.load(tmp_path / "m").fit_intercept is False


def test_the_forger_changes_what_it_says(tmp_path):
    for seed in range(40):
        name = list(FITTED)[seed % len(FITTED)]
        forger = Forger(seed)
        with nested_deeply():
            assert contents_of(forger.forged(name)).document["written_by"]
        assert forger.changes


def test_every_argument_of_an_estimator_is_of_the_work_or_of_the_model():
    default = PartitionedLSSVMRegressor().get_params(deep=False)
    fitted = PartitionedLSSVMRegressor(n_partitions=2, compute=Compute(n_jobs=7, verbose=0)).fit(
        forging.X, forging.Y
    )
    contents = ridgefold.estimators.saving.pack_estimator(fitted)
    missing = set(default) - set(contents["parameters"]) - set(contents["left_out"])
    assert missing == {"compute", "memory_budget"}
