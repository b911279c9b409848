"""One eigendecomposition for every α (Tanaka and Imai 2019, 'Prop' in their figures).

K̃ = PΛPᵀ once, q = Pᵀỹ once. Then for every α

    ã      = P(Λ + αI)⁻¹q                    for all α together, one product
    C_kk   = (E_kP)(Λ + αI)⁻¹(E_kP)ᵀ          a symmetric product (syrk) for each fold
    d_k    = C_kk⁻¹ ã_k                       by Cholesky

Rows of P are orthogonal, so that C_kj for j outside fold k stays what it is when any number σ is
taken off (Λ + αI)⁻¹; with its middle for σ, what P lacks in orthogonality counts for least.

Eigenvalues that are zero but for rounding are set to zero. Where there are many of them, with
P = [P₀ P₁] and P₀P₀ᵀ = I − P₁P₁ᵀ, only the others take part:

    C_kk   = I/α − (E_kP₁)(I/α − (Λ₁ + αI)⁻¹)(E_kP₁)ᵀ.

For leave-one-out the diagonal of C for all α is one product of P∘P with 1/(Λ + α).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ridgefold.crossval.shared.base import (
    HeldOut,
    Judge,
    Progress,
    needs_complement,
    no_progress,
)
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.shortcut import Layout, Position, held_out_from_inverses, lay_out
from ridgefold.crossval.shared.weight_spread import (
    kernel_values_for_light_rows,
    needs_like_weights,
    needs_weight_in_training,
)
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.blocks import WORKSPACE_BYTES, row_blocks
from ridgefold.linalg.centring import Centring
from ridgefold.linalg.symmetric import SpectralFactor, factorise_spectrally
from ridgefold.records import Cost, Problem
from ridgefold.solvers.base import write_system_matrix

_MOST_ROUNDING = 8.0
"""Computed eigenvalues up to this many units of rounding of the largest may as well be zero; in
small matrices rounding does less, and so must leaving them out."""
_WORTH_LEAVING_OUT = 0.3
"""A smaller share of the eigenvectors is not worth the more complicated formula."""


@dataclass(frozen=True)
class _Spectrum:
    layout: Layout
    values: Array
    vectors: Array
    centring: Centring | None
    n_zero: int
    """How many of the leading eigenvalues are zero, where that is worth knowing; else 0."""

    def at(self, alpha: float) -> SpectralFactor:
        shifted = SpectralFactor(self.layout.namespace, self.values + alpha, self.vectors)
        return shifted.regular(alpha)


@dataclass(frozen=True)
class _Targets:
    """ỹ and what is the same for every α."""

    y: Array
    rotated: Array
    """q = Pᵀỹ."""


class _SpectralInverse:
    """C for one α by its spectrum."""

    def __init__(
        self,
        spectrum: _Spectrum,
        targets: _Targets,
        alpha: float,
        *,
        shift: float,
        shifted: Array,
        shifted_diagonal: Array | None,
    ) -> None:
        """`shifted`: (C − σI)ỹ, and its matrix's diagonal where folds are single rows."""
        self._spectrum, self._targets, self.alpha = spectrum, targets, alpha
        self._shift, self._shifted, self._shifted_diagonal = shift, shifted, shifted_diagonal
        factor = spectrum.at(alpha)
        self.condition = factor.condition()
        self._inverse_values = factor.inverse_values()

    @property
    def coefficients(self) -> Array:
        return self._shifted + self._shift * self._targets.y

    def one_by_one(self) -> tuple[Array, Array]:
        assert self._shifted_diagonal is not None
        others = self._shifted - self._shifted_diagonal[:, None] * self._targets.y
        return self._shifted_diagonal + self._shift, others

    def others(self, position: Position, block: Array) -> Array:
        spectrum, namespace = self._spectrum, self._spectrum.layout.namespace
        vectors = namespace.take_rows(spectrum.vectors, position)
        own = namespace.take_rows(self._targets.y, position)
        outside = self._targets.rotated - vectors.T @ own
        product = vectors @ ((self._inverse_values - self._shift)[:, None] * outside)
        if spectrum.centring is not None:  # Qᵀỹ = 0, so the others' part is minus the own one
            basis = spectrum.centring.space.taken(position)
            product += spectrum.centring.along(self.alpha) * (basis @ (basis.T @ own))
        return product

    def block(self, position: Position) -> Array:
        spectrum = self._spectrum
        namespace = spectrum.layout.namespace
        vectors = namespace.take_rows(spectrum.vectors, position)
        zeros, values = spectrum.n_zero, self._inverse_values
        if zeros:
            most = float(values[0])
            block = namespace.weighted_gram_of_rows(vectors[:, zeros:], most - values[zeros:])
            block *= -1.0
            namespace.add_to_diagonal_in_place(block, most)
        else:
            block = namespace.weighted_gram_of_rows(vectors, values)
        if spectrum.centring is not None:
            spectrum.centring.take_off_block(block, position, self.alpha)
        return block

    def columns_times(self, position: Position, d: Array) -> Array:
        spectrum = self._spectrum
        namespace = spectrum.layout.namespace
        inner = namespace.take_rows(spectrum.vectors, position).T @ d
        product = spectrum.vectors @ (self._inverse_values[:, None] * inner)
        if spectrum.centring is not None:
            spectrum.centring.take_off_product(product, position, d, self.alpha)
        return product


class Eigendecomposition:
    """K = PΛPᵀ once; every α then costs one symmetric product a fold."""

    name = "eigendecomposition"
    exact = True
    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        return (
            needs_complement(problem)
            or needs_like_weights(problem)
            or needs_weight_in_training(problem)
        )

    def cost(self, problem: Problem) -> Cost:
        n, a, t = problem.n_rows, problem.n_alphas, problem.n_targets
        largest = max(fold.test for fold in problem.folds)
        blocks = 0 if largest == 1 else n * sum(f.count * f.test**2 for f in problem.folds)
        return Cost(
            flops={
                "kernel": 0.5 * n**2 + kernel_values_for_light_rows(problem),
                "eigendecomposition": 9.0 * n**3,
                "product": a * (blocks + 2.0 * n**2 * (t + (largest == 1))),
                "cholesky": a * sum(f.count * f.test**3 for f in problem.folds) / 3.0,
                "calls": 10.0 + a * (2.0 + 2.0 * (largest > 1) * problem.n_folds),
            },
            size=n,
            peak_bytes=WORKSPACE_BYTES
            + problem.itemsize
            * (3.0 * n**2 + 2 * largest * n + largest**2 + problem.held_out_numbers),
        )

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> _Spectrum:
        layout = lay_out(gram, folds, weights, bias)
        n = len(layout.rows)
        matrix = layout.namespace.empty((n, n), gram.like)
        centring = write_system_matrix(layout.system_gram(), layout.unpenalised(), matrix)
        factor = factorise_spectrally(layout.namespace, matrix)
        values, n_zero = _without_rounding(factor)
        return _Spectrum(layout, values, factor.vectors, centring, n_zero)

    def held_out(
        self,
        state: _Spectrum,
        targets: Array,
        alphas: np.ndarray,
        progress: Progress = no_progress,
        judge: Judge | None = None,
    ) -> HeldOut:
        return held_out_from_inverses(
            state.layout,
            targets,
            lambda y: self._inverses(state, y, alphas),
            len(alphas),
            progress,
        )

    @staticmethod
    def _inverses(state: _Spectrum, y: Array, alphas: np.ndarray) -> Iterator[_SpectralInverse]:
        layout, xp = state.layout, state.layout.namespace.xp
        t = y.shape[1]
        filters = xp.stack([state.at(float(alpha)).inverse_values() for alpha in alphas], axis=1)
        shifts = (xp.max(filters, axis=0) + xp.min(filters, axis=0)) / 2.0
        shifted = filters - shifts[None, :]
        rotated = state.vectors.T @ y
        scaled = xp.reshape(rotated[:, None, :] * shifted[:, :, None], (rotated.shape[0], -1))
        products = state.vectors @ scaled
        diagonals = None
        if layout.folds.leave_one_out:
            diagonals = _diagonals(state, shifted, alphas)
        for j, alpha in enumerate(alphas):
            yield _SpectralInverse(
                state,
                _Targets(y, rotated),
                float(alpha),
                shift=float(shifts[j]),
                shifted=products[:, j * t : (j + 1) * t],
                shifted_diagonal=None if diagonals is None else diagonals[:, j],
            )


def _without_rounding(factor: SpectralFactor) -> tuple[Array, int]:
    """Rising eigenvalues with those of the size of their own rounding error set to zero.

    Also how many lead, if they are so many that leaving them out pays.
    """
    namespace, xp, values = factor.namespace, factor.namespace.xp, factor.values
    units = min(_MOST_ROUNDING, 1.0 + math.sqrt(values.shape[0]) / 6.0)
    tiny = xp.abs(values) <= units * namespace.eps(values) * factor.largest
    count = int(xp.sum(xp.astype(tiny, xp.int64)))
    values = xp.where(tiny, xp.zeros_like(values), values)
    leading = bool(xp.all(tiny[:count]))
    return values, count if leading and count >= _WORTH_LEAVING_OUT * tiny.shape[0] else 0


def _diagonals(state: _Spectrum, filters: Array, alphas: np.ndarray) -> Array:
    """Diagonal of C − σI for every α: (P∘P)·(1/(Λ + α) − σ), in blocks of rows."""
    namespace, vectors = state.layout.namespace, state.vectors
    n = vectors.shape[0]
    out = namespace.empty((n, len(alphas)), vectors)
    for rows in row_blocks(n, n * namespace.itemsize(vectors), 1 << 24):
        squares = vectors[rows, :] * vectors[rows, :]
        out[rows, :] = squares @ filters
    if state.centring is not None:
        squares = namespace.squares_of_rows(state.centring.space.basis)
        along = namespace.asarray([state.centring.along(float(a)) for a in alphas], squares)
        out -= squares[:, None] * along[None, :]
    return out
