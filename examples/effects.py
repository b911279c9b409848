"""
What a model says of every column
=================================

Predictions of a kernel model are no sum of terms, but they have slopes. ``marginal_effects``
averages these over the rows, with standard errors, and shows how much they differ from row to row:
an average that hides two kinds of houses is no answer.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ridgefold import EffectsDisplay, LSSVMRegressorCV

rng = np.random.default_rng(0)
n = 400
houses = pd.DataFrame(
    {
        "size": rng.normal(100, 25, n),
        "age": rng.uniform(0, 60, n),
        "distance": rng.exponential(8, n),
        "garden": rng.integers(0, 2, n).astype(float),
    }
)
price = (
    2.0 * houses["size"]
    + 0.03 * (houses.age - 40) ** 2
    - 25 * np.log1p(houses.distance)
    + houses.garden * np.where(houses.distance < 8, 40.0, 5.0)
    + rng.normal(0, 8, n)
)
model = LSSVMRegressorCV(metric="learned").fit(houses, price)
effects = model.marginal_effects()
print(effects)

# %%
# A house loses with age until it is forty, then gains: the average slope is small, its quartiles
# are on both sides of zero. And a garden is worth more near the centre, as the wide bar of its
# differences says; the row-by-row effects show where.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
EffectsDisplay(effects=effects).plot(left)
garden = effects.pointwise[:, effects.names.index("garden: 0 → 1")]
right.scatter(houses.distance, garden, s=8, label="each house")
right.plot([0, 8, 8, 40], [40, 40, 5, 5], color="black", linewidth=1, label="truth")
right.set_xlabel("distance")
right.set_ylabel("effect of a garden on the price")
right.legend()
plt.show()

# %%
# As a Gaussian process, the model has standard deviations that grow where rows are rare.

line = houses.iloc[[0] * 60].assign(distance=np.linspace(0, 60, 60), garden=1.0)
mean, std = model.predict(line, return_std=True)
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.fill_between(line.distance, mean - 2 * std, mean + 2 * std, alpha=0.25, linewidth=0)
ax.plot(line.distance, mean)
ax.plot(houses.distance, np.full(n, ax.get_ylim()[0]), "|", color="gray")
ax.set_xlabel("distance")
ax.set_ylabel("price, with ± 2 standard deviations")
plt.show()
