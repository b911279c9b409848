"""Partitioned models beside the whole tuned fit and beside liquidSVM with cells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

import data
import measure
from measure import Figure, number, one_thread, processor_seconds

SETS = {
    "cpusmall": 6000,
    "ccpp": 7500,
    "california": 16000,
    "protein": 40000,
    "kin8nm": 6000,
    "puma32h": 6500,
}
AGAINST_LIQUID = ("cpusmall", "ccpp", "california", "protein", "puma32h")
SCALES_LEARNED = ("puma32h",)
LEARNED = "rbf, learned scales"
TEST_ROWS = 2000
TUNING_ROWS = 4000
MODELS: dict[str, dict[str, Any]] = {
    "rbf": {},
    "Matérn 1/2": {"kernel": "matern", "kernel_params": {"nu": 0.5}},
}
NOTES = """
Columns standardised by the training rows; up to 2,000 test rows. One thread, processor time, from
the data to predictions: choosing the number of cells, widths and ridges, fitting and predicting.
Ours is `PartitionedKernelRidge` with the kernel that the table names and no other arguments: tree,
blend, every cell chooses its own width and ridge. *Whole* is one Cholesky fit of all rows, RBF
kernel with a bias, with the width and ridge that `LSSVMRegressorCV` chooses on 4,000 rows; its time
is that of choosing on those rows, multiplied by (n/4000)³, plus the fit: an extrapolation, as a
search on all rows takes hours. liquidSVM runs its default 10 × 10 grid with 5 folds and averages
its fold models, with cells of its own size.
"""


def liquid(path: Path, cells: bool) -> dict[str, Any] | None:
    python = os.environ.get("RIDGEFOLD_LIQUIDSVM_PYTHON")
    if not python:
        return None
    request = json.dumps({"data": str(path), "cells": cells})
    script = Path(__file__).with_name("_liquid.py")
    answer = subprocess.run(
        [python, str(script)], input=request, capture_output=True, text=True, check=True
    )
    found = json.loads(answer.stdout.splitlines()[-1])
    return None if "missing" in found else found


def ours(arrays: dict[str, np.ndarray], options: dict[str, Any]) -> dict[str, Any]:
    from ridgefold import PartitionedKernelRidge

    started = processor_seconds()
    model = PartitionedKernelRidge(**options).fit(arrays["X"], arrays["y"])
    predictions = model.predict(arrays["new"])
    seconds = processor_seconds() - started
    best = min((trial.error for trial in model.trials_), default=float("nan"))
    chosen = [
        trial.error
        for trial in model.trials_
        if max(1, round(len(arrays["y"]) / trial.cell_rows)) == model.n_partitions_
    ]
    return {
        "seconds": seconds,
        "rmse": float(np.sqrt(np.mean((predictions - arrays["truth"]) ** 2))),
        "cells": model.n_partitions_,
        "loss of the chosen size": min(chosen) / best - 1.0 if chosen else 0.0,
    }


def whole(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    from ridgefold import LSSVMRegressor, LSSVMRegressorCV

    n = len(arrays["y"])
    rows = np.random.default_rng(0).permutation(n)[:TUNING_ROWS]
    started = processor_seconds()
    search = LSSVMRegressorCV().fit(arrays["X"][rows], arrays["y"][rows])
    tuned = processor_seconds() - started
    started = processor_seconds()
    model = LSSVMRegressor(search.alpha_, kernel=search.kernel_).fit(arrays["X"], arrays["y"])
    predictions = model.predict(arrays["new"])
    fitted = processor_seconds() - started
    return {
        "seconds": tuned * (n / len(rows)) ** 3 + fitted,
        "fit": fitted,
        "tuned": tuned,
        "rmse": float(np.sqrt(np.mean((predictions - arrays["truth"]) ** 2))),
    }


def run_set(name: str, n: int, quick: bool) -> dict[str, Any] | None:
    arrays = data.standardised(name, n)
    if arrays is None:
        return None
    X, y, new, truth = arrays
    parts = {"X": X, "y": y, "new": new[:TEST_ROWS], "truth": truth[:TEST_ROWS]}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, one_thread():
        path = Path(folder) / "data.npz"
        np.savez(path, **parts)
        learned = {LEARNED: {"learn_scales": True}} if name in SCALES_LEARNED else {}
        for label, options in {**MODELS, **learned}.items():
            found[label] = ours(parts, options)
            print(name, label, found[label], flush=True)
            if quick:
                return found
        if name in AGAINST_LIQUID:
            found["liquidSVM, cells"] = liquid(path, cells=True)
            print(name, found["liquidSVM, cells"], flush=True)
        found["whole"] = whole(parts)
        print(name, found["whole"], flush=True)
    return found


def figures_of(found: dict[str, dict[str, Any]]) -> list[Figure]:
    figures = []
    for name, runs in found.items():
        mine, all_rows = runs["rbf"], runs.get("whole")
        figures.append(
            Figure(
                f"{name}: held-out loss of the chosen number of cells against the best tried",
                mine["loss of the chosen size"],
                at_most=0.02,
            )
        )
        figures += (
            [
                Figure(
                    f"{name}: test error / that of the whole fit",
                    mine["rmse"] / all_rows["rmse"],
                    at_most=1.02,
                ),
                Figure(
                    f"{name}: time of the whole tuned fit (extrapolated) / ours",
                    all_rows["seconds"] / mine["seconds"],
                    at_least=30,
                ),
            ]
            if all_rows
            else []
        )
        peer = runs.get("liquidSVM, cells")
        if LEARNED in runs:
            others = [run["rmse"] for label, run in runs.items() if run and label != LEARNED]
            figures.append(
                Figure(
                    f"{name}: test error with learned scales / the best without",
                    runs[LEARNED]["rmse"] / min(others),
                    at_most=1,
                )
            )
        elif peer:
            for label in MODELS:
                figures += [
                    Figure(
                        f"{name}, {label}: time of liquidSVM with cells / ours",
                        peer["seconds"] / runs[label]["seconds"],
                        at_least=1,
                    ),
                    Figure(
                        f"{name}, {label}: test error / liquidSVM's with cells",
                        runs[label]["rmse"] / peer["rmse"],
                        at_most=1,
                    ),
                ]
    return figures


def page(found: dict[str, dict[str, Any]]) -> str:
    lines = ["| data | model | cells | time, s | test error |", "|---|---|---|---|---|"]
    for name, runs in found.items():
        for label, run in runs.items():
            if run:
                lines.append(
                    f"| {name} | {label} | {run.get('cells', '')} | {number(run['seconds'])} | "
                    f"{run['rmse']:.5g} |"
                )
    return "\n".join(lines)


def main(quick: bool) -> bool:
    found = {}
    for name, n in SETS.items():
        runs = run_set(name, 1000 if quick else n, quick)
        if runs is not None:
            found[name] = runs
    if quick:
        return True
    figures = figures_of(found)
    print(measure.markdown_table(figures))
    measure.write_results(
        "cells",
        "Cells beside the whole fit and liquidSVM",
        NOTES,
        figures,
        more=page(found),
        data={"runs": found},
    )
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
