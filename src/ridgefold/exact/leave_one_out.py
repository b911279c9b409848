"""How f(x) changes with every target: what exact jackknife+ needs.

f is linear in the targets. With K̃ = W^½KW^½, C the inverse of its system (with unpenalised columns
φ, what they make of it: `linalg.unpenalised`, with Q and T), ã = Cỹ and

    f(x) = k(x)ᵀDy + φ(x)ᵀΓy,    D = W^½CW^½,    Γ = T(Q − CK̃Q)ᵀW^½  (q × n),

and the model without row i is that of all rows with y_i replaced by its own prediction, so

    f₋ᵢ(x) = f(x) − r_i·g_i(x),    g(x) = Dk(x) + Γᵀφ(x),    r_i = ã_i/(C_ii√w_i) = (Dy)_i/D_ii

(r is An, Liu and Venkatesh's leave-one-out residual). One inverse gives all n models. Where the
system is singular to rounding, f is the solution of least norm and D in g the pseudo-inverse; but
residuals follow from the inverse of the system with a ridge of the size of rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.kernels import Gram, WeightedGram
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.centring import Centring
from ridgefold.linalg.symmetric import Factor, SpectralFactor, factorise
from ridgefold.linalg.unpenalised import (
    Unpenalised,
    from_the_others,
    heavy_rows,
    rows_that_keep_the_rank,
)
from ridgefold.records import FittedModel, Intervals
from ridgefold.solvers.base import unpenalised_columns, write_system_matrix


@dataclass(frozen=True)
class Smoother:
    """How f(x) changes with the targets of the rows of positive weight."""

    rows: np.ndarray
    """Those rows."""
    matrix: Array
    """D, of shape (rows, rows)."""
    offset: Array
    """The row of Γ that belongs to the bias, of shape (rows,); zero without one."""
    regular: Array
    """D that residuals follow from: another one only where the system is singular."""
    heavy: tuple[list[int], Array] | None = None
    """Rows that hold more than half of an unpenalised column (of the weight, beside a bias), and
    what the columns predict for all rows, (rows, heavy), if they fit these alone."""
    fixed: Array | None = None
    """The other rows of Γ, of shape (p, rows), if there are unpenalised columns beside the bias."""

    def centred(self, targets: Array) -> Array:
        """y (rows, t) less what the unpenalised columns make of heavy rows.

        DF = 0, so that Dy stays what it is; but rows and columns of D that are nearly zero, as
        differences of near numbers, now meet targets that are nearly zero.
        """
        if self.heavy is None:
            return targets
        rows, pulls = self.heavy
        return targets - pulls @ namespace_of(targets).take_rows(targets, np.asarray(rows))


def smoother(gram: Gram, alpha: float, weights: Array | None, bias: bool) -> Smoother:
    """D and Γ from one inverse, in the storage of the kernel matrix."""
    namespace, n, like = gram.namespace, gram.shape[0], gram.like
    rows = np.arange(n)
    if weights is not None:
        rows = np.flatnonzero(namespace.to_numpy(weights) > 0)
        weights = namespace.take_rows(weights, rows)
    roots = None if weights is None else namespace.xp.sqrt(weights)
    part = gram if len(rows) == n else gram.restricted(rows)
    system = part if roots is None else WeightedGram(part, roots)
    space = unpenalised_columns(part, roots, bias=bias)
    matrix = namespace.empty((len(rows), len(rows)), like)

    def fill(storage: Array) -> Centring | None:
        centring = write_system_matrix(system, space, storage)
        namespace.add_to_diagonal_in_place(storage, alpha)
        return centring

    centring = fill(matrix)
    heavy = heavy_rows(namespace, space)
    factor = factorise(namespace, matrix, refill=fill)

    def slopes(factor: Factor) -> tuple[Array, Array]:
        """D and Γ."""
        inverse = factor.inverse_in_place()
        namespace.fill_upper_in_place(inverse)
        pulls = namespace.zeros((0, len(rows)), like)
        if centring is not None:
            centring.take_off_all(inverse, alpha)
            for row in heavy:
                # QᵀC = 0: a difference of near numbers in a row with nearly all of a column.
                basis = centring.space.basis
                inverse[row, row] = from_the_others(basis, inverse[:, row][:, None], row)[0]
            found = centring.space.basis - inverse @ centring.product
            pulls = centring.space.coefficients(found.T)
        if roots is not None:
            inverse *= roots[:, None]
            inverse *= roots[None, :]
            pulls = pulls * roots[None, :]
        return inverse, pulls

    inverse, pulls = slopes(factor)
    regular = inverse
    if isinstance(factor, SpectralFactor) and (raised := factor.regular(alpha)) is not factor:
        regular, _ = slopes(raised)
    if not namespace.all_finite(regular):
        raise NumericalError(
            "the inverse behind jackknife+ intervals holds NaN or infinite numbers: use a larger "
            "alpha, or scale the columns of X"
        )
    for row in [] if space is None else rows_that_keep_the_rank(namespace, space):
        # C is zero there but for rounding: the rest goes on without the row as with it.
        for found in (inverse,) if regular is inverse else (inverse, regular):
            found[row, :] = 0.0
            found[:, row] = 0.0
    if space is None:
        return Smoother(rows, inverse, namespace.zeros(len(rows), like), regular)
    offset, fixed = space.intercept(pulls), space.others(pulls)
    return Smoother(rows, inverse, offset, regular, _heavy(space, heavy, roots), fixed)


def _heavy(
    space: Unpenalised, rows: list[int], roots: Array | None
) -> tuple[list[int], Array] | None:
    """As `Smoother.heavy` has it: W^(−½)Q(Q_h)⁺W_h^½."""
    if not rows:
        return None
    pulls = space.basis @ space.namespace.xp.linalg.pinv(space.taken(np.asarray(rows)))
    if roots is not None:
        pulls = pulls * space.namespace.take_rows(roots, np.asarray(rows))[None, :]
        pulls = pulls / roots[:, None]
    return rows, pulls


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
    own = found.regular @ found.centred(y)
    diagonal = namespace.diagonal(found.regular)
    if found.fixed is not None and bool(namespace.xp.any(diagonal == 0.0)):
        row = int(rows[int(namespace.xp.argmin(namespace.xp.abs(diagonal)))])
        raise InvalidInputError(
            f'intervals="jackknife+" leaves every row out, but without row {row} (counted from 0) '
            "the coefficients of the fixed columns are not determined (a level that no other row "
            'has, say): leave that row out, fix fewer columns, or use intervals="cv+"'
        )
    residuals = own / diagonal[:, None]
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
        model=FittedModel(matrix, found.offset, fixed_coef=found.fixed),
        residuals=residuals,
        groups=np.arange(len(rows)),
    )
