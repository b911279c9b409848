"""
Classes, and probabilities that mean what they say
==================================================

A least-squares support vector machine is ridge regression on labels ±1: several classes come from
one factorisation. Its decision values become probabilities by a curve that is fitted to decision
values of rows that the models did not see, which the search has computed anyway.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import brier_score_loss

from ridgefold import LSSVMClassifierCV

rng = np.random.default_rng(0)


def draw(n):
    """Two classes that overlap; the probability of the second is known."""
    X = rng.uniform(-3, 3, size=(n, 2))
    radius = np.hypot(X[:, 0], 1.3 * X[:, 1])
    probability = 1 / (1 + np.exp(-4 * np.cos(1.6 * radius + 0.5 * X[:, 0])))
    return X, np.where(rng.uniform(size=n) < probability, "in", "out"), probability


X, labels, _ = draw(900)
X_new, labels_new, truth = draw(6000)
model = LSSVMClassifierCV(cv=5, probability=True).fit(X, labels)
inside = list(model.classes_).index("in")
estimated = model.predict_proba(X_new)[:, inside]
print(f"chosen: {model.kernel_}, alpha = {model.alpha_:.2g}")
print(
    f"right: {model.score(X_new, labels_new):.1%}; knowing the probabilities: "
    f"{np.mean((truth > 0.5) == (labels_new == 'in')):.1%}"
)
print(
    f"Brier score {brier_score_loss(labels_new == 'in', estimated):.3f}; knowing them: "
    f"{brier_score_loss(labels_new == 'in', truth):.3f}"
)

# %%
# A cost of mistakes enters by ``class_weight``: it moves the decision, and leaves the probabilities
# to be what they are.

careful = LSSVMClassifierCV(cv=5, class_weight={"in": 4.0, "out": 1.0}).fit(X, labels)
for name, fitted in (("equal", model), ("four to one", careful)):
    called = fitted.predict(X_new)
    missed = np.mean(called[labels_new == "in"] == "out")
    raised = np.mean(called[labels_new == "out"] == "in")
    print(
        f"{name:12} missed {missed:.1%} of 'in', called {raised:.1%} of 'out' by mistake"
    )

# %%

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.8), layout="constrained", width_ratios=(4, 3)
)
axis = np.linspace(-3, 3, 160)
grid = np.stack(np.meshgrid(axis, axis), axis=-1)
values = model.predict_proba(grid.reshape(-1, 2))[:, inside].reshape(160, 160)
filled = left.contourf(
    axis, axis, values, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.8
)
left.contour(axis, axis, values, levels=[0.5], colors="#222222", linewidths=1.2)
for label, marker in (("in", "^"), ("out", "v")):
    some = X[labels == label][:150]
    left.plot(
        some[:, 0],
        some[:, 1],
        marker,
        color="#a02c2c" if label == "in" else "#23527c",
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.5,
    )
figure.colorbar(filled, ax=left, label="probability of 'in'")
left.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")

edges = np.linspace(0, 1, 11)
bins = np.clip(np.digitize(estimated, edges) - 1, 0, 9)
mean = [estimated[bins == b].mean() for b in range(10) if np.any(bins == b)]
share = [np.mean(labels_new[bins == b] == "in") for b in range(10) if np.any(bins == b)]
right.plot([0, 1], [0, 1], color="#999999", linewidth=1)
right.plot(mean, share, "o-", color="#1f5f99", markersize=5)
right.set(
    xlabel="estimated probability",
    ylabel="share of new rows that were 'in'",
    aspect="equal",
    xlim=(0, 1),
    ylim=(0, 1),
)
plt.show()
