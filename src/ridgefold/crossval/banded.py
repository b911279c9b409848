"""A band instead of eigenvectors: what every α shares is cheaper than a spectrum.

K̃ = Q B Qᵀ with B banded takes a fifth of the time of an eigendecomposition
(`linalg.banded`), and B + αI is then as easy to solve for every α as a diagonal. Two ways to
use it, of which the cheaper one for the folds and the number of α is taken:

*Fold by fold* (few folds). Reduce K̃_cc of the training rows c of each fold; then

    ã_c = Q(B + αI)⁻¹Qᵀỹ_c         Q applied once to the solutions of all α
    ŷ_k = K_kc W^½ã_c + bias       one product for all α

*All folds at once* (many folds, leave-one-out). Reduce the whole K̃ once and form Q. With
B + αI = LLᵀ, the fold blocks of C = (K̃ + αI)⁻¹ for the shortcut of
`crossval.shared.shortcut` are

    C_kk = Z_k Z_kᵀ,   Z_k = Q_k L⁻ᵀ      4b operations a number of Z

and leave-one-out needs only the squared lengths of the rows of Z.

Where weights are very unlike the whole C says too little (`shared.weight_spread`): it then goes
fold by fold however many there are, unless they are single rows.

No more than one n×n matrix is alive. So the reductions are not kept: `held_out` makes them,
and many targets should be given in one call. Where B + αI is singular to working precision
(α = 0, an indefinite kernel) a dense factorisation takes over, as in `linalg.symmetric`.

Without it the best other method takes 1.03 times as long over 165 problems in the geometric mean,
2.1 times where ridges are too small for certificates, and 1.8 times for many targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.crossval.shared.base import HeldOut, Judge, Progress, no_progress
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.shortcut import (
    Layout,
    Position,
    held_out_from_inverses,
    lay_out,
    require_weighted_training_rows,
)
from ridgefold.crossval.shared.weight_spread import (
    WeightSpread,
    kernel_values_for_light_rows,
    one_by_one,
    share_of_training,
)
from ridgefold.kernels import Gram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.banded import (
    NARROW_BANDWIDTH,
    BandFactor,
    bandwidth_for,
    factorise_band,
    reduce_to_band,
)
from ridgefold.linalg.blocks import CACHE_BYTES
from ridgefold.linalg.centring import Centring, multiply_symmetric
from ridgefold.linalg.symmetric import (
    Factor,
    SpectralFactor,
    factorise,
    factorise_spectrally,
    rounding_level,
)
from ridgefold.records import Cost, FittedModel, FoldShape, Problem
from ridgefold.solvers.base import RidgeSystem, with_unpenalised, write_system_matrix

# Rows of Z computed together: enough for fast products, few enough for the cache.
_CHUNK = 512
# How often a number of Z is moved through memory: where its rows are kept, and where only their
# lengths are.
_MOVED_FOR_BLOCKS, _MOVED_FOR_LENGTHS = 6.0, 3.0
# Time of an operation of each kind, in those of a product.
_RELATIVE = {"band_reduction": 1.6, "product": 1.0, "cholesky": 1.5, "band_cholesky": 6.0}


@dataclass(frozen=True)
class _State:
    gram: Gram
    folds: Folds
    weights: Array | None
    bias: bool


class Banded:
    """K = QBQᵀ with B banded, by matrix products; every α then costs a banded solve."""

    name = "banded"
    exact = True
    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        return None

    def cost(self, problem: Problem) -> Cost:
        n, a, t = problem.n_rows, problem.n_alphas, problem.n_targets
        folds = problem.folds
        folded = (
            not problem.complement_folds
            or _needs_the_folds(
                WeightSpread.in_problem(problem),
                problem.bias,
                one_by_one(problem),
                fixed=problem.fixed > 0,
            )
            or _fold_by_fold_is_faster(n, folds, a)
        )
        if folded:
            flops = _fold_by_fold_flops(folds, a, t)
            # The reflectors go through memory twice on the way into the band, and back.
            flops["memory"] = 2.0 * problem.itemsize * sum(f.count * f.train**2 for f in folds)
            entries = sum(f.count * f.train * (0.5 * f.train + f.test) for f in folds)
            size = max((f.train for f in folds), default=n)
        else:
            flops = _all_at_once_flops(n, folds, a, t)
            entries, size = 0.5 * n**2 + kernel_values_for_light_rows(problem), n
        flops["kernel"] = entries
        largest = max((f.test for f in folds), default=1)
        tested = sum(f.count * f.test for f in folds)
        if not folded:  # rows of Z are gathered, and kept unless only their lengths matter
            moved = _MOVED_FOR_BLOCKS if largest > 1 else _MOVED_FOR_LENGTHS
            flops["memory"] = moved * problem.itemsize * a * tested * n
        matrices = 1.0
        eps = 2.0**-23 if problem.itemsize == 4 else 2.0**-52
        if problem.smallest_alpha <= rounding_level(n, eps) * n:
            # Likely too small for a Cholesky factor: the spectrum is needed too.
            flops["eigendecomposition"] = 9.0 * (
                sum(f.count * f.train**3 for f in folds) if folded else n**3
            )
            matrices = 3.0
        numbers = matrices * size**2 + size * (6.0 * bandwidth_for(size) + 3 * a * t)
        if folded:  # a piece of K_kc, and predictions in two orders
            numbers += (
                min(largest * size, 4 * CACHE_BYTES // problem.itemsize) + 3 * largest * a * t
            )
        else:  # blocks of L and of Z, and whole rows of Z and C_kk unless only lengths matter
            numbers += 4 * NARROW_BANDWIDTH * (size + min(_CHUNK, size))
            numbers += (largest > 1) * (2 * max(_CHUNK, largest) * size + 3 * largest**2)
        rounds = problem.n_folds if folded else 1
        flops["calls"] = rounds * (4.0 + 2.0 * size / bandwidth_for(size) + 0.6 * a)
        if not folded:
            flops["calls"] += 4.0 * a * problem.n_folds * (largest > 1)
            flops["calls"] += (
                0.3 * a * (1 + tested / _CHUNK) * n / bandwidth_for(n, NARROW_BANDWIDTH)
            )
        if folded:
            flops = {kind: problem.likely_share * work for kind, work in flops.items()}
        peak = problem.itemsize * (numbers + problem.held_out_numbers)
        return Cost(flops, peak, size=size)

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> _State:
        positive = np.ones(folds.n_rows, dtype=bool)
        if weights is not None:
            positive = gram.namespace.to_numpy(weights) > 0
        require_weighted_training_rows(folds, positive)
        return _State(gram, folds, weights, bias)

    def held_out(
        self,
        state: _State,
        targets: Array,
        alphas: np.ndarray,
        progress: Progress = no_progress,
        judge: Judge | None = None,
    ) -> HeldOut:
        folds, n = state.folds, state.folds.n_rows
        weights = None if state.weights is None else state.gram.namespace.to_numpy(state.weights)
        spread = WeightSpread.of(weights, n, folds)
        fixed = state.gram.fixed_columns() is not None
        if fixed:
            spread = replace(
                spread,
                least_training_share=share_of_training(state.gram, folds, weights, bias=state.bias),
            )
        if (
            not folds.complement
            or _needs_the_folds(spread, state.bias, max(folds.sizes) == 1, fixed=fixed)
            or _fold_by_fold_is_faster(n, folds.shapes, len(alphas))
        ):
            return _fold_by_fold(state, targets, alphas, progress, judge)
        layout = lay_out(state.gram, folds, state.weights, state.bias)
        return held_out_from_inverses(
            layout, targets, lambda y: _inverses(layout, y, alphas), len(alphas), progress
        )


# -- fold by fold ------------------------------------------------------------------------


def _fold_by_fold(
    state: _State, targets: Array, alphas: np.ndarray, progress: Progress, judge: Judge | None
) -> HeldOut:
    gram, folds, namespace = state.gram, state.folds, state.gram.namespace
    xp, t = namespace.xp, targets.shape[1]
    predictions = namespace.zeros((len(alphas), len(folds.stacked), t), targets)
    conditions = np.full(len(alphas), np.nan)
    alive = np.ones(len(alphas), dtype=bool)
    for k, run in enumerate(folds.runs):
        if not alive.any():
            break
        train = folds.training_rows(k)
        weights = None
        if state.weights is not None:
            weights = namespace.take_rows(state.weights, train)
            kept = np.flatnonzero(namespace.to_numpy(weights) > 0)
            train, weights = train[kept], namespace.take_rows(weights, kept)
        system = RidgeSystem(
            gram=gram.restricted(train),
            targets=namespace.take_rows(targets, train),
            alphas=alphas[alive],
            weights=weights,
            bias=state.bias,
        )
        model, known = _solve_for_every_alpha(system)
        conditions[alive] = np.fmax(conditions[alive], known)
        values = gram.product(folds.test[k], train, system.unweighted(model.dual_coef))
        values = with_unpenalised(gram, folds.test[k], values, model)
        values = xp.reshape(values, (len(folds.test[k]), -1, t))
        for j, row in zip(np.flatnonzero(alive), range(values.shape[1]), strict=True):
            predictions[int(j), run, :] = values[:, row, :]
        progress((k + 1) / len(folds))
        if judge is not None:
            alive &= judge(k, predictions[:, run, :], np.zeros((len(alphas), t)))
    return HeldOut(predictions, conditions, kept=None if judge is None else alive)


def _solve_for_every_alpha(system: RidgeSystem) -> tuple[FittedModel, np.ndarray]:
    """ã for alphas × targets with what is not penalised, and the condition numbers that matter."""
    namespace, xp = system.namespace, system.namespace.xp
    n, t = system.targets.shape
    matrix, space = namespace.empty((n, n), system.gram.like), system.unpenalised()

    def write() -> Centring | None:
        return write_system_matrix(system.weighted_gram(), space, matrix)

    centring = write()
    y = system.weighted_targets()
    right = y if centring is None else centring.project(y)
    reduction = reduce_to_band(namespace, matrix, bandwidth_for(n))
    rotated = namespace.to_numpy(reduction.to_band(right))
    solutions = np.zeros((n, len(system.alphas) * t), dtype=rotated.dtype)
    conditions = np.full(len(system.alphas), np.nan)
    singular = []
    for j, alpha in enumerate(system.alphas):
        banded = factorise_band(reduction.band, float(alpha))
        if banded is None:
            singular.append(j)
            continue
        solutions[:, j * t : (j + 1) * t] = banded.solve(rotated)
        conditions[j] = banded.known_condition()
    coefficients = reduction.from_band(namespace.asarray(solutions, y))
    for j, factor in _dense_factors(namespace, matrix, write, system.alphas, singular):
        coefficients[:, j * t : (j + 1) * t] = factor.solve(right)
        conditions[j] = factor.known_condition()
    if centring is None:
        return system.model(coefficients, None, coefficients), conditions
    coefficients = centring.project(coefficients)
    everything = xp.concat([y for _ in system.alphas], axis=1)
    unpenalised = centring.coefficients(everything, coefficients)
    return system.model(coefficients, space, unpenalised), conditions


def _dense_factors(
    namespace: Namespace,
    matrix: Array,
    write: Callable[[], object],
    alphas: np.ndarray,
    which: list[int],
) -> Iterator[tuple[int, Factor]]:
    """K̃ + αI factorised anew for the α that are too small for the band.

    Rounding errors of the band are relative to the largest eigenvalue, those of a Cholesky
    factor only to the diagonal. Once there is no such factor either, one spectrum serves all.
    """
    spectrum: SpectralFactor | None = None
    for j in sorted(which, key=lambda j: float(alphas[j])):
        alpha = float(alphas[j])
        if spectrum is not None:
            shifted = spectrum.values + alpha
            yield j, SpectralFactor(namespace, shifted, spectrum.vectors)
            continue

        def refill(storage: Array, alpha: float = alpha) -> None:
            write()
            namespace.add_to_diagonal_in_place(storage, alpha)

        refill(matrix)
        factor = factorise(namespace, matrix, refill)
        if isinstance(factor, SpectralFactor):
            spectrum = replace(factor, values=factor.values - alpha)
        yield j, factor


# -- all folds at once -------------------------------------------------------------------


@dataclass(frozen=True)
class _Spread:
    """C = basis·M⁻¹·basisᵀ for one α, with M⁻¹ = RᵀR (or RᵀSR with signs S on the diagonal)."""

    namespace: Namespace
    basis: Array
    factor: BandFactor | SpectralFactor

    def rows(self, position: Position) -> Array:
        """Z = basis Rᵀ at some rows."""
        rows = self.namespace.take_rows(self.basis, position)
        if isinstance(self.factor, BandFactor):
            out = self.namespace.empty(rows.shape, rows)
            for columns, block in self.factor.divide_rows(self.namespace, rows):
                out[:, columns] = block
            return out
        xp = self.namespace.xp
        return rows * xp.sqrt(xp.abs(self.factor.inverse_values()))[None, :]

    def signed(self, rows: Array) -> Array:
        """Z S: what is not a Cholesky factor may be indefinite."""
        if isinstance(self.factor, BandFactor):
            return rows
        return rows * self.namespace.xp.sign(self.factor.values)[None, :]

    def diagonal(self, position: slice) -> Array:
        """The diagonal of Z S Zᵀ at some rows, without keeping Z."""
        rows, xp = self.basis[position, :], self.namespace.xp
        if not isinstance(self.factor, BandFactor):
            return (rows * rows) @ self.factor.inverse_values()
        total = self.namespace.zeros(rows.shape[0], rows)
        for _, block in self.factor.divide_rows(self.namespace, rows):
            total += xp.vecdot(block, block)
        return total

    def gram(self, rows: Array) -> Array:
        """Z S Zᵀ, lower triangle."""
        if isinstance(self.factor, BandFactor):
            return self.namespace.gram_of_rows(rows)
        return self.signed(rows) @ rows.T


class _BandInverse:
    """C for one α by the rows of Z."""

    def __init__(
        self,
        layout: Layout,
        spread: _Spread,
        centring: Centring | None,
        alpha: float,
        *,
        y: Array,
        coefficients: Array,
    ) -> None:
        self._layout, self._spread, self._centring, self._y = layout, spread, centring, y
        self.alpha, self.coefficients = alpha, coefficients
        self.condition = spread.factor.known_condition()
        self._chunk: Array | None = None
        self._chunk_start = 0
        self._diagonal: Array | None = None

    def one_by_one(self) -> tuple[Array, Array]:
        diagonal = self._all_of_diagonal()
        return diagonal, self.coefficients - diagonal[:, None] * self._y

    def others(self, position: Position, block: Array) -> Array:
        namespace = self._layout.namespace
        own = multiply_symmetric(namespace, block, namespace.take_rows(self._y, position))
        return namespace.take_rows(self.coefficients, position) - own

    def _all_of_diagonal(self) -> Array:
        if self._diagonal is None:
            namespace, n = self._layout.namespace, len(self._layout.rows)
            out = namespace.empty(n, self.coefficients)
            for start in range(0, n, _CHUNK):
                part = slice(start, min(start + _CHUNK, n))
                out[part] = self._spread.diagonal(part)
            if self._centring is not None:
                out = self._centring.take_off_diagonal(out, self.alpha)
            self._diagonal = out
        return self._diagonal

    def block(self, position: Position) -> Array:
        namespace = self._layout.namespace
        if self._layout.folds.leave_one_out:
            return namespace.take_rows(self._all_of_diagonal(), position)[:, None]
        block = self._spread.gram(self._rows(position))
        if self._centring is not None:
            self._centring.take_off_block(block, position, self.alpha)
        return block

    def columns_times(self, position: Position, d: Array) -> Array:
        namespace, spread = self._layout.namespace, self._spread
        inner = spread.signed(self._rows(position)).T @ d
        if isinstance(spread.factor, BandFactor):
            inner = namespace.asarray(spread.factor.solve_transposed(namespace.to_numpy(inner)), d)
        else:
            inner = (
                inner * namespace.xp.sqrt(namespace.xp.abs(spread.factor.inverse_values()))[:, None]
            )
        product = spread.basis @ inner
        if self._centring is not None:
            self._centring.take_off_product(product, position, d, self.alpha)
        return product

    def _rows(self, position: Position) -> Array:
        """Z at some rows; small folds that stand in a run share one chunk."""
        if not isinstance(position, slice):
            return self._spread.rows(position)
        start, stop = position.start, position.stop
        first = self._chunk_start
        if self._chunk is None or start < first or stop > first + self._chunk.shape[0]:
            end = min(max(stop, start + _CHUNK), len(self._layout.rows))
            first, self._chunk_start = start, start
            self._chunk = self._spread.rows(slice(start, end))
        chunk: Array = self._chunk
        return chunk[start - first : stop - first, :]


def _inverses(layout: Layout, y: Array, alphas: np.ndarray) -> Iterator[_BandInverse]:
    """C for every α, from one reduction of the whole K̃."""
    namespace, n, t = layout.namespace, len(layout.rows), y.shape[1]
    matrix = namespace.empty((n, n), layout.gram.like)

    def write() -> Centring | None:
        return write_system_matrix(layout.system_gram(), layout.unpenalised(), matrix)

    centring = write()
    band = reduce_to_band(namespace, matrix, bandwidth_for(n, NARROW_BANDWIDTH))
    rotated = namespace.to_numpy(band.to_band(y))
    solutions = np.empty((n, len(alphas) * t), dtype=rotated.dtype)
    regular = True
    for j, alpha in enumerate(alphas):
        factor = factorise_band(band.band, float(alpha))
        regular = regular and factor is not None
        if factor is None:
            break
        solutions[:, j * t : (j + 1) * t] = factor.solve(rotated)
    # One α that is too small gives all of them to the spectrum: two bases would not fit.
    spectrum = None
    if regular:
        coefficients = band.from_band(namespace.asarray(solutions, y))
        basis = band.basis_in_place()
    else:
        write()
        spectrum = factorise_spectrally(namespace, matrix)
        basis = spectrum.vectors
    for j, value in enumerate(alphas):
        alpha = float(value)
        inner: BandFactor | SpectralFactor | None
        if spectrum is None:
            inner = factorise_band(band.band, alpha)
            assert inner is not None
            own = coefficients[:, j * t : (j + 1) * t]
        else:
            inner = SpectralFactor(namespace, spectrum.values + alpha, basis).regular(alpha)
            own = inner.solve(y)
        spread = _Spread(namespace, basis, inner)
        yield _BandInverse(layout, spread, centring, alpha, y=y, coefficients=own)


# -- how much ----------------------------------------------------------------------------


def _fold_by_fold_flops(folds: tuple[FoldShape, ...], a: int, t: int) -> dict[str, float]:
    flops = {"band_reduction": 0.0, "product": 0.0, "band_cholesky": 0.0}
    for fold in folds:
        n, b = fold.train, bandwidth_for(fold.train)
        flops["band_reduction"] += fold.count * 4.0 / 3.0 * n**3
        flops["band_cholesky"] += fold.count * a * n * b * (b + 4.0 * t)
        flops["product"] += fold.count * 2.0 * a * t * n * (n + fold.test)
    return flops


def _all_at_once_flops(n: int, folds: tuple[FoldShape, ...], a: int, t: int) -> dict[str, float]:
    b = bandwidth_for(n, NARROW_BANDWIDTH)
    rows, squares, cubes = (sum(f.count * f.test**power for f in folds) for power in (1, 2, 3))
    return {
        "band_reduction": 4.0 / 3.0 * float(n) ** 3,
        # The products that make Z are thin, and run at half speed.
        "product": 4.0 / 3.0 * float(n) ** 3 + a * n * (8.0 * b * rows + squares + 2.0 * n * t),
        "cholesky": a * cubes / 3.0,
        "band_cholesky": 2.0 * a * n * (b**2 + 2.0 * b * t),
    }


def _needs_the_folds(spread: WeightSpread, bias: bool, one_by_one: bool, *, fixed: bool) -> bool:
    """Whether C of the whole system would lose digits that the folds' own systems keep."""
    return not (spread.alike or one_by_one) or not spread.enough_in_training(bias, fixed)


def _fold_by_fold_is_faster(n: int, folds: tuple[FoldShape, ...], a: int) -> bool:
    def work(flops: dict[str, float]) -> float:
        return sum(_RELATIVE[kind] * amount for kind, amount in flops.items())

    return work(_fold_by_fold_flops(folds, a, 1)) < work(_all_at_once_flops(n, folds, a, 1))
