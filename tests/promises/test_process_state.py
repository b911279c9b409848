"""What belongs to the whole process is afterwards as it was, whatever several threads have done."""

from __future__ import annotations

import copy
import decimal
import gc
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import matplotlib as mpl
import numpy as np
import pytest
import threadpoolctl

from promised_models import CASES, X_NEW, outputs
from ridgefold import Compute, KernelRidge, KernelRidgeCV, LSSVMClassifierCV
from ridgefold.errors import ConditionWarning, SingularSystemWarning
from ridgefold.report import write_report

WORKERS = 8


def process_state():
    """Everything of the process that a library could change for others."""
    return {
        "filters of warnings": list(warnings.filters),
        "shown warnings": (warnings.showwarning, warnings.formatwarning),
        "errors of NumPy": np.geterr(),
        "printing of NumPy": repr(np.get_printoptions()),
        "global generator of NumPy": repr(np.random.get_state()),  # noqa: NPY002
        "global generator": hash(random.getstate()),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "mask of new files": _mask(),
        "signals": {n: signal.getsignal(n) for n in signal.valid_signals()},
        "locale": locale.setlocale(locale.LC_ALL),
        "decimals": repr(decimal.getcontext()),
        "logging": (logging.root.level, list(logging.root.handlers), logging.root.manager.disable),
        "collection of garbage": (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
        "hooks": (sys.excepthook, sys.displayhook, sys.stdout, sys.stderr, threading.excepthook),
        "depth of calls": sys.getrecursionlimit(),
        "switching of threads": sys.getswitchinterval(),
        "settings of matplotlib": copy.copy(dict(mpl.rcParams)),
        "threads of libraries": {
            each["filepath"]: each["num_threads"] for each in threadpoolctl.threadpool_info()
        },
    }


def _mask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def in_threads(call):
    """What eight threads give that start together."""
    gate = Barrier(WORKERS)

    def wait_and_call(number):
        gate.wait()
        return call(number)

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(wait_and_call, range(WORKERS)))


@pytest.mark.parametrize("name", CASES)
def test_fits_in_threads_leave_the_process_as_it_was(name):
    outputs(CASES[name].fitted())  # what is imported late is there
    before = process_state()
    in_threads(lambda _: outputs(CASES[name].fitted()))
    after = process_state()
    assert {what for what in before if before[what] != after[what]} == set()


def test_reports_in_threads_leave_the_process_as_it_was(tmp_path):
    model = CASES["LSSVMClassifierCV"].fitted()
    write_report(model, tmp_path / "first.html")
    before = process_state()
    in_threads(lambda number: write_report(model, tmp_path / f"{number}.html"))
    after = process_state()
    assert {what for what in before if before[what] != after[what]} == set()
    pages = {(tmp_path / f"{number}.html").read_bytes() for number in range(WORKERS)}
    assert len(pages) == 1


def test_scores_of_scikit_learn_in_threads_leave_the_process_as_it_was():
    X, y = CASES["KernelRidgeCV"].fitted().X_fit_[:24], np.arange(24.0)
    labels = np.arange(24) % 8

    def fit(number):
        if number % 2:
            # A class that is never predicted has no precision.
            return LSSVMClassifierCV([0.1], gamma=1.0, cv=3, scoring="precision_macro").fit(
                X, labels
            )
        return KernelRidgeCV([0.1, 1.0], gamma=1.0, cv=4, scoring="r2").fit(X, y)

    fit(0), fit(1)
    before = process_state()
    in_threads(fit)
    after = process_state()
    assert {what for what in before if before[what] != after[what]} == set()


def singular_fit():
    return KernelRidge(0.0).fit(np.ones((12, 2)), np.arange(12.0))


def test_warnings_of_fits_in_threads_are_all_given():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = in_threads(lambda _: singular_fit())
    assert [each.category for each in caught] == [SingularSystemWarning] * WORKERS
    assert all(model.run_record_.steps[-1].warnings for model in models)


def test_a_warning_names_the_line_that_called_the_library():
    with pytest.warns(SingularSystemWarning) as caught:
        singular_fit()
    assert caught[0].filename == __file__


def test_kernels_in_threads_say_no_more_than_one_after_the_other():
    X, y = X_NEW, np.random.default_rng(0).standard_normal(len(X_NEW))
    for executor in ("serial", "threads"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConditionWarning)
            KernelRidgeCV(
                [1e-15, 1.0], gamma=[1e-4, 1.0], cv=4, compute=Compute(executor=executor, n_jobs=2)
            ).fit(X, y)
