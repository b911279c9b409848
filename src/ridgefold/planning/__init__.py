"""Decide how to compute something from shapes alone, and say why."""

from ridgefold.planning.calibration import calibrate
from ridgefold.planning.cell_memory import CellMemory
from ridgefold.planning.cell_steps import CellPlans
from ridgefold.planning.choose import plan_cross_validation, plan_fit, plan_only
from ridgefold.planning.devices import device_named, device_of
from ridgefold.planning.explain import Explanation, explain_plans, explain_run
from ridgefold.planning.resources import available_resources, parse_memory
from ridgefold.planning.shared_files import InMemory, SharedFiles, explain_on_workers

__all__ = [
    "CellMemory",
    "CellPlans",
    "Explanation",
    "InMemory",
    "SharedFiles",
    "available_resources",
    "calibrate",
    "device_named",
    "device_of",
    "explain_on_workers",
    "explain_plans",
    "explain_run",
    "parse_memory",
    "plan_cross_validation",
    "plan_fit",
    "plan_only",
]
