"""What a fitted ridge system says of every linear functional of f.

A ridge fit is the mean of a Gaussian process given its targets: f = g + φᵀβ with g of covariance
s²k, β without a prior (the unpenalised columns F, of shape n × q; a bias is a column of ones), and
noise of variance s²α/w. With H = (K + αW⁻¹)⁻¹ and C = H − HF(FᵀHF)⁻¹FᵀH, a functional ℓ (a value, a
slope, a mean of slopes) with a = ℓk(·, X), φ = ℓF and κ = ℓℓk has

    ℓf = Lᵀy,    L = Ca + HF(FᵀHF)⁻¹φ = H(a + F(FᵀHF)⁻¹u),    u = φ − FᵀHa,
    Var(ℓf | y) = s²[κ − aᵀHa + uᵀ(FᵀHF)⁻¹u].

(Rasmussen and Williams 2006, equations 2.41 and 2.42; universal kriging is the case of a value.)
All follows from the triangle R of K̃ + αI = RRᵀ, K̃ = W^½KW^½, by solves with R alone, and
the inner q × q matrix is EᵀE with E = R⁻¹W^½F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ridgefold.errors import NumericalError
from ridgefold.kernels import Gram, WeightedGram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.symmetric import CholeskyFactor, Factor, factorise

_LEAST_FREEDOM = 1e-9
"""Of a row: less than that is the rounding error of a fit that passes through all targets."""


@dataclass(frozen=True)
class Posterior:
    """The Gaussian process behind one ridge system; its rows are those of positive weight."""

    namespace: Namespace
    factor: Factor
    """Of K̃ + αI."""
    roots: Array | None
    """√w, if there are weights."""
    basis: Array
    """W^½F, of shape (n, q); q may be 0."""
    solved_basis: Array
    """E = R⁻¹W^½F."""
    inner: Array
    """The Cholesky factor of FᵀHF = EᵀE."""
    alpha: float

    @property
    def n_rows(self) -> int:
        return int(self.basis.shape[0])

    @property
    def n_free(self) -> int:
        """n − q: rows less unpenalised columns."""
        return self.n_rows - int(self.basis.shape[1])

    # -- functionals of f ----------------------------------------------------------------

    def variances(self, prior: Array, a: Array, phi: Array) -> Array:
        """Var(ℓf | y)/s² of several functionals.

        Parameters
        ----------
        prior : array of shape (p,)
            κ.
        a : array of shape (n, p)
        phi : array of shape (q, p)
        """
        halves, rest = self._reduced(a, phi)
        sums = self.namespace.xp.sum
        out = prior - sums(halves * halves, axis=0) + sums(rest * rest, axis=0)
        # A difference of near numbers at the training rows themselves: rounding may leave -1e-17.
        self.namespace.maximum_in_place(out, 0.0)
        return out

    def covariance(self, prior: Array, a: Array, phi: Array) -> Array:
        """Cov(ℓf, ℓ'f | y)/s² of several functionals; `prior` is of shape (p, p)."""
        halves, rest = self._reduced(a, phi)
        return prior - halves.T @ halves + rest.T @ rest

    def weights_of_targets(self, a: Array, phi: Array) -> Array:
        """L with ℓf = Lᵀy, of shape (n, p)."""
        right = self._weighted(a)
        if self.basis.shape[1]:
            halves = self.factor.half_solve(right)
            u = phi - self.solved_basis.T @ halves
            right = right + self.basis @ self.namespace.solve_cholesky(self.inner, u)
        return self._weighted(self.factor.solve(right))

    def _reduced(self, a: Array, phi: Array) -> tuple[Array, Array]:
        """R⁻¹W^½a, and u in coordinates where (FᵀHF)⁻¹ is the identity."""
        halves = self.factor.half_solve(self._weighted(a))
        if not self.basis.shape[1]:
            return halves, halves[:0, :]
        u = phi - self.solved_basis.T @ halves
        return halves, self.namespace.solve_triangular(self.inner, u)

    def _weighted(self, a: Array) -> Array:
        return a if self.roots is None else a * self.roots[:, None]

    # -- the targets ---------------------------------------------------------------------

    def quadratic_forms(self, targets: Array) -> Array:
        """YᵀCY of shape (t, t) for targets of shape (n, t)."""
        halves = self.factor.half_solve(self._weighted(targets))
        if self.basis.shape[1]:
            # As the residual of least squares: what F explains is taken off before it is squared.
            inner = self.namespace.solve_cholesky(self.inner, self.solved_basis.T @ halves)
            halves = halves - self.solved_basis @ inner
        return halves.T @ halves

    def dual(self, targets: Array) -> Array:
        """W^(−½)CY, the coefficients ã."""
        right = self._weighted(targets)
        if self.basis.shape[1]:
            halves = self.factor.half_solve(right)
            inner = self.namespace.solve_cholesky(self.inner, self.solved_basis.T @ halves)
            right = right - self.basis @ inner
        return self.factor.solve(right)

    # -- logarithms of determinants ------------------------------------------------------

    def log_determinant(self) -> float:
        """log|K̃ + αI|."""
        xp = self.namespace.xp
        if isinstance(self.factor, CholeskyFactor):
            return 2.0 * float(xp.sum(xp.log(self.namespace.diagonal(self.factor.lower))))
        return float(xp.sum(xp.log(self.factor.values)))  # type: ignore[attr-defined]

    # -- the smoother --------------------------------------------------------------------

    @cached_property
    def free(self) -> float:
        """n − df, the degrees of freedom that the smoother leaves: α tr C̃, C̃ = W^(−½)CW^(−½)."""
        free = self.alpha * float(self.namespace.xp.sum(self.diagonal))
        if not free > _LEAST_FREEDOM * self.n_rows:
            raise NumericalError(
                f"alpha={self.alpha:g} leaves no degrees of freedom: the fit passes through its "
                "targets, and nothing is left to tell the noise from; use a larger alpha"
            )
        return free

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of C̃."""
        diagonal = self._copied_factor().inverse_diagonal_in_place()
        if self.basis.shape[1]:
            own = self._projected_basis()
            diagonal = diagonal - self.namespace.squares_of_rows(own)
        return diagonal

    def inverse(self) -> Array:
        """C̃ as a matrix of its own."""
        inverse = self._copied_factor().inverse_in_place()
        self.namespace.fill_upper_in_place(inverse)
        if self.basis.shape[1]:
            own = self._projected_basis()
            inverse -= own @ own.T
        return inverse

    def _projected_basis(self) -> Array:
        """B with BBᵀ = H̃F̃(F̃ᵀH̃F̃)⁻¹F̃ᵀH̃."""
        solved = self.factor.solve(self.basis)
        return self.namespace.solve_triangular(self.inner, solved.T).T

    def _copied_factor(self) -> Factor:
        """The factor in storage that may be overwritten."""
        if isinstance(self.factor, CholeskyFactor):
            return replace(self.factor, lower=self.namespace.copy(self.factor.lower))
        return self.factor


def posterior(gram: Gram, alpha: float, weights: Array | None, basis: Array) -> Posterior:
    """Factorise K + αW⁻¹ for what is asked of f afterwards.

    Parameters
    ----------
    gram : Gram
        The kernel matrix of the rows of positive weight, in float64.
    weights : array of shape (n,), optional
        All positive.
    basis : array of shape (n, q)
        The unpenalised columns F.
    """
    namespace, n = gram.namespace, gram.shape[0]
    roots = None if weights is None else namespace.xp.sqrt(weights)
    system = gram if roots is None else WeightedGram(gram, roots)
    matrix = namespace.empty((n, n), gram.like)

    def fill(storage: Array) -> None:
        system.write_lower(storage)
        namespace.add_to_diagonal_in_place(storage, alpha)

    fill(matrix)
    factor = factorise(namespace, matrix, refill=fill)
    columns = basis if roots is None else basis * roots[:, None]
    if not isinstance(factor, CholeskyFactor):
        _require_semidefinite(factor, alpha, n_columns=int(basis.shape[1]))
        factor.warn_if_ill_conditioned(f"K + alpha·I (alpha={alpha:g})")
    half = factor.half_solve(columns) if basis.shape[1] else columns
    inner = half.T @ half
    if basis.shape[1] and not namespace.cholesky_in_place(inner):
        raise NumericalError(
            "the unpenalised columns depend on one another in these rows, so that their "
            "coefficients have no variance: leave out columns that are sums of others"
        )
    return Posterior(namespace, factor, roots, columns, half, inner, alpha)


def _require_semidefinite(factor: Factor, alpha: float, n_columns: int) -> None:
    if factor.signs() is not None:
        raise NumericalError(
            "the kernel matrix is not positive semi-definite, so that it is no covariance and "
            "there are no variances or likelihoods: use another kernel, or a larger alpha"
        )
    if n_columns:
        raise NumericalError(
            f"K + alpha·I is singular to working precision (alpha={alpha:g}), and with a bias "
            "the variance of the prediction cannot be told from rounding: use a larger alpha, or "
            "leave out repeated rows"
        )


def prior_variance(found: Posterior, targets: Array) -> Array:
    """s² = yᵀCy/(n − q) of every target, from the restricted likelihood, shape (t,)."""
    return found.namespace.diagonal(prior_covariance(found, targets))


def prior_covariance(found: Posterior, targets: Array) -> Array:
    """YᵀCY/(n − q), shape (t, t)."""
    if found.n_free < 1:
        raise NumericalError(
            f"{found.n_rows} rows and {found.basis.shape[1]} unpenalised columns leave nothing to "
            "tell a variance from: give more rows, or the argument variance"
        )
    return found.quadratic_forms(targets) / found.n_free
