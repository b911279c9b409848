"""Run what was planned. Nothing is decided here."""

from ridgefold.engine.compress import Compressed, compress
from ridgefold.engine.cross_validate import run_cross_validation
from ridgefold.engine.fit import run_fit
from ridgefold.engine.meter import metered
from ridgefold.engine.predict import predict_dual, predict_primal
from ridgefold.engine.probe import probe_remainders, probe_spectrum

__all__ = [
    "Compressed",
    "compress",
    "metered",
    "predict_dual",
    "predict_primal",
    "probe_remainders",
    "probe_spectrum",
    "run_cross_validation",
    "run_fit",
]
