"""Several threads or processes use one model at once."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from promised_models import CASES, outputs

TESTS = Path(__file__).resolve().parents[1]
WORKERS = 8


def all_at_once(call):
    """The results of eight threads that start together."""
    gate = Barrier(WORKERS)

    def wait_and_call(_: int):
        gate.wait()
        return call()

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(wait_and_call, range(WORKERS)))


@pytest.mark.parametrize("name", CASES)
def test_eight_threads_predict_what_one_predicts(name):
    model = CASES[name].fitted()
    alone = outputs(model)
    for found in all_at_once(lambda: outputs(model)):
        for ours, theirs in zip(found, alone, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", CASES)
def test_threads_that_fit_at_once_do_not_disturb_each_other(name):
    case = CASES[name]
    alone = outputs(case.fitted())
    for found in all_at_once(lambda: outputs(case.fitted())):
        for ours, theirs in zip(found, alone, strict=True):
            largest = np.max(np.abs(theirs), initial=1.0)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * largest)


PROGRAM = """
import sys
sys.path[:0] = sys.argv[2:]
import multiprocessing
import numpy as np
from promised_models import CASES, X_NEW, outputs

NAMES = ["KernelRidge", "LSSVMClassifierCV", "PartitionedKernelRidge"]

def child(pair):
    name, model = pair
    return outputs(model), outputs(CASES[name].fitted())

if __name__ == "__main__":
    models = {name: CASES[name].fitted() for name in NAMES}
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        for (name, model), found in zip(models.items(), pool.map(child, models.items())):
            for parts in found:
                for ours, theirs in zip(parts, outputs(model), strict=True):
                    largest = np.max(np.abs(theirs))
                    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * largest)
    print("alike")
"""


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_children_predict_and_fit(way, tmp_path):
    if way == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system cannot fork")
    script = tmp_path / "children.py"
    script.write_text(PROGRAM, encoding="utf-8")
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", str(script), way, str(TESTS), *sys.path],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert found.stdout.strip() == "alike", found.stderr
