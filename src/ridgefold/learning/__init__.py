"""Learning the metric and the shape of a kernel from the gradient of its exact held-out error."""

from ridgefold.learning.criterion import Evaluation, HeldOutError
from ridgefold.learning.families import FAMILIES
from ridgefold.learning.metric import MAX_ROWS, LearnedMetric, learn_metric
from ridgefold.learning.transforms import TRANSFORMS

__all__ = [
    "FAMILIES",
    "MAX_ROWS",
    "TRANSFORMS",
    "Evaluation",
    "HeldOutError",
    "LearnedMetric",
    "learn_metric",
]
