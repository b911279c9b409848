"""Settings for every test."""

from __future__ import annotations

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
