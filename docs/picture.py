"""Draw the picture of the README: `python docs/picture.py` writes docs/_static/ridgefold.png.

One fit of made-up data, and what it leaves behind: predictions with intervals, and the held-out
error of every pair of width and ridge; beside it, what the planner says of a larger problem.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ["RIDGEFOLD_RATES"] = "default"  # the same plan on every machine

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import ridgefold
from ridgefold import LSSVMRegressorCV, Search

BLUE, PALE, ORANGE, RED, INK, GREY = (
    "#1f5f99", "#cfe0f0", "#d98c1f", "#c0392b", "#22303c", "#8a8a8a",
)  # fmt: skip
METHODS = ("anchored", "banded", "eigendecomposition", "inverse_blocks", "refit")


def main() -> None:
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(-4, 4, size=160))
    y = np.sin(1.6 * x) * np.exp(-0.1 * x**2) + 0.35 * (np.abs(x - 0.9) < 0.35)
    y += 0.18 * rng.standard_normal(160)
    alphas = np.logspace(-4, 2, 43)
    widths = np.logspace(-1.1, 1.3, 41)
    order = rng.permutation(160)
    model = LSSVMRegressorCV(
        alphas, kernel_params={"length_scale": list(widths)}, cv=5, search=Search(race="full")
    )
    model.fit(x[order, None], y[order])

    plt.rcParams.update({"font.size": 9.5, "axes.edgecolor": GREY, "axes.labelcolor": INK,
                         "xtick.color": INK, "ytick.color": INK})  # fmt: skip
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained",
                                width_ratios=(3.4, 3, 2.7))  # fmt: skip
    figure.get_layout_engine().set(wspace=0.07)
    _predictions(axes[0], model, x, y)
    _scores(axes[1], model, alphas, widths)
    _methods(axes[2])
    for axis, title in zip(
        axes,
        ("Predict, and say how sure", "Every pair, exactly cross-validated", "Know the cost first"),
        strict=True,
    ):
        axis.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold")
        axis.spines[["top", "right"]].set_visible(False)
    path = Path(__file__).parent / "_static" / "ridgefold.png"
    figure.savefig(path, dpi=140, metadata={"Software": None})
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


def _predictions(axis: plt.Axes, model: LSSVMRegressorCV, x: np.ndarray, y: np.ndarray) -> None:
    grid = np.linspace(-4, 4, 400)[:, None]
    lower, upper = model.predict_interval(grid, coverage=0.9)
    axis.fill_between(grid[:, 0], lower, upper, color=PALE, label="90% interval")
    axis.plot(grid[:, 0], model.predict(grid), color=BLUE, linewidth=2, label="prediction")
    axis.plot(x, y, ".", color=INK, markersize=3.5, label="rows")
    axis.set(xlabel="x", ylabel="y", xlim=(-4, 4), ylim=(-1.6, 2.1))
    axis.legend(frameon=False, fontsize=8.5, ncols=3, loc="upper left", columnspacing=1.2,
                handlelength=1.4)  # fmt: skip


def _scores(
    axis: plt.Axes, model: LSSVMRegressorCV, alphas: np.ndarray, widths: np.ndarray
) -> None:
    results = model.cv_results_
    table = np.full((len(alphas), len(widths)), np.nan)
    for alpha, width, score in zip(
        results["param_alpha"], results["param_length_scale"], results["mean_test_score"],
        strict=True,
    ):  # fmt: skip
        row, column = np.argmin(np.abs(alphas - alpha)), np.argmin(np.abs(widths - width))
        table[row, column] = np.sqrt(-score)
    levels = np.geomspace(table.min(), 0.6, 14)
    filled = axis.contourf(widths, alphas, np.minimum(table, 0.599), levels, cmap="YlGnBu_r")
    best = model.best_params_
    axis.plot(best["length_scale"], best["alpha"], "*", color=RED, markersize=13,
              markeredgecolor="white", markeredgewidth=0.8)  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="width of the kernel", ylabel="ridge")
    bar = axis.figure.colorbar(filled, ax=axis, ticks=[0.2, 0.3, 0.4, 0.5], format="%.1f")
    bar.set_label("held-out error")
    bar.outline.set_visible(False)


def _methods(axis: plt.Axes) -> None:
    times = {}
    for method in METHODS:
        plan = ridgefold.explain(
            LSSVMRegressorCV(search=Search(method=method)),
            n_samples=10_000,
            n_features=20,
            memory_budget="1TB",
        )
        times[method] = plan.steps[0]["predicted_seconds"]
    times = dict(sorted(times.items(), key=lambda item: -item[1]))
    fastest = min(times, key=lambda name: times[name])
    bars = axis.barh(list(times), list(times.values()),
                     color=[BLUE if name == fastest else PALE for name in times])  # fmt: skip
    axis.bar_label(bars, [_minutes(t) for t in times.values()], padding=4, fontsize=8.5)
    axis.set(xlabel="predicted, 10,000 rows,\n5 folds × 25 ridge values")
    axis.margins(x=0.3)
    axis.set_xticks([])
    axis.minorticks_off()
    axis.tick_params(axis="y", length=0)
    axis.spines["bottom"].set_visible(False)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 100 else f"{seconds:.0f} s"


if __name__ == "__main__":
    main()
