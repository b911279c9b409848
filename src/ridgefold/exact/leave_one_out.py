"""How f(x) changes with every target: what exact jackknife+ needs.

f is linear in the targets. With K̃ = W^½KW^½, C the inverse of its system (with a bias, the
centred one of `linalg.centring`), ã = Cỹ and β = (u − CK̃u)/‖s‖,

    f(x) = k(x)ᵀDy + γᵀy,    D = W^½CW^½,  γ = W^½β  (zero without a bias),

and the model without row i is that of all rows with y_i replaced by its own prediction, so

    f₋ᵢ(x) = f(x) − r_i·g_i(x),    g(x) = Dk(x) + γ,    r_i = ã_i/(C_ii√w_i) = (Dy)_i/D_ii

(r is An, Liu and Venkatesh's leave-one-out residual). One inverse gives all n models. Where the
system is singular to rounding, f is the solution of least norm and D in g the pseudo-inverse; but
residuals follow from the inverse of the system with a ridge of the size of rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.errors import NumericalError
from ridgefold.kernels import Gram, WeightedGram
from ridgefold.linalg import Array
from ridgefold.linalg.centring import Centring
from ridgefold.linalg.leave_one_out import heaviest_row
from ridgefold.linalg.symmetric import Factor, SpectralFactor, factorise
from ridgefold.records import FittedModel, Intervals
from ridgefold.solvers.base import write_system_matrix


@dataclass(frozen=True)
class Smoother:
    """How f(x) changes with the targets of the rows of positive weight."""

    rows: np.ndarray
    """Those rows."""
    matrix: Array
    """D, of shape (rows, rows)."""
    offset: Array
    """γ, of shape (rows,)."""
    regular: Array
    """D that residuals follow from: another one only where the system is singular."""
    heavy: int | None = None
    """The row with more than half of the weight, where there is a bias and one."""


def smoother(gram: Gram, alpha: float, weights: Array | None, bias: bool) -> Smoother:
    """D and γ from one inverse, in the storage of the kernel matrix."""
    namespace, n, like = gram.namespace, gram.shape[0], gram.like
    rows = np.arange(n)
    if weights is not None:
        rows = np.flatnonzero(namespace.to_numpy(weights) > 0)
        weights = namespace.take_rows(weights, rows)
    roots = None if weights is None else namespace.xp.sqrt(weights)
    part = gram if len(rows) == n else gram.restricted(rows)
    system = part if roots is None else WeightedGram(part, roots)
    direction = None
    if bias:
        direction = namespace.ones(len(rows), like) if roots is None else roots
    matrix = namespace.empty((len(rows), len(rows)), like)

    def fill(storage: Array) -> Centring | None:
        centring = write_system_matrix(system, direction, storage)
        namespace.add_to_diagonal_in_place(storage, alpha)
        return centring

    centring = fill(matrix)
    heavy = None if direction is None else heaviest_row(namespace, direction)
    factor = factorise(namespace, matrix, refill=fill)

    def slopes(factor: Factor) -> tuple[Array, Array]:
        """D and γ."""
        inverse = factor.inverse_in_place()
        namespace.fill_upper_in_place(inverse)
        offset = namespace.zeros(len(rows), like)
        if centring is not None:
            u = centring.direction
            inverse -= (u / (centring.shift + alpha))[:, None] * u[None, :]
            if heavy is not None:
                # Cs = 0: a difference of near numbers in a row with nearly all the weight.
                inverse[heavy, heavy] = 0.0
                inverse[heavy, heavy] = -(inverse[heavy, :] @ u) / u[heavy]
            offset = (u - inverse @ centring.product) / centring.scale
        if roots is not None:
            inverse *= roots[:, None]
            inverse *= roots[None, :]
            offset = offset * roots
        return inverse, offset

    inverse, offset = slopes(factor)
    regular = inverse
    if isinstance(factor, SpectralFactor) and (raised := factor.regular(alpha)) is not factor:
        regular, _ = slopes(raised)
    if not namespace.all_finite(regular):
        raise NumericalError(
            "the inverse behind jackknife+ intervals holds NaN or infinite numbers: use a larger "
            "alpha, or scale the columns of X"
        )
    return Smoother(rows, inverse, offset, regular, heavy)


def leave_one_out_models(
    gram: Gram, targets: Array, alpha: float, weights: Array | None, bias: bool
) -> Intervals:
    """g(x) of every row as a fitted model of n targets, and the leave-one-out residuals.

    Rows of weight zero take no part: they have no function and no residual. Residuals are
    (Dy)_i/D_ii.
    """
    namespace, n = gram.namespace, int(targets.shape[0])
    found = smoother(gram, alpha, weights, bias)
    rows, matrix = found.rows, found.matrix
    y = namespace.take_rows(targets, rows)
    if found.heavy is None:
        own = found.regular @ y
    else:  # D1 = 0, so that it makes no difference which target is taken for zero
        own = found.regular @ (y - y[found.heavy, :][None, :])
    residuals = own / namespace.diagonal(found.regular)[:, None]
    if not namespace.all_finite(residuals):
        raise NumericalError(
            "leave-one-out residuals are NaN or infinite, so no jackknife+ intervals can be made: "
            "use a larger alpha, or scale the columns of X"
        )
    if len(rows) < n:
        whole = namespace.zeros((n, len(rows)), targets)
        whole[namespace.indices(rows, targets), :] = matrix
        matrix = whole
    return Intervals(
        method="jackknife+",
        model=FittedModel(matrix, found.offset),
        residuals=residuals,
        groups=np.arange(len(rows)),
    )
