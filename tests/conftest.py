"""Settings for every test."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from blas_kernels import what_is_wrong

# Times vary with the machine; examples are drawn from a fixed seed so that runs agree.
settings.register_profile(
    "ridgefold",
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ridgefold")

# Plans follow the built-in rates, so that they are the same on every machine.
os.environ.setdefault("RIDGEFOLD_RATES", "default")


def pytest_configure(config: pytest.Config) -> None:
    """A kernel of OpenBLAS that was asked for is the one that is tested."""
    asked = os.environ.get("OPENBLAS_CORETYPE")
    if asked and (reason := what_is_wrong(asked)):
        raise pytest.UsageError(reason)
