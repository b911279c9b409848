"""Models of all rows at once: fit as planned, predict, compress, leave rows out."""

from ridgefold.exact.compress import Compressed, compress
from ridgefold.exact.fit import Fit, SystemWork
from ridgefold.exact.predict import predict_dual, predict_primal, predict_solved

__all__ = [
    "Compressed",
    "Fit",
    "SystemWork",
    "compress",
    "predict_dual",
    "predict_primal",
    "predict_solved",
]
