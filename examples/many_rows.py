"""
Many rows, in cells without seams
=================================

A whole fit takes the square of the rows in memory and their cube in time. A partitioned model cuts
the rows into cells, chooses and fits in each, and puts the models together: both grow with the
rows. The rows here lie in a file that is never read whole.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from ridgefold import CellOptions, PartitionedKernelRidge
from ridgefold.cells.cut import Tree

rng = np.random.default_rng(0)


def wave(X):
    return np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + 0.3 * X[:, 1]


X = np.concatenate(
    [rng.normal(size=(12_000, 2)), rng.normal((2, 1), 0.3, size=(8_000, 2))]
)
y = wave(X) + 0.1 * rng.standard_normal(len(X))
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.npy"
np.save(path, X)

started = time.perf_counter()
model = PartitionedKernelRidge(cells=CellOptions(tuning="shared")).fit(
    np.load(path, mmap_mode="r"), y
)
print(
    f"{len(X):,} rows, {model.n_partitions_} cells, {time.perf_counter() - started:.1f} s"
)
for trial in model.trials_:
    print(f"  cells of {trial.cell_rows:5d} rows: held-out error {trial.error:.4f}")

new = rng.normal(size=(2000, 2))
error = np.sqrt(np.mean((model.predict(new) - wave(new)) ** 2))
print(f"error against the function: {error:.4f} (noise of the targets: 0.1)")

# %%
# Cells are balanced: small where rows are dense, large where they are not. Where every row asks
# only the cell it lies in (``combine="route"``), predictions jump from one cell to the next; cells
# that overlap and are blended have no such seams.

line = np.stack([np.linspace(-2.5, 2.5, 1500), np.full(1500, -1.6)], axis=1)
along = {}
for combine in ("route", "blend"):
    local = PartitionedKernelRidge(
        kernel_params={"length_scale": 0.6},
        n_partitions=64,
        combine=combine,
        alpha=0.05,
    )
    along[combine] = local.fit(X, y).predict(line)
    print(
        f"{combine}: largest step along the line {np.max(np.abs(np.diff(along[combine]))):.3f}"
    )

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
cells = Tree().fit(X, 64, 0.0, np.random.default_rng(0))
grid = np.stack(
    np.meshgrid(np.linspace(-3.2, 3.6, 500), np.linspace(-3.2, 3.2, 500)), axis=-1
)
owner = Tree().route(cells.router, grid.reshape(-1, 2)).reshape(grid.shape[:2])
shuffled = np.random.default_rng(3).permutation(64)
left.pcolormesh(
    grid[..., 0],
    grid[..., 1],
    shuffled[owner] % 20,
    cmap="tab20",
    alpha=0.35,
    shading="auto",
    rasterized=True,
)
some = rng.choice(len(X), 2500, replace=False)
left.plot(X[some, 0], X[some, 1], ".", color="#1f2d3d", markersize=1.2)
left.axhline(-1.6, color="#c0392b", linewidth=1)
left.set(
    xlabel="$x_1$",
    ylabel="$x_2$",
    xlim=(-3.2, 3.6),
    ylim=(-3.2, 3.2),
    title="64 cells of a tree",
)

right.axhline(0, color="#999999", linewidth=0.8)
for combine, colour in (("route", "#d98c1f"), ("blend", "#1f5f99")):
    right.plot(line[:, 0], along[combine] - wave(line), color=colour, label=combine)
right.set(
    xlabel="$x_1$ along the red line",
    ylabel="prediction − function",
    title="along the red line",
)
right.legend(frameon=False)
plt.show()
folder.cleanup()
