"""Every kernel's textbook formula, for one pair of rows, written without the library.

By class, for objects with whatever parameters, and by the names that `kernel=` takes. A kernel
without an entry here fails `tests/kernels/test_registry.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cases import INDEFINITE, KERNELS
from ridgefold.kernels import (
    RBF,
    AdditiveChi2,
    CallableKernel,
    Categorical,
    Chi2,
    Columns,
    Constant,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    RationalQuadratic,
    Rotated,
    Scaled,
    Sigmoid,
    Sobolev,
    Sum,
    Warped,
)
from ridgefold.records import Quantile, SignedLog, Standardise


def dot(x, y):
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def scales_of(kernel, x):
    return np.broadcast_to(kernel.length_scale, len(x)).tolist()


def in_units(length_scale, x, y):
    """The differences of two rows, column by column, in length scales."""
    scales = np.broadcast_to(length_scale, len(x))
    return [(a - b) / s for a, b, s in zip(x, y, scales, strict=True)]


def squared_distance(length_scale, x, y):
    return math.fsum(z * z for z in in_units(length_scale, x, y))


def manhattan(length_scale, x, y):
    return math.fsum(abs(z) for z in in_units(length_scale, x, y))


def chi_squared(x, y):
    return math.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0)


def matern(distance, nu):
    r = math.sqrt(2 * nu) * distance
    return {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[nu] * math.exp(-r)


def warped(function, value):
    if isinstance(function, Standardise):
        return (value - function.centre) / function.spread
    if isinstance(function, SignedLog):
        moved = (value - function.centre) / function.unit
        return math.copysign(math.log1p(abs(moved)), moved) / function.spread
    return float(np.interp(value, function.knots, function.values))


FORMULAS: dict[type[Kernel], Callable[[Any, list[float], list[float]], float]] = {
    RBF: lambda k, x, y: math.exp(-squared_distance(k.length_scale, x, y) / 2),
    Laplacian: lambda k, x, y: math.exp(-manhattan(k.length_scale, x, y)),
    Matern: lambda k, x, y: matern(math.sqrt(squared_distance(k.length_scale, x, y)), k.nu),
    RationalQuadratic: lambda k, x, y: (
        (1 + squared_distance(k.length_scale, x, y) / (2 * k.shape)) ** -k.shape
    ),
    Categorical: lambda k, x, y: math.exp(
        -sum((a != b) / s for a, b, s in zip(x, y, scales_of(k, x), strict=True))
    ),
    Linear: lambda k, x, y: dot(x, y),
    Polynomial: lambda k, x, y: (k.gamma * dot(x, y) + k.coef0) ** k.degree,
    Sigmoid: lambda k, x, y: math.tanh(k.gamma * dot(x, y) + k.coef0),
    Cosine: lambda k, x, y: dot(x, y) / math.sqrt(dot(x, x) * dot(y, y)),
    Constant: lambda k, x, y: k.value,
    Sobolev: lambda k, x, y: math.prod(1 + min(a, b) for a, b in zip(x, y, strict=True)),
    AdditiveChi2: lambda k, x, y: -chi_squared(x, y),
    Chi2: lambda k, x, y: math.exp(-k.gamma * chi_squared(x, y)),
    CallableKernel: lambda k, x, y: abs(dot(x, y)) ** k.parameters["power"],
    Sum: lambda k, x, y: formula(k.left, x, y) + formula(k.right, x, y),
    Product: lambda k, x, y: formula(k.left, x, y) * formula(k.right, x, y),
    Scaled: lambda k, x, y: k.factor * formula(k.kernel, x, y),
    Columns: lambda k, x, y: formula(
        k.kernel, [x[j] for j in k.columns], [y[j] for j in k.columns]
    ),
    Rotated: lambda k, x, y: formula(
        k.kernel, [dot(each, x) for each in k.directions], [dot(each, y) for each in k.directions]
    ),
    Warped: lambda k, x, y: formula(
        k.kernel, list(map(warped, k.columns, x)), list(map(warped, k.columns, y))
    ),
}

NAMED: dict[str, Callable[..., float]] = {
    "additive_chi2": lambda x, y, **_: -chi_squared(x, y),
    "chi2": lambda x, y, gamma, **_: math.exp(-gamma * chi_squared(x, y)),
    "constant": lambda x, y, **_: 1.0,
    "cosine": lambda x, y, **_: dot(x, y) / math.sqrt(dot(x, x) * dot(y, y)),
    "laplacian": lambda x, y, gamma, **_: math.exp(-gamma * manhattan(1.0, x, y)),
    "linear": lambda x, y, **_: dot(x, y),
    "matern": lambda x, y, gamma, **_: matern(
        math.sqrt(2 * gamma * squared_distance(1.0, x, y)), 1.5
    ),
    "poly": lambda x, y, gamma, degree, coef0: (gamma * dot(x, y) + coef0) ** degree,
    "polynomial": lambda x, y, gamma, degree, coef0: (gamma * dot(x, y) + coef0) ** degree,
    "rational_quadratic": lambda x, y, gamma, **_: 1 / (1 + gamma * squared_distance(1.0, x, y)),
    "rbf": lambda x, y, gamma, **_: math.exp(-gamma * squared_distance(1.0, x, y)),
    "sigmoid": lambda x, y, gamma, coef0, **_: math.tanh(gamma * dot(x, y) + coef0),
    "sobolev": lambda x, y, **_: math.prod(1 + min(a, b) for a, b in zip(x, y, strict=True)),
}
"""By `kernel=`, with scikit-learn's gamma, degree and coef0."""


def power_of_product(x, y, power):
    return abs(float(x @ y)) ** power


EXAMPLES: dict[str, Kernel] = {
    **KERNELS,
    **INDEFINITE,
    "categorical": Categorical((0.5, 1.0, 2.0)),
    "categorical, gamma": Categorical(gamma=0.4),
    "callable": CallableKernel(power_of_product, {"power": 1.5}),
    "columns": Columns(Matern((0.5, 2.0), nu=2.5), [2, 0]),
    "columns of a product": Columns(RBF(0.5), [0, 1]) * Columns(Categorical(0.5), [2]),
    "rotated": Rotated(Matern((0.5, 2.0), nu=2.5), [[1.0, -0.5, 0.0], [0.3, 2.0, 1.0]]),
    "warped": Warped(
        RBF(0.7),
        (
            Standardise(0.4, 0.3),
            SignedLog(0.5, 0.1, 2.0),
            Quantile((0.0, 0.2, 0.5, 1.0), (-2.0, -1.0, 0.5, 2.0)),
        ),
    ),
}
"""Kernels of three columns of values in [0, 1], at least one of every class."""


def formula(kernel: Kernel, x: list[float], y: list[float]) -> float:
    return FORMULAS[type(kernel)](kernel, x, y)


def by_formula(kernel: Kernel, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Values for all pairs of rows, in float64 whatever the rows are."""
    A, B = A.astype(np.float64).tolist(), B.astype(np.float64).tolist()
    return np.array([[formula(kernel, x, y) for y in B] for x in A])
