"""Which kernels and ridge values to try: those the user lists, or a grid from the data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from scipy.spatial.distance import pdist

from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.kernels import (
    NAMED_KERNELS,
    PRECOMPUTED,
    Kernel,
    KernelGram,
    KernelSettings,
    Laplacian,
    PrecomputedGram,
    resolve_kernel,
)
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.linalg import namespace_of
from ridgefold.runtime.training_data import TrainingData

_SAMPLE_ROWS = 500
"""Rows whose distances and spectrum lay out a grid: few enough for a matrix of all of them."""
_MADE_UP_ROWS = 8
"""Enough for a median distance, which nobody looks at."""
WIDTH_STEP = 2.0
"""How many times as wide the next kernel of a grid is."""
_WIDTH_STEPS = range(-3, 4)
_ALPHAS_A_DECADE = 3
"""Ridge values in every decade of a grid."""
DECADES_BELOW = {4: 4, 8: 7}
"""Ridges matter down to so many decades below the largest eigenvalue, by the bytes of a number."""
_LEAST_DECADE = -300
"""No smaller powers of ten keep all their digits."""


@dataclass(frozen=True)
class Candidate:
    """A kernel to try, with the parameters to report it by."""

    kernel: Kernel | str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class KernelGrid:
    """Kernels in the order in which ties are decided."""

    candidates: tuple[Candidate, ...]
    widths_from_data: bool
    """True if the candidates are widths of one kernel, chosen here, that may be extended."""


def rows_that_count(data: TrainingData) -> np.ndarray:
    """The numbers of the rows that are not of weight zero, which are no rows."""
    if data.weights is None:
        return np.arange(int(data.X.shape[0]))
    return np.flatnonzero(data.namespace.to_numpy(data.weights) > 0)


def _spaced_rows(data: TrainingData) -> np.ndarray:
    """The numbers of evenly spaced rows: the same ones every time."""
    counted = rows_that_count(data)
    n = len(counted)
    return np.asarray(counted[np.unique(np.linspace(0, n - 1, min(n, _SAMPLE_ROWS)).astype(int))])


def _sample(data: TrainingData) -> np.ndarray:
    """Evenly spaced rows as NumPy."""
    rows = _spaced_rows(data)
    if scipy.sparse.issparse(data.X):
        return np.asarray(data.X[rows].toarray(), dtype=np.float64)
    return data.namespace.to_numpy(data.namespace.take_rows(data.X, rows)).astype(np.float64)


def median_distance(data: TrainingData, *, manhattan: bool) -> float:
    """Median distance between rows, from a sample; 1 if all rows are the same."""
    distances = pdist(_sample(data), "cityblock" if manhattan else "euclidean")
    positive = distances[distances > 0]
    with np.errstate(over="ignore"):
        median = float(np.median(positive)) if len(positive) else 1.0
    if not math.isfinite(median):
        raise NumericalError(
            "the distances between rows of X overflow, so no width can be chosen: scale the "
            "columns of X"
        )
    return median


def _as_options(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]


def kernel_grid(kernel: Any, settings: Mapping[str, Any], data: TrainingData) -> KernelGrid:
    """The kernels that `kernel` and its parameters stand for.

    `settings` holds gamma and kernel_params. Of a named kernel gamma and the parameters coef0,
    degree and length_scale may be lists to choose from. A named kernel of distances without a
    width gets widths from the data: powers of two around the median distance.
    """
    if isinstance(kernel, (list, tuple)):
        if not kernel:
            raise InvalidInputError("kernel is an empty list: give at least one kernel")
        parts = [kernel_grid(each, settings, data).candidates for each in kernel]
        return KernelGrid(
            tuple(
                Candidate(c.kernel, {"kernel": each, **c.params})
                for each, part in zip(kernel, parts, strict=True)
                for c in part
            ),
            widths_from_data=False,
        )
    if isinstance(kernel, str) and kernel == PRECOMPUTED:
        return KernelGrid((Candidate(PRECOMPUTED, {}),), widths_from_data=False)
    named = isinstance(kernel, str) and kernel in NAMED_KERNELS
    parameters = _kernel_params(settings)
    if gets_widths_from_data(kernel, settings):
        family = _named(kernel, settings, {"length_scale": 1.0}, data).kernel
        assert isinstance(family, DistanceKernel)
        return widths_from_data(family, data)
    if not named:
        resolved = resolve_kernel(kernel, KernelSettings(parameters=parameters), data.X.shape[1])
        return KernelGrid((Candidate(resolved, {}),), widths_from_data=False)
    asked = {**parameters, **({} if settings["gamma"] is None else {"gamma": settings["gamma"]})}
    axes = {
        name: _as_options(asked[name])
        for name in ("coef0", "degree", "gamma")
        if isinstance(asked.get(name), (list, tuple, np.ndarray))
    }
    if "length_scale" in asked:  # a tuple or an array holds one scale a column
        width = asked["length_scale"]
        axes["length_scale"] = width if isinstance(width, list) else [width]
    if any(not options for options in axes.values()):
        raise InvalidInputError(f"a list of kernel parameters is empty: {axes}")
    candidates = [
        _named(kernel, settings, dict(zip(axes, values, strict=True)), data)
        for values in itertools.product(*axes.values())
    ]
    return KernelGrid(tuple(candidates), widths_from_data=False)


def gets_widths_from_data(kernel: Any, settings: Mapping[str, Any]) -> bool:
    """Whether a kernel is one of distances, by its name, and no width is given."""
    if not (isinstance(kernel, str) and kernel in NAMED_KERNELS):
        return False
    given = settings["gamma"] is not None or bool(
        {"length_scale", "gamma"} & {*_kernel_params(settings)}
    )
    return not given and issubclass(NAMED_KERNELS[kernel][0], DistanceKernel)


def number_of_kernels(kernel: Any, settings: Mapping[str, Any], n_columns: int) -> int:
    """How many kernels a grid has, whatever the rows are."""
    if isinstance(kernel, (list, tuple)) and kernel:
        return sum(number_of_kernels(each, settings, n_columns) for each in kernel)
    if gets_widths_from_data(kernel, settings):
        return len(_WIDTH_STEPS)
    return len(kernel_grid(kernel, settings, made_up_rows(n_columns)).candidates)


def made_up_rows(n_columns: int) -> TrainingData:
    """Rows for grids of which only the number of kernels matters, not their widths."""
    rows = np.random.default_rng(0).uniform(size=(_MADE_UP_ROWS, n_columns))
    return TrainingData(namespace_of(), rows, rows[:, 0], None)


def widths_from_data(family: DistanceKernel, data: TrainingData) -> KernelGrid:
    """A kernel with widths that are powers of two around the median distance between rows."""
    middle = median_distance(data, manhattan=isinstance(family, Laplacian))
    widths = [middle * WIDTH_STEP**step for step in _WIDTH_STEPS]
    return KernelGrid(
        tuple(Candidate(replace(family, length_scale=w), {"length_scale": w}) for w in widths),
        widths_from_data=True,
    )


def _named(
    kernel: str, settings: Mapping[str, Any], chosen: Mapping[str, Any], data: TrainingData
) -> Candidate:
    parameters = {**_kernel_params(settings), **chosen}
    gamma = parameters.pop("gamma", settings["gamma"])
    resolved = resolve_kernel(
        kernel, KernelSettings(gamma=gamma, parameters=parameters), int(data.X.shape[1])
    )
    return Candidate(resolved, chosen)


def wider(candidate: Candidate, factor: float) -> Candidate:
    """The same kernel with its width multiplied."""
    assert isinstance(candidate.kernel, DistanceKernel)
    width = candidate.params["length_scale"] * factor
    return Candidate(
        replace(candidate.kernel, length_scale=width), {**candidate.params, "length_scale": width}
    )


def _kernel_params(settings: Mapping[str, Any]) -> dict[str, Any]:
    given = settings["kernel_params"]
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInputError(
            f'kernel_params must be a dict such as {{"nu": 1.5}}, or None, got {given!r}'
        )
    return dict(given or {})


def check_alphas(alpha: Any) -> np.ndarray:
    """Ridge values to choose from: finite and > 0, none twice."""
    values = np.asarray(_as_options(alpha))
    if values.dtype.kind not in "iuf" or values.ndim != 1 or values.size == 0:
        raise InvalidInputError(
            f"alpha must be None, a number > 0, or a sequence of them to choose from, got {alpha!r}"
        )
    values = values.astype(np.float64)
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if wrong.size:
        raise InvalidInputError(
            f"alpha must be finite and > 0, got {wrong[0]:g}: held-out values need K + alpha·I "
            "to be regular (use KernelRidge for alpha = 0)"
        )
    if len(np.unique(values)) != len(values):
        raise InvalidInputError(f"alpha must not hold a value twice, got {values.tolist()}")
    return values


def alphas_from_data(kernel: Kernel | str, data: TrainingData) -> np.ndarray:
    """Whole decades from far below to just above the largest eigenvalue of K.

    Above it a ridge shrinks everything to zero; `DECADES_BELOW` it no longer changes the fit.
    The eigenvalue is estimated on a sample of rows.
    """
    n = len(rows_that_count(data))
    if isinstance(kernel, Kernel):
        matrix = KernelGram(kernel, _sample(data)).full()
    else:
        rows = _spaced_rows(data)
        matrix = data.namespace.to_numpy(PrecomputedGram(data.X).block(rows, rows))
    matrix = np.asarray(matrix, dtype=np.float64)
    if not np.all(np.isfinite(matrix)):
        raise InvalidInputError(
            "the kernel overflows on these rows, so no alphas can be chosen: scale the columns "
            "of X, or give alpha"
        )
    with np.errstate(over="ignore"):
        largest = float(np.linalg.eigvalsh(matrix)[-1]) * n / len(matrix)
    largest = largest if largest > 0 else 1.0
    if not math.isfinite(largest):
        raise InvalidInputError(
            "the eigenvalues of the kernel matrix overflow, so no alphas can be chosen: scale the "
            "columns of X, or give alpha"
        )
    decades = DECADES_BELOW[data.namespace.itemsize(data.like)]
    high = math.ceil(math.log10(largest))
    low = max(math.floor(math.log10(largest)) - decades, _LEAST_DECADE)
    high = max(high, low + 1)
    return np.logspace(low, high, alphas_over(high - low))


def alphas_over(decades: int) -> int:
    """How many ridge values there are by default from one end of some decades to the other."""
    return _ALPHAS_A_DECADE * decades + 1


def further_alphas(alphas: np.ndarray, *, below: bool) -> np.ndarray:
    """Two more decades beyond an end of the grid."""
    steps = np.arange(1, 2 * _ALPHAS_A_DECADE + 1) / _ALPHAS_A_DECADE
    return np.sort(alphas.min() * 10.0**-steps if below else alphas.max() * 10.0**steps)
