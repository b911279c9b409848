"""Coverage and width of 90% prediction intervals of partitioned models on real data."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import data
import measure
from measure import Figure
from ridgefold import PartitionedLSSVMRegressor

COVERAGE = 0.9
SPLITS = 10
NOTES = """
Share of 2,000 new targets inside the intervals of `PartitionedLSSVMRegressor`'s
`predict_interval(X, 0.9)`, averaged over 10 random splits; about 500 rows a cell, each with its own
kernel width and ridge. Widths are relative to the standard deviation of the target. Seconds are
processor time on one thread, for all splits together: `predict_interval` alone.
"""
SETS = {"ccpp": 3000, "cpusmall": 3000, "kin8nm": 3000, "california": 4000}
ROWS_A_CELL = 500
NEW_ROWS = 2000


def one_split(name: str, n: int, seed: int) -> dict[str, float] | None:
    rows = data.standardised(name, n, seed)
    if rows is None:
        return None
    X, y, X_new, y_new = rows
    X_new, y_new = X_new[:NEW_ROWS], y_new[:NEW_ROWS]
    model = PartitionedLSSVMRegressor(n_partitions=max(1, n // ROWS_A_CELL)).fit(X, y)
    started = measure.processor_seconds()
    lower, upper = model.predict_interval(X_new, COVERAGE)
    return {
        "coverage": 100 * float(np.mean((lower <= y_new) & (y_new <= upper))),
        "width": float(np.mean(upper - lower) / np.std(y_new)),
        "seconds": measure.processor_seconds() - started,
    }


def main(quick: bool) -> bool:
    figures: list[Figure] = []
    for name, full in SETS.items():
        n = 300 if quick else full
        splits = [one_split(name, n, seed) for seed in range(2 if quick else SPLITS)]
        found = [split for split in splits if split is not None]
        if not found:
            figures.append(Figure(f"{name}: coverage", None, "data set not at hand"))
            continue
        each = {key: [split[key] for split in found] for key in found[0]}
        coverage = float(np.mean(each["coverage"]))
        figures.append(
            Figure(
                f"{name}, {n} rows: mean distance of coverage from 88–93%",
                max(0.0, 88.0 - coverage, coverage - 93.0),
                "points",
                at_most=0.0,
                detail={
                    "coverage, %": coverage,
                    "lowest split, %": min(each["coverage"]),
                    "highest split, %": max(each["coverage"]),
                    "width / standard deviation": float(np.mean(each["width"])),
                    "seconds": float(np.sum(each["seconds"])),
                },
            )
        )
        print(figures[-1].what, figures[-1].detail, flush=True)
    if quick:
        return True
    measure.write_results("cell_intervals", "Prediction intervals by cell", NOTES, figures)
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
