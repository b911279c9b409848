"""Coverage, width and cost of 90% prediction intervals on real data."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import data
import measure
from measure import Figure
from ridgefold import LSSVMRegressor, LSSVMRegressorCV, Search

COVERAGE = 0.9
SPLITS = 10
NOTES = """
Share of new targets inside the intervals of `predict_interval(X, 0.9)`, averaged over 10 random
splits; kernel width and ridge are chosen by 5-fold cross-validation on each split's training rows,
and 2,000 (california: 4,000) rows that were not used are predicted. CV+ comes from the folds of the
search, jackknife+ from one inverse. Widths are relative to the standard deviation of the target.
Seconds are processor time on one thread, for all splits together: `predict_interval`, and for
jackknife+ the fit that keeps the matrix.
"""
SETS = {"ccpp": 1500, "cpusmall": 1500, "kin8nm": 1500, "california": 2000}
TEST_ROWS = {"california": 4000}


def shuffled_cv(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds of shuffled rows; the training rows are in random order already."""
    folds = np.arange(n) % 5
    return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(5)]


def one_split(name: str, n: int, seed: int) -> dict[str, dict[str, float]] | None:
    rows = data.standardised(name, n, seed)
    if rows is None:
        return None
    X, y, X_new, y_new = rows
    X_new, y_new = X_new[: TEST_ROWS.get(name, 2000)], y_new[: TEST_ROWS.get(name, 2000)]
    search = LSSVMRegressorCV(kernel="rbf", cv=shuffled_cv(n), search=Search(race="full")).fit(X, y)
    results = {}
    for method in ("cv+", "jackknife+"):
        model = search
        started = measure.processor_seconds()
        if method == "jackknife+":
            model = LSSVMRegressor(search.alpha_, kernel=search.kernel_, intervals=method).fit(X, y)
        lower, upper = model.predict_interval(X_new, COVERAGE)
        results[method] = {
            "coverage": float(np.mean((lower <= y_new) & (y_new <= upper))),
            "width": float(np.mean(upper - lower) / np.std(y_new)),
            "seconds": measure.processor_seconds() - started,
        }
    return results


def main(quick: bool) -> bool:
    figures: list[Figure] = []
    for name, n in SETS.items():
        splits = [
            one_split(name, 300 if quick else n, seed) for seed in range(2 if quick else SPLITS)
        ]
        found = [split for split in splits if split is not None]
        if not found:
            figures.append(Figure(f"{name}: coverage", None, "data set not at hand"))
            continue
        for method in ("cv+", "jackknife+"):
            each = {key: [s[method][key] for s in found] for key in found[0][method]}
            coverage = float(np.mean(each["coverage"]))
            figures.append(
                Figure(
                    f"{name}, {n} rows, {method}: mean distance of coverage from 88–93%",
                    100 * max(0.0, 0.88 - coverage, coverage - 0.93),
                    "points",
                    at_most=0.0,
                    detail={
                        "coverage, %": 100 * coverage,
                        "lowest split, %": 100 * min(each["coverage"]),
                        "highest split, %": 100 * max(each["coverage"]),
                        "width / standard deviation": float(np.mean(each["width"])),
                        "seconds": float(np.sum(each["seconds"])),
                    },
                )
            )
            print(figures[-1].what, figures[-1].detail, flush=True)
    if quick:
        return True
    table = ["| data | method | coverage | lowest, highest split | width / sd | seconds |"]
    table.append("|---|---|---|---|---|---|")
    for figure in figures:
        if figure.detail:
            name, method = figure.what.split(": ")[0].rsplit(", ", 1)
            d = figure.detail
            table.append(
                f"| {name} | {method} | {d['coverage, %']:.1f}% | {d['lowest split, %']:.1f}%, "
                f"{d['highest split, %']:.1f}% | {d['width / standard deviation']:.2f} | "
                f"{d['seconds']:.1f} |"
            )
    measure.write_results(
        "intervals", "Prediction intervals", NOTES, figures, more="\n".join(table)
    )
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
