"""What every heuristic of a fit in cells saves: the fit as it is against the fit without it.

A fixed grid of tables and made-up functions. Every fit runs in a process of its own, in which one
heuristic is switched off; its test error and its processor time are divided by those of the fit
with all of them.
"""

from __future__ import annotations

import importlib
import itertools
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure  # isort: skip  (sets one BLAS thread before NumPy is imported)
import numpy as np

import data
from measure import Figure

ROWS = 4000
TEST_ROWS = 6000
"""At most: more tell errors apart no better than a second split does."""
SPLITS = (0, 1)
REPEATS = 2
"""Runs of every fit whose time counts; the least time is taken."""
AT_ONCE = 2
"""Fits that run at the same time, each on one thread."""
SETTLED = 1.05
"""A fit whose first run costs less than this needs no further runs."""
NOTES = """
Test error (root mean squared) and processor time of fit and prediction, one thread, about 4,000
training rows, geometric means over problems and two splits. A ratio of 1.1 says that the fit
without the heuristic has a tenth more squared error, or takes a tenth longer. Heuristics that
matter only in some fits are measured on those: *two kernels* are fits with rbf and laplacian,
*averages* those with cells drawn at random, *refined* those that go on to the model of all rows,
*large* those of 12,000 rows. The machine was shared: times of single fits are right to a tenth.
"""


# -- problems ------------------------------------------------------------------------------

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
TABLES = ("ccpp", "cpusmall", "california", "kin8nm", "pol", "magic", "german", "banana")
CLASSES = ("magic", "german", "banana")


def _line(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    X = rng.uniform(size=(n, 1))
    return X, np.sin(12.0 * X[:, 0] ** 2), 0.3


def _friedman(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    X = rng.uniform(size=(n, 10))
    wave = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return X, wave + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4], 1.0


def _one_direction(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    X = rng.standard_normal((n, 20))
    return X, np.sin(1.5 * (X[:, 0] + X[:, 1] - X[:, 2])), 0.3


def _mostly_noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    X = rng.standard_normal((n, 6))
    return X, X[:, 0] + np.tanh(X[:, 1]), 4.0


def _noiseless(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    X = rng.standard_normal((n, 3))
    return X, np.exp(0.7 * X[:, 0]) + X[:, 1] * X[:, 2], 0.0


def _places(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    where = rng.integers(800, size=n)
    X = rng.uniform(size=(800, 2))[where]
    return X, np.sin(5.0 * X[:, 0]) + 0.5 * rng.standard_normal(800)[where], 0.7


def _wide(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    X = rng.standard_normal((n, 300))
    return X, X[:, 0] * X[:, 1] + X[:, 2], 0.3


FUNCTIONS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "a line": _line,
    "friedman": _friedman,
    "one direction of 20": _one_direction,
    "mostly noise": _mostly_noise,
    "without noise": _noiseless,
    "800 places": _places,
    "300 columns": _wide,
}
"""Rows, the function at each, and the standard deviation of the noise that is added."""
SPECIAL = ("800 places", "300 columns")
"""Functions on which only some heuristics are measured."""
NARROW = (*TABLES, *(name for name in FUNCTIONS if name not in SPECIAL))
LARGE = ("california, large", "magic, large")


@cache
def split_of(problem: str, split: int, rows: int = ROWS) -> Split:
    """Training rows and targets, test rows and targets; targets have a spread of about one."""
    name = problem.removesuffix(", large")
    n = 3 * rows if name != problem else rows
    if name in FUNCTIONS:
        rng = np.random.default_rng(1000 + split)
        X, y, noise = FUNCTIONS[name](rng, n + TEST_ROWS)
        y = y + noise * rng.standard_normal(len(y))
        return X[:n], y[:n], X[n:], y[n:]
    if name == "pol":
        with np.load(data.folder() / "uci_gp" / "pol.npz", allow_pickle=False) as arrays:
            X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64).ravel()
        order = np.random.default_rng(split).permutation(len(y))
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        X, y = X[order], y[order]
        return X[:n], y[:n], X[n : n + TEST_ROWS], y[n : n + TEST_ROWS]
    taken = data.standardised(name, 600 if name == "german" else n, split)
    if taken is None:
        raise SystemExit(f"{name} is not at hand: RIDGEFOLD_DATA names the folder of tables")
    X, y, new, truth = taken
    return X, y, new[:TEST_ROWS], truth[:TEST_ROWS]


# -- fits ----------------------------------------------------------------------------------


def arguments_of(fit: str) -> dict[str, Any]:
    """What a kind of fit asks for."""
    from ridgefold import CellOptions

    kinds: dict[str, dict[str, Any]] = {
        "cells": {},
        "two kernels": {"kernel": ["rbf", "laplacian"]},
        "averages": {"partition": "random", "combine": "average"},
        "strata": {"partition": "stratified", "combine": "average", "n_partitions": 16},
        "refined": {
            "kernel": "rbf",
            "n_partitions": 8,
            "cells": CellOptions(refine="exact"),
        },
    }
    return kinds[fit]


def fitted_error(
    problem: str, split: int, rows: int, fit: str, changes: Mapping[str, Any]
) -> dict[str, float]:
    """Test error and processor time of one fit, and how many cells it has."""
    from ridgefold import PartitionedKernelRidge, PartitionedLSSVMClassifier

    X, y, new, truth = split_of(problem, split, rows)
    asked = {**arguments_of(fit), **changes, "fit_intercept": True}
    started = time.process_time()
    if problem in CLASSES:
        model = PartitionedLSSVMClassifier(**asked).fit(X, y)
        values = model.decision_function(new)
    else:
        model = PartitionedKernelRidge(**asked).fit(X, y)
        values = model.predict(new)
    seconds = time.process_time() - started
    error = float(np.sqrt(np.mean((values - truth) ** 2)))
    return {"error": error, "seconds": seconds, "cells": float(model.n_partitions_)}


def _child(switch: Callable[[], None] | None, arguments: tuple[Any, ...], answer: Any) -> None:
    import warnings

    warnings.simplefilter("ignore")
    if switch is not None:
        switch()
    answer.send(fitted_error(*arguments))


def in_child(switch: Callable[[], None] | None, *arguments: Any) -> dict[str, float]:
    """A fit in a process of its own, in which something is switched off."""
    split_of(*arguments[:3])  # made once, for all children
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(switch, arguments, send))
    process.start()
    send.close()
    answer: dict[str, float] = receive.recv()
    process.join()
    return answer


# -- heuristics ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Heuristic:
    """One way to fit with less, and where it is measured."""

    without: str
    switch: Callable[[], None] | None = None
    """Called in the process of the fit before it."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the estimator that are different without it."""
    fit: str = "cells"
    problems: tuple[str, ...] = NARROW


def searches(**values: Any) -> Callable[[], None]:
    """Other numbers for searches in cells."""

    def switch() -> None:
        from ridgefold.cells import local_search
        from ridgefold.records import CELL_SEARCH

        for name, value in values.items():
            object.__setattr__(CELL_SEARCH, name, value)
        local_search.search_pairs.__defaults__ = (CELL_SEARCH.pairs,)
        local_search.search_near.__defaults__ = (CELL_SEARCH.pairs,)

    return switch


def put(path: str, value: Any) -> Callable[[], None]:
    """Another value of a name of a module, such as `cells.local_search._WORTH_MOVING`."""

    def switch() -> None:
        module, name = path.rsplit(".", 1)
        whole = importlib.import_module(f"ridgefold.{module}")
        assert hasattr(whole, name), path
        setattr(whole, name, value)

    return switch


def _pairs_chosen(**changes: Any) -> Callable[[], None]:
    def switch() -> None:
        from ridgefold.cells import partition_count, shared_pair

        def choose(*arguments: Any, **named: Any) -> Any:
            return shared_pair.choose_pair(*arguments, **{**named, **changes})

        partition_count.choose_pair = choose  # type: ignore[assignment]

    return switch


def _without_more_rows() -> None:
    """Large cells keep the pair that fewer rows of theirs chose."""
    from dataclasses import replace

    from ridgefold.cells import fitting, partition_count, shared_pair
    from ridgefold.records import CellSearch

    class FewRows(CellSearch):
        def core_rows(self, n_rows: int, *, overlap: bool) -> int:
            return 0

    def choose(*arguments: Any, limits: CellSearch, **named: Any) -> Any:
        values = {name: getattr(limits, name) for name in limits.__dataclass_fields__}
        few = replace(FewRows(), **values)
        return shared_pair.choose_pair(*arguments, limits=few, **named)

    partition_count.choose_pair = fitting.choose_pair = choose  # type: ignore[assignment]


def _without_quick_systems() -> None:
    from ridgefold.linalg.quick import QuickSolver

    QuickSolver.of = staticmethod(lambda *given: None)  # type: ignore[method-assign,assignment]


def _without_single_precision() -> None:
    from ridgefold.linalg import quick

    for limits in (quick._FOR_RESIDUALS, quick._FOR_SOLUTIONS):
        limits.pop(np.float32)


def _without_prepared_calls() -> None:
    """The inverse of the factor by LAPACK's own routines, in the same precision."""
    from scipy.linalg import lapack

    from ridgefold.linalg import quick

    class Lapack:
        def __init__(self, storage: np.ndarray) -> None:
            prefix = "s" if storage.dtype == np.float32 else "d"
            self.storage = storage
            self.factorise = getattr(lapack, prefix + "potrf")
            self.invert = getattr(lapack, prefix + "trtri")

        def play(self) -> bool:
            factor, failed = self.factorise(self.storage.T, clean=0, overwrite_a=1)
            return not failed and not self.invert(factor, overwrite_c=1)[1]

    made = quick._System.__init__

    def make(self: Any, *given: Any) -> None:
        made(self, *given)
        self._inversion = Lapack(self._storage)

    quick._System.__init__ = make  # type: ignore[method-assign,assignment]


def _without_members() -> None:
    from ridgefold.cells.distinct_rows import DistinctRows

    DistinctRows.are_draws = property(lambda self: False)  # type: ignore[assignment]


def _every_ridge(self: Any, kernel: int) -> Iterator[tuple[int, int]]:
    scores = np.empty(self._count)
    for alpha in range(self._count):
        scores[alpha] = yield kernel, alpha
    self._best[kernel] = int(np.argmin(scores))
    return scores


def _without_a_walk_over_ridges() -> None:
    from ridgefold.cells import local_search

    local_search._RidgeWalk.scores = _every_ridge  # type: ignore[method-assign,assignment]


def _any_thickness(grown: Any, spreads: Any) -> np.ndarray:
    return np.full(len(grown.cuts), np.inf)


def _guess(score: Any, first_guess: int, n_rows: int, loss: float, most_rows: float = 0) -> Any:
    return min(first_guess, n_rows // 32), ()


def _count_from_the_smallest(score: Any, first_guess: int, *rest: Any) -> Any:
    from ridgefold.cells import partition_count

    return partition_count.choose_count_of_average(score, 1 << 20, *rest)


def heuristics() -> list[Heuristic]:
    from ridgefold import CellOptions

    def options(**values: Any) -> dict[str, Any]:
        return {"cells": CellOptions(**values)}

    return [
        # -- where cells are cut
        Heuristic("slopes that guide the tree", changes={"partition": "principal"}),
        Heuristic("a floor under slopes", put("cells.cut.tree._FLOOR", 0.0)),
        Heuristic("overlap", changes=options(overlap=0.0)),
        Heuristic("bands by thickness", put("cells.cut.principal._thicknesses", _any_thickness)),
        Heuristic("less overlap in deep trees", put("cells.cut.principal.MOST_REPEATS", 1e9)),
        Heuristic(
            "rows that judge a direction found by others",
            put("cells.cut.principal._judges", lambda *given: None),
            problems=("300 columns", "one direction of 20", "pol"),
        ),
        Heuristic(
            "Lanczos steps for directions",
            put("cells.cut.base._by_lanczos", lambda *given: None),
            problems=("300 columns",),
        ),
        # -- how many
        Heuristic("a choice of size: 16 cells", changes={"n_partitions": 16}),
        Heuristic("a choice of size: 8 cells", changes={"n_partitions": 8}),
        Heuristic("a choice of size: 4 cells", changes={"n_partitions": 4}),
        Heuristic("a tolerated loss", changes=options(tolerance=0.0)),
        Heuristic("sizes compared in regions", searches(region_rows=1 << 40), problems=LARGE),
        Heuristic("near searches for further sizes", _pairs_chosen(good_start=False)),
        # -- which pair
        Heuristic("pairs compared on the core", searches(core=1.0)),
        Heuristic("a least number of core rows", searches(fewest_core_rows=0)),
        Heuristic("quick comparisons", _without_quick_systems),
        Heuristic("single precision", _without_single_precision),
        Heuristic("prepared calls of BLAS", _without_prepared_calls),
        Heuristic("pairs of a cell's own", changes=options(tuning="shared")),
        Heuristic("moves worth half a percent", put("cells.local_search._WORTH_MOVING", 1.0)),
        Heuristic("eight pairs at most", searches(pairs=1 << 30)),
        Heuristic("shared pairs in large cells", searches(largest_searched=1 << 30)),
        Heuristic("a second search for large cells", _without_more_rows),
        Heuristic("widths beyond the grid", put("cells.cell_grid._MORE_WIDTHS", 0)),
        Heuristic("a walk over ridges", _without_a_walk_over_ridges),
        Heuristic("every third ridge first", put("cells.local_search._RIDGES_APART", 1)),
        Heuristic("four cells that search widely", searches(pilots=2, near_pilots=2)),
        Heuristic("three of them near a start", searches(near_pilots=4)),
        Heuristic(
            "kernels that stay within a tenth",
            put("cells.local_search._CLOSE", 1.0),
            fit="two kernels",
        ),
        # -- what cells predict
        Heuristic("the coarse model", changes=options(coarse_model=None)),
        Heuristic("a least gain of the coarse model", put("cells.coarse_model._LEAST_GAIN", 0.0)),
        Heuristic("limits of predictions", changes=options(clip=False)),
        Heuristic("a quarter beyond the range", put("selection.limits._BEYOND", 0.0)),
        Heuristic("the range of all targets", put("selection.limits._PRECISE", math.inf)),
        Heuristic("wider limits without noise", put("selection.limits._PRECISE", 0.0)),
        Heuristic(
            "rows with the same x left out one by one",
            _without_members,
            problems=("800 places", "ccpp", "magic", "banana"),
        ),
        # -- averages and refinement
        Heuristic(
            "sizes tried for averages",
            put("cells.average_choice.choose_count_of_average", _guess),
            fit="averages",
        ),
        Heuristic(
            "a first guess for averages",
            put("cells.average_choice.choose_count_of_average", _count_from_the_smallest),
            fit="averages",
        ),
        Heuristic("strata", changes={"partition": "random"}, fit="strata"),
        Heuristic(
            "the smooth part in refining",
            put("cells.refine._rank_within", lambda *given: 1),
            fit="refined",
            problems=("ccpp", "kin8nm", "california", "a line", "friedman"),
        ),
    ]


# -- figures -------------------------------------------------------------------------------


def compared(heuristics: list[Heuristic], splits: tuple[int, ...], rows: int) -> dict[str, Any]:
    """Errors and times of every heuristic's problems, with and without it."""
    usual: dict[tuple[str, str, int], dict[str, float]] = {}
    table: dict[str, Any] = {each.without: {} for each in heuristics}

    def compare(each: Heuristic, problem: str, split: int) -> dict[str, Any]:
        given, case = (problem, split, rows, each.fit), (each.fit, problem, split)
        if case not in usual:
            runs = [in_child(None, *given, {}) for _ in range(REPEATS)]
            usual[case] = min(runs, key=lambda run: run["seconds"])
        least = in_child(each.switch, *given, each.changes)
        for _ in range(REPEATS - 1):
            if least["seconds"] > SETTLED * usual[case]["seconds"]:
                again = in_child(each.switch, *given, each.changes)
                least = min(least, again, key=lambda run: run["seconds"])
        return {"with": usual[case], "without": least}

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for split, each in itertools.product(splits, heuristics):
            runs = pool.map(partial(compare, each, split=split), each.problems)
            for problem, run in zip(each.problems, runs, strict=True):
                table[each.without].setdefault(problem, []).append(run)
            print(f"   {split} {each.without}: {summary(table[each.without])}", flush=True)
    return table


def ratios(runs: list[dict[str, Any]], what: str, power: float) -> float:
    """Without / with, the geometric mean over splits."""
    logs = [math.log(run["without"][what] / run["with"][what]) for run in runs]
    return math.exp(power * float(np.mean(logs)))


def summary(problems: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Means over problems, and the worst, of squared errors and of times."""
    told: dict[str, Any] = {}
    for name, what, power in (("squared error", "error", 2.0), ("time", "seconds", 1.0)):
        costs = {problem: ratios(runs, what, power) for problem, runs in problems.items()}
        worst = max(costs, key=lambda problem: costs[problem])
        mean = math.exp(float(np.mean(np.log(list(costs.values())))))
        told[name] = (round(mean, 3), worst, round(costs[worst], 3))
    return told


def figures_of(table: Mapping[str, Any], heuristics: list[Heuristic]) -> list[Figure]:
    figures = []
    for each in heuristics:
        told = summary(table[each.without])
        error, time_ = told["squared error"], told["time"]
        kind = "" if each.fit == "cells" else f" ({each.fit})"
        figures.append(
            Figure(
                f"without {each.without}{kind}: squared error",
                error[0],
                "times",
                detail={
                    f"at worst ({error[1]})": error[2],
                    "time": time_[0],
                    f"time at worst ({time_[1]})": time_[2],
                },
            )
        )
    return figures


def main(quick: bool) -> bool:
    import ridgefold  # noqa: F401 (what is imported here is there for all children)

    every = heuristics()
    if quick:
        every = [replace(each, problems=each.problems[-1:]) for each in every]
    table = compared(every, SPLITS[:1] if quick else SPLITS, 600 if quick else ROWS)
    figures = figures_of(table, every)
    if not quick:
        title = "What every heuristic of a fit in cells saves"
        measure.write_results("cell_heuristics", title, NOTES, figures, data={"problems": table})
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
