"""Models of all rows at once: fit as planned, predict, compress, leave rows out."""

from ridgefold.exact.compress import Compressed, compress
from ridgefold.exact.fit import run_fit
from ridgefold.exact.predict import predict_dual, predict_primal

__all__ = [
    "Compressed",
    "compress",
    "predict_dual",
    "predict_primal",
    "run_fit",
]
