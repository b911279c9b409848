"""
Quick start: a table in, predictions out, and how sure
======================================================

The output of a power plant in MW from four measurements of the air: temperature, vacuum in the
condenser, pressure and humidity (bundled data of P. Tüfekci and H. Kaya). Nothing is chosen by hand
but the seconds that the fit may take.
"""

import matplotlib.pyplot as plt
import numpy as np

from ridgefold import RidgefoldRegressor
from ridgefold.tables import load_bundled

data = load_bundled("ccpp")
order = np.random.default_rng(0).permutation(len(data.y))
train, test = order[:2000], order[2000:5000]


def table(rows):
    return {name: data.X[rows, j] for j, name in enumerate(data.feature_names)}


plant = {**table(train), "output": data.y[train]}
model = RidgefoldRegressor(time_budget=20).fit(plant, target="output")
predicted, y_new = model.predict(table(test)), data.y[test]
error = np.sqrt(np.mean((predicted - y_new) ** 2))
print(model.leaderboard_)
print(
    f"error on rows that took no part: {error:.2f} MW "
    f"(spread of the target {np.std(plant['output']):.1f} MW)"
)

# %%
# Every candidate has predicted every training row by models that did not see it. From these the weights
# of the candidates were found, the error to expect without any test rows, and intervals for new ones.

lower, upper = model.predict_interval(table(test), coverage=0.9)
inside = np.mean((lower <= y_new) & (y_new <= upper))
print(f"error expected from held-out rows: {model.held_out_error_:.2f} MW")
print(f"90% intervals hold {inside:.1%} of the new targets")

# %%
# On the left, sixty new rows in the order of their predictions; on the right, the error of each
# candidate alone, and of all together.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
few = np.argsort(predicted[:60])
place = np.arange(60)
outside = (y_new[few] < lower[few]) | (y_new[few] > upper[few])
left.vlines(
    place, lower[few], upper[few], color="#a9c4de", linewidth=3, label="90% interval"
)
left.plot(place, predicted[few], "_", color="#1f5f99", label="prediction")
left.plot(place[~outside], y_new[few][~outside], ".", color="#222222", label="measured")
left.plot(
    place[outside], y_new[few][outside], "x", color="#c0392b", label="measured, outside"
)
left.set(xlabel="new rows, by prediction", ylabel="output, MW")
left.legend(frameon=False, fontsize=8)

fitted = [each for each in model.leaderboard_ if each.held_out_error is not None]
names = ["together", *(each.candidate for each in fitted)]
errors = [model.held_out_error_, *(each.held_out_error for each in fitted)]
colours = ["#1f5f99", *("#a9c4de" if each.share else "#dddddd" for each in fitted)]
right.barh(names, errors, color=colours)
right.invert_yaxis()
right.set(xlabel="held-out error, MW")
right.tick_params(axis="y", labelsize=8)
plt.show()
