"""Held-out residuals from the inverse of the whole system, for any way to get that inverse.

With C = (K̃ + αI)⁻¹ (with unpenalised columns, what they make of it: `linalg.unpenalised`) and
ã = Cỹ, the residuals of fold k by the model that never saw it are, in An, Liu and Venkatesh's
formula (2007; with a bias, do Nascimento's Algorithm 1),

    d_k = C_kk⁻¹ ã_k,

and its coefficients ã − C_·k d_k. The predictions ỹ_k − d_k are computed as

    −C_kk⁻¹ Σ_{j∉k} C_kj ỹ_j,

the same without a difference of near numbers where α is large and predictions are small. With a
bias the targets' mean is taken off first, and put on again; with further unpenalised columns F,
what they alone explain. Rows of weight zero are not part of
the system: they are predicted from the coefficients of their fold's model.

Rows of so little weight that errors of ã at the size of other rows are large beside their own
(`shared.weight_spread`) are predicted by f of all rows, if they are held out alone: with the
leverage h_i = 1 − αC_ii,

    f₋ᵢ(x_i) = (f(x_i) − h_i y_i)/(1 − h_i).

That is for h_i < ½, where it loses nothing. A row of little weight with more leverage has
w_i k_ii > α, and what the shortcut loses, √(w_max/w_i)·eps/(αC_ii), is at most the condition number
times eps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ridgefold.crossval.shared.base import HeldOut, Progress
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.weight_spread import WeightSpread
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Gram, WeightedGram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.symmetric import factorise
from ridgefold.linalg.unpenalised import Unpenalised
from ridgefold.solvers.base import unpenalised_columns

Position = slice | np.ndarray


class Inverse(Protocol):
    """C for one α, as far as the folds need it; rows are in the layout's order."""

    alpha: float
    condition: float

    @property
    def coefficients(self) -> Array:
        """ã = C ỹ, shape (n, t)."""

    def one_by_one(self) -> tuple[Array, Array]:
        """For every row i: C_ii, and Σ_{j≠i} C_ij ỹ_j, shape (n, t)."""

    def block(self, position: Position) -> Array:
        """C_kk (lower triangle), in storage that may be overwritten."""

    def others(self, position: Position, block: Array) -> Array:
        """Σ_{j∉k} C_kj ỹ_j: what the rows outside a fold contribute inside; `block` is C_kk."""

    def columns_times(self, position: Position, d: Array) -> Array:
        """C_·k d."""


@dataclass(frozen=True)
class Layout:
    """The rows that count, in an order where every fold is one run if folds are disjoint."""

    namespace: Namespace
    gram: Gram
    """K of all rows, unweighted."""
    folds: Folds
    bias: bool
    rows: np.ndarray
    """Rows of positive weight, in order."""
    positions: tuple[Position, ...]
    """For every fold, where its weighted test rows stand in `rows`."""
    weighted_test: tuple[np.ndarray | None, ...]
    """For every fold, which of its test rows have weight; None if all have."""
    roots: Array | None
    """√w of `rows`."""
    light: Array | None
    """1 for rows of so little weight that the shortcut loses digits of theirs, 0 for the others;
    None if there are none."""

    def system_gram(self) -> Gram:
        """K̃ in this order."""
        gram = self._own_gram()
        return gram if self.roots is None else WeightedGram(gram, self.roots)

    def _own_gram(self) -> Gram:
        in_order = np.array_equal(self.rows, np.arange(self.folds.n_rows))
        return self.gram if in_order else self.gram.restricted(self.rows)

    def unpenalised(self) -> Unpenalised | None:
        """The space of the unpenalised columns, in this order."""
        return self._space

    def weighted_targets(self, targets: Array) -> Array:
        """ỹ in this order."""
        y = self.namespace.take_rows(targets, self.rows)
        return y if self.roots is None else y * self.roots[:, None]

    @cached_property
    def _space(self) -> Unpenalised | None:
        return unpenalised_columns(self._own_gram(), self.roots, bias=self.bias)

    def explained(self, targets: Array) -> Array:
        """What the unpenalised columns alone predict, shape (n, t); (1, t) if that is one number.

        Means of the targets, with a bias and no other column.
        """
        if self._space is None:
            return self.namespace.zeros((1, targets.shape[1]), targets)
        coordinates = self._space.basis.T @ self.weighted_targets(targets)
        return self.from_columns(self._space.coefficients(coordinates))

    def from_columns(self, coefficients: Array) -> Array:
        """Fβ for all rows, from β (q, t)."""
        space = self._space
        assert space is not None
        values, others = space.intercept(coefficients)[None, :], space.others(coefficients)
        return values if others is None else values + self.gram.fixed_columns() @ others

    def unpenalised_values(self, right: Array, product: Array) -> Array:
        """Fβ of a model for all rows, from its ỹ and K̃ã."""
        assert self._space is not None
        return self.from_columns(self._space.coefficients(self._space.basis.T @ (right - product)))

    def unweighted(self, position: Position, values: Array) -> Array:
        """Values that belong to ỹ at some rows, as values that belong to y."""
        if self.roots is None:
            return values
        return values / self.namespace.take_rows(self.roots, position)[:, None]


def lay_out(gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> Layout:
    """Order the rows and find every fold in that order."""
    namespace = gram.namespace
    positive = np.ones(folds.n_rows, dtype=bool)
    if weights is not None:
        positive = namespace.to_numpy(weights) > 0
    require_weighted_training_rows(folds, positive)
    if folds.disjoint and not folds.leave_one_out:
        tested = np.zeros(folds.n_rows, dtype=bool)
        tested[folds.stacked] = True
        order = np.concatenate([folds.stacked, np.flatnonzero(~tested)])
    else:
        order = np.arange(folds.n_rows)
    rows = order[positive[order]]
    place = np.full(folds.n_rows, -1)
    place[rows] = np.arange(len(rows))
    positions: list[Position] = []
    weighted_test: list[np.ndarray | None] = []
    for test in folds.test:
        has_weight = positive[test]
        weighted_test.append(None if has_weight.all() else has_weight)
        position = place[test[has_weight]]
        run = len(position) > 0 and np.array_equal(
            position, np.arange(position[0], position[0] + len(position))
        )
        positions.append(
            slice(int(position[0]), int(position[0]) + len(position)) if run else position
        )
    roots = light = None
    if weights is not None:
        roots = namespace.xp.sqrt(namespace.take_rows(weights, rows))
        counted = namespace.to_numpy(weights)
        spread = WeightSpread.of(counted, folds.n_rows, None)
        if not spread.alike:
            least = float(counted.max()) / spread.most_alike
            light = namespace.asarray((counted[rows] < least).astype(float), roots)
    return Layout(
        namespace, gram, folds, bias, rows, tuple(positions), tuple(weighted_test), roots, light
    )


def require_weighted_training_rows(folds: Folds, positive: np.ndarray) -> None:
    """Every fold must leave at least one row of positive weight to train on."""
    total = int(positive.sum())
    if folds.train is None and total - max(folds.sizes) > 0:
        return  # no fold can hold all the weight
    for k, test in enumerate(folds.test):
        if folds.train is not None:
            left = int(positive[folds.train[k]].sum())
        else:
            left = total - int(positive[test].sum())
        if left == 0:
            raise InvalidInputError(
                f"cv: fold {k} leaves no training rows of positive weight: use fewer folds, or "
                "weights that are not all in one fold"
            )


def held_out_from_inverses(
    layout: Layout,
    targets: Array,
    inverses: Callable[[Array], Iterator[Inverse]],
    n_alphas: int,
    progress: Progress,
) -> HeldOut:
    """Predictions of every fold for every α; `inverses` gives C for each α in turn from ỹ."""
    namespace, folds = layout.namespace, layout.folds
    total, t = len(folds.stacked), targets.shape[1]
    predictions = namespace.empty((n_alphas, total, t), targets)
    conditions = np.full(n_alphas, np.nan)
    explained = layout.explained(targets)
    targets = targets - explained
    back = explained
    if explained.shape[0] > 1:
        back = namespace.take_rows(explained, folds.stacked)
    # Every row must stand in the system: one that no fold tests may have weight zero.
    one_by_one = folds.leave_one_out and len(layout.rows) == folds.n_rows
    for j, inverse in enumerate(inverses(layout.weighted_targets(targets))):
        conditions[j] = inverse.condition
        light = None if layout.light is None else _LightRows(layout, inverse, targets)
        if one_by_one:
            diagonal, others = inverse.one_by_one()
            # A row with all the weight leaves nothing to predict it by; if no fold tests it, what
            # stands in its place is not asked for.
            with np.errstate(divide="ignore", invalid="ignore"):
                held_out = layout.unweighted(slice(None), -others / diagonal[:, None])
            if light is not None:
                held_out = light.instead_of(held_out, slice(None), diagonal)
            predictions[j, :, :] = namespace.take_rows(held_out, folds.stacked)
        else:
            for k, run in enumerate(folds.runs):
                predictions[j, run, :] = _predict_fold(layout, inverse, targets, k, light)
        predictions[j, :, :] += back
        progress((j + 1) / n_alphas)
    return HeldOut(predictions, conditions)


class _LightRows:
    """Rows of little weight that are held out alone, by f of all rows."""

    def __init__(self, layout: Layout, inverse: Inverse, targets: Array) -> None:
        self._layout, self._alpha, self._coefficients = layout, inverse.alpha, inverse.coefficients
        self._targets = targets

    @cached_property
    def _own(self) -> Array:
        return self._layout.namespace.take_rows(self._targets, self._layout.rows)

    @cached_property
    def _fitted(self) -> Array:
        """f at every row of the system."""
        layout = self._layout
        assert layout.roots is not None
        dual = self._coefficients * layout.roots[:, None]
        values = layout.gram.product(layout.rows, layout.rows, dual)
        if layout.unpenalised() is None:
            return values
        right = self._own * layout.roots[:, None]
        columns = layout.unpenalised_values(right, values * layout.roots[:, None])
        if columns.shape[0] > 1:
            columns = layout.namespace.take_rows(columns, layout.rows)
        return values + columns

    def instead_of(self, held_out: Array, position: Position, diagonal: Array) -> Array:
        """`held_out` at some rows, each alone in its fold, but by f where that is better."""
        namespace, light = self._layout.namespace, self._layout.light
        assert light is not None
        remaining = self._alpha * diagonal
        better = (namespace.take_rows(light, position) > 0.0) & (remaining > 0.5)
        if not bool(namespace.xp.any(better)):
            return held_out
        fitted, own = (namespace.take_rows(part, position) for part in (self._fitted, self._own))
        remaining = namespace.xp.where(better, remaining, namespace.xp.ones_like(remaining))
        by_fit = (fitted - (1.0 - remaining[:, None]) * own) / remaining[:, None]
        return namespace.xp.where(better[:, None], by_fit, held_out)


def _predict_fold(
    layout: Layout, inverse: Inverse, targets: Array, k: int, light: _LightRows | None
) -> Array:
    """Predictions of fold k's test rows, in its own order."""
    namespace, position = layout.namespace, layout.positions[k]
    test, has_weight = layout.folds.test[k], layout.weighted_test[k]
    if has_weight is not None and not has_weight.any():
        # The model of this fold is that of all rows.
        right = layout.weighted_targets(targets)
        return _predict_rows(layout, inverse.coefficients, right, test)

    def refill(storage: Array) -> None:
        storage[...] = inverse.block(position)

    block = inverse.block(position)
    others = inverse.others(position, block)
    diagonal = namespace.diagonal(block)
    held_out = -factorise(namespace, block, refill).solve(others)
    seen = layout.unweighted(position, held_out)
    if light is not None and len(test) == 1:
        seen = light.instead_of(seen, position, diagonal)
    if has_weight is None:
        return seen
    weighted, unweighted = np.flatnonzero(has_weight), np.flatnonzero(~has_weight)
    right = layout.weighted_targets(targets)
    own = namespace.take_rows(right, position)
    coefficients = inverse.coefficients - inverse.columns_times(position, own - held_out)
    # The model without the fold is that of all rows with the fold's targets as it predicts them.
    source = np.arange(len(layout.rows))
    source[position] = len(source) + np.arange(int(held_out.shape[0]))
    right = namespace.take_rows(namespace.xp.concat([right, held_out], axis=0), source)
    unseen = _predict_rows(layout, coefficients, right, test[unweighted])
    order = np.argsort(np.concatenate([weighted, unweighted]))
    return namespace.take_rows(namespace.xp.concat([seen, unseen], axis=0), order)


def _predict_rows(layout: Layout, coefficients: Array, right: Array, rows: np.ndarray) -> Array:
    """Predict `rows`, of weight zero, from ã and the ỹ that it is the solution for."""
    namespace = layout.namespace
    dual = coefficients if layout.roots is None else coefficients * layout.roots[:, None]
    values = layout.gram.block(rows, layout.rows) @ dual
    if layout.unpenalised() is None:
        return values
    product = layout.gram.product(layout.rows, layout.rows, dual)
    if layout.roots is not None:
        product = product * layout.roots[:, None]
    columns = layout.unpenalised_values(right, product)
    return values + (columns if columns.shape[0] == 1 else namespace.take_rows(columns, rows))
