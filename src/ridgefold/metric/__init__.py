"""Learning the metric and the shape of a kernel from the gradient of its exact held-out error."""

from ridgefold.metric.criterion import Evaluation, HeldOutError
from ridgefold.metric.families import FAMILIES
from ridgefold.metric.metric import MAX_ROWS, learn_metric
from ridgefold.metric.transforms import TRANSFORMS
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
