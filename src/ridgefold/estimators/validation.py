"""Check what users pass in, and say in one sentence what is wrong and what would do.

scikit-learn's own checks do the work for NumPy, pandas, polars and SciPy; arrays of other
libraries (torch) are checked here, because turning them into NumPy would move them off
their device. Whatever is wrong comes out as a ridgefold error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from ridgefold.crossval import Deadline
from ridgefold.errors import (
    BudgetError,
    InvalidInputError,
    RidgefoldError,
    UnsupportedInputError,
)
from ridgefold.linalg import Array, Namespace, namespace_of
from ridgefold.linalg.namespace import is_foreign_array, is_out_of_memory
from ridgefold.runtime.training_data import (
    TrainingData,
    as_ridgefold_errors,
    require_usable_weights,
)

_ROUNDING_OF_A_KERNEL = 1000.0
"""Entries of a kernel matrix are sums of as many terms as there are columns, and off by the root of
their number times eps: enough for a million columns."""


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Put every attribute back if fitting fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        with out_of_memory_is_a_budget_error(f"{type(estimator).__name__}.fit"):
            yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def out_of_memory_is_a_budget_error(work: str) -> Iterator[None]:
    """What the system says when it has no memory left becomes an error that says what would do."""
    try:
        yield
    except RidgefoldError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise BudgetError(
            f"{work}: the system gave no memory ({str(error).strip() or type(error).__name__}): "
            "set a smaller memory_budget, so that less is planned; or free some, raise the limit "
            "of the process, or use fewer rows"
        ) from None


_WANTED_ROWS = (
    "X must hold finite real numbers in two dimensions (rows, columns): "
    "fill or drop missing values, encode text as numbers"
)
_WANTED_TARGETS = "y must hold one finite real number (or one row of them) for each row of X"
_WANTED_LABELS = "y must hold one label for each row of X, all of one type and none missing"
_WANTED_WEIGHTS = "sample_weight must be a number or hold one for each row of X, finite and >= 0"


def check_training_data(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    numeric_targets: bool,
    accept_sparse: bool = True,
) -> TrainingData:
    """X, y and weights ready for use; sets `n_features_in_` and `feature_names_in_`."""
    if y is None:
        raise InvalidInputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    deadline = Deadline.of(getattr(estimator, "time_budget", None))
    if is_foreign_array(X):
        found = _check_foreign(estimator, X, y, sample_weight, numeric_targets=numeric_targets)
        return replace(found, deadline=deadline)
    if is_foreign_array(y):
        raise UnsupportedInputError(
            f"y is an array of {namespace_of(y).name} but X is not: pass both in one library"
        )
    if scipy.sparse.issparse(y):
        raise UnsupportedInputError("y must not be sparse: pass y.toarray()")
    wanted, given = _WANTED_TARGETS if numeric_targets else _WANTED_LABELS, X
    # Sums by which scikit-learn looks for NaN may overflow; it then looks again, one by one.
    with (
        as_ridgefold_errors(f"{_WANTED_ROWS}. {wanted}"),
        np.errstate(over="ignore", invalid="ignore"),
    ):
        if numeric_targets and np.asarray(y).dtype.kind == "c":
            raise InvalidInputError("Complex data not supported: y must be real, pass y.real")
        X, y = validate_data(
            estimator,
            X,
            y,
            accept_sparse="csr" if accept_sparse else False,
            dtype=[np.float64, np.float32],
            multi_output=True,
            y_numeric=numeric_targets,
            accept_large_sparse=False,
        )
        if numeric_targets:
            y = y.astype(X.dtype, copy=False)
    weights = None
    if sample_weight is not None:
        with as_ridgefold_errors(_WANTED_WEIGHTS):
            weights = _check_sample_weight(sample_weight, X, dtype=X.dtype)
    require_usable_weights(weights)
    _require_square_if_precomputed(estimator, X)
    if numeric_targets:
        require_symmetric_if_precomputed(estimator, X)
    return TrainingData(namespace_of(), X, y, weights, _copied(given, X), deadline)


def _copied(given: Any, X: Array) -> float:
    """Bytes of the rows if they are not those that were given."""
    if scipy.sparse.issparse(X):
        return 0.0
    same = isinstance(given, np.ndarray) and np.may_share_memory(given, X)
    return 0.0 if same else float(X.nbytes)


def check_new_rows(
    estimator: BaseEstimator,
    X: Any,
    training: Array,
    *,
    accept_sparse: bool = True,
    by_name: bool = False,
) -> Array:
    """Rows to predict, in the library and dtype of the training rows.

    With `by_name` their columns were found by the names of the training columns.
    """
    namespace = namespace_of(X)
    if namespace is not namespace_of(training):
        raise UnsupportedInputError(
            f"X is an array of {namespace.name}, but {type(estimator).__name__} was fitted on "
            f"arrays of {namespace_of(training).name}: pass those"
        )
    if is_foreign_array(X):
        _require_foreign_matrix(namespace, X)
        if X.shape[1] != estimator.n_features_in_:
            raise InvalidInputError(
                f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input"
            )
        return namespace.astype(namespace.detached(X), training.dtype)
    with as_ridgefold_errors(_WANTED_ROWS), np.errstate(over="ignore", invalid="ignore"):
        wanted: dict[str, Any] = {
            "accept_sparse": "csr" if accept_sparse else False,
            "dtype": [np.float64, np.float32],
        }
        if by_name:
            X = check_array(X, **wanted)
        else:
            X = validate_data(estimator, X, reset=False, **wanted)
    _require_dense_if_precomputed(estimator, X)
    with np.errstate(over="ignore"):
        return X.astype(training.dtype, copy=False)


def check_alpha(alpha: Any, n_targets: int) -> np.ndarray:
    """One ridge value a target, each finite and >= 0."""
    values = np.asarray(alpha)
    if values.dtype.kind not in "iuf" or isinstance(alpha, bool):
        raise InvalidInputError(
            f"alpha must be a number >= 0, or one for each target, got {alpha!r}"
        )
    values = values.astype(np.float64)
    if values.ndim > 1 or values.size not in (1, n_targets):
        raise InvalidInputError(
            f"alpha must be one number or one for each of the {n_targets} targets, "
            f"got {values.size} numbers (shape {values.shape})"
        )
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InvalidInputError(f"alpha must be finite and >= 0, got {alpha!r}")
    return np.broadcast_to(values.ravel(), n_targets).copy()


def _is_precomputed(estimator: BaseEstimator) -> bool:
    kernel = getattr(estimator, "kernel", None)
    return isinstance(kernel, str) and kernel == "precomputed"


def _require_dense_if_precomputed(estimator: BaseEstimator, X: Array) -> None:
    if scipy.sparse.issparse(X) and _is_precomputed(estimator):
        raise UnsupportedInputError(
            'with kernel="precomputed", X must not be sparse: pass X.toarray()'
        )


def _require_square_if_precomputed(estimator: BaseEstimator, X: Array) -> None:
    _require_dense_if_precomputed(estimator, X)
    if _is_precomputed(estimator) and X.shape[0] != X.shape[1]:
        raise InvalidInputError(
            'with kernel="precomputed", X must be the square kernel matrix of the training '
            f"rows, got shape {tuple(X.shape)}"
        )


def require_symmetric_if_precomputed(estimator: BaseEstimator, X: Array) -> None:
    """A kernel matrix is symmetric. Classifiers ask after they have looked at the labels, whose
    mistakes are named first."""
    if _is_precomputed(estimator):
        _require_symmetric(namespace_of(X), X)


def _require_symmetric(namespace: Namespace, K: Array) -> None:
    """No pair of entries may differ by more than rounding: methods read one or the other.

    Looked at in tiles: a difference of the whole would take the memory of another matrix.
    """
    n, itemsize = K.shape[0], namespace.itemsize(K)
    step = max(1, math.isqrt(int(namespace.tile_bytes(K)) // itemsize))
    largest, worst, where = 0.0, 0.0, (0, 0)
    for top in range(0, n, step):
        rows = slice(top, min(top + step, n))
        for left in range(0, top + 1, step):
            columns = slice(left, min(left + step, n))
            tile, turned = K[rows, columns], K[columns, rows].T
            with np.errstate(over="ignore"):
                off = namespace.xp.abs(tile - turned)
            largest = max(largest, float(namespace.xp.max(namespace.xp.abs(tile))))
            found = float(namespace.xp.max(off))
            if found > worst:
                place = divmod(int(namespace.xp.argmax(off)), columns.stop - columns.start)
                worst, where = found, (top + place[0], left + place[1])
    if worst > _ROUNDING_OF_A_KERNEL * namespace.eps(K) * largest:
        i, j = max(where), min(where)
        raise InvalidInputError(
            'with kernel="precomputed", X must be the kernel matrix of the training rows, which is '
            f"symmetric, but X[{i}, {j}] is {float(K[i, j]):.9g} and X[{j}, {i}] is "
            f"{float(K[j, i]):.9g}, and no entries differ more: if that is rounding of another "
            "precision, pass (X + X.T) / 2"
        )


def _require_foreign_matrix(namespace: Namespace, X: Array) -> None:
    xp = namespace.xp
    if X.ndim != 2:
        raise InvalidInputError(f"X must have two dimensions (rows, columns), got shape {X.shape}")
    if 0 in tuple(X.shape):
        raise InvalidInputError(f"X must hold at least one row and one column, got shape {X.shape}")
    if X.dtype not in (xp.float32, xp.float64):
        raise UnsupportedInputError(
            f"X must be float32 or float64, got {X.dtype}: convert it first"
        )
    if not namespace.all_finite(X):
        raise InvalidInputError("Input X contains NaN or infinity: fill or drop those rows")


def _check_foreign(
    estimator: BaseEstimator, X: Array, y: Any, sample_weight: Any, *, numeric_targets: bool
) -> TrainingData:
    """The checks above for an array that must stay in its own library, on its own device."""
    namespace = namespace_of(X)
    _require_foreign_matrix(namespace, X)
    X = namespace.detached(X)
    if not is_foreign_array(y):
        y = np.asarray(y)
        if y.dtype.kind in "fiu":
            whole = y.dtype.kind in "iu"
            labels = y.astype(np.int64) if whole else y
            y = namespace.asarray(y, X) if numeric_targets else namespace.placed(labels, X)
        elif numeric_targets:
            raise InvalidInputError(f"{_WANTED_TARGETS}, got an array of {y.dtype}")
    elif namespace_of(y) is not namespace:
        raise UnsupportedInputError(
            f"y is an array of {namespace_of(y).name} but X is one of {namespace.name}: "
            "pass both in one library"
        )
    elif namespace.xp.isdtype(y.dtype, "complex floating"):
        raise InvalidInputError(f"y must be real, got {y.dtype}: pass its real part")
    else:
        y = namespace.detached(y)
        y = namespace.astype(y, X.dtype) if numeric_targets else y
    if y.ndim not in (1, 2) or y.shape[0] != X.shape[0]:
        raise InvalidInputError(
            f"y must have one entry a row: X has shape {tuple(X.shape)}, y {tuple(y.shape)}"
        )
    real = is_foreign_array(y) and namespace.xp.isdtype(y.dtype, "real floating")
    if real and not namespace.all_finite(y):
        raise InvalidInputError("Input y contains NaN or infinity: fill or drop those rows")
    weights = None
    if sample_weight is not None:
        weights = namespace.asarray(sample_weight, X)
        if weights.ndim == 0:
            weights = namespace.ones(X.shape[0], X) * weights
        if tuple(weights.shape) != (X.shape[0],) or not namespace.all_finite(weights):
            raise InvalidInputError(
                f"sample_weight must hold {X.shape[0]} finite numbers, got shape "
                f"{tuple(weights.shape)}"
            )
        require_usable_weights(namespace.to_numpy(weights))
    _require_square_if_precomputed(estimator, X)
    if numeric_targets:
        require_symmetric_if_precomputed(estimator, X)
    vars(estimator).pop("feature_names_in_", None)
    estimator.n_features_in_ = int(X.shape[1])
    return TrainingData(namespace, X, y, weights)
