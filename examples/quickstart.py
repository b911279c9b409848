"""Fit, compare kernels, weigh rows, classify, and predict from few training rows.

Run it with `python examples/quickstart.py`; it takes a few seconds.
"""

import numpy as np

from ridgefold import KernelRidge, LSSVMClassifier
from ridgefold.kernels import RBF, Linear, Matern
from ridgefold.storage import load_bundled


def standardised(X: np.ndarray, n_train: int) -> np.ndarray:
    return (X - X[:n_train].mean(axis=0)) / X[:n_train].std(axis=0)


def rmse(model: KernelRidge, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def regression() -> None:
    """The output of a power plant in MW from four measurements of the air."""
    data = load_bundled("ccpp")
    order = np.random.default_rng(0).permutation(len(data.y))[:4000]
    n = 3000
    X, y = standardised(data.X[order], n), data.y[order]

    print("kernel                                    error, MW   solver")
    for kernel in (Linear(), RBF(1.0), RBF((0.5, 1.0, 2.0, 2.0)), 10 * Matern(1.0) + Linear()):
        model = KernelRidge(0.1, kernel=kernel, fit_intercept=True).fit(X[:n], y[:n])
        print(f"{kernel!r:44.44}{rmse(model, X[n:], y[n:]):7.3f}   {model.plan_.method}")

    # A row of weight 2 counts as two rows, one of weight 0 not at all.
    weights = np.where(y[:n] > np.median(y[:n]), 2.0, 1.0)
    model = KernelRidge(0.1, kernel=RBF(1.0), fit_intercept=True)
    model.fit(X[:n], y[:n], sample_weight=weights)
    print(f"weighted towards high output:               {rmse(model, X[n:], y[n:]):7.3f}")

    # Predict from 300 of the 3000 training rows; the bound holds for every possible row.
    small = model.compress(300)
    print(f"from 300 training rows:                     {rmse(small, X[n:], y[n:]):7.3f}")
    change = np.max(np.abs(small.predict(X[n:]) - model.predict(X[n:])))
    print(f"  largest change {change:.2f} MW, bound {small.compression_bound_:.2f} MW")


def classification() -> None:
    """Good and bad credit risks, from 24 columns."""
    data = load_bundled("german")
    n = 700
    X, labels = standardised(data.X, n), np.where(data.y > 0, "good", "bad")
    model = LSSVMClassifier(3.0, gamma=0.02, class_weight="balanced").fit(X[:n], labels[:n])
    predicted = model.predict(X[n:])
    for label in model.classes_:
        found = np.mean(predicted[labels[n:] == label] == label)
        print(f"{label} risks recognised: {found:.0%}")


if __name__ == "__main__":
    regression()
    classification()
