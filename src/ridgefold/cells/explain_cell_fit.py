"""What a fit in cells would do, from shapes alone: the steps of the fit, asked for their plans."""

from __future__ import annotations

from typing import Any

from ridgefold.cells.cell_fit_steps import Refine, cell_steps
from ridgefold.cells.cell_request import CellRequest
from ridgefold.cells.checked_arguments import options_of
from ridgefold.errors import BudgetError
from ridgefold.planning import Explanation, SharedFiles, explain_on_workers, explain_plans
from ridgefold.records import Plan, Problem, Resources
from ridgefold.runtime import foresee_all


def explain_cell_fit(
    model: Any, fit: Problem, resources: Resources, n_workers: int | None
) -> Explanation:
    """The steps of a partitioned fit: on a cluster of so many workers, or on this machine.

    If their number is not given, it is that of the cluster which the model names as its executor,
    if it names one.
    """
    options = options_of(model)
    if n_workers is None and options.executor.remote:
        n_workers = options.executor.workers_now()
    request = _request(model, fit, resources, n_workers)
    plans = _plans(request, resources)
    if not isinstance(request.files, SharedFiles) or isinstance(plans[0][1], BudgetError):
        return explain_plans(plans)
    n_cells = options.n_cells or request.likely_cells()
    return explain_on_workers(plans, request.files, n_cells, resources)


def cell_plans(
    model: Any, fit: Problem, resources: Resources
) -> list[tuple[str, Plan | BudgetError]]:
    """The plan of every step of a partitioned fit on this machine, or why it is refused."""
    return _plans(_request(model, fit, resources, None), resources)


def _request(model: Any, fit: Problem, resources: Resources, n_workers: int | None) -> CellRequest:
    in_files = n_workers is not None
    return CellRequest(
        model, options_of(model), fit, resources, in_files=in_files, workers=n_workers
    )


def _plans(request: CellRequest, resources: Resources) -> list[tuple[str, Plan | BudgetError]]:
    try:
        request.limits(resources)
    except BudgetError as refusal:
        return [("fitting cells", refusal)]
    steps = [*cell_steps(request), Refine(request)]
    return foresee_all(steps, request.shape(), resources)
