"""Learning length scales: time, cost of a step, what is found, and never worse than isotropic."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import data
import measure
from measure import Figure
from ridgefold import LSSVMClassifierCV, LSSVMRegressorCV, MetricLearning
from ridgefold.linalg import numpy_namespace
from ridgefold.metric import FAMILIES, HeldOutError, learn_metric
from ridgefold.metric.families import with_scales

NOTES = """
One thread, processor time. The products that a step of leave-one-out needs: Cholesky factor and
inverse of an n × n matrix, C diag(g) C as a symmetric product, and two products of an n × n matrix
with the rows (distances, and the contraction of their derivatives; for Manhattan distances these
are the loops themselves). The last part compares kernel="auto",
metric=MetricLearning(transforms="auto") with the default isotropic RBF kernel on the same rows:
test RMSE, or error rate for classes.
"""

REGRESSION = {
    "ctslice_682": 500,
    "blogfeedback": 1000,
    "ujiindoorloc": 1000,
    "protein": 1500,
    "cpusmall": 1500,
    "california": 1500,
    "ccpp": 1500,
    "kin8nm": 1500,
    "puma32h": 1500,
}
"""Sets and training rows."""
CLASSIFICATION = {"ripley": 250, "german": 700, "banana": 1000, "magic": 1000}
SPLITS = {"ripley": 10, "german": 10, "banana": 3, "magic": 3}
"""Of few test rows, one more that is wrong is a percent of the error rate: many splits."""


def synthetic(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 2] + 0.1 * rng.normal(size=n)


def time_to_learn(n: int, d: int) -> list[Figure]:
    X, y = synthetic(n, d)
    figures = []
    for name in ("rbf", "matern12", "laplacian"):
        for folds, words in ((None, "leave-one-out"), (5, "5 folds")):
            started = measure.processor_seconds()
            with measure.one_thread():
                metric = learn_metric(X, y, name, folds=folds)
            seconds = measure.processor_seconds() - started
            figures.append(
                Figure(
                    f"learn {d} scales from {n} rows, {name}, {words}",
                    seconds,
                    "s",
                    at_most=10.0,
                    detail={"steps": len(metric.history), "outside error": metric.outside_error},
                )
            )
    return figures


def cost_of_a_step(n: int, d: int) -> list[Figure]:
    X, y = synthetic(n, d)
    namespace = numpy_namespace()
    criterion = HeldOutError(X, y[:, None])
    weights = np.random.default_rng(1).uniform(size=n)
    rows = np.column_stack([X, np.ones((n, 2))])
    figures = []
    for name, family in FAMILIES.items():
        kernel = with_scales(family, np.full(d, float(d)))
        A = kernel(X) + 0.1 * np.eye(n)
        work = np.empty_like(A)

        def products(A: np.ndarray = A, work: np.ndarray = work, name: str = name) -> None:
            work[...] = A
            namespace.cholesky_in_place(work)
            namespace.inverse_from_cholesky_in_place(work)
            namespace.weighted_gram_of_rows(A, weights)
            for start in range(0, n, 128):
                stop = min(start + 128, n)
                if name == "laplacian":
                    namespace.manhattan_distances(X[start:stop], X[:stop], work[start:stop, :stop])
                    namespace.contract_manhattan(A[start:stop, :stop], X[start:stop], X[:stop])
                else:
                    np.matmul(rows[start:stop], rows[:stop].T, out=work[start:stop, :stop])
                    A[start:stop, :stop] @ rows[:stop]

        def step(kernel: object = kernel) -> None:
            criterion.value_and_gradient(kernel, 0.1)

        timings = measure.best_of({"step": step, "products": products}, repeats=7, most=25)
        figures.append(
            Figure(
                f"a step, {name}, {n} rows, {d} columns: time / its products",
                timings["step"].seconds / timings["products"].seconds,
                "times",
                at_most=1.3,
                detail={f"{key}, s": t.seconds for key, t in timings.items()},
            )
        )
    return figures


def puma(n: int) -> list[Figure]:
    """1,000 rows of puma32h: the error, and the columns found (theta4, theta5, tau3, tau4)."""
    rows = data.standardised("puma32h", n)
    if rows is None:
        return [Figure("puma32h", None, "data set not at hand")]
    X, y, X_test, y_test = rows
    model = LSSVMRegressorCV(kernel="auto", metric="learned").fit(X, y)
    share = float(np.mean((model.predict(X_test) - y_test) ** 2) / np.var(y_test))
    first = {3, 4, 16, 17}
    found = float(model.column_shares_[sorted(first)].sum())
    return [
        Figure(
            f"puma32h, {n} rows: test MSE / variance",
            share,
            f"({model.metric_.family})",
            at_most=0.04,
        ),
        Figure(
            "the same: share of theta4, theta5, tau3, tau4 together",
            found,
            "of 1",
            at_least=0.5,
        ),
    ]


def never_worse(name: str, n: int, *, classify: bool) -> Figure:
    """Mean error over splits, learned divided by isotropic; class labels need more splits."""
    splits = range(SPLITS.get(name, 1))
    errors = [one for split in splits if (one := compare(name, n, split, classify=classify))]
    what = f"{name}, {n} rows: learned / isotropic, {'error rate' if classify else 'RMSE'}"
    if not errors:
        return Figure(what, None, "data set not at hand")
    plain, plain_seconds, learned, seconds = np.mean(errors, axis=0).tolist()
    return Figure(
        what,
        learned / plain,
        f"times ({len(errors)} splits)",
        at_most=1.01,
        detail={
            "learned": learned,
            "isotropic": plain,
            "learned, s": seconds,
            "isotropic, s": plain_seconds,
        },
    )


def compare(name: str, n: int, split: int, *, classify: bool) -> tuple[float, ...] | None:
    """Test error and processor seconds of the isotropic model, then of the learned one."""
    rows = data.standardised(name, n, seed=split)
    if rows is None:
        return None
    X, y, X_test, y_test = rows
    X_test, y_test = X_test[:5000], y_test[:5000]
    if name == "blogfeedback":
        y, y_test = np.log1p(y), np.log1p(y_test)
    cls = LSSVMClassifierCV if classify else LSSVMRegressorCV
    found: list[float] = []
    for settings in ({}, {"kernel": "auto", "metric": MetricLearning(transforms="auto")}):
        with measure.one_thread():
            started = time.process_time()
            model = cls(**settings).fit(X, y)
            seconds = time.process_time() - started
        predicted = model.predict(X_test)
        if classify:
            found += [float(np.mean(predicted != y_test)), seconds]
        else:
            found += [float(np.sqrt(np.mean((predicted - y_test) ** 2))), seconds]
    return tuple(found)


def isotropic(quick: bool) -> Iterator[Figure]:
    if quick:
        yield never_worse("german", 200, classify=True)
        return
    for name, n in CLASSIFICATION.items():
        yield never_worse(name, n, classify=True)
    for name, n in REGRESSION.items():
        yield never_worse(name, n, classify=False)


def timing(quick: bool) -> Iterator[Figure]:
    n, d = (200, 8) if quick else (1000, 32)
    yield from time_to_learn(n, d)
    yield from cost_of_a_step(n, d)


def found(quick: bool) -> Iterator[Figure]:
    if not quick:
        yield from puma(1000)


PARTS = {"timing": timing, "found": found, "isotropic": isotropic}


def run(parts: Sequence[str], quick: bool) -> bool:
    """Measure some parts; the figures of the others stay as they are in the results."""
    path = measure.RESULTS / "learned_scales.json"
    known = json.loads(path.read_text(encoding="utf-8"))["parts"] if path.exists() else {}
    for part in parts:
        known[part] = []
        for figure in PARTS[part](quick):
            print(measure.markdown_table([figure]).split("\n", 2)[2], flush=True)
            known[part].append(asdict(figure))
            if not quick:
                figures = [Figure(**f) for p in PARTS for f in known.get(p, [])]
                measure.write_results(
                    "learned_scales", "Learning length scales", NOTES, figures,
                    data={"parts": known},
                )  # fmt: skip
    return quick or measure.all_held(figures)


def main(quick: bool) -> bool:
    return run(list(PARTS), quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    options = parser.parse_args()
    sys.exit(0 if run(options.only, options.quick) else 1)
