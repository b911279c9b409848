"""
Rows that do not fit in memory
==============================

Rows in a file, a tenth of their size of memory for them: the model is fitted cell by cell from the
file, stopped in the middle, continued, and is the same as from rows in memory.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from ridgefold import Compute, PartitionedKernelRidge

rng = np.random.default_rng(0)
folder = tempfile.TemporaryDirectory()
path, run = Path(folder.name) / "rows.npy", Path(folder.name) / "run"


def wave(X):
    return np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.3 * X[:, 2]


X = rng.uniform(-3, 3, (40_000, 3))
y = wave(X) + 0.1 * rng.standard_normal(len(X))
np.save(path, X)
rows = np.load(path, mmap_mode="r")

# %%
# A budget below the size of the file: rows are put in the order of their cells on disk, and every
# task of cells writes what it has fitted to a file of its own in the run directory.

budget = rows.nbytes // 10
settings = {"n_partitions": 100, "alpha": 0.1, "kernel_params": {"length_scale": 1.0}}
model = PartitionedKernelRidge(
    memory_budget=budget, compute=Compute(run_dir=run), **settings
)
started = time.perf_counter()
model.fit(rows, y)
whole_time = time.perf_counter() - started
pieces = sorted((run / "cells").glob("*.piece"))
print(f"{rows.nbytes / 1e3:.0f} kB of rows, {budget / 1e3:.0f} kB of memory for them")
print(f"{model.n_partitions_} cells in {len(pieces)} files, {whole_time:.1f} s")

# %%
# As if the fit had been stopped: some files are missing. The same call makes only those, and a fit
# of other data or with other settings is refused. From rows in memory comes the same model, bit for
# bit.

left = range(0, len(pieces) + 1, 2)
seconds = []
for kept in left:
    for piece in pieces[kept:]:
        piece.unlink()
    started = time.perf_counter()
    again = PartitionedKernelRidge(
        memory_budget=budget, compute=Compute(run_dir=run), **settings
    )
    again.fit(rows, y)
    seconds.append(time.perf_counter() - started)

new = rng.uniform(-3, 3, (2000, 3))
predictions = model.predict(new)
in_memory = PartitionedKernelRidge(**settings).fit(X, y)
print("continued, the same:", np.array_equal(again.predict(new), predictions))
print("as from memory:", np.array_equal(in_memory.predict(new), predictions))
error = np.sqrt(np.mean((predictions - wave(new)) ** 2))
print(f"error against the function: {error:.4f} (noise of the targets: 0.1)")

# %%
# What is finished is not done again: the time of the call falls with the files that are there.

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot([100 * kept / len(pieces) for kept in left], seconds, "o-", color="#1f5f99")
ax.set(
    xlabel="finished when the fit was stopped, %",
    ylabel="time to go on, s",
    ylim=(0, None),
    title="A stopped fit goes on where it was",
)
plt.show()
folder.cleanup()
