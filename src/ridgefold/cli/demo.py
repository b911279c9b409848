"""`ridgefold demo`: the main job on bundled data, in half a minute."""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from ridgefold.storage import load_bundled

_TEST_ROWS = 2000


def demo() -> None:
    """Fit a power plant's output with three kernels and print their errors."""
    from ridgefold.estimators.kernel_ridge import KernelRidge

    data = load_bundled("ccpp")
    order = np.random.default_rng(0).permutation(len(data.y))
    test, train = order[:_TEST_ROWS], order[_TEST_ROWS:]
    mean, spread = data.X[train].mean(axis=0), data.X[train].std(axis=0)
    X, y = (data.X - mean) / spread, data.y
    console = Console()
    console.print(
        f"Combined Cycle Power Plant: {len(train)} rows to fit, {len(test)} to predict, "
        f"{X.shape[1]} columns ({', '.join(data.feature_names)}).\n"
        f"Predicting the mean would be off by {np.std(y[test]):.2f} MW."
    )
    table = Table("kernel", "solver", "fit, s", "predict, s", "error, MW (RMSE)")
    for kernel, alpha in (("linear", 1.0), ("polynomial", 1.0), ("rbf", 0.1)):
        started = time.perf_counter()
        model = KernelRidge(alpha, kernel=kernel, fit_intercept=True).fit(X[train], y[train])
        fitted = time.perf_counter()
        error = float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))
        table.add_row(
            kernel,
            model.plan_.method,
            f"{fitted - started:.2f}",
            f"{time.perf_counter() - fitted:.2f}",
            f"{error:.3f}",
        )
    console.print(table)
