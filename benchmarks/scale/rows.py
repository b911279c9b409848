"""Time and memory of a partitioned fit as rows grow: tuned, fitted, and new rows predicted."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

import measure
from measure import Figure

COLUMNS = 10
SIZES = (10**4, 10**5, 10**6, 10**7)
NEW_ROWS = 10**5
NOISE = 0.1
WORKERS = 2
NOTES = """
Made-up data: 10 uniform columns on [−1, 1]; y = sin(3x₁) + x₂x₃ + |x₄| + 0.5·sin(2x₅ + x₆) plus
normal noise of deviation 0.1, float64, in memory-mapped .npy files.
`PartitionedLSSVMRegressor(compute=Compute(n_jobs=2))` with no other arguments: number of cells,
width and ridge are chosen (above 300,000 rows one width and ridge for all cells), cells overlap and
are blended; then 100,000 new rows are predicted. *Time* is by the clock, both cores, from the
memory map to the
predictions; *memory* the most that was resident in the process and its workers together, pages of
the memory-mapped file among it. Every size runs in a fresh process.
"""


def make(folder: Path, n: int) -> None:
    rng = np.random.default_rng(n)
    for name, count in (("train", n), ("new", NEW_ROWS)):
        X = np.lib.format.open_memmap(
            folder / f"{name}_X.npy", "w+", dtype=np.float64, shape=(count, COLUMNS)
        )
        y = np.lib.format.open_memmap(
            folder / f"{name}_y.npy", "w+", dtype=np.float64, shape=(count,)
        )
        for start in range(0, count, 10**6):
            some = slice(start, min(start + 10**6, count))
            part = rng.uniform(-1, 1, (some.stop - start, COLUMNS))
            X[some] = part
            y[some] = (
                np.sin(3 * part[:, 0])
                + part[:, 1] * part[:, 2]
                + np.abs(part[:, 3])
                + 0.5 * np.sin(2 * part[:, 4] + part[:, 5])
                + NOISE * rng.standard_normal(len(part))
            )
        X.flush()
        y.flush()


def run_here(folder: str) -> dict[str, Any]:
    """Fit and predict in this process; figures of time, memory and error."""
    import threading

    from ridgefold import Compute, PartitionedLSSVMRegressor

    peak, stop = [0.0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.2):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch, daemon=True)
    X, y, new, truth = (
        np.load(Path(folder) / f"{name}.npy", mmap_mode="r")
        for name in ("train_X", "train_y", "new_X", "new_y")
    )
    watcher.start()
    started = time.perf_counter()
    model = PartitionedLSSVMRegressor(compute=Compute(n_jobs=WORKERS)).fit(X, y)
    fitted = time.perf_counter()
    predictions = model.predict(new)
    done = time.perf_counter()
    stop.set()
    watcher.join()
    return {
        "fit_seconds": fitted - started,
        "predict_seconds": done - fitted,
        "peak_bytes": peak[0],
        "rmse": float(np.sqrt(np.mean((predictions - truth) ** 2))),
        "cells": model.n_partitions_,
    }


def resident() -> float:
    """Resident bytes of this process and all that it started, shared pages counted once."""
    import os

    total, children = 0.0, [os.getpid()]
    while children:
        number = children.pop()
        try:
            for thread in Path(f"/proc/{number}/task").iterdir():
                children += [int(c) for c in (thread / "children").read_text().split()]
            for line in Path(f"/proc/{number}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += float(line.split()[1]) * 1024
        except OSError:
            continue
    return total


def main(quick: bool) -> bool:
    found: dict[int, dict[str, Any]] = {}
    for n in SIZES[:1] if quick else SIZES:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder), n)
            answer = subprocess.run(
                [sys.executable, __file__, "--here", folder],
                check=True,
                capture_output=True,
                text=True,
            )
            found[n] = json.loads(answer.stdout.splitlines()[-1])
        print(n, found[n], flush=True)
    if quick:
        return True
    return report(found)


def report(found: dict[int, dict[str, Any]]) -> bool:
    sizes = list(found)
    seconds = [f["fit_seconds"] + f["predict_seconds"] for f in found.values()]
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    figures = [Figure("exponent s of rows in time ∝ rows^s", slope, at_most=1.1)]
    last, time_of_last = sizes[-1], seconds[-1]
    steepest = max(
        math.log(b / a) / math.log(n / k)
        for a, b, k, n in zip(seconds, seconds[1:], sizes, sizes[1:], strict=False)
    )
    figures.append(Figure("the same between neighbouring sizes, at most", steepest))
    if last == 10**7:
        figures += [
            Figure("10^7 rows: peak memory", found[last]["peak_bytes"] / 1e9, "GB", at_most=4),
            Figure("10^7 rows: tune, fit, predict 10^5", time_of_last / 60, "min", at_most=20),
        ]
    lines = [
        "| rows | cells | fit, s | predict 10^5, s | peak, GB | test error / noise |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {n:,} | {f['cells']:,} | {f['fit_seconds']:.1f} | {f['predict_seconds']:.1f} | "
        f"{f['peak_bytes'] / 1e9:.2f} | {f['rmse'] / NOISE:.3f} |"
        for n, f in found.items()
    ]
    measure.write_results(
        "rows",
        "Partitioned fits from 10^4 to 10^7 rows",
        NOTES,
        figures,
        more="\n".join(lines),
        data={"runs": found},
    )
    print(measure.markdown_table(figures))
    return measure.all_held(figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(run_here(sys.argv[2])))
    else:
        measure.command_line(main, __doc__)
