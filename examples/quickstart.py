"""
Quick start: choose, fit, predict, and say how sure
===================================================

The output of a power plant in MW from four measurements of the air: temperature, vacuum in the
condenser, pressure and humidity (bundled data of P. Tüfekci and H. Kaya). One line chooses the
width of the kernel and the ridge by exact cross-validation and fits the best pair to all rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from ridgefold import LSSVMRegressorCV
from ridgefold.tables import load_bundled

data = load_bundled("ccpp")
order = np.random.default_rng(0).permutation(len(data.y))
train, test = order[:900], order[900:3900]
mean, spread = data.X[train].mean(axis=0), data.X[train].std(axis=0)
X, X_new = (data.X[train] - mean) / spread, (data.X[test] - mean) / spread
y, y_new = data.y[train], data.y[test]

model = LSSVMRegressorCV(kernel=["rbf", "laplacian"], cv=5).fit(X, y)
predicted = model.predict(X_new)
error = np.sqrt(np.mean((predicted - y_new) ** 2))
print(f"chosen: {model.kernel_}, alpha = {model.alpha_:.2g}")
print(
    f"error on rows that took no part: {error:.2f} MW (spread of the target {y.std():.1f} MW)"
)

# %%
# The search has predicted every training row by a model that did not see it. Those residuals give
# the error to expect without any test rows, and intervals for new ones.

held_out = np.sqrt(np.mean((model.held_out_predictions_ - y) ** 2))
lower, upper = model.predict_interval(X_new, coverage=0.9)
inside = np.mean((lower <= y_new) & (y_new <= upper))
print(f"error expected from held-out rows: {held_out:.2f} MW")
print(f"90% intervals hold {inside:.1%} of the new targets")

# %%
# On the left, sixty new rows in the order of their predictions; on the right, the score of the best
# ridge for every width of both kernels.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
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

kernels, widths = (
    model.cv_results_[f"param_{name}"] for name in ("kernel", "length_scale")
)
errors = np.sqrt(-model.cv_results_["mean_test_score"])
for name, colour in (("rbf", "#1f5f99"), ("laplacian", "#d98c1f")):
    tried = np.unique(widths[kernels == name].astype(float))
    best = [np.min(errors[(kernels == name) & (widths == width)]) for width in tried]
    right.semilogx(tried, best, "o-", color=colour, label=name, markersize=4)
right.set(xlabel="length scale", ylabel="held-out error of the best ridge, MW")
right.legend(frameon=False)
plt.show()
