"""What folders hand to each other: frozen dataclasses without behaviour."""

from ridgefold.records.cell_search import CELL_SEARCH, CellSearch
from ridgefold.records.columns import (
    CategoryColumn,
    CodedColumn,
    ColumnRecord,
    DateColumn,
    DatePart,
    NumberColumn,
    NumberText,
    OrderedColumn,
    TableColumns,
)
from ridgefold.records.effects import EffectCurve
from ridgefold.records.fixed_effects import FixedEffects
from ridgefold.records.importances import Importances
from ridgefold.records.intervals import Intervals
from ridgefold.records.kernel_path import KernelPath
from ridgefold.records.leaderboard import Attempt
from ridgefold.records.metric import LearnedMetric, LearningStep, MetricCandidate
from ridgefold.records.model import FittedModel
from ridgefold.records.partition import (
    Backdrop,
    Cells,
    CellTrial,
    FittedBatch,
    Grid,
    LinearPart,
    LocalModels,
    Membership,
    Slopes,
)
from ridgefold.records.plan import Cost, Plan, Rejection, Resources, RunRecord, StepRecord
from ridgefold.records.problem import FoldShape, Problem
from ridgefold.records.stack import Stack, StackMember
from ridgefold.records.warps import Quantile, SignedLog, Standardise, Warp

__all__ = [
    "CELL_SEARCH",
    "Attempt",
    "Backdrop",
    "CategoryColumn",
    "CellSearch",
    "CellTrial",
    "Cells",
    "CodedColumn",
    "ColumnRecord",
    "Cost",
    "DateColumn",
    "DatePart",
    "EffectCurve",
    "FittedBatch",
    "FittedModel",
    "FixedEffects",
    "FoldShape",
    "Grid",
    "Importances",
    "Intervals",
    "KernelPath",
    "LearnedMetric",
    "LearningStep",
    "LinearPart",
    "LocalModels",
    "Membership",
    "MetricCandidate",
    "NumberColumn",
    "NumberText",
    "OrderedColumn",
    "Plan",
    "Problem",
    "Quantile",
    "Rejection",
    "Resources",
    "RunRecord",
    "SignedLog",
    "Slopes",
    "Stack",
    "StackMember",
    "Standardise",
    "StepRecord",
    "TableColumns",
    "Warp",
]
