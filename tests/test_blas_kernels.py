"""The kernel of OpenBLAS that tests ask for is the one that they run with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import blas_kernels
from ridgefold.planning.blas_kernels import loaded_kernels

KERNEL = blas_kernels.another()
needs_another = pytest.mark.skipif(KERNEL is None, reason="no other kernel of OpenBLAS here")


def run(kernel):
    """Collect this very file with another kernel."""
    return subprocess.run(  # noqa: S603 - this very interpreter
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--co",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            __file__,
        ],
        env={**os.environ, "OPENBLAS_CORETYPE": kernel},
        capture_output=True,
        text=True,
        check=False,
    )


@needs_another
def test_a_kernel_that_was_asked_for_is_loaded():
    assert KERNEL.lower() not in loaded_kernels()
    assert run(KERNEL).returncode == 0


@needs_another
def test_a_kernel_that_there_is_not_is_told():
    found = run("Pentium9")
    assert found.returncode == pytest.ExitCode.USAGE_ERROR
    assert "OPENBLAS_CORETYPE=Pentium9 asks for one kernel" in found.stderr
