"""Kernel ridge regression and least-squares SVMs that choose, fit and explain themselves.

Names are imported when they are first used, so that ``import ridgefold`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "CVSurfaceDisplay": "ridgefold.report.displays.cv_surface",
    "CellOptions": "ridgefold.options",
    "CellsDisplay": "ridgefold.report.displays.cells",
    "Compute": "ridgefold.options",
    "CrossValidationPath": "ridgefold.estimators.cross_val_path",
    "EffectCurveDisplay": "ridgefold.report.displays.effect_curve",
    "EffectsDisplay": "ridgefold.report.displays.effects",
    "FitDiagnostics": "ridgefold.estimators.diagnostics",
    "HeldOutDisplay": "ridgefold.report.displays.held_out",
    "ImportanceDisplay": "ridgefold.report.displays.importance",
    "KernelRidge": "ridgefold.estimators.kernel_ridge",
    "KernelRidgeCV": "ridgefold.estimators.kernel_ridge_cv",
    "LSSVMClassifier": "ridgefold.estimators.ls_svm",
    "LSSVMClassifierCV": "ridgefold.estimators.ls_svm_cv",
    "LSSVMRegressor": "ridgefold.estimators.ls_svm",
    "LSSVMRegressorCV": "ridgefold.estimators.kernel_ridge_cv",
    "MarginalEffects": "ridgefold.estimators.effects_table",
    "MetricLearning": "ridgefold.options",
    "PartitionedKernelRidge": "ridgefold.estimators.partitioned",
    "PartitionedLSSVMClassifier": "ridgefold.estimators.partitioned",
    "PartitionedLSSVMRegressor": "ridgefold.estimators.partitioned",
    "RidgefoldClassifier": "ridgefold.automatic.classifier",
    "RidgefoldRegressor": "ridgefold.automatic.regressor",
    "LengthScalesDisplay": "ridgefold.report.displays.length_scales",
    "Search": "ridgefold.options",
    "TableDiagnosis": "ridgefold.tables.diagnosis",
    "calibrate": "ridgefold.planning.calibration",
    "cross_val_path": "ridgefold.estimators.cross_val_path",
    "diagnose": "ridgefold.tables.diagnose",
    "explain": "ridgefold.estimators.explain",
    "errors": "ridgefold.errors",
    "kernels": "ridgefold.kernels",
    "load": "ridgefold.estimators.saving",
    "report": "ridgefold.report",
    "write_report": "ridgefold.report.write",
}

__all__ = [
    "CVSurfaceDisplay",
    "CellOptions",
    "CellsDisplay",
    "Compute",
    "CrossValidationPath",
    "EffectCurveDisplay",
    "EffectsDisplay",
    "FitDiagnostics",
    "HeldOutDisplay",
    "ImportanceDisplay",
    "KernelRidge",
    "KernelRidgeCV",
    "LSSVMClassifier",
    "LSSVMClassifierCV",
    "LSSVMRegressor",
    "LSSVMRegressorCV",
    "LengthScalesDisplay",
    "MarginalEffects",
    "MetricLearning",
    "PartitionedKernelRidge",
    "PartitionedLSSVMClassifier",
    "PartitionedLSSVMRegressor",
    "RidgefoldClassifier",
    "RidgefoldRegressor",
    "Search",
    "TableDiagnosis",
    "calibrate",
    "cross_val_path",
    "diagnose",
    "errors",
    "explain",
    "kernels",
    "load",
    "report",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ridgefold' has no attribute {name!r}")
    module = importlib.import_module(_PUBLIC[name])
    return module if module.__name__ == f"ridgefold.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
