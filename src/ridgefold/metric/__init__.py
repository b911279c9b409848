"""Learning the metric and the shape of a kernel from the gradient of its exact held-out error."""

from ridgefold.metric.criterion import Evaluation, HeldOutError
from ridgefold.metric.families import FAMILIES
from ridgefold.metric.metric import MAX_ROWS, learn_metric
from ridgefold.metric.metric_candidates import candidates
from ridgefold.metric.transforms import TRANSFORMS
from ridgefold.records import LearnedMetric, MetricCandidate

__all__ = [
    "FAMILIES",
    "MAX_ROWS",
    "TRANSFORMS",
    "Evaluation",
    "HeldOutError",
    "LearnedMetric",
    "MetricCandidate",
    "candidates",
    "learn_metric",
]
