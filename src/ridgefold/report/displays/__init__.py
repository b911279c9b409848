"""Figures of fitted models, in the manner of scikit-learn's displays."""

from ridgefold.report.displays.cells import CellsDisplay
from ridgefold.report.displays.confusion import ConfusionDisplay
from ridgefold.report.displays.coverage import CoverageDisplay
from ridgefold.report.displays.cv_surface import CVSurfaceDisplay
from ridgefold.report.displays.effect_curve import EffectCurveDisplay
from ridgefold.report.displays.effects import EffectsDisplay
from ridgefold.report.displays.held_out import HeldOutDisplay
from ridgefold.report.displays.importance import ImportanceDisplay
from ridgefold.report.displays.length_scales import LengthScalesDisplay
from ridgefold.report.displays.reliability import ReliabilityDisplay
from ridgefold.report.displays.spectrum import SpectrumDisplay

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
]
