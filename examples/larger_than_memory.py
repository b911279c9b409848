"""
Data larger than the memory budget
==================================

Rows in a file four times as large as the memory that may be used: fitted cell by cell from disk,
stopped in the middle, continued, and the same model as from rows in memory.
"""

import tempfile
from pathlib import Path

import numpy as np

from ridgefold import PartitionedKernelRidge

rng = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    X = rng.uniform(-3, 3, (20_000, 4))
    y = (
        np.sin(2 * X[:, 0]) * np.cos(X[:, 1])
        + 0.3 * X[:, 2]
        + 0.1 * rng.standard_normal(len(X))
    )
    np.save(Path(folder) / "rows.npy", X)
    rows = np.load(Path(folder) / "rows.npy", mmap_mode="r")
    budget = rows.nbytes // 4
    print(
        f"{rows.nbytes / 1e3:.0f} kB of rows, {budget / 1e3:.0f} kB of memory for them"
    )

    settings = {"n_partitions": 60, "tuning": "shared", "run_dir": Path(folder) / "run"}
    model = PartitionedKernelRidge(**settings, memory_budget=budget).fit(rows, y)
    files = sorted(path for path in (Path(folder) / "run").rglob("*.piece"))
    print(
        f"{model.n_partitions_} cells; {len(files)} finished files in the run directory"
    )

    # As if the fit had been stopped: some cells are missing. The same call makes only those.
    for path in (Path(folder) / "run" / "cells").glob("*.piece"):
        if path.stem[-1] in "02468":
            path.unlink()
    again = PartitionedKernelRidge(**settings, memory_budget=budget).fit(rows, y)
    whole = PartitionedKernelRidge(n_partitions=60, tuning="shared").fit(X, y)

    new = rng.uniform(-3, 3, (1000, 4))
    print(
        "continued, the same model:",
        np.array_equal(again.predict(new), model.predict(new)),
    )
    print(
        "as from rows in memory:",
        np.array_equal(whole.predict(new), model.predict(new)),
    )
    truth = np.sin(2 * new[:, 0]) * np.cos(new[:, 1]) + 0.3 * new[:, 2]
    error = np.sqrt(np.mean((model.predict(new) - truth) ** 2))
    print(f"error against the true function: {error:.4f} (noise of the targets: 0.1)")
