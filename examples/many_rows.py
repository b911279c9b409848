"""Fit 20,000 rows in cells, from a file that is never read whole, and look at what was chosen."""

import tempfile
from pathlib import Path

import numpy as np

from ridgefold import PartitionedKernelRidge

rng = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "rows.npy"
    X = rng.uniform(-3, 3, (20_000, 3))
    np.save(path, X)
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.3 * X[:, 2] + 0.1 * rng.standard_normal(len(X))

    rows = np.load(path, mmap_mode="r")
    model = PartitionedKernelRidge(tuning="shared").fit(rows, y)
    for trial in model.trials_:
        print(f"cells of {trial.cell_rows:5d} rows: held-out error {trial.error:.4f}")
    print(f"chosen: {model.n_partitions_} cells")

    new = rng.uniform(-3, 3, (1000, 3))
    truth = np.sin(2 * new[:, 0]) * np.cos(new[:, 1]) + 0.3 * new[:, 2]
    error = np.sqrt(np.mean((model.predict(new) - truth) ** 2))
    print(f"error against the true function: {error:.4f} (noise of the targets: 0.1)")
