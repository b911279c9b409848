"""How f(x) changes with every target: what exact jackknife+ needs.

f is linear in the targets. With K̃ = W^½KW^½, C the inverse of its system (with a bias, the
centred one of `linalg.centring`), ã = Cỹ and β = (u − CK̃u)/‖s‖,

    f(x) = k(x)ᵀDy + γᵀy,    D = W^½CW^½,  γ = W^½β  (zero without a bias),

and the model without row i is that of all rows with y_i replaced by its own prediction, so

    f₋ᵢ(x) = f(x) − r_i·g_i(x),    g(x) = Dk(x) + γ,    r_i = ã_i/(C_ii√w_i)

(r is An, Liu and Venkatesh's leave-one-out residual). One inverse gives all n models.
"""

from __future__ import annotations

import numpy as np

from ridgefold.errors import NumericalError
from ridgefold.kernels import Gram, WeightedGram
from ridgefold.linalg import Array
from ridgefold.linalg.centring import Centring
from ridgefold.linalg.symmetric import factorise
from ridgefold.records import FittedModel, Intervals
from ridgefold.solvers.base import write_system_matrix


def leave_one_out_models(
    gram: Gram, targets: Array, alpha: float, weights: Array | None, bias: bool
) -> Intervals:
    """g(x) of every row as a fitted model of n targets, and the leave-one-out residuals.

    Rows of weight zero take no part: their functions are zero, and they have no residual.
    """
    namespace, n = gram.namespace, int(targets.shape[0])
    rows = np.arange(n)
    if weights is not None:
        rows = np.flatnonzero(namespace.to_numpy(weights) > 0)
        weights = namespace.take_rows(weights, rows)
    roots = None if weights is None else namespace.xp.sqrt(weights)
    part = gram if len(rows) == n else gram.restricted(rows)
    system = part if roots is None else WeightedGram(part, roots)
    direction = None
    if bias:
        direction = namespace.ones(len(rows), targets) if roots is None else roots
    matrix = namespace.empty((len(rows), len(rows)), targets)

    def fill(storage: Array) -> Centring | None:
        centring = write_system_matrix(system, direction, storage)
        namespace.add_to_diagonal_in_place(storage, alpha)
        return centring

    centring = fill(matrix)
    inverse = factorise(namespace, matrix, refill=fill).inverse_in_place()
    namespace.fill_upper_in_place(inverse)
    gamma = namespace.zeros(len(rows), targets)
    if centring is not None:
        u = centring.direction
        inverse -= (u / (centring.shift + alpha))[:, None] * u[None, :]
        gamma = (u - inverse @ centring.product) / centring.scale
    y = namespace.take_rows(targets, rows)
    weighted = y if roots is None else y * roots[:, None]
    residuals = (inverse @ weighted) / namespace.diagonal(inverse)[:, None]
    if roots is not None:
        residuals = residuals / roots[:, None]
        inverse *= roots[:, None]
        inverse *= roots[None, :]
        gamma = gamma * roots
    if not (namespace.all_finite(residuals) and namespace.all_finite(inverse)):
        raise NumericalError(
            "leave-one-out residuals are NaN or infinite, so no jackknife+ intervals can be made: "
            "use a larger alpha, or scale the columns of X"
        )
    if len(rows) < n:
        whole = namespace.zeros((n, len(rows)), targets)
        whole[namespace.indices(rows, targets), :] = inverse
        inverse = whole
    return Intervals(
        method="jackknife+",
        model=FittedModel(inverse, gamma),
        residuals=residuals,
        groups=np.arange(len(rows)),
    )
