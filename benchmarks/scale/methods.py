"""What every cross-validation method saves: the best of all methods against the best of the others.

A grid of problems; every method that can take one runs in a process of its own, and is stopped at
two and a half times the processor time of the best so far.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

import measure
from measure import Figure

KERNELS = ("wide", "laplacian", "narrow")
ROUGH = ("wide", "matern", "narrow")
COLUMNS = (2, 8, 30)
ALPHAS = (1, 25)
STOP_AT = 2.5
LONGEST = 40.0
"""Seconds after which the first method that is tried is stopped."""
SHORT = 0.1
"""Runs are repeated until they took so many seconds together; the least time counts."""
SMALL = {"n": 60, "d": 2, "kernel": "wide", "cv": 3, "alphas": 2}
NOTES = """
Processor time on one thread, every run in a process of its own; below a tenth of a second the best
of several. *wide* and *narrow* are RBF kernels of 2 and 0.3 times √(2d), *laplacian* and *matern*
(Matérn 1/2) rough ones; ridge values go from 10⁻³ to 10, or from the smallest that is named.
*memory* is the budget beyond 20 MB, as a share of 8n² bytes. A run that is stopped counts with the
time after which it was, so that costs are at least what is said here. The machine was shared.
"""


def shapes() -> list[dict[str, Any]]:
    """Small problems in all combinations, larger ones in fewer, and what is special."""

    def problems(rows: Any, columns: Any, kernels: Any, splits: Any) -> list[dict[str, Any]]:
        every = itertools.product(rows, columns, kernels, splits, ALPHAS)
        names = ("n", "d", "kernel", "cv", "alphas")
        return [dict(zip(names, each, strict=True)) for each in every]

    def special(kernel: str, n: int = 2000, alphas: int = 25, **more: Any) -> dict[str, Any]:
        return {"n": n, "d": 8, "kernel": kernel, "cv": 5, "alphas": alphas, **more}

    return [
        *problems((300, 1000), COLUMNS, KERNELS, (5, 10, "loo")),
        *problems((2000,), COLUMNS, ROUGH, (5, "loo")),
        *problems((4000,), (2,), KERNELS, (5,)),
        *(special(kernel, 1000, smallest=1e-9) for kernel in (*KERNELS, "matern")),
        *(special(kernel, smallest=1e-9) for kernel in KERNELS),
        special("sigmoid"),
        special("laplacian", targets=20),
        *(
            special("laplacian", alphas=alphas, memory=memory)
            for alphas, memory in itertools.product(ALPHAS, (1.0, 0.5, 0.25))
        ),
    ]


def data_of(shape: dict[str, Any]) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape["n"], shape["d"]))
    noise = rng.standard_normal((shape["n"], shape.get("targets", 1)))
    return X, np.sin(X[:, :1]) + 0.3 * noise


def path_of(shape: dict[str, Any], method: str, X: Any, y: Any) -> Any:
    from ridgefold import cross_val_path
    from ridgefold.kernels import RBF, Laplacian, Matern, Sigmoid

    width = math.sqrt(2.0 * shape["d"])
    kernels = {
        "wide": RBF(2.0 * width),
        "narrow": RBF(0.3 * width),
        "laplacian": Laplacian(1.1 * shape["d"]),
        "matern": Matern(width, nu=0.5),
        "sigmoid": Sigmoid(0.5 / shape["d"], 0.1),
    }
    alphas = np.geomspace(shape.get("smallest", 1e-3), 10.0, shape["alphas"])
    return cross_val_path(
        X,
        y,
        kernel=kernels[shape["kernel"]],
        alpha=alphas if len(alphas) > 1 else [0.1],
        cv=shape["cv"],
        method=method,
        memory_budget=20e6 + shape["memory"] * 8 * shape["n"] ** 2 if "memory" in shape else 8e9,
    )


def _child(shape: dict[str, Any], method: str, limit: float, answer: Any) -> None:
    from ridgefold.errors import BudgetError, InvalidInputError

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    X, y = data_of(shape)
    np.ones((300, 300)) @ np.ones((300, 300))
    signal.setitimer(signal.ITIMER_PROF, limit)
    best, spent = math.inf, 0.0
    try:
        while best == math.inf or (spent < SHORT and 2.0 * best < limit - spent):
            started = time.process_time()
            path = path_of(shape, method, X, y)
            took = time.process_time() - started
            best, spent = min(best, took), spent + took
    except (BudgetError, InvalidInputError) as error:
        answer.send({"refused": str(error)})
        return
    answer.send({"seconds": best, "method": path.method})


def in_child(shape: dict[str, Any], method: str, limit: float) -> dict[str, Any]:
    """What a method took, why it cannot run, or after how many seconds it was stopped."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(shape, method, limit, send))
    process.start()
    send.close()
    try:
        answer: dict[str, Any] = receive.recv()
    except EOFError:
        answer = {"longer than": limit}
    process.join()
    return answer


def times_of(shape: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What every method takes; the planner's choice is tried first, as a limit for the others."""
    from ridgefold.crossval import METHODS

    best = in_child(shape, "auto", LONGEST).get("seconds", LONGEST)
    answers = {}
    for method in METHODS:
        answers[method] = in_child(shape, method, STOP_AT * best + 0.05)
        if answers[method].get("method") == method:
            best = min(best, answers[method]["seconds"])
    return answers


def least(answers: dict[str, dict[str, Any]], left_out: str = "") -> float:
    """The least time without a method, or a lower bound of it; infinite if none can run."""
    others = {method: each for method, each in answers.items() if method != left_out}
    known = [each["seconds"] for name, each in others.items() if each.get("method") == name]
    stopped = [each["longer than"] for each in others.values() if "longer than" in each]
    return min(known or stopped, default=math.inf)


def figures_of(table: dict[str, dict[str, dict[str, Any]]]) -> list[Figure]:
    """What is lost without each method."""
    from ridgefold.crossval import METHODS

    figures = []
    for method in METHODS:
        costs = {
            problem: least(answers, method) / least(answers)
            for problem, answers in table.items()
            if math.isfinite(least(answers))
        }
        finite = [cost for cost in costs.values() if math.isfinite(cost)]
        worst = max(costs, key=lambda problem: (math.isfinite(costs[problem]), costs[problem]))
        figures.append(
            Figure(
                f"without {method}: time of the best of the others, geometric mean",
                math.exp(float(np.mean(np.log(finite)))),
                "times",
                detail={
                    f"at worst ({worst})": costs[worst],
                    "problems above 1.5": float(sum(cost > 1.5 for cost in finite)),
                    "problems that no other can take": float(len(costs) - len(finite)),
                },
            )
        )
    return figures


def words(shape: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in shape.items())


def main(quick: bool) -> bool:
    from ridgefold.crossval import METHODS

    for method in METHODS:  # what is imported here is there for all forks
        path_of(SMALL, method, *data_of(SMALL))
    table = {}
    for shape in [SMALL] if quick else shapes():
        table[words(shape)] = times_of(shape)
        seconds = {name: each.get("seconds") for name, each in table[words(shape)].items()}
        print(f"   {words(shape)}: {seconds}", flush=True)
    figures = figures_of(table)
    if not quick:
        title = "What every cross-validation method saves"
        measure.write_results("methods", title, NOTES, figures, data={"problems": table})
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
