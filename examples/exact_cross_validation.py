"""
Exact cross-validation for free
===============================

Five-fold cross-validation of a hundred ridge values means five hundred fits, if every fold is
refitted for every value. All of them share one kernel matrix, and their held-out predictions
follow from one decomposition of it. Nothing is approximated: the curve below goes through the
points that plain refits give.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold

from ridgefold import cross_val_path
from ridgefold.tables import load_bundled

data = load_bundled("ccpp")
rows = np.random.default_rng(1).permutation(len(data.y))[:1500]
X = (data.X[rows] - data.X[rows].mean(axis=0)) / data.X[rows].std(axis=0)
y = data.y[rows] - data.y[rows].mean()
GAMMA = 1.0


def seconds(call):
    started = time.perf_counter()
    result = call()
    return result, time.perf_counter() - started


# %%
# A hundred ridge values at once, by two of the methods that are right to rounding, and by the one
# that the planner takes.

alphas = np.logspace(-4, 2, 100)
paths, times = {}, {}
for method in ("auto", "eigendecomposition", "banded"):
    paths[method], times[method] = seconds(
        lambda method=method: cross_val_path(
            X, y, gamma=GAMMA, alpha=alphas, method=method
        )
    )
    print(f"{method:18} ran {paths[method].method:18} {times[method]:.2f} s")

# %%
# The same by refitting, at eight of the hundred values.

some = alphas[::14]


def refits():
    errors = []
    for alpha in some:
        squares = []
        for train, test in KFold(5).split(X):
            model = KernelRidge(alpha=alpha, kernel="rbf", gamma=GAMMA).fit(
                X[train], y[train]
            )
            squares.append((model.predict(X[test]) - y[test]) ** 2)
        errors.append(np.mean(np.concatenate(squares)))
    return np.array(errors)


plain, refit_seconds = seconds(refits)
per_alpha = refit_seconds / len(some)
path = paths["eigendecomposition"]
largest = np.max(np.abs(np.interp(some, alphas, path.mse) / plain - 1))
print(
    f"{len(some)} ridge values by refits: {refit_seconds:.1f} s, a hundred would take "
    f"{100 * per_alpha:.0f} s"
)
print(f"largest relative difference of the errors: {largest:.1e}")

# %%
# The certificate of a method that is not exact to rounding is a bound on the error of every
# prediction; ``None`` means that there is nothing to bound.

for name, found in paths.items():
    bound = (
        "right to rounding"
        if found.certificate is None
        else f"{found.certificate.max():.1e}"
    )
    print(f"{name:18} {found.method:18} bound on the error of any prediction: {bound}")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.loglog(alphas, np.sqrt(path.mse), color="#1f5f99", label="one decomposition")
left.loglog(some, np.sqrt(plain), "o", color="#d98c1f", label="refits", markersize=7)
left.loglog(
    path.best_alpha,
    np.sqrt(path.mse.min()),
    "*",
    color="#c0392b",
    markersize=13,
    label="the best",
)
left.set(xlabel="ridge", ylabel="held-out error, MW")
left.minorticks_off()
left.set_yticks([5, 7, 10], ["5", "7", "10"])
left.legend(frameon=False)

bars = {"refits\n(from 8 of 100)": 100 * per_alpha} | {
    f"{name}\n({paths[name].method})" if name == "auto" else name: t
    for name, t in times.items()
}
colours = ["#d98c1f", "#1f5f99", "#1f5f99", "#1f5f99"]
shown = right.barh(list(bars), list(bars.values()), color=colours)
right.bar_label(shown, [f"{t:.2g} s" for t in bars.values()], padding=4)
right.set(xlabel="seconds for 5 folds × 100 ridge values", xlim=(0, 118 * per_alpha))
right.invert_yaxis()
plt.show()
