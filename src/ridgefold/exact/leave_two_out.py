"""Predictions of models without two folds at once, from one inverse: what stacks are judged by.

With D and residuals r_k = D_kk⁻¹(Dy)_k of `exact.leave_one_out`, leaving out the rows of a group g
first gives the same quantities of the model without them,

    D⁽ᵍ⁾_kk = D_kk − D_kg D_gg⁻¹ D_gk,    (Dy)⁽ᵍ⁾_k = (Dy)_k − D_kg D_gg⁻¹ (Dy)_g,

and the model without g and without fold k errs by (D⁽ᵍ⁾_kk)⁻¹(Dy)⁽ᵍ⁾_k at the rows of k. With G
groups of n/G rows this takes about n³/G multiplications for the solves and n³/G for the blocks,
beside the n³ of the inverse.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ridgefold.crossval import Folds
from ridgefold.errors import NumericalError
from ridgefold.exact.leave_one_out import Smoother, smoother
from ridgefold.kernels import Gram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.symmetric import Factor, factorise


def leave_two_out(
    gram: Gram,
    targets: Array,
    alphas: np.ndarray,
    folds: Folds,
    groups: Sequence[np.ndarray],
    *,
    weights: Array | None,
    bias: bool,
) -> np.ndarray:
    """Prediction of every row by the model without its fold and without a group of other folds.

    Parameters
    ----------
    alphas : array of shape (t,)
        One ridge a target, each > 0.
    folds : Folds
        Each row in one fold, which trains on all others.
    groups : sequence of index arrays
        Numbers of the folds of each group.

    Returns
    -------
    array of shape (len(groups), n, t)
        NaN for the rows of the group itself, and for rows of weight zero.
    """
    namespace, n = gram.namespace, gram.shape[0]
    predictions = np.full((len(groups), n, int(targets.shape[1])), np.nan)
    for alpha in np.unique(alphas):
        columns = np.flatnonzero(alphas == alpha)
        y = _columns(namespace, targets, columns)
        slopes = smoother(gram, float(alpha), weights, bias)
        residuals = _residuals(namespace, slopes, y, folds, groups)
        predictions[:, :, columns] = namespace.to_numpy(y)[None, :, :] - residuals
    return predictions


def _residuals(
    namespace: Namespace, slopes: Smoother, y: Array, folds: Folds, groups: Sequence[np.ndarray]
) -> np.ndarray:
    n, t = int(y.shape[0]), int(y.shape[1])
    D = slopes.regular
    kept = namespace.take_rows(y, slopes.rows)
    if slopes.heavy is not None:  # D1 = 0, so that it makes no difference which target is zero
        kept = kept - kept[slopes.heavy, :][None, :]
    own = D @ kept
    place = np.full(n, -1)
    place[slopes.rows] = np.arange(len(slopes.rows))
    tested = [place[rows][place[rows] >= 0] for rows in folds.test]
    residuals = np.full((len(groups), n, t), np.nan)
    for g, group in enumerate(groups):
        own_folds = set(group.tolist())
        gone = np.concatenate([tested[k] for k in group])
        others = [rows for k, rows in enumerate(tested) if k not in own_folds and len(rows)]
        across = namespace.take_rows(D, gone)
        solved, left = across, own
        if len(gone):
            factor = _factor(namespace, _columns(namespace, across, gone))
            solved = factor.solve(across)
            left = own - across.T @ factor.solve(namespace.take_rows(own, gone))
        if folds.leave_one_out:
            others = [np.concatenate(others)]
        for rows in others:
            across_rows = _columns(namespace, across, rows)
            solved_rows = _columns(namespace, solved, rows)
            wrong = namespace.take_rows(left, rows)
            if folds.leave_one_out:
                diagonal = namespace.take_rows(namespace.diagonal(D)[:, None], rows)
                errors = wrong / (
                    diagonal - namespace.xp.sum(across_rows * solved_rows, axis=0)[:, None]
                )
            else:
                block = _columns(namespace, namespace.take_rows(D, rows), rows)
                block = block - across_rows.T @ solved_rows
                errors = _factor(namespace, block).solve(wrong)
            residuals[g, slopes.rows[rows]] = _finite(namespace, errors)
    return residuals


def _columns(namespace: Namespace, a: Array, columns: np.ndarray) -> Array:
    return namespace.xp.take(a, namespace.indices(columns, a), axis=1)


def _finite(namespace: Namespace, errors: Array) -> np.ndarray:
    if not namespace.all_finite(errors):
        raise NumericalError(
            "predictions of models without two folds are NaN or infinite: use a larger alpha, or "
            "scale the columns of X"
        )
    return namespace.to_numpy(errors)


def _factor(namespace: Namespace, block: Array) -> Factor:
    storage = namespace.copy(block)

    def refill(matrix: Array) -> None:
        matrix[:, :] = block

    return factorise(namespace, storage, refill)
