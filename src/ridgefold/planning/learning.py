"""What learning a metric is predicted to cost."""

from __future__ import annotations

from ridgefold.planning.calibration import known_rates
from ridgefold.planning.cell_memory import learning_bytes
from ridgefold.planning.rates import seconds
from ridgefold.records import Cost, Plan, Problem, Resources

LEARNING = "gradient"
"""The method of every step that learns."""
_START = (400.0, 24)
"""Rows, and evaluations of the error with its gradient, in which the columns of every transform
find where to start."""
_STAGES = ((400.0, 30, 7), (700.0, 14, 4), (1200.0, 11, 3), (2000.0, 8, 2))
"""Rows of the stages of the race, evaluations of every family in it, and how many families are
likely to take part."""
_TURNS = (700.0, 24)
"""Rows, and evaluations, in which directions that mix columns are looked for."""
_SINGLE_FROM, _SINGLE = 600.0, 0.55
"""From so many rows on matrices are in float32, which takes this share of the time."""
_SHARE_INSIDE = 0.8
"""Of few rows, the others decide when to stop."""


def learning_plan(
    problem: Problem,
    resources: Resources,
    rows: int,
    *,
    families: int = 1,
    starts: int = 1,
    times: float = 1.0,
    most_seconds: float | None = None,
    rotates: bool = False,
) -> Plan:
    """Learn a metric from so many rows, among some families and transforms, so many times; each
    time within a limit, if there is one."""
    n, d = problem.n_rows, problem.n_columns
    rates = known_rates(resources.device)

    def evaluation(stage_rows: float) -> float:
        inside = min(stage_rows, _SHARE_INSIDE * n, float(rows))
        digits = _SINGLE if inside >= _SINGLE_FROM else 1.0
        flops = {
            "kernel": inside**2,
            "product": 2 * inside**2 * d,
            "cholesky": digits * inside**3 / 3,
            "inverse": digits * 2 * inside**3 / 3,
            "calls": 4.0,
        }
        return seconds(Cost(flops, 0.0, size=inside), problem, rates)

    total = starts * _START[1] * evaluation(_START[0])
    for most_rows, evaluations, most_families in _STAGES:
        total += min(families, most_families) * evaluations * evaluation(most_rows)
    if rotates:
        total += _TURNS[1] * evaluation(_TURNS[0])
    if most_seconds is not None:
        total = min(total, most_seconds)
    peak = learning_bytes(min(rows, n), n, d)
    return Plan(problem, resources, LEARNING, Cost({}, peak), times * total, ())
