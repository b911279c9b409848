"""`ridgefold demo`: the main job on bundled data, in less than a minute."""

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
from ridgefold.cli.options import messages, plain_text, require_positive
from ridgefold.tables import load_bundled

_TEST_ROWS = 2000
_TARGET = "output"


@command
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page to write about the model.")
    ] = Path("ridgefold-demo.html"),
    seconds: Annotated[
        float,
        typer.Option(
            "--time", help="Seconds for the fit, which ends sooner if nothing is left to gain."
        ),
    ] = 60.0,
    force: Options.Force = False,
) -> None:
    """Fit the best model of a power plant's output that a minute allows, and report on it."""
    require_free(output, force)
    require_positive("--time", seconds)
    from ridgefold.automatic.regressor import RidgefoldRegressor
    from ridgefold.report import write_report

    data = load_bundled("ccpp")
    order = np.random.default_rng(0).permutation(len(data.y))
    test, train = order[:_TEST_ROWS], order[_TEST_ROWS:]

    def table(rows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: data.X[rows, j] for j, name in enumerate(data.feature_names)}

    new, y_new = table(test), data.y[test]
    console = Console()
    console.print(
        f"Combined Cycle Power Plant: {len(train):,} hours to learn from, {len(test):,} to "
        f"predict; the output in MW from {', '.join(data.feature_names)}.\n"
    )
    model = RidgefoldRegressor(time_budget=seconds, verbose=int(messages().is_terminal))
    begun = time.perf_counter()
    model.fit({**table(train), _TARGET: data.y[train]}, target=_TARGET)
    took = time.perf_counter() - begun
    console.print(f"What was tried in {took:.1f} of {seconds:g} s, by 5-fold cross-validation:\n")
    console.print(plain_text(str(model.leaderboard_)), soft_wrap=True)
    lower, upper = model.predict_interval(new, coverage=0.9)
    inside = np.mean((lower <= y_new) & (y_new <= upper))
    console.print()
    console.print(_beside(data, train, test, model.predict(new)))
    console.print(
        f"\nExpected from held-out rows: {model.held_out_error_:.2f} MW. "
        f"90% intervals are ±{np.median(upper - lower) / 2:.1f} MW wide and hold {inside:.1%} of "
        "the new rows."
    )
    write_report(
        model,
        output,
        new,
        y_new,
        target_name="electrical output, MW",
        title="Electrical output of a combined cycle power plant",
        force=force,
    )
    console.print(f"\nA page about the model: {output.resolve()}", markup=False, soft_wrap=True)


def _beside(data: Any, train: np.ndarray, test: np.ndarray, predicted: np.ndarray) -> Table:
    """Errors on the test rows, beside those of simpler models and of gradient boosting."""
    from ridgefold.automatic.gradient_boosting import fitted_boosting
    from ridgefold.estimators.kernel_ridge import KernelRidge

    X, y = data.X[train], data.y[train]
    linear = KernelRidge(1.0, fit_intercept=True).fit(X, y)
    rows = [
        ("predicting the mean", np.full(len(test), y.mean())),
        ("a linear model", linear.predict(data.X[test])),
        ("scikit-learn's HistGradientBoosting", fitted_boosting(X, y).predict(data.X[test])),
        ("ridgefold", predicted),
    ]
    table = Table("model", "error on new rows, MW (RMSE)")
    for name, values in rows:
        table.add_row(name, f"{np.sqrt(np.mean((values - data.y[test]) ** 2)):.2f}")
    return table
