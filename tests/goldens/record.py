"""Write expected.json: `python -m goldens.record` in the folder of the tests.

Everything is fitted several times: by the BLAS kernels of four processors, and with the last
digits of the columns shaken. What differs between these runs is rounding, so each number gets a
band of three times what it differed by, and at least what `bands.py` says; each choice, the set of
what was chosen. Other processors than these four round no worse.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from goldens.bands import expectation
from goldens.fits import cases, facts

HERE = Path(__file__).parent
EXPECTED = HERE / "expected.json"
RUNS = (
    ("Haswell", 0),
    ("Sandybridge", 0),
    ("Nehalem", 0),
    ("SkylakeX", 0),
    ("Haswell", 1),
    ("Haswell", 2),
)
"""Kernels of OpenBLAS, and seeds by which the last digits are shaken."""


def measured(shaken: int, only: str) -> dict[str, Any]:
    """All facts of this process."""
    wanted = [case for case in cases() if only in ": ".join(case)]
    return {": ".join(case): facts(*case, shaken) for case in wanted}


def _in_child(core: str, shaken: int, only: str) -> dict[str, Any]:
    settings = {
        "OPENBLAS_CORETYPE": core,
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "RIDGEFOLD_RATES": "default",
    }
    command = [sys.executable, "-m", "goldens.record", "--child", str(shaken), "--only", only]
    done = subprocess.run(  # noqa: S603
        command,
        env={**os.environ, **settings},
        cwd=HERE.parent,
        check=True,
        stdout=subprocess.PIPE,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="record what has this in its name anew")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        json.dump(measured(options.child, options.only), sys.stdout)
        return
    with ThreadPoolExecutor(options.workers) as pool:
        runs = list(pool.map(lambda run: _in_child(*run, options.only), RUNS))
    known = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for case in runs[0]:
        known[case] = expectation([run[case] for run in runs])
    lines = [
        f"{json.dumps(case)}: {json.dumps(known[case], allow_nan=False)}" for case in sorted(known)
    ]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
