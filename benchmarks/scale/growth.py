"""How cost grows: exponents of time and memory for every method, against theory and the plan."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

import measure  # before NumPy: it sets one BLAS thread
from measure import Figure, number, run_in_child

BASE = {"n": 1000, "d": 8, "folds": 5, "alphas": 10, "targets": 1}
AXES: dict[str, tuple[int, ...]] = {
    "n": (500, 1000, 2000),
    "d": (8, 64, 512),
    "folds": (2, 4, 8),
    "alphas": (10, 40, 160),
    "targets": (1, 8, 32),
}
LOW_RANK_ROWS = (4000, 8000, 16000)
"""Fewer take it a few milliseconds, most of them for the calls themselves."""
MEMORY_ROWS = (1500, 3000)
CELLS = (25, 50, 100)
CELL_ROWS = 20_000
SOLVER_ROWS = (1000, 2000, 4000)

THEORY: dict[str, dict[str, str]] = {
    "refit": {"n": "3", "d": "0–1", "folds": "1", "alphas": "1", "targets": "0–1"},
    "inverse_blocks": {"n": "3", "d": "0–1", "folds": "0", "alphas": "1", "targets": "0–1"},
    "eigendecomposition": {
        "n": "3",
        "d": "0–1",
        "folds": "−1–0",
        "alphas": "0–1",
        "targets": "0–1",
    },
    "block_recursive": {
        "n": "3",
        "d": "0–1",
        "folds": "exponential",
        "alphas": "1",
        "targets": "0",
    },
    "banded": {"n": "3", "d": "0–1", "folds": "0–1", "alphas": "0–1", "targets": "0–1"},
    "anchored": {"n": "3", "d": "0–1", "folds": "1", "alphas": "0–1", "targets": "0–1"},
    "preconditioned": {"n": "2", "d": "0–1", "folds": "1", "alphas": "0–1", "targets": "0–1"},
    "krylov": {"n": "2", "d": "0–1", "folds": "1", "alphas": "0–1", "targets": "1"},
    "low_rank": {"n": "1", "d": "0–1", "folds": "0–1", "alphas": "0–1", "targets": "0–1"},
}
"""Leading powers. A range is a term of lower order that takes over as the axis grows: d is in the
kernel values alone (n²d beside n³), alphas and targets in what follows a decomposition."""
MEMORY_THEORY = {
    "refit": "2", "inverse_blocks": "2", "eigendecomposition": "2", "block_recursive": "2",
    "banded": "2", "anchored": "2", "preconditioned": "2", "krylov": "2", "low_rank": "1",
}  # fmt: skip

NOTES = """
Processor time of one thread, best of two or more runs that take turns. Base: 1000 rows, 8 columns,
5 folds, 10 ridge values from 0.01 to 10, one target, RBF of the median width; one is varied at a
time. For `low_rank` the rows lie on a line and ridge values start at 0.1, so that it does not give
up; its rows are 4,000 to 16,000. *Measured* is the slope of a line through the logarithms of the
times, *planned* the same of the times that the plan predicts from the shapes, *theory* the leading
power. At these sizes terms of lower order still show: kernel values,
memory traffic and the time of a call pull exponents of n below 3. Memory is the peak of a process
of its own, beyond the data.

*Share of the limit* is the least time in which the machine could do the work, over the time taken:
the operations that the plan counts (products, factorisations and eigendecompositions alike) at the
rate of one large matrix product, or the bytes that it counts at the rate at which a matrix streams
through memory in a product with one vector, whichever takes longer. An eigendecomposition reaches
only a part of the first rate in any library, because half of it is bound by memory; kernel values
are not counted. *Matrices* is the peak of memory in matrices of n² numbers.
"""


def data_of(shape: dict[str, int], *, on_a_line: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape["n"], shape["d"]))
    if on_a_line:
        X = X[:, :1] * np.ones(shape["d"])
    y = np.sin(X[:, :1]) + 0.3 * rng.standard_normal((shape["n"], shape["targets"]))
    return X, y


def path_call(method: str, shape: dict[str, int]) -> Callable[[], Any]:
    from ridgefold import cross_val_path
    from ridgefold.kernels import RBF

    X, y = data_of(shape, on_a_line=method == "low_rank")
    width = np.sqrt(2.0 * shape["d"])
    alphas = np.geomspace(0.1 if method == "low_rank" else 1e-2, 10.0, shape["alphas"])
    return lambda: cross_val_path(
        X, y, kernel=RBF(width), alpha=alphas, cv=shape["folds"], method=method, memory_budget=8e9
    )


def solver_call(solver: str, n: int) -> Callable[[], Any]:
    from ridgefold import Compute, KernelRidge
    from ridgefold.kernels import RBF, Linear

    X, y = data_of({**BASE, "n": n})
    kernel = Linear() if solver == "primal" else RBF(4.0)
    model = KernelRidge(0.1, kernel=kernel, memory_budget=8e9, compute=Compute(solver=solver))
    return lambda: model.fit(X, y)


def cells_call(m: int) -> Callable[[], Any]:
    from ridgefold import PartitionedLSSVMRegressor

    X, y = data_of({**BASE, "n": CELL_ROWS})
    model = PartitionedLSSVMRegressor(
        "tree", m, "route", kernel_params={"length_scale": 4.0}, alpha=0.1
    )
    return lambda: model.fit(X, y[:, 0])


def slope(sizes: tuple[int, ...], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def times_of(calls: dict[int, Callable[[], Any]]) -> list[float]:
    timings = measure.best_of({str(k): call for k, call in calls.items()}, repeats=2, most=4)
    return [timings[str(k)].seconds for k in calls]


def growth_of(method: str, axes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Slopes of one method along every axis, measured and planned."""
    found: dict[str, Any] = {}
    for axis, sizes in axes.items():
        calls = {size: path_call(method, {**BASE, axis: size}) for size in sizes}
        seconds = times_of(calls)
        plans = [call().plan for call in calls.values()]
        planned = [plan.seconds for plan in plans]
        found[axis] = {
            "counted": dict(plans[-1].cost.flops),
            "sizes": sizes,
            "seconds": seconds,
            "measured": slope(sizes, seconds),
            "planned": slope(sizes, planned),
        }
    return found


def share_of_limit(counted: Mapping[str, float], seconds: float, limits: dict[str, float]) -> float:
    """Least time for the counted work, over the time taken."""
    beside = ("kernel", "memory", "calls")
    operations = sum(work for kind, work in counted.items() if kind not in beside)
    least = max(operations / limits["product"], counted.get("memory", 0.0) / limits["memory"])
    return least / seconds


def machine_limits(n: int = 4000) -> dict[str, float]:
    """Operations a second in a matrix product, and bytes a second in one with a vector."""
    a = np.random.default_rng(0).standard_normal((n, n))
    v = np.ones(n)
    product, streamed = times_of({0: lambda: a[:2000, :2000] @ a[:2000, :2000], 1: lambda: a @ v})
    return {"product": 2.0 * 2000**3 / product, "memory": a.nbytes / streamed}


def table(growth: dict[str, Any], memory: dict[str, Any], shares: dict[str, float]) -> str:
    axes = list(AXES)
    lines = [
        "## Cross-validation methods",
        "",
        "Measured (planned; theory).",
        "",
        "| method | " + " | ".join(axes) + " | memory in n | matrices | share of the limit |",
        "|---" * (len(axes) + 4) + "|",
    ]
    for method, found in growth.items():
        cells = [
            f"{found[a]['measured']:.2f} ({found[a]['planned']:.2f}; {THEORY[method][a]})"
            if a in found
            else ""
            for a in axes
        ]
        cells += [
            f"{memory[method]['measured']:.2f} ({MEMORY_THEORY[method]})",
            number(memory[method]["matrices"]),
            number(shares[method]),
        ]
        lines.append(f"| `{method}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(quick: bool) -> bool:
    from ridgefold.crossval import METHODS
    from ridgefold.solvers import SOLVERS

    axes = {"n": (100, 200)} if quick else AXES
    growth: dict[str, Any] = {}
    for method in METHODS:
        # Its work grows exponentially with folds.
        own = {a: s for a, s in axes.items() if (method, a) != ("block_recursive", "folds")}
        if method == "low_rank" and not quick:
            own["n"] = LOW_RANK_ROWS
        growth[method] = growth_of(method, own)
        print(f"   {method}: {[(a, round(g['measured'], 2)) for a, g in growth[method].items()]}")
    if quick:
        return True
    memory = {}
    for method in METHODS:
        bytes_ = [
            run_in_child(path_call, method, {**BASE, "n": n, "alphas": 3}).peak_bytes
            for n in MEMORY_ROWS
        ]
        memory[method] = {
            "bytes": bytes_,
            "measured": slope(MEMORY_ROWS, bytes_),
            "matrices": bytes_[-1] / (8.0 * MEMORY_ROWS[-1] ** 2),
        }
    limits = machine_limits()
    shares = {
        m: share_of_limit(g["n"]["counted"], g["n"]["seconds"][-1], limits)
        for m, g in growth.items()
    }
    figures = [
        Figure(
            f"{method}: exponent of time in n, measured − planned",
            g["n"]["measured"] - g["n"]["planned"],
            detail={"measured": g["n"]["measured"], "planned": g["n"]["planned"]},
        )
        for method, g in growth.items()
    ]
    for solver in SOLVERS:
        seconds = times_of({n: solver_call(solver, n) for n in SOLVER_ROWS})
        figures.append(
            Figure(f"solver {solver}: exponent of time in n", slope(SOLVER_ROWS, seconds))
        )
    cells = times_of({m: cells_call(m) for m in CELLS})
    figures.append(
        Figure(
            f"cells: exponent of time in their number m, {CELL_ROWS:,} rows (theory −2, and −1 "
            "where kernel values weigh more)",
            slope(CELLS, cells),
        )
    )
    figures.append(Figure("matrix product, n = 2000", limits["product"] / 1e9, "Gflop/s"))
    figures.append(
        Figure("matrix times vector, n = 4000: bytes read", limits["memory"] / 1e9, "GB/s")
    )
    measure.write_results(
        "growth",
        "How cost grows",
        NOTES,
        figures,
        more=table(growth, memory, shares),
        data={"growth": growth, "memory": memory, "shares of the limit": shares},
    )
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
