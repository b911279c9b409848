"""The exact held-out error of one kernel and ridge, and its gradient in all their parameters.

With A = K + alpha·diag(1/w), H = A⁻¹, and C = H, or with a bias what that leaves of it
(`linalg.unpenalised`), the coefficients are a = C y and the residuals of a fold k that the model
did not see are r_k = C_kk⁻¹ a_k (leave-one-out: r_i = a_i/C_ii). The error is E = Σ_i v_i r_i² for
weights v that add up to one, averaged over targets. With further unpenalised columns of which Q is
an orthonormal basis, C = H − HQ(QᵀHQ)⁻¹QᵀH.

From dC = −C dA C, which holds with all of them, and u_k = 2 C_kk⁻¹(v_k∘r_k),

    dE = Σ_k u_kᵀ(da_k − dC_kk r_k) = tr(M dA),
    M  = −sym(C u aᵀ) + Σ_k sym(C_·k r_k u_kᵀ C_k·),

where sym(B) = (B + Bᵀ)/2. For leave-one-out the sum is C diag(2 v∘r²/C_ii) C: one product. For
few folds it is a matrix of few columns, and nothing of order n³ is added to the inverse.

*A fold that holds all of a column* (the rows of a level) leaves C_kk singular. Coefficients beside
the bias are then given a prior variance, in units of the columns, that is large beside the
kernel's: C = H − HQ(QᵀHQ + P)⁻¹QᵀH with P that of the prior. It changes what the training rows
determine in the fifth digit, and predicts without the column what they do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Kernel
from ridgefold.kernels.scale_gradient import DifferentiableGram
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.linalg.unpenalised import Unpenalised, take_off_inverse, unpenalised_space

_SINGLE_ALPHA = 5e-7
"""float32 needs a ridge of at least this times the number of rows: with less, too few digits of
(K + alpha·I)⁻¹ are left. At eight times as much, errors were right to 5e-5 and gradients to 5e-4,
with 400 and 2,000 rows."""
_SINGLE_ROWS = 600
"""With fewer rows float64 is used: it costs next to nothing, and results are the same on all
processors."""
_PRIOR_VARIANCE = 1e5
"""Of coefficients that a fold may leave open, where kernels have the variance 1."""
_LEAST_SHARE = 1e-6
"""Where training rows hold less of a direction of the unpenalised columns, C_kk is as good as
singular: what is left of the direction in C_kk has lost so many digits."""


@dataclass(frozen=True)
class Evaluation:
    """The error of one kernel and ridge, its gradient, and the model on all rows."""

    error: float
    """Mean of the squared held-out residuals."""
    scale_gradient: np.ndarray
    """∂error/∂log ℓ_j, one a column; for an isotropic kernel the sum is the derivative."""
    alpha_gradient: float
    """∂error/∂log alpha."""
    coefficients: Array
    """a, shape (n, t)."""
    intercept: Array
    """b, shape (t,); zero without a bias."""
    fixed_coef: Array | None = None
    """Coefficients of the unpenalised columns beside the bias, shape (p, t), if there are any."""


class HeldOutError:
    """Exact leave-one-out or l-fold squared error on fixed rows, as a function of the kernel.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n, t)
    folds : sequence of index arrays, optional
        Disjoint test sets; each is predicted from all other rows. Leave-one-out by default.
    bias : bool
    weights : array of shape (n,), optional
        Weights of the fits, each > 0.
    score_weights : array of shape (n,), optional
        Weights of the residuals in the error.
    columns : array of shape (n, p), optional
        Unpenalised columns beside the bias.
    single : bool, default=False
        Factorise in float32 where there are many rows, and alpha is so large that no digits are
        lost that matter: half the time.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        *,
        folds: Sequence[np.ndarray] | None = None,
        bias: bool = True,
        weights: Array | None = None,
        score_weights: Array | None = None,
        columns: Array | None = None,
        single: bool = False,
    ) -> None:
        self._single = single
        self.namespace = namespace = namespace_of(X)
        double = namespace.double()
        n = int(X.shape[0])
        if n < 2:
            raise InvalidInputError(f"held-out errors need at least 2 rows, got {n}")
        self._X, self._y = namespace.astype(X, double), namespace.astype(y, double)
        self._bias = bias
        self._blocks: list[slice] | None = None
        order = np.arange(n)
        if folds is not None:
            order = _fold_order(folds, n)
            self._blocks = _runs(folds)
            self._X = namespace.take_rows(self._X, order)
            self._y = namespace.take_rows(self._y, order)
        self._order = order
        self._inverse_weights = None
        if weights is not None:
            if float(namespace.xp.min(weights)) <= 0:
                raise InvalidInputError(
                    "weights must be > 0 to learn from: leave out the rows of weight zero"
                )
            weights = namespace.take_rows(namespace.astype(weights, double), order)
            self._inverse_weights = 1.0 / weights
        tested = n if self._blocks is None else self._blocks[-1].stop
        scores = (
            namespace.ones(n, self._X)
            if score_weights is None
            else namespace.take_rows(namespace.astype(score_weights, double), order)
        )
        if tested < n:
            scores = namespace.copy(scores)
            scores[tested:] = 0.0
        total = float(namespace.xp.sum(scores))
        if not total > 0:
            raise InvalidInputError("score_weights are zero for every row that is held out")
        self._scores = scores / total
        self._unpenalised: _Columns | None = None
        if columns is not None:
            columns = namespace.take_rows(namespace.astype(columns, double), order)
            self._unpenalised = _Columns(columns, self._blocks, bias=bias)
            self._single = single and not self._unpenalised.open
        self._gram = DifferentiableGram(self._X)

    @property
    def rows(self) -> Array:
        """The rows in the order of `Evaluation.coefficients`: those of a fold stand together."""
        return self._X

    @property
    def order(self) -> np.ndarray:
        """Their places among the rows that were given."""
        return self._order

    def value(self, kernel: Kernel, alpha: float) -> float:
        """The error alone; infinite where K + alpha·I has no Cholesky factor."""
        result = self.model(kernel, alpha)
        return np.inf if result is None else result.error

    def model(self, kernel: Kernel, alpha: float) -> Evaluation | None:
        """Error and coefficients, without a gradient; None where there is no Cholesky factor."""
        return self._evaluate(kernel, alpha, gradient=False)

    def value_and_gradient(self, kernel: Kernel, alpha: float) -> Evaluation | None:
        """Error and gradient; None where K + alpha·I has no Cholesky factor."""
        return self._evaluate(kernel, alpha, gradient=True)

    def _evaluate(self, kernel: Kernel, alpha: float, *, gradient: bool) -> Evaluation | None:
        namespace, xp = self.namespace, self.namespace.xp
        n = int(self._X.shape[0])
        few = self._single and n >= _SINGLE_ROWS and alpha >= _SINGLE_ALPHA * n
        dtype = xp.float32 if few else namespace.double()
        A = self._gram.evaluate(kernel, dtype)
        y, scores = (namespace.astype(each, dtype) for each in (self._y, self._scores))
        inverse_weights = self._inverse_weights
        if inverse_weights is not None:
            inverse_weights = namespace.astype(inverse_weights, dtype)
        namespace.add_to_diagonal_in_place(
            A, alpha if inverse_weights is None else inverse_weights * alpha
        )
        if not namespace.cholesky_in_place(A):
            return None
        namespace.inverse_from_cholesky_in_place(A)
        namespace.fill_upper_in_place(A)
        C = A
        unpenalised = self._take_off(C, y)
        if unpenalised is None:
            return None
        a = C @ y
        score = self._leave_one_out if self._blocks is None else self._by_fold
        scored = score(C, a, scores)
        if scored is None:
            return None
        error, matrix, left, right = scored
        if not np.isfinite(error):
            return None
        double = namespace.double()
        model = namespace.astype(a, double), *unpenalised
        if not gradient:
            return Evaluation(error, np.empty(0), np.nan, *model)
        full = xp.concat([left, right], axis=1), 0.5 * xp.concat([right, left], axis=1)
        by_scale = self._gram.contract(matrix, *full)
        diagonal = xp.sum(full[0] * full[1], axis=1)
        if matrix is not None:
            diagonal += namespace.diagonal(matrix)
        by_alpha = (
            xp.sum(diagonal if inverse_weights is None else diagonal * inverse_weights) * alpha
        )
        return Evaluation(error, namespace.to_numpy(by_scale), float(by_alpha), *model)

    def _take_off(self, C: Array, y: Array) -> tuple[Array, Array | None] | None:
        """Make C of H, in its place; returns the bias and the other coefficients in float64."""
        namespace, double = self.namespace, self.namespace.double()
        if self._unpenalised is not None:
            return self._unpenalised.take_off(C, y)
        if not self._bias:
            return namespace.astype(namespace.zeros(y.shape[1], y), double), None
        found = take_off_inverse(namespace, C, namespace.ones((C.shape[0], 1), C), y)
        return None if found is None else (namespace.astype(found[0, :], double), None)

    def _leave_one_out(
        self, C: Array, a: Array, scores: Array
    ) -> tuple[float, Array | None, Array, Array] | None:
        namespace, xp = self.namespace, self.namespace.xp
        diagonal = namespace.diagonal(C)
        if not float(xp.min(diagonal)) > 0:
            return None
        residuals = a / diagonal[:, None]
        scores = scores[:, None] / a.shape[1]
        weighted = scores * residuals
        error = float(xp.sum(weighted * residuals))
        u = 2.0 * weighted / diagonal[:, None]
        matrix = namespace.weighted_gram_of_rows(C, xp.sum(u * residuals, axis=1))
        return error, matrix, -(C @ u), a

    def _by_fold(
        self, C: Array, a: Array, scores: Array
    ) -> tuple[float, Array | None, Array, Array] | None:
        namespace, xp = self.namespace, self.namespace.xp
        assert self._blocks is not None
        scores = scores[:, None] / a.shape[1]
        error = 0.0
        u = namespace.zeros(a.shape, a)
        left, right = [], []
        for rows in self._blocks:
            factor = namespace.copy(C[rows, rows])
            if not namespace.cholesky_in_place(factor):
                return None
            residuals = namespace.solve_cholesky(factor, a[rows, :])
            weighted = scores[rows, :] * residuals
            error += float(xp.sum(weighted * residuals))
            u[rows, :] = 2.0 * namespace.solve_cholesky(factor, weighted)
            columns = C[:, rows]
            left.append(columns @ residuals)
            right.append(columns @ u[rows, :])
        left.append(-(C @ u))
        right.append(a)
        return error, None, xp.concat(left, axis=1), xp.concat(right, axis=1)


class _Columns:
    """The unpenalised columns of the rows of a criterion, a bias among them if there is one."""

    def __init__(self, columns: Array, blocks: list[slice] | None, *, bias: bool) -> None:
        self._namespace = namespace = namespace_of(columns)
        n = int(columns.shape[0])
        numbers = namespace.to_numpy(columns)
        spread = numbers.std(axis=0) if bias else np.sqrt(np.mean(numbers**2, axis=0))
        self._units = namespace.asarray(np.where(spread > 0, spread, 1.0), columns)
        space = unpenalised_space(
            namespace, columns / self._units, None, bias=bias, n_rows=n, like=columns
        )
        assert space is not None
        self._space: Unpenalised = space
        self.open = _least_share(namespace.to_numpy(space.basis), blocks) < _LEAST_SHARE
        """Whether the training rows of a fold leave a coefficient open."""
        beside = namespace.to_numpy(space.transform)[int(bias) :]
        self._prior = namespace.asarray(beside.T @ beside / _PRIOR_VARIANCE, columns)

    def take_off(self, C: Array, y: Array) -> tuple[Array, Array | None] | None:
        """As `HeldOutError._take_off`."""
        namespace, space = self._namespace, self._space
        basis = namespace.astype(space.basis, C.dtype)
        along = C @ basis
        inner = basis.T @ along
        if self.open:
            inner = inner + self._prior
        inner = (inner + inner.T) / 2.0
        if not namespace.cholesky_in_place(inner):
            return None
        coordinates = namespace.solve_cholesky(inner, along.T @ y)
        half = namespace.solve_triangular(inner, along.T)
        for rows in row_blocks(C.shape[0], C.shape[0] * 8, CACHE_BYTES // 4):
            C[rows, :] -= half[:, rows].T @ half
        found = space.coefficients(namespace.astype(coordinates, namespace.double()))
        others = space.others(found)
        return space.intercept(found), None if others is None else others / self._units[:, None]


def _least_share(basis: np.ndarray, blocks: list[slice] | None) -> float:
    """The smallest share of a direction of Q in the training rows of a fold."""
    if blocks is None:
        return 1.0 - float(np.max(np.sum(basis * basis, axis=1)))
    return 1.0 - max(float(np.linalg.norm(basis[rows], ord=2)) ** 2 for rows in blocks)


def _fold_order(folds: Sequence[np.ndarray], n: int) -> np.ndarray:
    """Rows of the folds one after the other, then rows that no fold tests."""
    stacked = np.concatenate([np.asarray(rows) for rows in folds])
    if len(np.unique(stacked)) != len(stacked):
        raise InvalidInputError("folds must be disjoint to learn from: a row is tested twice")
    if any(len(rows) in (0, n) for rows in folds):
        raise InvalidInputError("every fold needs rows to test and rows to train on")
    rest = np.setdiff1d(np.arange(n), stacked)
    return np.concatenate([stacked, rest])


def _runs(folds: Sequence[np.ndarray]) -> list[slice]:
    ends = np.cumsum([0, *(len(rows) for rows in folds)])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]
