"""The jobs that `compare_checkouts.py` times, and the one process that runs one of them.

A job makes its data, then returns the call to measure and a function that says how good the result
is. Jobs use public names only. Where a name changed from one checkout to another, `RENAMED` has
both, the newest first: a job then runs in either.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import largest_child, measured_call, one_thread

RENAMED: dict[str, tuple[str, ...]] = {
    # name in the jobs below: what it may be called in a checkout
    "KernelRidgeCV": ("KernelRidgeCV",),
    "LSSVMClassifierCV": ("LSSVMClassifierCV",),
    "PartitionedLSSVMRegressor": ("PartitionedLSSVMRegressor", "PartitionedKernelRidge"),
    "alpha": ("alpha", "alphas"),
    "learn_scales": ("metric.scales", "learn_scales"),
    "learning_rows": ("metric.rows", "learning_rows"),
    "length_scale": ("kernel_params.length_scale", "length_scale"),
}
"""Public names of classes and parameters that differ between checkouts.

With a dot: an argument of the object, or an entry of the dict, that the estimator takes by the name
before it.
"""
_OBJECTS = {"metric": "MetricLearning"}
MEMORY = "4GB"

Measured = tuple[Callable[[], Any], Callable[[Any], float]]


def made(name: str, **settings: Any) -> Any:
    """An estimator by whatever name this checkout has for it, its arguments likewise."""
    import ridgefold

    known = [n for n in RENAMED.get(name, (name,)) if n in ridgefold.__all__]
    if not known:
        raise LookupError(f"this checkout has no {name}")
    estimator = getattr(ridgefold, known[0])
    accepted = inspect.signature(estimator).parameters
    given: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        names = [n for n in RENAMED.get(key, (key,)) if n.partition(".")[0] in accepted]
        if not names:
            raise LookupError(f"{known[0]} of this checkout has no {key}")
        argument, _, part = names[0].partition(".")
        if part:
            inner.setdefault(argument, {})[part] = value
        else:
            given[argument] = value
    for argument, parts in inner.items():
        made_of = getattr(ridgefold, _OBJECTS[argument]) if argument in _OBJECTS else dict
        given[argument] = made_of(**parts)
    return estimator(**given)


def rows(n: int, d: int = 6, seed: int = 0, *, noise: float = 0.2) -> tuple[Any, Any]:
    """Rows of a function that is smooth, with an interaction, and noisy."""
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, d))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + np.cos(X[:, 3:5].sum(axis=1))
    return X, y + noise * rng.standard_normal(n)


NEW = 2000


def error_of(model: Any, d: int = 6) -> float:
    """Root mean square error on new rows, which are the same in every job."""
    import numpy as np

    X, y = rows(NEW, d, seed=99, noise=0.0)
    return float(np.sqrt(np.mean((np.asarray(model.predict(X)) - y) ** 2)))


def fit_of(name: str, n: int, d: int = 6, **settings: Any) -> Measured:
    X, y = rows(n, d)
    return (
        lambda: made(name, memory_budget=MEMORY, **settings).fit(X, y),
        lambda model: error_of(model, d),
    )


def five_folds(n: int) -> Measured:
    return fit_of("KernelRidgeCV", n)


def leave_one_out(n: int) -> Measured:
    return fit_of("KernelRidgeCV", n, cv="loo")


def classifier(n: int) -> Measured:
    import numpy as np

    X, y = rows(n)
    new, truth = rows(NEW, seed=99, noise=0.0)
    return (
        lambda: made("LSSVMClassifierCV", memory_budget=MEMORY).fit(X, y > 0),
        lambda model: float(np.mean(np.asarray(model.predict(new)) != (truth > 0))),
    )


def cells(n: int) -> Measured:
    return fit_of("PartitionedLSSVMRegressor", n)


def cells_of_any_family(n: int) -> Measured:
    return fit_of("PartitionedLSSVMRegressor", n, kernel="auto")


def learned_scales(n: int) -> Measured:
    return fit_of("KernelRidgeCV", n, 12, learn_scales=True, learning_rows=n // 2)


def predict(n: int) -> Measured:
    """Predictions of a whole fit for many rows."""
    X, y = rows(n)
    model = made("KernelRidge", alpha=0.1, kernel="rbf", memory_budget=MEMORY).fit(X, y)
    return predictions_of(model, 10 * n)


def predict_in_cells(n: int) -> Measured:
    X, y = rows(n)
    settings = {"n_partitions": 16, "alpha": 0.1, "length_scale": 2.0}
    model = made("PartitionedLSSVMRegressor", memory_budget=MEMORY, **settings).fit(X, y)
    return predictions_of(model, 10 * n)


def predictions_of(model: Any, n: int) -> Measured:
    import numpy as np

    new, truth = rows(n, seed=99, noise=0.0)
    return (
        lambda: model.predict(new),
        lambda found: float(np.sqrt(np.mean((np.asarray(found) - truth) ** 2))),
    )


def intervals(n: int) -> Measured:
    """Exact jackknife+ intervals: what is kept when fitting, and both ends for new rows."""
    import numpy as np

    X, y = rows(n)
    new, _ = rows(NEW, seed=99)
    settings = {"alpha": 0.1, "kernel": "rbf", "intervals": "jackknife+"}

    def call() -> Any:
        return made("KernelRidge", memory_budget=MEMORY, **settings).fit(X, y).predict_interval(new)

    return call, lambda ends: float(np.mean(ends[1] - ends[0]))


def explained(n: int) -> Measured:
    """Plans for many shapes: nothing is fitted."""
    import ridgefold

    models = [
        made("KernelRidgeCV"),
        made("KernelRidgeCV", cv="loo"),
        made("PartitionedLSSVMRegressor"),
    ]

    def call() -> int:
        shapes = (
            {"n_samples": 1000 + k, "n_features": 8, "memory_budget": MEMORY} for k in range(n)
        )
        texts = [str(ridgefold.explain(model, **shape)) for shape in shapes for model in models]
        return len(texts)

    return call, float


def imports(n: int) -> Measured:
    """`import ridgefold` and an estimator, in fresh interpreters."""
    code = "import ridgefold; ridgefold.KernelRidgeCV"

    def call() -> None:
        for _ in range(n):
            subprocess.run([sys.executable, "-c", code], check=True)

    return call, lambda _: 0.0


def command_line(n: int) -> Measured:
    """`ridgefold fit`, `predict` and `report` on a table in a file."""
    import numpy as np

    folder = Path(tempfile.mkdtemp())
    X, y = rows(n)
    new, truth = rows(NEW, seed=99, noise=0.0)
    names = [f"x{j}" for j in range(X.shape[1])]
    for name, table, header in (
        ("train.csv", np.column_stack([X, y]), [*names, "y"]),
        ("new.csv", new, names),
    ):
        np.savetxt(folder / name, table, delimiter=",", header=",".join(header), comments="")
    code = "from ridgefold.cli import main; main()"

    def command(*arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def call() -> None:
        for path in folder.glob("made.*"):
            path.unlink()
        command("fit", "train.csv", "--target", "y", "--output", "made.model", "--memory", MEMORY)
        command("predict", "made.model", "new.csv", "--output", "made.csv")
        command("report", "made.model", "--output", "made.html")

    def error(_: None) -> float:
        found = np.genfromtxt(folder / "made.csv", delimiter=",", names=True)
        column = next(name for name in found.dtype.names or () if name not in names)
        return float(np.sqrt(np.mean((found[column] - truth) ** 2)))

    return call, error


@dataclass(frozen=True)
class Job:
    setup: Callable[[int], Measured]
    size: int
    quick_size: int
    goodness: str
    """What its result is judged by."""
    in_children: bool = False
    """True if the work is done by processes that the call starts."""


JOBS = {
    "five folds": Job(five_folds, 1500, 500, "test error"),
    "leave one out": Job(leave_one_out, 1500, 500, "test error"),
    "classifier": Job(classifier, 1000, 400, "wrong classes"),
    "cells": Job(cells, 8000, 2000, "test error"),
    "cells of any family": Job(cells_of_any_family, 4000, 1000, "test error"),
    "learned scales": Job(learned_scales, 1000, 300, "test error"),
    "predict": Job(predict, 3000, 1000, "test error"),
    "predict in cells": Job(predict_in_cells, 8000, 3000, "test error"),
    "intervals": Job(intervals, 1500, 500, "their width"),
    "explain": Job(explained, 300, 100, "plans"),
    "import": Job(imports, 2, 1, "", True),
    "command line": Job(command_line, 800, 200, "test error", True),
}
LEAST_SECONDS, MOST_CALLS = 1.0, 10
"""A call is repeated until so much time was measured; its best time counts."""


def run(name: str, size: int) -> dict[str, Any]:
    """Time, memory and goodness of one job in this process.

    The first call imports what is imported late: it has a time of its own, and a second call is
    measured. Where the work is done by other processes, all calls are alike.
    """
    import ridgefold

    job = JOBS[name]
    call, goodness = job.setup(size)
    with one_thread():
        first, result = measured_call(call)
        judged = goodness(result)
        del result
        runs = [first] if job.in_children else [measured_call(call)[0]]
        while sum(run.seconds for run in runs) < LEAST_SECONDS and len(runs) < MOST_CALLS:
            runs.append(measured_call(call)[0])
    return {
        "seconds": min(run.seconds for run in runs),
        "first seconds": first.seconds,
        "peak bytes": largest_child() if job.in_children else runs[0].peak_bytes,
        "goodness": judged,
        "source": str(Path(ridgefold.__file__).resolve().parent),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("size", type=int)
    options = parser.parse_args()
    os.environ.setdefault("RIDGEFOLD_RATES", "default")
    json.dump(run(options.job, options.size), sys.stdout)


if __name__ == "__main__":
    main()
