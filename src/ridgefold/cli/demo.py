"""`ridgefold demo`: the main job on bundled data, in half a minute."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ridgefold.records import Plan
from ridgefold.storage import load_bundled

_TEST_ROWS = 2000
_ROWS_TO_CHOOSE_ON = 1500


def demo() -> None:
    """Choose a model of a power plant's output by cross-validation, fit it and predict."""
    from ridgefold.estimators.kernel_ridge import KernelRidge
    from ridgefold.estimators.kernel_ridge_cv import KernelRidgeCV

    data = load_bundled("ccpp")
    order = np.random.default_rng(0).permutation(len(data.y))
    test, train = order[:_TEST_ROWS], order[_TEST_ROWS:]
    mean, spread = data.X[train].mean(axis=0), data.X[train].std(axis=0)
    X, y = (data.X - mean) / spread, data.y
    console = Console()
    console.print(
        f"Combined Cycle Power Plant: {len(train)} rows to fit, {len(test)} to predict, "
        f"{X.shape[1]} columns ({', '.join(data.feature_names)}).\n"
        f"Predicting the mean would be off by {np.std(y[test]):.2f} MW.\n"
    )
    started = time.perf_counter()
    few = train[:_ROWS_TO_CHOOSE_ON]
    search = KernelRidgeCV(kernel="rbf", cv=5, fit_intercept=True).fit(X[few], y[few])
    tried = len(search.cv_results_["params"])
    console.print(
        f"Chosen on {len(few)} rows from {tried} pairs of width and ridge by exact 5-fold "
        f"cross-validation in {time.perf_counter() - started:.1f} s:\n"
        f"  {search.kernel_}, alpha={search.alpha_:.3g}, "
        f"held-out error {np.sqrt(-search.best_score_):.2f} MW\n"
    )
    _print_plan(console, search.cv_plan_)
    table = Table("model", "solver", "fit, s", "predict, s", "error, MW (RMSE)")
    models: list[tuple[str, Any]] = [
        ("linear", KernelRidge(1.0, fit_intercept=True)),
        ("cubic polynomial", KernelRidge(1.0, kernel="polynomial", fit_intercept=True)),
        (
            "RBF as chosen",
            KernelRidge(search.alpha_, kernel=search.kernel_, fit_intercept=True),
        ),
    ]
    for name, model in models:
        started = time.perf_counter()
        model.fit(X[train], y[train])
        fitted = time.perf_counter()
        error = float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))
        table.add_row(
            name,
            model.plan_.method,
            f"{fitted - started:.2f}",
            f"{time.perf_counter() - fitted:.2f}",
            f"{error:.3f}",
        )
    console.print(table)


def _print_plan(console: Console, plan: Plan) -> None:
    """The method that was planned, and the others with the reason."""
    fallbacks = f", else {', '.join(plan.fallbacks)}" if plan.fallbacks else ""
    console.print(f"Cross-validation method: {plan.method}{fallbacks}")
    for rejection in plan.rejected:
        if rejection.method not in plan.fallbacks:
            console.print(f"  not {rejection.method}: {rejection.reason}", highlight=False)
    console.print()
