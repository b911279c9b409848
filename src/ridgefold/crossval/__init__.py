"""Ways to compute held-out predictions. A new method is one file and one line here."""

from ridgefold.crossval.anchored import Anchored
from ridgefold.crossval.banded import Banded
from ridgefold.crossval.block_recursive import BlockRecursive
from ridgefold.crossval.eigendecomposition import Eigendecomposition
from ridgefold.crossval.inverse_blocks import InverseBlocks
from ridgefold.crossval.krylov import Krylov
from ridgefold.crossval.low_rank import LowRank
from ridgefold.crossval.preconditioned import Preconditioned
from ridgefold.crossval.refit import Refit
from ridgefold.crossval.shared.base import (
    CrossValidation,
    HeldOut,
    Judge,
    Progress,
    no_progress,
)
from ridgefold.crossval.shared.deadline import Deadline
from ridgefold.crossval.shared.folds import Folds, leave_one_out, make_folds
from ridgefold.crossval.shared.weight_spread import (
    WeightSpread,
    least_training_share_of,
    share_of_training,
)

METHODS: dict[str, CrossValidation] = {
    method.name: method
    for method in (
        LowRank(),
        Krylov(),
        Preconditioned(),
        Anchored(),
        Banded(),
        Eigendecomposition(),
        InverseBlocks(),
        BlockRecursive(),
        Refit(),
    )
}

__all__ = [
    "METHODS",
    "CrossValidation",
    "Deadline",
    "Folds",
    "HeldOut",
    "Judge",
    "Progress",
    "WeightSpread",
    "least_training_share_of",
    "leave_one_out",
    "make_folds",
    "no_progress",
    "share_of_training",
]
