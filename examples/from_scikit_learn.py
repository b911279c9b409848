"""
Moving from scikit-learn
========================

``ridgefold.KernelRidge`` takes the arguments of ``sklearn.kernel_ridge.KernelRidge`` and gives the
same predictions. Changing the import changes time and memory.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import sklearn.kernel_ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ridgefold
from ridgefold.tables import load_bundled

data = load_bundled("ccpp")
order = np.random.default_rng(0).permutation(len(data.y))
X, y = data.X[order], data.y[order]

settings = {"alpha": 0.1, "kernel": "rbf", "gamma": 0.5}
before = make_pipeline(StandardScaler(), sklearn.kernel_ridge.KernelRidge(**settings))
after = make_pipeline(StandardScaler(), ridgefold.KernelRidge(**settings))
before.fit(X[:1000], y[:1000])
after.fit(X[:1000], y[:1000])
difference = np.max(np.abs(before.predict(X[1000:]) / after.predict(X[1000:]) - 1))
print(f"largest relative difference of {len(X) - 1000:,} predictions: {difference:.1e}")

# %%
# A grid search becomes an estimator. Same folds, same grid, same choice, same scores.

Z = StandardScaler().fit_transform(X[:800])
t = y[:800] - y[:800].mean()
grid = {"gamma": [0.1, 0.3, 1.0, 3.0], "alpha": list(np.logspace(-4, 1, 11))}

started = time.perf_counter()
theirs = GridSearchCV(
    sklearn.kernel_ridge.KernelRidge(kernel="rbf"),
    grid,
    cv=5,
    scoring="neg_mean_squared_error",
).fit(Z, t)
search_seconds = {"GridSearchCV": time.perf_counter() - started}

started = time.perf_counter()
ours = ridgefold.KernelRidgeCV(
    grid["alpha"], gamma=grid["gamma"], cv=5, scoring="neg_mean_squared_error"
).fit(Z, t)
search_seconds["KernelRidgeCV"] = time.perf_counter() - started
print(f"GridSearchCV:  {theirs.best_params_}, score {theirs.best_score_:.6f}")
print(f"KernelRidgeCV: {ours.best_params_}, score {ours.best_score_:.6f}")

# %%
# Time of one fit. Its memory is one n × n matrix instead of three; that is measured in processes of
# their own, in ``benchmarks/results/fit.md``.

sizes = [500, 1000, 2000, 3000]
libraries = {
    "scikit-learn": sklearn.kernel_ridge.KernelRidge,
    "ridgefold": ridgefold.KernelRidge,
}
fit_seconds = {name: [] for name in libraries}
for n in sizes:
    rows = StandardScaler().fit_transform(X[:n])
    for name, estimator in libraries.items():
        times = []
        for _ in range(3):
            started = time.perf_counter()
            estimator(**settings).fit(rows, y[:n])
            times.append(time.perf_counter() - started)
        fit_seconds[name].append(min(times))
for name in libraries:
    print(f"{name:13} seconds " + " ".join(f"{s:7.3f}" for s in fit_seconds[name]))

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
colours = {"scikit-learn": "#d98c1f", "ridgefold": "#1f5f99"}
for name in libraries:
    left.loglog(sizes, fit_seconds[name], "o-", color=colours[name], label=name)
left.set(
    xlabel="rows", ylabel="seconds", title="one fit", xticks=sizes, xticklabels=sizes
)
left.minorticks_off()
left.legend(frameon=False)
bars = right.bar(
    list(search_seconds),
    list(search_seconds.values()),
    color=list(colours.values()),
    width=0.5,
)
right.bar_label(bars, [f"{s:.2g} s" for s in search_seconds.values()], padding=3)
pairs = len(grid["gamma"]) * len(grid["alpha"])
right.set(ylabel="seconds", title=f"5 folds × {pairs} pairs, 800 rows")
right.margins(y=0.15)
plt.show()
