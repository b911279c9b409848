"""What users may ask beside the model itself: arguments that belong together, as objects.

An estimator has a few of these objects as arguments, so that a name means the same in every class.
"""

from ridgefold.options.base import OptionObject
from ridgefold.options.cell_options import CellOptions
from ridgefold.options.compute import Compute
from ridgefold.options.metric_learning import MetricLearning
from ridgefold.options.search import Search, check_method, refuse_name_of_paper
from ridgefold.options.taking import (
    LEARNED,
    OPTION_CLASSES,
    TakesOptions,
    cells_of,
    compute_of,
    flat_arguments,
    metric_of,
    search_of,
)

__all__ = [
    "LEARNED",
    "OPTION_CLASSES",
    "CellOptions",
    "Compute",
    "MetricLearning",
    "OptionObject",
    "Search",
    "TakesOptions",
    "cells_of",
    "check_method",
    "compute_of",
    "flat_arguments",
    "metric_of",
    "refuse_name_of_paper",
    "search_of",
]
