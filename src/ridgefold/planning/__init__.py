"""Decide how to compute something from shapes alone, and say why."""

from ridgefold.planning.choose import plan_cross_validation, plan_fit
from ridgefold.planning.resources import available_resources, parse_memory

__all__ = ["available_resources", "parse_memory", "plan_cross_validation", "plan_fit"]
