"""Coverage of intervals of average effects, and of the function, on simulated data."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import measure
from measure import Figure
from ridgefold import KernelRidgeCV
from ridgefold.kernels import RBF

SIMULATIONS, ROWS, COLUMNS, NOISE = 1000, 100, 3, 0.3
BY_CROSS_VALIDATION = 100
"""Simulations whose choice is by cross-validation, beside the others."""
Z = 1.959963984540054
WIDTHS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.7, 8.0)
ALPHAS = 10.0 ** np.arange(-4.0, 1.25, 0.5)
NOTES = f"""
{SIMULATIONS:,} simulations of {ROWS} rows of {COLUMNS} standard normal columns, of which the third
has no effect, and noise of standard deviation {NOISE}. Width and ridge of an RBF kernel with a bias
are chosen anew in each by marginal likelihood; beside it, in {BY_CROSS_VALIDATION} of them, by
5-fold cross-validation. Coverage is the share of the true averages of the slopes over the rows of
the simulation (three columns) that lie in `average ± 1.96` times `posterior_std` (the Bayesian
interval) or `standard_error` (new noise at the same rows), and of the true function at 20 new rows
that lies in the prediction ± 1.96 of `predict(X, return_std=True)`. Nominal is 95%; what is asked
for is 90 to 98% of the Bayesian interval of averages, with the choice by marginal likelihood.
"""


def gaussian_bump(x: np.ndarray) -> np.ndarray:
    return np.exp(-2.0 * x**2)


FUNCTIONS: dict[str, tuple[Callable[..., np.ndarray], tuple[Callable[..., np.ndarray], ...]]] = {
    "linear, x + 2y": (
        lambda x, y: x + 2.0 * y,
        (lambda x, y: np.ones_like(x), lambda x, y: np.full_like(y, 2.0)),
    ),
    "smooth, sin x + y²/2": (
        lambda x, y: np.sin(x) + y**2 / 2,
        (lambda x, y: np.cos(x), lambda x, y: y),
    ),
    "product, x·y": (lambda x, y: x * y, (lambda x, y: y, lambda x, y: x)),
    "bump, exp(−2x²) + y": (
        lambda x, y: gaussian_bump(x) + y,
        (lambda x, y: -4.0 * x * gaussian_bump(x), lambda x, y: np.ones_like(y)),
    ),
    "steep, tanh 5x + y": (
        lambda x, y: np.tanh(5.0 * x) + y,
        (lambda x, y: 5.0 / np.cosh(5.0 * x) ** 2, lambda x, y: np.ones_like(y)),
    ),
    "wavy, sin 4x + cos 2y": (
        lambda x, y: np.sin(4.0 * x) + np.cos(2.0 * y),
        (lambda x, y: 4.0 * np.cos(4.0 * x), lambda x, y: -2.0 * np.sin(2.0 * y)),
    ),
}


def one(name: str, seed: int, scoring: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each interval holds its truth: Bayesian, conditional, and of the function."""
    function, slopes = FUNCTIONS[name]
    rng = np.random.default_rng((seed, len(name)))
    X, new = rng.standard_normal((ROWS, COLUMNS)), rng.standard_normal((20, COLUMNS))
    y = function(X[:, 0], X[:, 1]) + NOISE * rng.standard_normal(ROWS)
    truth = np.array([*(float(np.mean(s(X[:, 0], X[:, 1]))) for s in slopes), 0.0])
    kernels = [RBF(width) for width in WIDTHS]
    model = KernelRidgeCV(ALPHAS, kernel=kernels, fit_intercept=True, scoring=scoring).fit(X, y)
    effects = model.marginal_effects()
    off = np.abs(effects.average - truth)
    mean, std = model.predict(new, return_std=True)
    inside = np.abs(mean - function(new[:, 0], new[:, 1])) <= Z * std
    return off <= Z * effects.posterior_std, off <= Z * effects.standard_error, inside


Shares = tuple[list[float], list[float]]
"""Coverage in percent of the three intervals, and of the Bayesian one by column."""


def shares_of(name: str, scoring: str | None, count: int) -> Shares:
    found = [one(name, seed, scoring) for seed in range(count)]
    shares = [100 * float(np.mean([each[k] for each in found])) for k in range(3)]
    return shares, (100 * np.mean([each[0] for each in found], axis=0)).tolist()


def figure_of(name: str, scoring: str | None, words: str, shares: Shares) -> Figure:
    (bayesian, conditional, function), columns = shares
    return Figure(
        f"{name}, chosen by {words}: distance of Bayesian coverage from 90–98%",
        max(0.0, 90.0 - bayesian, bayesian - 98.0),
        "points",
        at_most=0.0 if scoring else None,
        detail={
            "Bayesian, %": bayesian,
            "standard error, %": conditional,
            "function at new rows, %": function,
            **{f"Bayesian, column {j}, %": float(c) for j, c in enumerate(columns)},
        },
    )


def write(figures: list[Figure]) -> None:
    table = ["| function | chosen by | Bayesian, averages | standard error, averages | function |"]
    table.append("|---|---|---|---|---|")
    for figure in figures:
        name, words = figure.what.split(": ")[0].split(", chosen by ")
        bayesian, conditional, function = list(figure.detail.values())[:3]
        table.append(
            f"| {name} | {words} | {bayesian:.1f}% | {conditional:.1f}% | {function:.1f}% |"
        )
    measure.write_results(
        "effect_intervals", "Intervals of effects", NOTES, figures, more="\n".join(table)
    )


def main(quick: bool) -> bool:
    figures: list[Figure] = []
    for words, scoring in (("likelihood", "marginal_likelihood"), ("cross-validation", None)):
        count = 5 if quick else (SIMULATIONS if scoring else BY_CROSS_VALIDATION)
        for name in FUNCTIONS:
            figures.append(figure_of(name, scoring, words, shares_of(name, scoring, count)))
            print(figures[-1].what, figures[-1].detail, flush=True)
    if not quick:
        write(figures)
    return quick or measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
