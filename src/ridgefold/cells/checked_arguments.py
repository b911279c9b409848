"""What users may ask of a partitioned model, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.cells.combine import COMBINERS, Combiner
from ridgefold.cells.cut import PARTITIONERS, Partitioner
from ridgefold.errors import InvalidInputError
from ridgefold.executors import Executor
from ridgefold.linalg.namespace import on_device
from ridgefold.options import Compute, cells_of, compute_of, refuse_name_of_paper
from ridgefold.options.cell_options import ALWAYS, EXACT
from ridgefold.planning import available_resources, device_named
from ridgefold.planning.cell_memory import WORK_BYTES
from ridgefold.runtime.executor_argument import executor_of

SMALLEST_BLOCK = 2e6
"""Bytes of new rows, or of kernel values, that are worked on at once, however small a budget is;
one that holds no fit in memory is for rows on disk, and changes nothing here."""


@dataclass(frozen=True)
class CellArguments:
    """The arguments of a partitioned model, checked, as the objects and numbers they stand for."""

    partitioner: Partitioner
    combiner: Combiner
    executor: Executor
    n_cells: int | None
    """None if it is to be chosen."""
    overlap: float
    tolerance: float
    refine: int | str | None
    shared: bool | None
    """Whether all cells share one pair of kernel and ridge; None if it is to be decided."""
    bias: bool
    coarse_model: bool
    """Whether a coarse model of all rows may be mixed in."""
    linear_part: str | None
    """"always", "auto" where held-out errors decide, or None."""
    device: str | None
    """Where cells are worked on, many at once; None for the processor."""
    memory_bytes: float
    """The memory that they may take there."""
    fixed: tuple[int, ...] = ()
    """Numbers of the columns that are not penalised, once the columns are known."""


def options_of(model: Any) -> CellArguments:
    """Check the arguments of a partitioned model, and turn them into objects and numbers."""
    asked, compute, device = cells_of(model), compute_of(model), model._device()
    executor = executor_of(compute.executor, compute.n_jobs, compute.verbose)
    _require_usable(device, executor, compute)
    partitioner = partitioner_of(model.partition)
    combiner = combiner_of(model.combine, model.partition, partitioner)
    refine = asked.refine if asked.refine in (None, EXACT) else int(asked.refine)
    if model._needs_held_out() and (refine is not None or not combiner.needs_space):
        raise InvalidInputError(
            f"{model._held_out_argument} needs held-out values of every cell, which there are with "
            f'combine="blend" or "route" and cells.refine=None, got combine={model.combine!r} and '
            f"cells.refine={refine!r}"
        )
    return CellArguments(
        partitioner=partitioner,
        combiner=combiner,
        executor=executor,
        n_cells=_n_cells(model.n_partitions),
        overlap=float(asked.overlap) if combiner.overlaps else 0.0,
        tolerance=float(asked.tolerance),
        refine=refine,
        shared=_shared(asked.tuning, model.combine, combiner, refine),
        bias=bool(model.fit_intercept),
        coarse_model=asked.coarse_model is not None,
        linear_part=_linear_part(asked.linear_part, combiner, refine),
        device=device,
        memory_bytes=device_bytes(device, model.memory_budget),
    )


def asks_for_columns(model: Any) -> bool:
    """Whether a model is to have unpenalised columns beside the bias."""
    fixed = getattr(model, "fixed", None)
    return fixed is not None and (isinstance(fixed, str) or np.size(fixed) > 0)


def device_bytes(device: str | None, memory_budget: Any) -> float:
    """What stacks of cells may take on a device: the half, as torch keeps what it has freed.

    Without a device, what blocks of predictions may take here, beside what is on the way.
    """
    if device is None:
        budget = available_resources(memory_budget).memory_bytes
        return math.inf if budget < WORK_BYTES else max(budget / 4, SMALLEST_BLOCK)
    return available_resources(memory_budget, device=device_named(device)).memory_bytes / 2


def _require_usable(device: str | None, executor: Executor, compute: Compute) -> None:
    """The device is here, and nobody else is to be busy beside it."""
    if device is None or executor.remote:  # then it is the workers that must have it
        return
    on_device(np.zeros(1), device)
    if executor.n_workers > 1:
        raise InvalidInputError(
            f"compute.device={device!r} works on many cells at once from one process, but "
            f"compute.n_jobs={compute.n_jobs!r} and compute.executor={compute.executor!r} ask for "
            "several: leave those out"
        )


def partitioner_of(partition: Any) -> Partitioner:
    if isinstance(partition, str) and partition in PARTITIONERS:
        return PARTITIONERS[partition]
    no_object = isinstance(partition, (str, type))
    if no_object or not hasattr(partition, "membership"):
        refuse_name_of_paper("partition", partition)
        raise InvalidInputError(
            f"partition must be one of {', '.join(PARTITIONERS)}, or a partitioner, got "
            f"{partition!r}"
        )
    partitioner: Partitioner = partition
    return partitioner


def combiner_of(combine: Any, partition: Any, partitioner: Partitioner) -> Combiner:
    if not isinstance(combine, str) or combine not in COMBINERS:
        raise InvalidInputError(f"combine must be one of {', '.join(COMBINERS)}, got {combine!r}")
    combiner = COMBINERS[combine]
    if combiner.needs_space and not partitioner.in_space:
        raise InvalidInputError(
            f'combine="{combine}" needs cells in space, but partition={partition!r} draws rows at '
            'random: use combine="average", or partition="tree"'
        )
    return combiner


def _n_cells(n_partitions: Any) -> int | None:
    if isinstance(n_partitions, str) and n_partitions == "auto":
        return None
    whole = isinstance(n_partitions, (int, np.integer)) and not isinstance(n_partitions, bool)
    if not whole or n_partitions < 1:
        raise InvalidInputError(
            f'n_partitions must be "auto" or a whole number >= 1, got {n_partitions!r}'
        )
    return int(n_partitions)


def _linear_part(asked: str | None, combiner: Combiner, refine: int | str | None) -> str | None:
    """A refined model, and a mean of cells, are what theory says of them without it."""
    if combiner.needs_space and refine is None:
        return asked
    if asked == ALWAYS:
        raise InvalidInputError(
            f'cells.linear_part="{ALWAYS}" is for cells that are fitted by themselves: use '
            'combine="blend" or "route" and cells.refine=None, or cells.linear_part="auto"'
        )
    return None


def _shared(tuning: str, combine: str, combiner: Combiner, refine: int | str | None) -> bool | None:
    if tuning == "cell" and combiner.scales_alpha:
        raise InvalidInputError(
            f'cells.tuning="cell" cannot be used with combine="{combine}": every cell needs the '
            'ridge that suits all rows; use tuning="shared"'
        )
    if tuning == "cell" and refine is not None:
        raise InvalidInputError(
            f"cells.refine={refine!r} needs one kernel and one ridge for all cells, but "
            'tuning="cell" chooses them in each: use tuning="shared"'
        )
    if tuning == "auto":
        return True if combiner.scales_alpha or refine is not None else None
    return tuning == "shared"
