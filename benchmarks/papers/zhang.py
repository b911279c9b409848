"""Random cells and averages: the simulation of Zhang, Duchi and Wainwright (JMLR 16, 2015)."""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

import measure
from measure import Figure, number

NOISE_VARIANCE = 0.2
RUNS = {256: 400, 512: 400, 1024: 400, 2048: 200, 4096: 150, 8192: 60}
"""Draws of rows by N: more where they are cheap, and where a target is close."""
DRAWS = 32
"""Draws of noise for the same rows: targets that share a fit cost next to nothing."""
REFINED_RUNS = {4096: 40, 8192: 20}
"""The same, of averages that take one step towards the whole fit."""
PAPER, OURS = "random", "stratified"
COUNTS = (1, 4, 16, 64)
CLOSE = 1.03
THEIR_BEND = 0.45
BENDS = (1.1, 1.5, 2.0)
"""Ratios to the error of the whole fit at which a curve counts as bent."""
NOTES = """
y = min(x, 1 − x) + ε, x uniform on [0, 1], ε normal of variance 0.2; kernel 1 + min(x, x'), no
bias, λ = N^(−2/3), that is alpha = λN for all rows, of which each of the m cells takes its share
n_cell/N. A run draws rows once and noise 32 times. *Error* is the mean of (f̄(x) − min(x, 1 − x))²
over 1,000 evenly spaced x, averaged over runs; all m see the same data in a run, and what is
reported beside the mean ratio to m = 1 is its standard error over runs. *random* draws cells
uniformly, as the paper does; *stratified* deals out every m rows in succession, one to each cell.
*One step* is the paper's draw with `refine=1`: a step of conjugate gradients on the whole system,
with the cells and a factor of low rank as its preconditioner, which begins at the average. It needs
products with the whole matrix, so that at these N it takes longer than the whole fit.
The bend is the m at which the mean ratio crosses a level, read off by linear interpolation in
log m; the exponent is the slope of log m against log N over the sizes, with its standard error.
The paper reads about 0.45 off its figure, from where the curves, drawn against log m/log N, stop
being flat.
"""


def target(x: np.ndarray) -> np.ndarray:
    return np.minimum(x, 1.0 - x)


def counts_of(n: int) -> list[int]:
    """Powers of two up to cells of four rows."""
    return [2**k for k in range(int(math.log2(n)) - 1)]


Error = Callable[..., float]
Errors = dict[str, dict[int, float]]


def errors_on(n: int, seed: int) -> Error:
    """Gives the error for a way to draw cells and their number, on one draw of the rows."""
    from ridgefold import PartitionedKernelRidge

    rng = np.random.default_rng((n, seed))
    x = rng.uniform(0, 1, n)
    y = target(x)[:, None] + math.sqrt(NOISE_VARIANCE) * rng.standard_normal((n, DRAWS))
    grid = np.linspace(0, 1, 1000)

    def error(partition: str, m: int, **options: Any) -> float:
        model = PartitionedKernelRidge(
            partition,
            m,
            "average",
            kernel="sobolev",
            alpha=n ** (1.0 / 3.0),
            fit_intercept=False,
            random_state=seed,
            **options,
        ).fit(x[:, None], y)
        return float(np.mean((model.predict(grid[:, None]) - target(grid)[:, None]) ** 2))

    return error


def one_run(n: int, seed: int) -> Errors:
    """For every way to draw cells and every m."""
    error = errors_on(n, seed)
    whole, *counts = counts_of(n)
    exact = error(PAPER, whole)
    return {
        partition: {whole: exact, **{m: error(partition, m) for m in counts}}
        for partition in (PAPER, OURS)
    }


def one_refined_run(n: int, seed: int) -> Errors:
    """Of the paper's draw after one step."""
    error = errors_on(n, seed)
    return {PAPER: {1: error(PAPER, 1), **{m: error(PAPER, m, refine=1) for m in COUNTS[1:]}}}


def many_runs(run: Callable[[int, int], Errors], n: int, count: int) -> list[Errors]:
    """Errors are what is measured, so all cores may run."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(run, [n] * count, range(count)))


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


Exponent = tuple[float, float, dict[int, float]]


def exponent(found: Mapping[int, Any], level: float) -> Exponent | None:
    """Slope of log m at the bend against log N, its standard error, and log m/log N by N.

    None if fewer than three curves bend so far.
    """
    points = {n: b for n, table in found.items() if (b := bend(table, level)) is not None}
    if len(points) < 3:
        return None
    x, y = np.log(list(points)), np.array(list(points.values()))
    slope, offset = np.polyfit(x, y, 1)
    left = y - slope * x - offset
    spread = math.sqrt(float(left @ left) / max(len(x) - 2, 1) / float(np.sum((x - x.mean()) ** 2)))
    return float(slope), spread, {n: float(b / math.log(n)) for n, b in points.items()}


def tables_of(found: Mapping[int, Any], partition: str) -> dict[int, Any]:
    """Errors by N and m of one way to draw."""
    return {n: entry["tables"][partition] for n, entry in found.items()}


def today() -> str:
    return time.strftime("%Y-%m-%d")


def row_of(n: int, entry: Mapping[str, Any], words: str, cells: Sequence[str]) -> str:
    return "| " + " | ".join([str(n), str(entry["runs"]), entry["day"], words, *cells]) + " |"


def page(found: Mapping[int, Any]) -> str:
    lines = [
        "## Error by N and m",
        "",
        "Mean error, and in brackets its ratio to m = 1 with the ratio's standard error.",
        "",
        "| N | runs | measured | cells | " + " | ".join(f"m = {m}" for m in COUNTS) + " |",
        "|---|---|---|---|" + "---|" * len(COUNTS),
    ]
    for n, entry in found.items():
        for partition, table in entry["tables"].items():
            cells = [
                f"{row['error']:.2e} ({row['ratio']:.4f} ± {row['se']:.4f})"
                if (row := table.get(m))
                else ""
                for m in COUNTS
            ]
            lines.append(row_of(n, entry, partition, cells))
    for n, entry in refined_of(found).items():
        cells = [f"{row['error']:.2e} ({row['ratio']:.6f})" for row in entry["table"].values()]
        lines.append(row_of(n, entry, "random, one step", cells))
    lines += ["", "## Where the curves bend", "", "| cells | level | exponent | log m/log N by N |"]
    lines.append("|---|---|---|---|")
    for partition in (PAPER, OURS):
        for level in BENDS:
            bent = exponent(tables_of(found, partition), level)
            if bent is None:
                continue
            slope, spread, by_size = bent
            places = ", ".join(f"{n}: {value:.2f}" for n, value in by_size.items())
            row = f"{number(level)} × | {slope:.2f} ± {spread:.2f}"
            lines.append(f"| {partition} | {row} | {places} |")
    return "\n".join(lines) + "\n\n![Error against N and against log m/log N](zhang.png)"


def plot(found: Mapping[int, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for partition, line, words in ((PAPER, "o-", ""), (OURS, "x:", ", stratified")):
        tables = tables_of(found, partition)
        for k, m in enumerate(COUNTS if partition == PAPER else COUNTS[-1:]):
            sizes = [n for n, table in tables.items() if m in table]
            colour = f"C{k if partition == PAPER else len(COUNTS) - 1}"
            errors = [tables[n][m]["error"] for n in sizes]
            left.plot(sizes, errors, line, color=colour, label=f"m = {m}{words}")
        for k, (n, table) in enumerate(tables.items()):
            shares = [math.log(m) / math.log(n) for m in table]
            errors = [row["error"] for row in table.values()]
            label = f"N = {n}" if partition == PAPER else None
            right.plot(shares, errors, line, ms=3, color=f"C{k}", label=label)
    right.plot([], [], "x:", ms=3, color="grey", label="stratified")
    left.set(xscale="log", yscale="log", xlabel="N", ylabel="error")
    left.set_xticks(list(found), [str(n) for n in found])
    left.minorticks_off()
    right.axvline(THEIR_BEND, color="grey", linestyle="--", label="0.45 (paper)")
    right.set(yscale="log", xlabel="log m / log N", ylabel="error")
    left.legend()
    right.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(path, dpi=110)


def recorded() -> dict[int, Any]:
    """What an earlier run of this script found, by N."""
    kept = json.loads((measure.RESULTS / "zhang.json").read_text(encoding="utf-8"))["runs"]
    return {int(n): with_whole_numbers(entry) for n, entry in kept.items()}


def with_whole_numbers(entry: Any) -> Any:
    """The same with whole numbers as keys, which JSON writes as words."""
    if not isinstance(entry, dict):
        return entry
    return {
        int(key) if key.isdigit() else key: with_whole_numbers(value)
        for key, value in entry.items()
    }


def ratios(tables: Mapping[int, Any], runs: Mapping[int, int], words: str) -> list[Figure]:
    """Errors of few cells of many rows beside the whole fit's."""
    return [
        Figure(
            f"N = {n}, m = {m}{words}: error / that of the whole fit",
            tables[n][m]["ratio"],
            at_most=CLOSE,
            detail={"standard error": tables[n][m]["se"], "runs": float(runs[n])},
        )
        for n, m in itertools.product([n for n in tables if n >= 4096], (4, 16))
    ]


def figures_of(found: Mapping[int, Any], partition: str) -> list[Figure]:
    tables = tables_of(found, partition)
    words = "" if partition == PAPER else f", {partition}"
    figures = ratios(tables, {n: entry["runs"] for n, entry in found.items()}, words)
    for level in BENDS:
        bent = exponent(tables, level)
        if bent is None:
            continue
        what = f"exponent of N at which the error is {number(level)} times the whole fit's"
        about = " (paper: about 0.45)" if partition == PAPER else words
        figures.append(Figure(what + about, bent[0], detail={"error": bent[1]}))
    return figures


def refined_of(found: Mapping[int, Any]) -> dict[int, Any]:
    """Runs and errors by m after one step, by N."""
    return {n: entry["refined"] for n, entry in found.items() if "refined" in entry}


def refined_figures(found: Mapping[int, Any]) -> list[Figure]:
    refined = refined_of(found)
    tables = {n: entry["table"] for n, entry in refined.items()}
    return ratios(tables, {n: entry["runs"] for n, entry in refined.items()}, ", one step")


def main(quick: bool) -> bool:
    """RIDGEFOLD_SIZES, RIDGEFOLD_PARTS (averages, refined): what to run; the rest is kept."""
    named = os.environ.get("RIDGEFOLD_SIZES")
    parts = os.environ.get("RIDGEFOLD_PARTS", "averages,refined").split(",")
    wanted = [int(n) for n in named.split(",")] if named else list(RUNS)[: 3 if quick else None]
    found = recorded() if (named or len(parts) < 2) and not quick else {}
    for n in wanted:
        entry = found.setdefault(n, {})
        if "averages" in parts:
            runs = many_runs(one_run, n, 3 if quick else RUNS[n])
            tables = {p: summarise([run[p] for run in runs]) for p in (PAPER, OURS)}
            entry.update(runs=len(runs), tables=tables, day=today())
            for partition, table in tables.items():
                shown = {m: round(row["ratio"], 3) for m, row in table.items()}
                print(n, partition, shown, flush=True)
        if "refined" in parts and (quick or n in REFINED_RUNS):
            runs = many_runs(one_refined_run, n, 3 if quick else REFINED_RUNS[n])
            table = summarise([run[PAPER] for run in runs])
            entry["refined"] = {"runs": len(runs), "table": table, "day": today()}
            print(n, "one step", {m: row["ratio"] for m, row in table.items()}, flush=True)
    figures = [*figures_of(found, PAPER), *figures_of(found, OURS), *refined_figures(found)]
    print(measure.markdown_table(figures))
    if quick:
        return True
    plot(found, measure.RESULTS / "zhang.png")
    title = "Averages over random cells (Zhang, Duchi and Wainwright)"
    measure.write_results("zhang", title, NOTES, figures, more=page(found), data={"runs": found})
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
