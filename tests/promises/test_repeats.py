"""The same seed gives the same model."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from promised_models import CASES, X, outputs

TESTS = Path(__file__).resolve().parents[1]


def digest(names: list[str]) -> str:
    """All predictions of these cases, as one number."""
    total = hashlib.sha256()
    with threadpool_limits(1):
        for name in names:
            for part in outputs(CASES[name].fitted()):
                total.update(np.ascontiguousarray(part).tobytes())
    return total.hexdigest()


def test_the_same_seed_gives_the_same_bits():
    names = list(CASES)
    first = digest(names)
    assert digest(names) == first
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from promises.test_repeats import digest, CASES\nprint(digest(list(CASES)))"
    )
    one_thread = {f"{n}_NUM_THREADS": "1" for n in ("OPENBLAS", "OMP", "MKL")}
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", program, str(TESTS), *sys.path],
        env={**os.environ, **one_thread, "PYTHONHASHSEED": "123"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == first


@pytest.mark.parametrize("name", CASES)
def test_threads_and_workers_change_nothing_that_matters(name):
    case = CASES[name]
    with threadpool_limits(1):
        reference = outputs(case.fitted())
    variants = [(threads, None) for threads in (2,)]
    if "n_jobs" in case.make().get_params():
        variants += [(1, workers) for workers in (2, 3)]
    for threads, workers in variants:
        model = case.make()
        if workers is not None:
            model.set_params(compute__n_jobs=workers, compute__executor="threads")
        with threadpool_limits(threads):
            found = outputs(model.fit(X, case.targets))
        for ours, theirs in zip(found, reference, strict=True):
            largest = np.max(np.abs(theirs), initial=1.0)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * largest)
