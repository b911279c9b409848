"""Two workers of a Dask cluster against one, and rows of four times the memory budget.

`--workers` measures the first of these again, and keeps what is recorded of the second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import numpy as np
import rows as data

import measure
from measure import Figure

ROWS = 10**6
BUDGET = 200 * 10**6
GRID_ROWS = 2000
QUICK_ROWS = 20_000
LARGER_ROWS = 10**7
"""Of ten columns in float64: four times the budget."""
NOTES = """
Data as in [rows](rows.md): 10 uniform columns, float64, in memory-mapped .npy files.

*Workers.* `PartitionedLSSVMRegressor(compute=Compute(executor=client, run_dir=…))` with no other
arguments on 1,000,000 rows; a cluster of worker processes on this machine, one BLAS thread each,
loopback only. Time is by the clock, from the memory map to the fitted model: the number of cells
and the pair of width and
ridge chosen, rows placed and cells fitted by the workers, and what every task writes flushed to the
disk; the cuts are found by the process that drives them. The cluster is started before. Then the
1,000,000 rows are predicted by the workers. *Grid:* `KernelRidgeCV` with the same workers and
`Search(race="full")`, seven widths, on the first 2,000 rows. *Load* is the number of
processes that wanted to run (the mean of the last minute), before and after: above the number of
workers, others had a part of the cores.

*Memory.* 10,000,000 rows, 800 MB, with `memory_budget` 200 MB and one process: fitted (width and
ridge given, cells of 200 rows) and 1,000,000 of the rows predicted. *Peak* is the highest resident
memory beyond what the process held before it opened the rows, mapped pages among it.
"""


def fit_here(folder: str, workers: int) -> dict[str, Any]:
    """Times of a fit, a prediction and a search on a cluster of this machine."""
    from ridgefold import (
        Compute,
        KernelRidgeCV,
        PartitionedLSSVMRegressor,
        Search,
    )
    from ridgefold.executors.dask import local_cluster

    X, y, new, truth = _arrays(folder)
    small = len(X) <= QUICK_ROWS
    settings = {"n_partitions": len(X) // 256, "cells__tuning": "shared"} if small else {}
    part = 300 if small else GRID_ROWS
    load = os.getloadavg()[0]
    with local_cluster(workers) as client, tempfile.TemporaryDirectory() as run:
        client.wait_for_workers(workers)
        client.run(_warm)
        started = time.perf_counter()
        model = PartitionedLSSVMRegressor(
            compute=Compute(executor=client, run_dir=Path(run) / "run")
        ).set_params(**settings)
        model.fit(X, y)
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        model.predict(X)
        predicting = time.perf_counter() - started
        error = float(np.sqrt(np.mean((model.predict(new) - truth) ** 2)))
        started = time.perf_counter()
        KernelRidgeCV(search=Search(race="full"), compute=Compute(executor=client)).fit(
            X[:part], y[:part]
        )
        searching = time.perf_counter() - started
    return {
        "seconds": seconds,
        "predict_seconds": predicting,
        "grid_seconds": searching,
        "cells": model.n_partitions_,
        "rmse": error,
        "load": [load, os.getloadavg()[0]],
    }


def _warm() -> None:
    """What every worker has to import."""
    import ridgefold.estimators.kernel_ridge_cv
    import ridgefold.estimators.partitioned  # noqa: F401


def fit_larger_here(folder: str, budget: int) -> dict[str, Any]:
    """Peak memory of a fit and a prediction from disk in this process."""
    from ridgefold import PartitionedLSSVMRegressor

    def status(entry: str) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith(entry))

    warm = np.random.default_rng(0).standard_normal((500, 3))
    PartitionedLSSVMRegressor(n_partitions=2).fit(warm, warm[:, 0]).predict(warm)
    X, y, _, _ = _arrays(folder)
    Path("/proc/self/clear_refs").write_text("5")
    held, started = status("VmRSS"), time.perf_counter()
    model = PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 1.0},
        n_partitions=len(X) // 200,
        alpha=0.1,
        memory_budget=budget,
    ).fit(X, y)
    fitted, seconds = status("VmHWM") - held, time.perf_counter() - started
    part = slice(0, len(X) // 10)
    predictions = model.predict(X[part])
    return {
        "rows": len(X),
        "bytes": X.nbytes,
        "budget": budget,
        "fit_peak": fitted,
        "peak": status("VmHWM") - held,
        "fit_seconds": seconds,
        "seconds": time.perf_counter() - started,
        "rmse": float(np.sqrt(np.mean((predictions - y[part]) ** 2))),
    }


def _arrays(folder: str) -> list[np.ndarray]:
    names = ("train_X", "train_y", "new_X", "new_y")
    return [np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in names]


def child(*arguments: object) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, __file__, "--here", *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    print(arguments, found, flush=True)
    return found


def measured_workers(rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        data.make(Path(folder), rows)
        return {str(workers): child("workers", folder, workers) for workers in (1, 2)}


def measured_larger(rows: int, budget: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        data.make(Path(folder), rows)
        return {**child("larger", folder, budget), "date": measure.machine_facts()["date"]}


def main(quick: bool) -> bool:
    if quick:
        measured_workers(QUICK_ROWS)
        measured_larger(100_000, 2_000_000)
        return True
    return written(measured_workers(ROWS), measured_larger(LARGER_ROWS, BUDGET))


def workers_again() -> bool:
    recorded = json.loads((measure.RESULTS / "cluster.json").read_text())
    kept = {"date": recorded["machine"]["date"], **recorded["larger"]}
    return written(measured_workers(ROWS), kept)


def written(by_workers: dict[str, Any], larger: dict[str, Any]) -> bool:
    def gain(what: str) -> float:
        return float(by_workers["1"][what] / by_workers["2"][what])

    figures = [
        Figure("10^6 rows: one worker's time over that of two", gain("seconds"), "×", at_least=1.7),
        Figure("the same, predicting 10^6 rows", gain("predict_seconds"), "×"),
        Figure("the same, seven kernels of an exact search", gain("grid_seconds"), "×"),
        Figure("data over budget", larger["bytes"] / larger["budget"], "×", at_least=4),
        Figure("peak of fit and prediction over budget", larger["peak"] / BUDGET, "×", at_most=1),
    ]
    lines = ["| workers | cells | fit, s | predict, s | grid, s | test error / noise | load |"]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [
        f"| {w} | {f['cells']:,} | {f['seconds']:.1f} | {f['predict_seconds']:.1f} | "
        f"{f['grid_seconds']:.1f} | {f['rmse'] / data.NOISE:.3f} | "
        f"{f['load'][0]:.1f} to {f['load'][1]:.1f} |"
        for w, f in by_workers.items()
    ]
    lines += [
        "",
        "| rows | data, MB | budget, MB | peak of fit, MB | peak, MB | fit, s | measured |",
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    megabytes = [f"{larger[k] / 1e6:.0f}" for k in ("bytes", "budget", "fit_peak", "peak")]
    lines += [f"| {larger['rows']:,} | {' | '.join(megabytes)} | {larger['fit_seconds']:.0f} | "]
    lines[-1] += f"{larger['date']} |"
    measure.write_results(
        "cluster",
        "Two workers of a cluster, and data larger than memory",
        NOTES,
        figures,
        more="\n".join(lines),
        data={"workers": by_workers, "larger": larger},
    )
    print(measure.markdown_table(figures))
    return measure.all_held(figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        kind, where, number = sys.argv[2:]
        run = fit_here if kind == "workers" else fit_larger_here
        print(json.dumps(run(where, int(number))))
    elif sys.argv[1:] == ["--workers"]:
        sys.exit(0 if workers_again() else 1)
    else:
        measure.command_line(main, __doc__)
