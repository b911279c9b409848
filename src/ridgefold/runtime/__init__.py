"""Do what was planned: where it runs, what it took, and what to do when it fails."""

from ridgefold.runtime.meter import Meter
from ridgefold.runtime.resumable import finished_pieces, resumable_map
from ridgefold.runtime.step import MeasuredStep, Step, Work, foresee_all, perform_all

__all__ = [
    "MeasuredStep",
    "Meter",
    "Step",
    "Work",
    "finished_pieces",
    "foresee_all",
    "perform_all",
    "resumable_map",
]
