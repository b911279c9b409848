"""Predict in blocks of bounded memory, whatever the number of rows."""

from __future__ import annotations

import math

import scipy.sparse

from ridgefold.errors import NumericalError
from ridgefold.kernels import Kernel, KernelGram, PrecomputedGram
from ridgefold.kernels.gram import columns_of
from ridgefold.linalg import Array, Namespace, namespace_of
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.records import FittedModel

# Larger blocks gain nothing: the kernel's own tiles are smaller than the cache.
_BLOCK_BYTES = 16 * CACHE_BYTES


def predict_dual(
    training: KernelGram | PrecomputedGram,
    X: Array,
    dual_coef: Array,
    intercept: Array,
    memory_bytes: float,
) -> Array:
    """Σ a_i k(x_i, x) + b for every row of X.

    `training` is the Gram matrix of the training rows; with a precomputed kernel, X holds
    the kernel between the new rows and the training rows.
    """
    namespace = training.namespace
    out = namespace.empty((X.shape[0], dual_coef.shape[1]), training.like)
    # Row after row, as model files hold them: BLAS rounds columns of another layout otherwise.
    coefficients = namespace.empty(dual_coef.shape, dual_coef)
    coefficients[...] = dual_coef
    # A block of K, and the new rows twice: as they are and as the kernel prepares them.
    per_row = training.itemsize * (training.shape[1] + 3 * X.shape[1])
    block = max(_BLOCK_BYTES, namespace.tile_bytes(training.like))
    for rows in row_blocks(X.shape[0], per_row, min(block, memory_bytes / 2)):
        out[rows, :] = training.against(X[rows, ...]).block() @ coefficients
    out += intercept[None, :]
    return _finite(namespace, out)


def predict_solved(training: KernelGram, X: Array, model: FittedModel) -> Array:
    """Predictions of a dual solution, with what its unpenalised columns add."""
    values = predict_dual(training, X, model.dual_coef, model.intercept, math.inf)
    if model.fixed_coef is None:
        return values
    return values + columns_of(X, training.fixed) @ model.fixed_coef


def predict_primal(
    kernel: Kernel, X: Array, primal_coef: Array, intercept: Array, memory_bytes: float
) -> Array:
    """Φ(x)w + b for every row of X."""
    namespace = namespace_of(X)
    kernel.check(namespace, X)
    like = X.data if scipy.sparse.issparse(X) else X
    out = namespace.empty((X.shape[0], primal_coef.shape[1]), like)
    per_row = namespace.itemsize(like) * 2 * primal_coef.shape[0]
    for rows in row_blocks(X.shape[0], per_row, min(_BLOCK_BYTES, memory_bytes / 2)):
        out[rows, :] = kernel.features(namespace, X[rows, ...]) @ primal_coef
    out += intercept[None, :]
    return _finite(namespace, out)


def _finite(namespace: Namespace, predictions: Array) -> Array:
    if not namespace.all_finite(predictions):
        raise NumericalError(
            "some predictions are NaN or infinite: the kernel's values overflow, or are not "
            "defined, at rows of X far from those of the fit; scale the columns of X"
        )
    return predictions
