"""The (restricted) likelihood of the targets, for every ridge from one decomposition.

With prior variance s²k, noise s²α/w and unpenalised columns F (n × q), twice the negative
logarithm of the restricted likelihood is

    (n−q) log(2πs²) + log|K + αW⁻¹| + log|FᵀHF| − log|FᵀF| + yᵀCy/s²,

with H and C as in `exact.posterior` (Patterson and Thompson 1971, Harville 1974). Let Z be an
orthonormal basis of what is orthogonal to F̃ = W^½F. Then log|K̃ + αI| + log|F̃ᵀH̃F̃| − log|F̃ᵀF̃|
= log|Zᵀ(K̃ + αI)Z| and yᵀCy = ỹᵀZ(ZᵀK̃Z + αI)⁻¹Zᵀỹ: the eigenvalues λ of ZᵀK̃Z and v = VᵀZᵀỹ
give

    log|ZᵀK̃Z + αI| = Σ log(λᵢ + α),    yᵀCy = Σ vᵢ²/(λᵢ + α)

for every α at once, and nothing is left of a singular part along F. Weights add the constant
log|F̃ᵀF̃| − log|FᵀF| − Σ log w. The best s² is yᵀCy/(n−q). Without F this is the likelihood that
`sklearn.gaussian_process.GaussianProcessRegressor` has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from ridgefold.errors import NumericalError
from ridgefold.kernels import Gram, WeightedGram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.blocks import ROWS_AT_ONCE, row_blocks
from ridgefold.linalg.centring import multiply_symmetric
from ridgefold.linalg.symmetric import factorise_spectrally, rounding_level


@dataclass(frozen=True)
class Spectrum:
    """ZᵀK̃Z by its eigenvalues, with the targets in its eigenvectors."""

    values: np.ndarray
    """λ, shape (n − q,)."""
    squares: np.ndarray
    """v², shape (n − q, t)."""
    constant: float
    """log|F̃ᵀF̃| − log|FᵀF| − Σ log w."""

    def forms(self, alphas: np.ndarray) -> np.ndarray:
        """yᵀCy, shape (n_alphas, t)."""
        return np.stack([(self.squares / self._raised(a)[:, None]).sum(axis=0) for a in alphas])

    def log_likelihoods(self, alphas: np.ndarray, variance: np.ndarray | None) -> np.ndarray:
        """The logarithm of the restricted likelihood, shape (n_alphas, t).

        `variance` is s² of every target; None for the best one of each α.
        """
        free = len(self.values)
        forms = self.forms(alphas)
        determinants = np.array([np.log(self._raised(a)).sum() for a in alphas]) + self.constant
        s2 = forms / free if variance is None else np.broadcast_to(variance, forms.shape)
        with np.errstate(divide="ignore"):
            return np.asarray(
                -0.5 * (free * np.log(2.0 * math.pi * s2) + determinants[:, None] + forms / s2)
            )

    def _raised(self, alpha: float) -> np.ndarray:
        values = self.values + alpha
        level = rounding_level(len(values), float(np.finfo(np.float64).eps)) * np.abs(values).max()
        if values.min() <= level:
            raise NumericalError(
                f"K + alpha·I is singular to working precision at alpha={alpha:g}, so that its "
                "likelihood cannot be told from rounding: use a larger alpha, or leave out "
                "repeated rows"
            )
        return values


def spectrum(gram: Gram, targets: Array, weights: Array | None, basis: Array) -> Spectrum:
    """One eigendecomposition for all α.

    Parameters
    ----------
    gram : Gram
        The kernel matrix of the rows of positive weight, in float64.
    targets : array of shape (n, t)
    weights : array of shape (n,), optional
    basis : array of shape (n, q)
        F.
    """
    namespace, n, q = gram.namespace, gram.shape[0], int(basis.shape[1])
    if n <= q:
        raise NumericalError(
            f"{n} rows and {q} unpenalised columns leave nothing to tell a likelihood from: give "
            "more rows"
        )
    roots = None if weights is None else namespace.xp.sqrt(weights)
    system = gram if roots is None else WeightedGram(gram, roots)
    matrix = namespace.empty((n, n), gram.like)
    system.write_lower(matrix)
    right = targets if roots is None else targets * roots[:, None]
    constant = 0.0
    if weights is not None:
        constant -= float(np.sum(np.log(namespace.to_numpy(weights))))
    if q:
        columns = namespace.to_numpy(basis if roots is None else basis * roots[:, None])
        matrix, right = without_columns(namespace, matrix, right, columns)
        plain = namespace.to_numpy(basis)
        constant += _log_gram_determinant(columns) - _log_gram_determinant(plain)
    factor = factorise_spectrally(namespace, matrix)
    turned = namespace.to_numpy(factor.vectors.T @ right)
    return Spectrum(namespace.to_numpy(factor.values), turned * turned, constant)


def without_columns(
    namespace: Namespace, lower: Array, right: Array, columns: np.ndarray
) -> tuple[Array, Array]:
    """ZᵀKZ (lower triangle) and ZᵀY, Z orthonormal and orthogonal to some columns.

    The q Householder reflections that make the columns triangular, Q = I − VTVᵀ, turn K into
    QᵀKQ, of which the part below the first q rows is ZᵀKZ: a change of rank 2q.
    """
    q = columns.shape[1]
    packed, tau, _, _ = lapack.dgeqrf(np.asfortranarray(columns))
    diagonal = np.abs(np.diagonal(packed))
    if diagonal.min() <= len(columns) * np.finfo(np.float64).eps * diagonal.max():
        raise NumericalError(
            "the unpenalised columns depend on one another in these rows: leave out columns that "
            "are sums of others"
        )
    V = np.tril(packed, -1)
    V[np.arange(q), np.arange(q)] = 1.0
    T = np.zeros((q, q))
    for j in range(q):  # LAPACK's larft, column by column
        T[:j, j] = -tau[j] * (T[:j, :j] @ (V[:, :j].T @ V[:, j]))
        T[j, j] = tau[j]
    v, t = (namespace.asarray(each, lower) for each in (V, T))
    product = multiply_symmetric(namespace, lower, v)
    # QᵀKQ = K − V Gᵀ − G Vᵀ with G = KVT − ½V TᵀVᵀKVT
    g = product @ t
    g = g - 0.5 * (v @ (t.T @ (v.T @ g)))
    for rows in row_blocks(int(lower.shape[0]), 1, ROWS_AT_ONCE):
        part = lower[rows, : rows.stop]
        part -= v[rows, :] @ g[: rows.stop, :].T + g[rows, :] @ v[: rows.stop, :].T
    right = right - v @ (t.T @ (v.T @ right))
    return namespace.copy(lower[q:, q:]), right[q:, :]


def _log_gram_determinant(columns: np.ndarray) -> float:
    """log|FᵀF|."""
    return 2.0 * float(np.sum(np.log(np.abs(np.diagonal(np.linalg.qr(columns, mode="r"))))))
