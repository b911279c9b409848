"""What standard deviations, the likelihood and slopes cost beside what they are made of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from scipy.linalg import blas

import measure
from measure import Figure
from ridgefold import KernelRidgeCV, LSSVMRegressor, Search
from ridgefold.kernels import RBF, Laplacian

REPEATS = 9
NOTES = """
Processor seconds on one thread, the best of nine in one process (of two for choices). The factor of
the training rows is there before standard deviations are timed; a triangular solve is BLAS's `trsm`
with that factor and as many right-hand sides. The likelihood and the cross-validation choose among
the same five widths and twenty ridges.
"""
ALPHAS = np.logspace(-3, 1, 20)
WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0)


def best(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    seconds = []
    for _ in range(repeats):
        started = measure.processor_seconds()
        call()
        seconds.append(measure.processor_seconds() - started)
    return min(seconds)


def rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.3 * rng.standard_normal(n)


def deviations(n: int, m: int) -> Figure:
    X, y = rows(n, 8)
    new = np.random.default_rng(1).standard_normal((m, 8))
    model = LSSVMRegressor(0.1, kernel=RBF(3.0)).fit(X, y)
    factor = np.linalg.cholesky(RBF(3.0)(X) + 0.1 * np.eye(n))
    right = np.asfortranarray(np.random.default_rng(2).standard_normal((n, m)))
    model.predict(new[:2], return_std=True)
    solve = best(lambda: blas.dtrsm(1.0, factor.T, right, trans_a=1))
    ours = best(lambda: model.predict(new, return_std=True))
    return Figure(
        f"standard deviations of {m} rows, n = {n}: time / one triangular solve",
        ours / solve,
        at_most=1.3,
        detail={"seconds": ours, "seconds of the solve": solve},
    )


def likelihood(n: int) -> Figure:
    X, y = rows(n, 5)
    kernels = [RBF(width) for width in WIDTHS]
    full = Search(race="full")

    def fit(scoring: str | None) -> float:
        return best(
            lambda: KernelRidgeCV(ALPHAS, kernel=kernels, scoring=scoring, search=full).fit(X, y), 2
        )

    ours, held_out = fit("marginal_likelihood"), fit(None)
    return Figure(
        f"choice by likelihood, n = {n}: time / choice by cross-validation",
        ours / held_out,
        at_most=1.5,
        detail={"seconds": ours, "seconds by cross-validation": held_out},
    )


def slopes(n: int, m: int, kernel: Any, d: int) -> Figure:
    X, y = rows(n, d)
    new = np.random.default_rng(1).standard_normal((m, d))
    model = LSSVMRegressor(0.1, kernel=kernel).fit(X, y)
    prediction = best(lambda: model.predict(new))
    ours = best(lambda: model.predict_gradient(new))
    name = type(kernel).__name__
    return Figure(
        f"slopes along {d} columns, {name}, n = {n}: time / {d + 2} predictions",
        ours / prediction / (d + 2),
        at_most=1.0,
        detail={"seconds": ours, "seconds of one prediction": prediction},
    )


def main(quick: bool) -> bool:
    n, m = (400, 100) if quick else (3000, 1000)
    figures = [
        deviations(n, m),
        likelihood(300 if quick else 1500),
        slopes(n, m, RBF(3.0), 10),
        slopes(n, m, Laplacian(3.0), 10),
    ]
    for figure in figures:
        print(figure.what, figure.measured, flush=True)
    if quick:
        return True
    measure.write_results("uncertainty", "Standard deviations, likelihood, slopes", NOTES, figures)
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
