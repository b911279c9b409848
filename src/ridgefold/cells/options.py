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
from ridgefold.planning import available_resources, device_named
from ridgefold.planning.cell_memory import WORK_BYTES
from ridgefold.runtime.executor_argument import executor_of

EXACT = "exact"
SMALLEST_BLOCK = 2e6
"""Bytes of new rows, or of kernel values, that are worked on at once, however small a budget is;
one that holds no fit in memory is for rows on disk, and changes nothing here."""


@dataclass(frozen=True)
class Options:
    """The arguments of a partitioned model, as objects and numbers."""

    partitioner: Partitioner
    combiner: Combiner
    executor: Executor
    n_cells: int | None
    """None if it is to be chosen."""
    overlap: float
    loss: float
    refine: int | str | None
    shared: bool | None
    """Whether all cells share one pair of kernel and ridge; None if it is to be decided."""
    bias: bool
    backdrop: bool
    """Whether a coarse model of all rows may be mixed in."""
    device: str | None
    """Where cells are worked on, many at once; None for the processor."""
    memory_bytes: float
    """What they may take there."""


def options_of(model: Any) -> Options:
    """Check the arguments of an estimator."""
    device = model._device()
    executor = executor_of(model.executor, model.n_jobs, model.verbose)
    _require_usable(device, executor, model)
    partitioner = partitioner_of(model.partition)
    combiner = combiner_of(model.combine, model.partition, partitioner)
    refine = _refine(model.refine)
    if model._needs_held_out() and (refine is not None or not combiner.needs_space):
        raise InvalidInputError(
            f"{model._held_out_argument} needs held-out values of every cell, which there are with "
            f'combine="blend" or "route" and refine=None, got combine={model.combine!r} and '
            f"refine={model.refine!r}"
        )
    return Options(
        partitioner=partitioner,
        combiner=combiner,
        executor=executor,
        n_cells=_n_cells(model.n_partitions),
        overlap=_between(
            "overlap",
            model.overlap,
            "the share of a cell's thickness in which it overlaps a neighbour",
        )
        if combiner.overlaps
        else 0.0,
        loss=_between("loss", model.loss, "the share of accuracy that more cells may cost"),
        refine=refine,
        shared=_shared(model.tuning, model.combine, combiner, refine),
        bias=bool(model.fit_intercept),
        backdrop=_backdrop(model.backdrop),
        device=device,
        memory_bytes=device_bytes(device, model.memory_budget),
    )


def device_bytes(device: str | None, memory_budget: Any) -> float:
    """What stacks of cells may take on a device: the half, as torch keeps what it has freed.

    Without a device, what blocks of predictions may take here, beside what is on the way.
    """
    if device is None:
        budget = available_resources(memory_budget).memory_bytes
        return math.inf if budget < WORK_BYTES else max(budget / 4, SMALLEST_BLOCK)
    return available_resources(memory_budget, device=device_named(device)).memory_bytes / 2


def _require_usable(device: str | None, executor: Executor, model: Any) -> None:
    """The device is here, and nobody else is to be busy beside it."""
    if device is None or executor.remote:  # then it is the workers that must have it
        return
    on_device(np.zeros(1), device)
    if executor.n_workers > 1:
        raise InvalidInputError(
            f"device={device!r} works on many cells at once from one process, but n_jobs="
            f"{model.n_jobs!r} and executor={model.executor!r} ask for several: leave those out"
        )


def partitioner_of(partition: Any) -> Partitioner:
    if isinstance(partition, str) and partition in PARTITIONERS:
        return PARTITIONERS[partition]
    no_object = isinstance(partition, (str, type))
    if no_object or not hasattr(partition, "membership"):
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


def _between(name: str, value: Any, meaning: str) -> float:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise InvalidInputError(f"{name}, {meaning}, must be from 0 to 1, got {value!r}")
    return float(value)


def _backdrop(backdrop: Any) -> bool:
    if backdrop is None or (isinstance(backdrop, str) and backdrop == "auto"):
        return backdrop is not None
    raise InvalidInputError(f'backdrop must be "auto" or None, got {backdrop!r}')


def _refine(refine: Any) -> int | str | None:
    if refine is None or (isinstance(refine, str) and refine == EXACT):
        return refine
    whole = isinstance(refine, (int, np.integer)) and not isinstance(refine, bool)
    if not whole or refine < 1:
        raise InvalidInputError(
            f'refine must be None, "exact" or a number of steps >= 1, got {refine!r}'
        )
    return int(refine)


def _shared(tuning: Any, combine: str, combiner: Combiner, refine: int | str | None) -> bool | None:
    if not isinstance(tuning, str) or tuning not in ("auto", "cell", "shared"):
        raise InvalidInputError(f'tuning must be "auto", "cell" or "shared", got {tuning!r}')
    if tuning == "cell" and combiner.scales_alpha:
        raise InvalidInputError(
            f'tuning="cell" cannot be used with combine="{combine}": every cell needs the ridge '
            'that suits all rows; use tuning="shared"'
        )
    if tuning == "cell" and refine is not None:
        raise InvalidInputError(
            f'refine={refine!r} needs one kernel and one ridge for all cells, but tuning="cell" '
            'chooses them in each: use tuning="shared"'
        )
    if tuning == "auto":
        return True if combiner.scales_alpha or refine is not None else None
    return tuning == "shared"
