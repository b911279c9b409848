"""Do plans tell the truth? Predicted against measured time and memory, and the choice made.

A grid of cross-validation problems; every method that can take one runs in a process of its own,
and is stopped at three times the processor time of the best so far. Then random problems under a
hard memory limit: nothing may be killed.

`--only "n 1500" laplacian` runs the problems of the grid whose words hold all of these, and writes
nothing.
"""

from __future__ import annotations

import importlib
import itertools
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

import measure
from measure import Figure, processor_seconds

SHAPES: tuple[dict[str, Any], ...] = (
    {"d": 8, "cv": 5, "alphas": 25},
    {"d": 8, "cv": 5, "alphas": 1},
    {"d": 1, "cv": 5, "alphas": 30},
    {"d": 20, "cv": "loo", "alphas": 20},
    {"d": 8, "cv": 2, "alphas": 200},
    {"d": 40, "cv": 10, "alphas": 5},
    {"d": 500, "cv": 5, "alphas": 10},
    {"d": 8, "cv": 3, "alphas": 10, "kernel": "laplacian"},
    {"d": 5, "cv": 5, "alphas": 25, "kernel": "polynomial"},
    {"d": 8, "cv": 20, "alphas": 3, "bias": True},
    {"d": 8, "cv": 5, "alphas": 25, "width": 0.25},
    {"d": 8, "cv": 5, "alphas": 4, "targets": 20},
    {"d": 8, "cv": 4, "alphas": 1, "memory": 0.5},
)
ROWS = (200, 600, 1500, 3000)
LARGE = (
    {"n": 6000, "d": 8, "cv": 5, "alphas": 25},
    {"n": 6000, "d": 8, "cv": 3, "alphas": 1},
    {"n": 6000, "d": 8, "cv": "loo", "alphas": 5},
    {"n": 10_000, "d": 4, "cv": 2, "alphas": 1},
    {"n": 6000, "d": 2, "cv": 5, "alphas": 50, "width": 4.0},
    {"n": 5000, "d": 100, "cv": 5, "alphas": 10},
    {"n": 10_000, "d": 3, "cv": 5, "alphas": 20, "width": 8.0},
    {"n": 8000, "d": 8, "cv": 5, "alphas": 1, "memory": 0.2},
)
STOP_AT = 3.0
MOST_RUNS, SHORT = 3, 1.0
"""Short runs are repeated until they took so many seconds together; the least time counts."""
RANDOM_PROBLEMS = 200
MEGABYTES = 50e6

NOTES = """
Processor time on one thread, each run in a process of its own, after one calibration of the machine
(`ridgefold.calibrate()`). Of runs that take less than a second, the best of up to three counts.
Memory is the high-water mark beyond what the process held at the start,
compared where 50 MB or more were predicted. 'memory' in a problem is the budget as a share of 8n²
bytes. A method that gives up is charged with what ran instead. Random problems: 200 to 3000 rows,
KernelRidgeCV within a random memory budget, in a process whose data segment is limited to what it
held at the start, the budget, a tenth of it and 30 MB for the interpreter.
"""


def data_of(shape: dict[str, Any]) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape["n"], shape["d"]))
    y = np.sin(X[:, :1]) + 0.3 * rng.standard_normal((shape["n"], shape.get("targets", 1)))
    return X, y


def path_of(shape: dict[str, Any], method: str, X: Any, y: Any) -> Any:
    from ridgefold import cross_val_path
    from ridgefold.kernels import RBF, Laplacian, Polynomial

    width = shape.get("width", 1.0) * np.sqrt(2.0 * shape["d"])
    kernels = {
        "rbf": RBF(width),
        "laplacian": Laplacian(1.1 * shape["d"]),
        "polynomial": Polynomial(degree=3),
    }
    return cross_val_path(
        X,
        y,
        kernel=kernels[shape.get("kernel", "rbf")],
        alpha=np.geomspace(1e-2, 10.0, shape["alphas"]) if shape["alphas"] > 1 else [0.1],
        cv=shape["cv"],
        method=method,
        fit_intercept=shape.get("bias", False),
        memory_budget=shape["memory"] * 8 * shape["n"] ** 2 if "memory" in shape else 8e9,
    )


def _child(shape: dict[str, Any], method: str, limit: float, answer: Any) -> None:
    from ridgefold.errors import BudgetError, InvalidInputError

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    X, y = data_of(shape)
    path_of({"n": 60, "d": 2, "cv": 3, "alphas": 2}, "auto", *data_of({"n": 60, "d": 2}))
    np.ones((300, 300)) @ np.ones((300, 300))
    spent = int(processor_seconds() + limit + 0.5)
    resource.setrlimit(resource.RLIMIT_CPU, (spent, spent + 1))
    started = processor_seconds()
    try:
        path = path_of(shape, method, X, y)
    except (BudgetError, InvalidInputError) as error:
        answer.send({"refused": str(error)})
        return
    seconds = processor_seconds() - started
    answer.send(
        {
            "seconds": seconds,
            "peak": path.step.peak_bytes,
            "method": path.method,
            "planned": path.plan.method,
            "predicted_seconds": path.plan.seconds,
            "predicted_bytes": path.plan.cost.peak_bytes,
        }
    )


def in_child(target: Any, *arguments: Any) -> dict[str, Any] | None:
    """The child's answer, or None if it was ended."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(*arguments, send))
    process.start()
    send.close()
    try:
        answer = receive.recv()
    except EOFError:
        answer = None
    process.join()
    return answer


def measured(shape: dict[str, Any], method: str, limit: float) -> dict[str, Any] | None:
    """The shortest run of a method, or its refusal; None if it was ended."""
    best, spent = in_child(_child, shape, method, limit), 0.0
    for _ in range(MOST_RUNS - 1):
        if best is None or "refused" in best or spent + best["seconds"] >= SHORT:
            break
        again = in_child(_child, shape, method, limit)
        if again is None or "refused" in again:
            break
        spent += again["seconds"]
        best = min(best, again, key=lambda run: run["seconds"])
    return best


def problem_rows(shape: dict[str, Any]) -> list[dict[str, Any]]:
    """What every method took, the planner's own choice first."""
    from ridgefold.crossval import METHODS

    auto = measured(shape, "auto", 600.0)
    if auto is None or "refused" in auto:
        return [{"asked": "auto", **(auto or {"ended": True})}]
    rows, best = [{"asked": "auto", **auto}], auto["seconds"]
    for method in METHODS:
        answer = measured(shape, method, STOP_AT * best + 0.2)
        if answer is None:
            rows.append({"asked": method, "stopped": True})
        elif "refused" not in answer:
            rows.append({"asked": method, **answer})
            best = min(best, answer["seconds"])
    return rows


def words(shape: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in shape.items())


def grid(shapes: list[dict[str, Any]]) -> tuple[list[Figure], dict[str, Any]]:
    table: dict[str, Any] = {}
    within, times, memory = [], [], []
    for shape in shapes:
        rows = problem_rows(shape)
        table[words(shape)] = rows
        auto = rows[0]
        if "seconds" not in auto:
            print(f"   {words(shape)}: {auto}", flush=True)
            continue
        finished = [row for row in rows if "seconds" in row]
        best = min(row["seconds"] for row in finished)
        within.append(auto["seconds"] / best)
        for row in finished[1:]:
            if row["method"] == row["asked"]:
                times.append(row["predicted_seconds"] / row["seconds"])
                if row["predicted_bytes"] >= MEGABYTES and row["peak"] is not None:
                    memory.append(
                        (row["peak"] / row["predicted_bytes"], words(shape), row["asked"])
                    )
        fastest = min(finished, key=lambda row: row["seconds"])
        print(
            f"   {words(shape)}: {auto['planned']} → {auto['method']} {auto['seconds']:.3g} s "
            f"(predicted {auto['predicted_seconds']:.3g}), best {fastest['asked']} {best:.3g} s",
            flush=True,
        )
    ratios, chosen = np.asarray(times), np.asarray(within)
    worst = max(memory, default=(0.0, "none", ""))
    figures = [
        Figure("problems in the grid", float(len(shapes)), "", at_least=60),
        Figure(
            "predicted time within 2 × of the measured",
            float(np.mean((ratios > 0.5) & (ratios < 2.0))),
            "of all runs",
            at_least=0.9,
            detail={"runs": float(len(ratios)), "median ratio": float(np.median(ratios))},
        ),
        Figure(
            "chosen method within 1.25 × of the best",
            float(np.mean(chosen <= 1.25)),
            "of all problems",
            at_least=0.9,
        ),
        Figure("chosen method / best, at worst", float(chosen.max()), "times", at_most=2.0),
        Figure(
            f"measured / predicted memory, at worst ({worst[2]}: {worst[1]})",
            float(worst[0]),
            "times",
            at_most=1.1,
            detail={"runs": float(len(memory))},
        ),
    ]
    return figures, table


# -- under a hard limit ------------------------------------------------------------------------


def _limited(seed: int, answer: Any) -> None:
    from ridgefold import KernelRidge, KernelRidgeCV
    from ridgefold.errors import BudgetError

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    rng = np.random.default_rng(seed)
    n, d = int(10 ** rng.uniform(2.3, 3.5)), int(10 ** rng.uniform(0, 2))
    budget = float(8 * n**2 * 10 ** rng.uniform(-1.0, 0.8)) + 2e6
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    KernelRidge(kernel="rbf").fit(X[:50], y[:50])
    held = measure._status("VmData")
    limit = int(held + 1.1 * budget + 30e6)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    cv = [2, 5, 10, "loo"][int(rng.integers(4))]
    model = KernelRidgeCV(
        kernel_params={"length_scale": [float(np.sqrt(2 * d))]},
        cv=cv,
        memory_budget=budget,
        alpha=np.geomspace(1e-2, 1.0, int(rng.integers(1, 12))),
        fit_intercept=bool(rng.integers(2)),
    )
    started = time.perf_counter()
    try:
        model.fit(X, y)
        answer.send({"outcome": "fitted", "seconds": time.perf_counter() - started})
    except BudgetError:
        answer.send({"outcome": "refused", "seconds": time.perf_counter() - started})
    except MemoryError:
        answer.send({"outcome": "out of memory"})


def limits(count: int) -> list[Figure]:
    outcomes: dict[str, int] = {}
    slowest = 0.0
    for seed in range(count):
        answer = in_child(_limited, seed) or {"outcome": "killed"}
        outcome = answer["outcome"]
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if outcome == "refused":
            slowest = max(slowest, answer["seconds"])
        if outcome in ("killed", "out of memory"):
            print(f"   random problem {seed}: {outcome}", flush=True)
    bad = outcomes.get("killed", 0) + outcomes.get("out of memory", 0)
    print(f"   under a hard limit: {outcomes}", flush=True)
    return [
        Figure(
            f"killed or out of memory, of {count} random problems under a hard limit",
            float(bad),
            "",
            at_most=0,
            detail={name: float(value) for name, value in outcomes.items()},
        ),
        Figure("slowest refusal", slowest, "s", at_most=1.0),
    ]


# -- the papers' law ---------------------------------------------------------------------------


def law(n: int) -> tuple[list[Figure], dict[str, Any]]:
    """From how many alphas on the planner prefers one eigendecomposition to inverses."""
    from ridgefold.crossval import METHODS
    from ridgefold.planning.calibration import known_rates
    from ridgefold.planning.rates import seconds
    from ridgefold.records import FoldShape, Problem

    rates = known_rates()
    product = 2.0 * n**3 / rates.at("product", n)
    inverse = (n**3 / 3 / rates.at("cholesky", n) + 2 * n**3 / 3 / rates.at("inverse", n)) / product
    eigen = 9.0 * n**3 / rates.at("eigendecomposition", n) / product
    figures, curves = [], {}
    for folds in (3, 5, 10):
        problem = Problem(
            n_rows=n, n_columns=1, folds=(FoldShape(n // folds, n - n // folds, folds),)
        )

        def predicted(method: str, count: int, problem: Problem = problem) -> float:
            own = replace(problem, n_alphas=count)
            return seconds(METHODS[method].cost(own), own, rates)

        counts = range(1, 41)
        crossing = next(
            (
                a
                for a in counts
                if predicted("eigendecomposition", a) < predicted("inverse_blocks", a)
            ),
            None,
        )
        theirs = folds * eigen / (folds * inverse - 1.0)
        curves[str(folds)] = {
            m: [predicted(m, a) for a in counts] for m in ("inverse_blocks", "eigendecomposition")
        }
        figures.append(
            Figure(
                f"alphas from which an eigendecomposition is chosen, {folds} folds, n = {n}",
                None if crossing is None else float(crossing),
                "" if crossing else "never up to 40",
                detail={"n_Γ = ℓR_E/(ℓR_I − 1)": theirs, "R_I": inverse, "R_E": eigen},
            )
        )
    return figures, {"alphas": list(range(1, 41)), "seconds": curves}


def plot(curves: dict[str, Any], figures: list[Figure]) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(1, len(curves["seconds"]), figsize=(11, 3.4), sharey=True)
    for axis, (folds, lines), figure in zip(axes, curves["seconds"].items(), figures, strict=True):
        for method, values in lines.items():
            axis.plot(curves["alphas"], values, label=method)
        axis.axvline(figure.detail["n_Γ = ℓR_E/(ℓR_I − 1)"], color="grey", ls=":", label="the law")
        axis.set(title=f"{folds} folds", xlabel="ridge values")
    axes[0].set_ylabel("predicted seconds")
    axes[0].legend(frameon=False)
    drawing.tight_layout()
    drawing.savefig(measure.RESULTS / "planner.png", dpi=110)


def calibrated() -> Figure:
    """Rates of this machine, measured now, for all that follows."""
    from ridgefold import calibrate

    importlib.import_module("ridgefold.estimators.cross_val_path")  # once for all forks
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    os.environ.pop("RIDGEFOLD_RATES", None)
    started = time.perf_counter()
    calibrate()
    return Figure("calibration", time.perf_counter() - started, "s on a shared machine")


def all_shapes() -> list[dict[str, Any]]:
    shapes = [{"n": n, **shape} for n, shape in itertools.product(ROWS, SHAPES)]
    return shapes + [dict(shape) for shape in LARGE]


def some(wanted: list[str]) -> None:
    """A part of the grid: what every method took, against what was predicted."""
    calibrated()
    shapes = [shape for shape in all_shapes() if all(each in words(shape) for each in wanted)]
    figures, table = grid(shapes)
    for rows in table.values():
        for row in rows[1:]:
            if "seconds" in row:
                print(
                    f"{row['asked']:>20} {row['seconds']:.3g} s, "
                    f"predicted {row['predicted_seconds']:.3g} s, by {row['method']}"
                )
    print(measure.markdown_table(figures[1:4]))


def main(quick: bool) -> bool:
    calibration = calibrated()
    shapes = [{"n": 200, **shape} for shape in SHAPES[:3]] if quick else all_shapes()
    figures, table = grid(shapes)
    figures += [calibration, *limits(6 if quick else RANDOM_PROBLEMS)]
    crossings, curves = law(2000)
    figures += crossings
    if not quick:
        plot(curves, crossings)
        measure.write_results(
            "planner",
            "Plans against what happened",
            NOTES,
            figures,
            more="\n![Predicted times of the papers' two methods](planner.png)\n",
            data={"problems": json.loads(json.dumps(table)), "law": curves},
        )
    return quick or measure.all_held(figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--only"]:
        some(sys.argv[2:])
    else:
        measure.command_line(main, __doc__)
