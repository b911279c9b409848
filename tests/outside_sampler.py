"""A program that runs fits under a memory budget and looks at them from outside.

Every case runs in a process of its own, forked from one that has imported and loaded what it needs.
The case says where it stands before the call and waits after it, while its parent reads the
high-water mark of its memory. Printed is one line of JSON a case: its name, the budget in bytes,
the peak beyond the start, and the class of the error if there was one.

Usage: python outside_sampler.py budget|limit small|full
"""

import contextlib
import json
import os
import sys
import traceback
import warnings
from functools import partial

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", RIDGEFOLD_RATES="default")

import numpy as np

import ridgefold as rf

Cells = rf.PartitionedLSSVMRegressor


def rows(n, d=5):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2 % d] + 0.1 * rng.standard_normal(n)


def labels(n):
    X, y = rows(n)
    return X, (y > 0).astype(int)


def whole_numbers(n):
    return np.random.default_rng(1).integers(0, 3, n)


EXACT = {
    "one fit": lambda n, b: rf.KernelRidge(kernel="rbf", **b).fit(*rows(n)),
    "laplacian": lambda n, b: rf.KernelRidge(kernel="laplacian", **b).fit(*rows(n)),
    "one fit, predict": lambda n, b: (
        rf.KernelRidge(kernel="rbf", **b).fit(*rows(n)).predict(rows(5 * n)[0])
    ),
    "cv+": lambda n, b: (
        rf.KernelRidge(kernel="rbf", intervals="cv+", **b)
        .fit(*rows(n))
        .predict_interval(rows(n)[0])
    ),
    "jackknife+": lambda n, b: (
        rf.KernelRidge(kernel="rbf", intervals="jackknife+", **b)
        .fit(*rows(n))
        .predict_interval(rows(n)[0])
    ),
    "search": lambda n, b: rf.KernelRidgeCV(kernel="rbf", alpha=[0.01, 1.0], **b).fit(*rows(n)),
    "average of folds": lambda n, b: rf.KernelRidgeCV(
        kernel="rbf", alpha=[0.01, 1.0], search=rf.Search(average_folds=True), **b
    ).fit(*rows(n)),
    "learned scales": lambda n, b: rf.KernelRidgeCV(metric="learned", **b).fit(*rows(n)),
    "kernel chosen": lambda n, b: rf.KernelRidgeCV(kernel="auto", **b).fit(*rows(n // 3)),
    "many targets": lambda n, b: rf.KernelRidgeCV(kernel="rbf", **b).fit(
        rows(n)[0], rows(n, 30)[0]
    ),
    "regressor": lambda n, b: rf.LSSVMRegressor(**b).fit(*rows(n)),
    "regressor, search": lambda n, b: rf.LSSVMRegressorCV(alpha=[0.1], **b).fit(*rows(n)),
    "classifier": lambda n, b: rf.LSSVMClassifier(probability=True, **b).fit(*labels(n)),
    "classifier, search": lambda n, b: rf.LSSVMClassifierCV(alpha=[0.1], **b).fit(*labels(n)),
    "path": lambda n, b: rf.cross_val_path(*rows(n), **b),
}
CELLS = {
    "cells": lambda n, b: Cells(**b).fit(*rows(n)),
    "one cell": lambda n, b: Cells(n_partitions=1, **b).fit(*rows(n)),
    "given pair": lambda n, b: Cells(
        n_partitions=12, alpha=0.1, kernel_params={"length_scale": 1.0}, **b
    ).fit(*rows(n)),
    "cells, laplacian": lambda n, b: Cells(kernel="laplacian", **b).fit(*rows(n)),
    "cells, kernel chosen": lambda n, b: Cells(kernel="auto", **b).fit(*rows(n)),
    "cells, learned scales": lambda n, b: Cells(metric="learned", **b).fit(*rows(n)),
    "averaged cells": lambda n, b: Cells("random", combine="average", **b).fit(*rows(n)),
    "refined": lambda n, b: Cells(cells=rf.CellOptions(refine=2), **b).fit(*rows(n)),
    "weights": lambda n, b: Cells(**b).fit(*rows(n), sample_weight=whole_numbers(n)),
    "cells, threads": lambda n, b: Cells(compute=rf.Compute(n_jobs=3, executor="threads"), **b).fit(
        *rows(n)
    ),
    "cells, intervals": lambda n, b: (
        Cells(intervals="jackknife+", **b).fit(*rows(n)).predict_interval(rows(300)[0])
    ),
    "cells, predict": lambda n, b: (
        Cells(n_partitions=12, alpha=0.1, kernel_params={"length_scale": 1.0}, **b)
        .fit(*rows(n))
        .predict(rows(10 * n)[0])
    ),
    "cells of classes": lambda n, b: rf.PartitionedLSSVMClassifier(**b).fit(*labels(n)),
    "wide cells": lambda n, b: Cells(**b).fit(*rows(n, 50)),
}
SMALL = [
    "one fit",
    "jackknife+",
    "search",
    "learned scales",
    "many targets",
    "classifier",
    "cells",
    "one cell",
    "given pair",
    "averaged cells",
    "refined",
    "cells, threads",
    "cells, intervals",
    "cells, predict",
]
"""What is run by default: each takes one budget."""


def held(process, entry):
    with open(f"/proc/{process}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(entry))


def looked_at(work, few):
    """The peak of `work()` beyond its start, and its error, from outside the process that does it.

    `few()` is the same with few rows: it loads what the work needs."""
    begun, done, told, seen = os.pipe(), os.pipe(), os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        error = ""
        with contextlib.suppress(Exception):  # a budget may be refused here too
            few()
        os.write(begun[1], b".")
        os.read(seen[0], 1)
        try:
            work()
        except Exception as raised:
            ours = isinstance(raised, rf.errors.BudgetError)
            error = "BudgetError" if ours else traceback.format_exc()
        os.write(told[1], (error or "-").encode()[-4000:])
        os.read(done[0], 1)
        os._exit(0)
    os.read(begun[0], 1)
    start = held(process, "VmRSS")
    os.write(seen[1], b".")
    os.close(told[1])
    error = os.read(told[0], 4096).decode()
    peak = held(process, "VmHWM") - start if error else 0
    os.write(done[1], b".")
    status = os.waitpid(process, 0)[1]
    for pipe in (begun, done, seen):
        for end in pipe:
            os.close(end)
    os.close(told[0])
    return peak, f"died with {status}" if not error else error.strip("-")


def limited(work, more_bytes):
    """The same under a limit of the address space."""
    import resource

    def under_a_limit():
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + more_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        return work()

    return under_a_limit


def main(kind, size):
    warnings.simplefilter("ignore")
    every = {**EXACT, **CELLS}
    for name, case in every.items():
        if size == "small" and name not in SMALL:
            continue
        for megabytes in [25] if size == "small" else [20, 40, 80]:
            n = (2400 if name in CELLS else 900) if size == "small" else 3000
            budget = {"memory_budget": f"{megabytes}MB"}
            work, few = partial(case, n, budget), partial(case, 90, budget)
            if kind == "limit":
                work = limited(partial(case, n, {"memory_budget": "2GB"}), megabytes * 400_000)
            peak, error = looked_at(work, few)
            line = {"name": name, "budget": megabytes * 1e6, "peak": peak, "error": error}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
