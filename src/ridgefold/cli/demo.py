"""`ridgefold demo`: the main job on bundled data, in half a minute."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from ridgefold.cli.exit_codes import command, require_free
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.options import plain_text
from ridgefold.tables import load_bundled

_TEST_ROWS = 2000
_ROWS_TO_CHOOSE_ON = 1500


@command
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page to write about the model.")
    ] = Path("ridgefold-demo.html"),
    force: Options.Force = False,
) -> None:
    """Choose a model of a power plant's output by cross-validation, fit it and report on it."""
    require_free(output, force)
    from ridgefold.estimators.kernel_ridge import KernelRidge
    from ridgefold.estimators.kernel_ridge_cv import KernelRidgeCV
    from ridgefold.report import write_report

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
    console.print(plain_text(str(search.explain())))
    console.print()
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
    write_report(
        search,
        output,
        X[test],
        y[test],
        target_name="electrical output, MW",
        title="Electrical output of a combined cycle power plant",
        force=force,
    )
    console.print(f"\nA page about the search: {output.resolve()}", markup=False, soft_wrap=True)
