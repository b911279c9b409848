"""Random cells and averages: the simulation of Zhang, Duchi and Wainwright (JMLR 16, 2015)."""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

import measure
from measure import Figure, number

NOISE_VARIANCE = 0.2
RUNS = {256: 400, 512: 400, 1024: 400, 2048: 400, 4096: 1000, 8192: 200}
"""Runs by N: more where they are cheap, and where a target is close."""
COUNTS = (1, 4, 16, 64)
CLOSE = 1.03
THEIR_BEND = 0.45
BENDS = (1.1, 1.5, 2.0)
"""Ratios to the error of the whole fit at which a curve counts as bent."""
NOTES = """
y = min(x, 1 − x) + ε, x uniform on [0, 1], ε normal of variance 0.2; kernel 1 + min(x, x'), no
bias, λ = N^(−2/3), that is alpha = λN for all rows, of which each of the m random cells takes its
share n_cell/N. *Error* is the mean of (f̄(x) − min(x, 1 − x))² over 1,000 evenly spaced x, averaged
over runs; all m see the same data in a run, and what is reported beside the mean ratio to m = 1 is
its standard error over runs. The bend is the m at which the mean ratio crosses a level, read off
by linear interpolation in log m; the exponent is the slope of log m against log N over the sizes,
with its standard error. The paper reads about 0.45 off its figure, from where the curves, drawn
against log m/log N, stop being flat.
"""


def target(x: np.ndarray) -> np.ndarray:
    return np.minimum(x, 1.0 - x)


def counts_of(n: int) -> list[int]:
    """Powers of two up to cells of four rows."""
    return [2**k for k in range(int(math.log2(n)) - 1)]


def one_run(n: int, seed: int) -> dict[int, float]:
    """Error for every m on one draw of the data."""
    from ridgefold import PartitionedKernelRidge

    rng = np.random.default_rng((n, seed))
    x = rng.uniform(0, 1, n)
    y = target(x) + math.sqrt(NOISE_VARIANCE) * rng.standard_normal(n)
    grid = np.linspace(0, 1, 1000)
    found = {}
    for m in counts_of(n):
        model = PartitionedKernelRidge(
            "random",
            m,
            "average",
            kernel="sobolev",
            alpha=n ** (1.0 / 3.0),
            fit_intercept=False,
            random_state=seed,
        ).fit(x[:, None], y)
        found[m] = float(np.mean((model.predict(grid[:, None]) - target(grid)) ** 2))
    return found


def many_runs(n: int, count: int) -> list[dict[int, float]]:
    """Errors are what is measured, so all cores may run."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(one_run, [n] * count, range(count)))


def summarise(runs: Sequence[Mapping[int, float]]) -> dict[int, dict[str, float]]:
    table = {}
    for m in runs[0]:
        errors = np.array([run[m] for run in runs])
        whole = np.array([run[1] for run in runs])
        # The ratio of means, with its standard error by the delta method.
        ratio = errors.mean() / whole.mean()
        spread = np.std(errors - ratio * whole, ddof=1) / math.sqrt(len(runs)) / whole.mean()
        table[m] = {"error": float(errors.mean()), "ratio": float(ratio), "se": float(spread)}
    return table


def bend(table: Mapping[int, Mapping[str, float]], level: float) -> float | None:
    """log m at which the ratio crosses a level."""
    counts = list(table)
    for below, above in itertools.pairwise(counts):
        low, high = table[below]["ratio"], table[above]["ratio"]
        if low < level <= high:
            share = (level - low) / (high - low)
            return math.log(below) + share * (math.log(above) - math.log(below))
    return None


def exponent(found: Mapping[int, Any], level: float) -> tuple[float, float, dict[int, float]]:
    """Slope of log m at the bend against log N, its standard error, and log m/log N by N."""
    points = {n: b for n, table in found.items() if (b := bend(table, level)) is not None}
    x, y = np.log(list(points)), np.array(list(points.values()))
    slope, offset = np.polyfit(x, y, 1)
    left = y - slope * x - offset
    spread = math.sqrt(float(left @ left) / max(len(x) - 2, 1) / float(np.sum((x - x.mean()) ** 2)))
    return float(slope), spread, {n: float(b / math.log(n)) for n, b in points.items()}


def page(found: Mapping[int, Any]) -> str:
    lines = [
        "## Error by N and m",
        "",
        "Mean error, and in brackets its ratio to m = 1 with the ratio's standard error.",
        "",
        "| N | runs | " + " | ".join(f"m = {m}" for m in COUNTS) + " |",
        "|---|---|" + "---|" * len(COUNTS),
    ]
    for n, entry in found.items():
        cells = [
            f"{row['error']:.2e} ({row['ratio']:.3f} ± {row['se']:.3f})"
            if (row := entry["table"].get(m))
            else ""
            for m in COUNTS
        ]
        lines.append(f"| {n} | {entry['runs']} | " + " | ".join(cells) + " |")
    tables = {n: entry["table"] for n, entry in found.items()}
    lines += ["", "## Where the curves bend", "", "| level | exponent | log m/log N by N |"]
    lines.append("|---|---|---|")
    for level in BENDS:
        slope, spread, by_size = exponent(tables, level)
        places = ", ".join(f"{n}: {value:.2f}" for n, value in by_size.items())
        lines.append(f"| {number(level)} × | {slope:.2f} ± {spread:.2f} | {places} |")
    return "\n".join(lines) + "\n\n![Error against N and against log m/log N](zhang.png)"


def plot(found: Mapping[int, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for m in COUNTS:
        sizes = [n for n, entry in found.items() if m in entry["table"]]
        left.plot(sizes, [found[n]["table"][m]["error"] for n in sizes], "o-", label=f"m = {m}")
    left.set(xscale="log", yscale="log", xlabel="N", ylabel="error")
    left.set_xticks(list(found), [str(n) for n in found])
    left.minorticks_off()
    for n, entry in found.items():
        table = entry["table"]
        shares = [math.log(m) / math.log(n) for m in table]
        right.plot(shares, [row["error"] for row in table.values()], "o-", ms=3, label=f"N = {n}")
    right.axvline(THEIR_BEND, color="grey", linestyle=":", label="0.45 (paper)")
    right.set(yscale="log", xlabel="log m / log N", ylabel="error")
    left.legend()
    right.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(path, dpi=110)


def recorded() -> dict[int, Any]:
    """What an earlier run of this script found, by N."""
    kept = json.loads((measure.RESULTS / "zhang.json").read_text(encoding="utf-8"))["runs"]
    return {
        int(n): {**entry, "table": {int(m): row for m, row in entry["table"].items()}}
        for n, entry in kept.items()
    }


def main(quick: bool) -> bool:
    """RIDGEFOLD_SIZES names the N to run, if not all; the rest is kept."""
    named = os.environ.get("RIDGEFOLD_SIZES")
    wanted = [int(n) for n in named.split(",")] if named else list(RUNS)[: 3 if quick else None]
    found = recorded() if named and not quick else {}
    for n in wanted:
        count = 3 if quick else RUNS[n]
        table = summarise(many_runs(n, count))
        found[n] = {"runs": count, "table": table}
        print(n, {m: round(row["ratio"], 3) for m, row in table.items()}, flush=True)
    tables = {n: entry["table"] for n, entry in found.items()}
    figures = [
        Figure(
            f"N = {n}, m = {m}: error / that of the whole fit",
            tables[n][m]["ratio"],
            at_most=CLOSE,
            detail={"standard error": tables[n][m]["se"], "runs": float(found[n]["runs"])},
        )
        for n in tables
        for m in (4, 16)
        if n >= 4096
    ]
    for level in BENDS:
        slope, spread, _ = exponent(tables, level)
        what = f"exponent of N at which the error is {number(level)} times the whole fit's"
        figures.append(Figure(f"{what} (paper: about 0.45)", slope, detail={"error": spread}))
    print(measure.markdown_table(figures))
    if quick:
        return True
    plot(found, measure.RESULTS / "zhang.png")
    title = "Averages over random cells (Zhang, Duchi and Wainwright)"
    measure.write_results("zhang", title, NOTES, figures, more=page(found), data={"runs": found})
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
