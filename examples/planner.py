"""
Ask the planner first
=====================

What will run, how long will it take, will it fit? Plans are made from shapes alone, so that there
is an answer before there are data. A plan that does not fit the memory is not started: another
method runs, or an error says what would do.
"""

import matplotlib.pyplot as plt
import numpy as np

import ridgefold
from ridgefold import KernelRidgeCV, Search

print(ridgefold.explain(n_samples=26_000, n_features=20, memory_budget="16GB"))

# %%
# The same question for a laptop: what fits is chosen, and everything that does not is listed with
# what it would need. These are predictions by the built-in rates of an ordinary core;
# :func:`ridgefold.calibrate` measures yours.

print(ridgefold.explain(n_samples=26_000, n_features=20, memory_budget="3GB"))

# %%
# Beyond what any method can do within the budget, the refusal names what would fit.

print(ridgefold.explain(n_samples=400_000, n_features=20, memory_budget="3GB"))

# %%
# A fit keeps to its plan. With a budget below the size of the kernel matrix, a method is chosen
# that never holds it, and the predictions are those of the ordinary fit.

rng = np.random.default_rng(0)
X = rng.standard_normal((2500, 5))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(2500)
alphas, gamma = [0.1, 1.0], 0.2
ample = KernelRidgeCV(alphas, gamma=gamma, search=Search(race="full")).fit(X, y)
scarce = KernelRidgeCV(
    alphas, gamma=gamma, memory_budget="30MB", search=Search(race="full")
).fit(X, y)
print(f"kernel matrix: {8 * 2500**2 / 1e6:.0f} MB; budget: 30 MB")
print(f"ample memory:  {ample.cv_plan_.method}, then {ample.plan_.method}")
print(f"scarce memory: {scarce.cv_plan_.method}, then {scarce.plan_.method}")
apart = np.max(np.abs(ample.predict(X) - scarce.predict(X)))
print(f"largest difference of predictions: {apart:.1e}")

# %%
# Predicted time and memory of every method that could run, by the number of rows.

sizes = np.unique(np.logspace(2.5, 5, 16).astype(int))
methods = ("eigendecomposition", "banded", "inverse_blocks", "block_recursive", "refit")
seconds, room = ({m: [] for m in methods} for _ in range(2))
for n in sizes:
    for method in methods:
        plan = ridgefold.explain(
            KernelRidgeCV(search=Search(method=method)),
            n_samples=int(n),
            n_features=20,
            memory_budget="10TB",
        )
        step = plan.steps[0]
        seconds[method].append(step["predicted_seconds"])
        room[method].append(step["predicted_bytes"] / 1e9)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.7), layout="constrained")
colours = ("#1f5f99", "#d98c1f", "#4b8f5c", "#8e5a9b", "#8a8a8a")
for (name, found), axis in zip((("seconds", seconds), ("GB", room)), axes, strict=True):
    for method, colour in zip(methods, colours, strict=True):
        axis.loglog(sizes, found[method], color=colour, label=method)
    axis.set(xlabel="rows", ylabel=f"predicted {name}")
axes[0].axhline(3600, color="#999999", linewidth=0.8, linestyle=":")
axes[0].annotate("an hour", (320, 4600), color="#666666", fontsize=8)
axes[1].axhline(16, color="#999999", linewidth=0.8, linestyle=":")
axes[1].annotate("16 GB", (320, 20), color="#666666", fontsize=8)
axes[0].legend(frameon=False, fontsize=8)
figure.suptitle(
    "5 folds × 25 ridge values, 20 columns, methods that are right to rounding",
    fontsize=10,
)
plt.show()
