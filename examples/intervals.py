"""
Intervals, and whether they hold what they say
==============================================

``predict_interval`` gives exact CV+ or jackknife+ intervals (Barber, Candès, Ramdas and Tibshirani
2021) without refitting anything. Whether 90% intervals hold 90% of new targets is a question for
data: here noise is drawn anew many times, and targets that the models did not see are counted.
"""

import matplotlib.pyplot as plt
import numpy as np

from ridgefold import LSSVMRegressor, LSSVMRegressorCV

rng = np.random.default_rng(0)


def observe(x):
    return np.sin(1.5 * x) + 0.15 * x + 0.25 * rng.standard_t(4, size=len(x))


def draw(n):
    x = rng.uniform(-4, 4, size=n)
    return x[:, None], observe(x)


X, y = draw(120)
model = LSSVMRegressorCV(cv=5).fit(X, y)
shown_X, shown_y = X, y
grid = np.linspace(-4, 4, 300)[:, None]
lower, upper = model.predict_interval(grid, coverage=0.9)
print(
    f"{model.intervals_.method}: {model.intervals_.kept_numbers} numbers kept beside the model"
)

# %%
# The noise has heavy tails (Student's t with four degrees of freedom). Thirty samples of 120 rows
# each choose their width and ridge, and 400 new targets are compared with intervals of five sizes.
# Then the same with jackknife+, at the pair that the search chose.

asked = np.array([0.5, 0.7, 0.8, 0.9, 0.95])
found = {"CV+": [], "jackknife+": []}
for _ in range(30):
    X, y = draw(120)
    X_new, y_new = draw(400)
    search = LSSVMRegressorCV(cv=5).fit(X, y)
    plain = LSSVMRegressor(
        search.alpha_, kernel=search.kernel_, intervals="jackknife+"
    ).fit(X, y)
    for name, fitted in (("CV+", search), ("jackknife+", plain)):
        inside = []
        for coverage in asked:
            low, high = fitted.predict_interval(X_new, coverage)
            inside.append(np.mean((low <= y_new) & (y_new <= high)))
        found[name].append(inside)
for name, shares in found.items():
    means = np.mean(shares, axis=0)
    print(
        f"{name:11}"
        + "".join(f"  {a:.0%}: {m:.1%}" for a, m in zip(asked, means, strict=True))
    )

# %%

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.5), layout="constrained", width_ratios=(3, 2)
)
left.fill_between(grid[:, 0], lower, upper, color="#cfe0f0", label="90% interval")
left.plot(grid[:, 0], model.predict(grid), color="#1f5f99", label="prediction")
left.plot(
    shown_X[:, 0], shown_y, ".", color="#222222", markersize=4, label="training rows"
)
left.set(xlabel="x", ylabel="y")
left.legend(frameon=False, fontsize=8, loc="upper left")

right.plot([0.45, 1], [0.45, 1], color="#999999", linewidth=1)
for (name, shares), colour, shift in zip(
    found.items(), ("#1f5f99", "#d98c1f"), (-0.004, 0.004), strict=True
):
    error = 2 * np.std(shares, axis=0) / np.sqrt(len(shares))
    right.errorbar(
        asked + shift,
        np.mean(shares, axis=0),
        error,
        fmt="o",
        color=colour,
        label=name,
        markersize=4,
    )
right.set(
    xlabel="asked for",
    ylabel="share of new targets inside",
    xlim=(0.45, 1),
    ylim=(0.45, 1),
    aspect="equal",
)
right.legend(frameon=False)
plt.show()
