"""Importing the package is light, and its names are there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ridgefold


def test_import_loads_no_heavy_library():
    heavy = ["sklearn", "scipy", "torch", "numpy", "pandas", "matplotlib", "jinja2", "dask"]
    code = f"import ridgefold, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_fitting_numpy_rows_does_not_load_torch():
    code = (
        "import sys; from ridgefold import KernelRidge;"
        "KernelRidge(kernel='rbf').fit([[0.0], [1.0]], [0.0, 1.0]).predict([[2.0]]);"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", ridgefold.__all__)
def test_public_names_exist(name):
    assert getattr(ridgefold, name) is not None
    assert name in dir(ridgefold)


def test_unknown_names_are_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'KernelSVM'"):
        _ = ridgefold.KernelSVM
