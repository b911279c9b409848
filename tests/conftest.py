"""Settings for every test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

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
