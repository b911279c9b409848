"""A search gives the same bits wherever its kernels are worked on, and goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, TimeSeriesSplit

import ridgefold
from ridgefold import (
    Compute,
    KernelRidgeCV,
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
    Search,
)
from ridgefold.crossval import METHODS
from ridgefold.errors import (
    BudgetError,
    ConditionWarning,
    InvalidInputError,
    NumericalError,
    RunDirectoryMismatchError,
    UnsupportedInputError,
)
from ridgefold.executors import Caller, Processes, Serial, Threads
from ridgefold.kernels import RBF
from ridgefold.selection.search_place import search_executor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(120)
WEIGHTS = RNG.uniform(0.5, 2.0, 120)
LABELS = np.where(Y > 0, "high", "low")
SMALL = {"kernel_params": {"length_scale": [0.5, 1.0, 2.0]}, "alpha": [1e-3, 1e-1, 10.0]}


def same(one, other):
    """Choice, scores and model, bit for bit."""
    np.testing.assert_equal(one.best_params_, other.best_params_)
    scores = [k for k in one.cv_results_ if k.startswith(("split", "mean_test", "bound"))]
    for key in scores:
        np.testing.assert_array_equal(one.cv_results_[key], other.cv_results_[key])
    columns = one._held_out_columns(), other._held_out_columns()
    np.testing.assert_array_equal(*columns)
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    return len(scores) > 1


@pytest.mark.parametrize("search", ["full", "race"])
@pytest.mark.parametrize(
    ("executor", "jobs"), [("serial", None), ("threads", 3), ("processes", 2), ("auto", 2)]
)
def test_the_result_does_not_depend_on_the_executor(executor, jobs, search):
    settings = {"search__race": search, "alpha": [1e-4, 1e-2, 1.0]}
    reference = KernelRidgeCV().set_params(**settings).fit(X, Y)
    model = (
        KernelRidgeCV(compute=Compute(executor=executor, n_jobs=jobs))
        .set_params(**settings)
        .fit(X, Y)
    )
    assert same(model, reference)


@pytest.mark.parametrize(
    ("cls", "arguments", "weights"),
    [
        (LSSVMRegressorCV, {}, WEIGHTS),
        (LSSVMRegressorCV, {"search__weighted_scores": True, "search__race": "race"}, WEIGHTS),
        (KernelRidgeCV, {"scoring": "r2"}, None),
        (KernelRidgeCV, {"scoring": lambda y, p: -np.max(np.abs(y - p))}, None),
        (KernelRidgeCV, {"scoring": get_scorer("r2")}, WEIGHTS),
        (KernelRidgeCV, {"cv": "loo"}, None),
        (KernelRidgeCV, {"cv": TimeSeriesSplit(3)}, None),
        (KernelRidgeCV, {"search__one_standard_error": True}, None),
    ],
)
def test_every_kind_of_search_runs_in_threads(cls, arguments, weights):
    reference = cls().set_params(**SMALL, **arguments).fit(X, Y, sample_weight=weights)
    model = cls().set_params(**SMALL, **arguments, compute__executor="threads", compute__n_jobs=2)
    assert same(model.fit(X, Y, sample_weight=weights), reference)


@pytest.mark.parametrize("search", ["full", "race"])
def test_classes_and_several_targets(search):
    reference = LSSVMClassifierCV(search=Search(race=search)).set_params(**SMALL).fit(X, LABELS)
    model = LSSVMClassifierCV(
        search=Search(race=search), compute=Compute(executor="threads", n_jobs=2)
    ).set_params(**SMALL)
    assert same(model.fit(X, LABELS), reference)
    both = np.column_stack([Y, X[:, 2]])
    reference = KernelRidgeCV(search=Search(alpha_per_target=True)).set_params(**SMALL).fit(X, both)
    model = KernelRidgeCV(
        search=Search(alpha_per_target=True), compute=Compute(executor="threads", n_jobs=2)
    ).set_params(**SMALL)
    assert same(model.fit(X, both), reference)


def test_without_workers_the_caller_searches():
    assert isinstance(search_executor(KernelRidgeCV()), Caller)
    assert isinstance(search_executor(KernelRidgeCV(compute=Compute(n_jobs=1))), Caller)
    assert isinstance(search_executor(KernelRidgeCV(compute=Compute(executor="serial"))), Serial)
    assert isinstance(search_executor(KernelRidgeCV(compute=Compute(n_jobs=2))), Processes)
    assert isinstance(
        search_executor(KernelRidgeCV(compute=Compute(executor="threads", n_jobs=2))), Threads
    )


# -- run directories ---------------------------------------------------------------------


def test_finished_kernels_are_not_computed_again(tmp_path, monkeypatch):
    reference = KernelRidgeCV().set_params(**SMALL).fit(X, Y)
    first = KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**SMALL).fit(X, Y)
    assert same(first, reference)
    files = sorted((tmp_path / "kernels").glob("*.piece"))
    assert len(files) == 3
    kept = {path: path.stat().st_ino for path in files[:2]}
    files[2].unlink()
    again = (
        KernelRidgeCV(compute=Compute(run_dir=tmp_path, executor="threads", n_jobs=2))
        .set_params(**SMALL)
        .fit(X, Y)
    )
    assert same(again, reference)
    assert all(path.stat().st_ino == inode for path, inode in kept.items())
    assert files[2].exists()


def test_a_damaged_kernel_is_computed_again(tmp_path):
    reference = KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**SMALL).fit(X, Y)
    victim = next((tmp_path / "kernels").glob("*.piece"))
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert same(
        KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**SMALL).fit(X, Y), reference
    )
    assert victim.read_bytes()[-1] == whole[-1]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"alpha": [1.0]}, "alpha was"),
        ({"fit_intercept": True}, "fit_intercept"),
        ({"cv": 4}, "folds"),
        ({"scoring": "r2"}, "scoring"),
    ],
)
def test_a_run_of_other_settings_is_refused_by_name(change, named, tmp_path):
    KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**SMALL).fit(X, Y)
    with pytest.raises(RunDirectoryMismatchError, match=named):
        KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**{**SMALL, **change}).fit(X, Y)


def test_a_run_of_other_rows_is_refused_by_name(tmp_path):
    KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**SMALL).fit(X, Y)
    with pytest.raises(RunDirectoryMismatchError, match="the values of X"):
        KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**SMALL).fit(X + 1, Y)
    with pytest.raises(RunDirectoryMismatchError, match="the values of y"):
        KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**SMALL).fit(X, Y + 1)


def test_what_changes_no_kernel_may_change(tmp_path):
    KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**SMALL).fit(X, Y)
    inodes = {path: path.stat().st_ino for path in (tmp_path / "kernels").glob("*.piece")}
    KernelRidgeCV(
        intervals=None, cv=KFold(5), compute=Compute(run_dir=tmp_path, verbose=0)
    ).set_params(**SMALL).fit(X, Y)
    assert {path: path.stat().st_ino for path in inodes} == inodes


def test_sparse_rows_are_kept_by_their_values(tmp_path):
    rows = scipy.sparse.csr_array(np.where(X > 0, X, 0.0))
    model = KernelRidgeCV(kernel="linear", alpha=[0.1, 1.0], compute=Compute(run_dir=tmp_path)).fit(
        rows, Y
    )
    with pytest.raises(RunDirectoryMismatchError, match="X data"):
        model.fit(2.0 * rows, Y)


def test_a_killed_search_goes_on_to_the_same_model(tmp_path):
    program = textwrap.dedent(
        f"""
        import os, signal, sys
        sys.path[:0] = {sys.path!r}
        from ridgefold.storage.run_directory import RunDirectory
        from estimators.test_search_place import SMALL, X, Y, Compute, KernelRidgeCV
        original = RunDirectory.record
        def record(self, name, sha256):
            original(self, name, sha256)
            if name.startswith("kernels/"):
                os.kill(os.getpid(), signal.SIGKILL)
        RunDirectory.record = record
        KernelRidgeCV(compute=Compute(run_dir={str(tmp_path)!r})).set_params(**SMALL).fit(X, Y)
        """
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603
    assert ended.returncode == -signal.SIGKILL
    (first,) = (tmp_path / "kernels").glob("*.piece")
    inode = first.stat().st_ino
    model = KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**SMALL).fit(X, Y)
    assert same(model, KernelRidgeCV().set_params(**SMALL).fit(X, Y))
    assert first.stat().st_ino == inode
    assert os.path.getsize(first) > 0


# -- limits and errors -------------------------------------------------------------------


def test_as_many_kernels_run_at_once_as_the_budget_holds(monkeypatch):
    seen = []
    original = Threads.map

    def watched(self, task, items, keys=None):
        seen.append((self.n_workers, items[0].plan))
        return original(self, task, items, keys)

    monkeypatch.setattr(Threads, "map", watched)
    fit = {**SMALL, "compute__executor": "threads", "search__method": "eigendecomposition"}
    KernelRidgeCV(compute=Compute(n_jobs=3)).set_params(**fit).fit(X, Y)
    peak = seen[0][1].cost.peak_bytes
    assert seen[0][0] == 3
    KernelRidgeCV(memory_budget=2.5 * peak, compute=Compute(n_jobs=3)).set_params(**fit).fit(X, Y)
    assert seen[1][0] == 2
    with pytest.raises(BudgetError, match="no method fits memory_budget"):
        KernelRidgeCV(memory_budget=0.5 * peak, compute=Compute(n_jobs=3)).set_params(**fit).fit(
            X, Y
        )


@pytest.mark.parametrize("executor", ["auto", "threads"])
def test_a_kernel_without_memory_that_cannot_do_with_less_is_a_budget_error(executor, monkeypatch):
    def fail(self, *arguments):
        raise MemoryError

    monkeypatch.setattr(type(METHODS["refit"]), "prepare", fail)
    with pytest.raises(BudgetError, match="the system gave no memory for refit"):
        KernelRidgeCV(
            search=Search(method="refit"), compute=Compute(executor=executor, n_jobs=1)
        ).set_params(**SMALL).fit(X, Y)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_errors_of_a_kernel_reach_the_caller_as_they_are(executor):
    kernels = {"kernel": "polynomial", "kernel_params": {"degree": [2, 3]}, "alpha": [1.0]}
    with pytest.raises(NumericalError, match="overflow"):
        KernelRidgeCV(compute=Compute(executor=executor, n_jobs=2)).set_params(**kernels).fit(
            1e120 * X, Y
        )


def test_warnings_of_ill_conditioned_pairs_stay_unsaid_and_filters_stay_as_they_were():
    before = list(warnings.filters)
    tiny = {
        "kernel_params": {"length_scale": [20.0, 40.0]},
        "alpha": [1e-14, 1.0],
        "search__method": "refit",
    }
    KernelRidgeCV(compute=Compute(executor="threads", n_jobs=2)).set_params(**tiny).fit(X, Y)
    assert warnings.filters == before
    with pytest.warns(ConditionWarning):
        warnings.warn("still said", ConditionWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"compute__executor": "cloud"}, "executor must be one of auto"),
        ({"compute__executor": 3}, "executor must be one of auto"),
        ({"compute__n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"compute__n_jobs": 1.5}, "n_jobs must be a whole number"),
        ({"compute__run_dir": 3}, "compute.run_dir must be a path, got 3"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        KernelRidgeCV().set_params(**SMALL, **arguments).fit(X, Y)


def test_a_kernel_of_your_own_cannot_be_continued(tmp_path):
    def product(a, b):
        return a @ b.T

    rows = {"kernel": product, "alpha": [1.0]}
    with pytest.raises(UnsupportedInputError, match="run_dir cannot be used with kernel="):
        KernelRidgeCV(compute=Compute(run_dir=tmp_path)).set_params(**rows).fit(X, Y)
    reference = KernelRidgeCV().set_params(**rows).fit(X, Y)
    assert same(
        KernelRidgeCV(compute=Compute(executor="threads")).set_params(**rows).fit(X, Y), reference
    )


def test_arrays_of_other_libraries_stay_in_this_process():
    torch = pytest.importorskip("torch")
    rows, targets = torch.asarray(X), torch.asarray(Y)
    with pytest.raises(UnsupportedInputError, match="take NumPy arrays"):
        KernelRidgeCV(compute=Compute(executor="threads")).set_params(**SMALL).fit(rows, targets)


# -- words -------------------------------------------------------------------------------


def test_the_explanation_says_where_and_what_moves():
    model = KernelRidgeCV(compute=Compute(executor="threads", n_jobs=2)).set_params(**SMALL)
    before = ridgefold.explain(model, n_samples=500, n_features=3)
    assert "├─ on 2 threads of this process, one kernel a task\n" in str(before)
    after = model.fit(X, Y).explain()
    assert "├─ on 2 threads of this process, one kernel a task\n├─ moves nothing\n" in str(after)
    assert "2 threads of this process" in after._repr_html_()
    assert "one kernel a task" not in str(KernelRidgeCV().set_params(**SMALL).fit(X, Y).explain())


def test_a_model_file_keeps_no_folder(tmp_path):
    model = (
        KernelRidgeCV(compute=Compute(run_dir=tmp_path / "run", executor="threads"))
        .set_params(**SMALL)
        .fit(X, Y)
    )
    model.save(tmp_path / "m.ridgefold")
    again = ridgefold.load(tmp_path / "m.ridgefold")
    assert again.compute is None
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


class OneOfAKind:
    """Like the client of a cluster: nothing can copy it."""

    def __deepcopy__(self, memo):
        raise TypeError("cannot be copied")


@pytest.mark.parametrize(
    "model",
    [KernelRidgeCV, LSSVMClassifierCV, PartitionedLSSVMRegressor, PartitionedLSSVMClassifier],
)
def test_clones_share_the_client_of_a_cluster(model):
    client = OneOfAKind()
    twin = clone(model(kernel=RBF(2.0), compute=Compute(executor=client)))
    assert twin.compute.executor is client
    assert twin.kernel == RBF(2.0)
