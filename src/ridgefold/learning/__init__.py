"""Learning the metric and the shape of a kernel from the gradient of its exact held-out error."""

from ridgefold.learning.criterion import Evaluation, HeldOutError
from ridgefold.learning.families import FAMILIES
from ridgefold.learning.metric import MAX_ROWS, learn_metric
from ridgefold.learning.transforms import TRANSFORMS
from ridgefold.records import LearnedMetric

__all__ = [
    "FAMILIES",
    "MAX_ROWS",
    "TRANSFORMS",
    "Evaluation",
    "HeldOutError",
    "LearnedMetric",
    "learn_metric",
]
