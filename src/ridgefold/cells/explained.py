"""What a fit in cells would do, from shapes alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ridgefold.cells.average_choice import first_number
from ridgefold.cells.cell_grid import families_asked
from ridgefold.cells.cut import Guided
from ridgefold.cells.linear_part import looks_for_linear_part
from ridgefold.cells.options import options_of
from ridgefold.errors import BudgetError
from ridgefold.options import metric_of
from ridgefold.planning import (
    CellMemory,
    CellPlans,
    Explanation,
    explain_cells,
    explain_plans,
)
from ridgefold.records import CELL_SEARCH, Plan, Problem, Resources


def explain_cell_fit(
    model: Any, fit: Problem, resources: Resources, n_workers: int | None
) -> Explanation:
    """The steps of a partitioned fit: on a cluster of so many workers, or on this machine.

    If their number is not given, it is that of the cluster which the model names as its executor,
    if it names one.
    """
    executor = options_of(model).executor
    if n_workers is None and executor.remote:
        n_workers = executor.workers_now()
    if n_workers is None:
        return explain_plans(_cell_plans(model, fit, resources))
    slopes = model.partition == "tree" and model.combine != "average"
    slopes = slopes and model.n_partitions != 1
    return explain_cells(fit, n_workers, resources, slopes=slopes)


def _cell_plans(
    model: Any, fit: Problem, resources: Resources
) -> list[tuple[str, Plan | Exception]]:
    """The steps of a partitioned fit on this machine, with as many cells as there are likely to be.

    Where their number is chosen, that is as if the first size that is tried were taken.
    """
    options, n = options_of(model), fit.n_rows
    families, chooses_pair = families_asked(model, fit.n_columns)
    apart = options.shared is False or (options.shared is None and n <= CELL_SEARCH.many_rows)
    choose = apart and chooses_pair
    held_out = choose or model._needs_held_out()
    memory = CellMemory(fit, options.overlap > 0, choose, held_out)
    limits = CELL_SEARCH
    if options.device is None:
        try:
            limits = memory.search(resources.memory_bytes)
        except BudgetError as refusal:
            return [("fitting cells", refusal)]
    plans = CellPlans(
        fit,
        replace(resources, threads=1),
        options.executor.n_workers,
        overlap=options.overlap > 0,
        kernels=families,
        memory=memory,
        limits=limits,
    )
    steps: list[tuple[str, Plan | Exception]] = []
    if looks_for_linear_part(model, options, n, fit.n_columns):
        steps.append(("fitting a linear part", plans.linear()))
    metric = metric_of(model)
    learns = metric is not None and metric.scales
    steps += [("learning scales", plans.scales())] if learns else []
    name = model.partition if isinstance(model.partition, str) else type(model.partition).__name__
    least = math.ceil((2 if options.overlap > 0 else 1) * n / limits.most_cell_rows)
    likely = options.n_cells or max(1, round(n / CELL_SEARCH.smallest_tried), least)
    if options.combiner.scales_alpha:
        m = first_number(options, n)
        sizes = plans.likely_sizes(m)
        if chooses_pair:
            average = plans.average(name, sizes)
            steps.append((f"choosing a pair for the mean of {m:,} cells", average))
    else:
        m = min(likely, n)
        sizes = plans.likely_sizes(m)
        if isinstance(options.partitioner, Guided) and m > 1:
            steps.append(("finding slopes", plans.slopes()))
        if options.n_cells is None:
            steps.append(("choosing how many cells", plans.count(choose=choose, pair=chooses_pair)))
        else:
            steps.append((f"cutting {m:,} cells", plans.cut(name, m)))
            if chooses_pair:
                steps.append(("choosing a pair for all cells", plans.pair(float(sizes[0]))))
    cells = plans.cells(sizes, choose=choose, held_out=held_out)
    steps.append((f"fitting {m:,} cells", cells))
    if options.coarse_model and options.bias and choose and options.combiner.overlaps and m > 1:
        steps.append(("fitting a coarse model of all rows", plans.backdrop()))
    if isinstance(options.refine, int):
        own = np.full(m, n / m)
        steps.append(("refining", plans.refining(own, options.refine)))
    return [*steps]
