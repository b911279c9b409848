"""Fitted models as one HTML page, and as figures."""

from ridgefold.report.displays import (
    CellsDisplay,
    ConfusionDisplay,
    CoverageDisplay,
    CVSurfaceDisplay,
    EffectCurveDisplay,
    EffectsDisplay,
    HeldOutDisplay,
    ImportanceDisplay,
    LengthScalesDisplay,
    ReliabilityDisplay,
    SpectrumDisplay,
)
from ridgefold.report.write import write_report

__all__ = [
    "CVSurfaceDisplay",
    "CellsDisplay",
    "ConfusionDisplay",
    "CoverageDisplay",
    "EffectCurveDisplay",
    "EffectsDisplay",
    "HeldOutDisplay",
    "ImportanceDisplay",
    "LengthScalesDisplay",
    "ReliabilityDisplay",
    "SpectrumDisplay",
    "write_report",
]
