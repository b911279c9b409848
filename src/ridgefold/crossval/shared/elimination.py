"""Elimination of blocks of rows from K̃ + αI, where no more than a few blocks are ever alive.

What elimination of the blocks j₁ … j_r leaves between blocks p and q is

    S_pq(j₁ … j_r) = S_pq(j₁ … j_{r−1}) − S_pj S_jj⁻¹ S_jq,      j = j_r,

with every S on the right one level down, and S() the matrix itself, computed from the data.
Symmetry makes S_pq and S_qp one, and a Cholesky factor S_jj = LLᵀ turns the update into a
product of W = L⁻¹S_jp with itself.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.blocks import CACHE_BYTES
from ridgefold.linalg.panels import (
    half_solve_in_place,
    subtract_gram_in_place,
    subtract_product_in_place,
)
from ridgefold.linalg.symmetric import Factor, SpectralFactor, factorise
from ridgefold.linalg.unpenalised import unpenalised_space, without_penalty

Blocks = tuple[np.ndarray, ...]


class LiveBlocks:
    """Counts the blocks that are alive, and the most that ever were."""

    def __init__(self) -> None:
        self.alive = 0
        self.most = 0

    def track(self, block: Array) -> Array:
        self.alive += 1
        self.most = max(self.most, self.alive)
        weakref.finalize(block, self._drop)
        return block

    def _drop(self) -> None:
        self.alive -= 1


@dataclass(frozen=True)
class BlockMatrix:
    """K̃ = W^½ K W^½ as blocks that are computed when needed, with their number on record."""

    gram: Gram
    roots: Array | None
    """√w of every row."""
    bias: bool
    live: LiveBlocks = field(default_factory=LiveBlocks)

    @cached_property
    def fixed(self) -> Array | None:
        """Unpenalised columns beside the bias."""
        return self.gram.fixed_columns()

    @cached_property
    def scale(self) -> float:
        """The largest diagonal entry of K̃: what elimination leaves is rounded relative to it."""
        xp, diagonal = self.gram.namespace.xp, self.gram.diagonal()
        weighted = diagonal if self.roots is None else diagonal * self.roots * self.roots
        return float(xp.max(xp.abs(weighted)))


class BlockElimination:
    """Eliminate blocks of rows from K̃ + αI, computing every block when it is needed."""

    def __init__(self, matrix: BlockMatrix, alpha: float, pivots: Blocks) -> None:
        self.matrix, self.alpha, self.pivots = matrix, alpha, pivots
        self.namespace = matrix.gram.namespace

    @cached_property
    def columns(self) -> Array | None:
        """Unpenalised columns of all rows (n, r), such that √w times those of the pivots are a
        basis of their space; None where nothing is unpenalised."""
        namespace, roots, fixed = self.namespace, self.matrix.roots, self.matrix.fixed
        rows = np.concatenate(self.pivots)
        space = unpenalised_space(
            namespace,
            None if fixed is None else namespace.take_rows(fixed, rows),
            None if roots is None else namespace.take_rows(roots, rows),
            bias=self.matrix.bias,
            n_rows=len(rows),
            like=self.matrix.gram.like,
        )
        return None if space is None else space.at(fixed, int(self.matrix.gram.shape[0]))

    # -- blocks --------------------------------------------------------------------------

    def _weigh(self, block: Array, rows: np.ndarray, columns: np.ndarray) -> None:
        roots = self.matrix.roots
        if roots is not None:
            block *= self.namespace.take_rows(roots, rows)[:, None]
            block *= self.namespace.take_rows(roots, columns)[None, :]

    def diagonal_block(self, rows: np.ndarray, pivots: Blocks) -> Array:
        """S_pp, lower triangle."""
        if not pivots:
            block = self.matrix.live.track(self.matrix.gram.lower(rows))
            self._weigh(block, rows, rows)
            self.namespace.add_to_diagonal_in_place(block, self.alpha)
            return block
        *earlier, pivot = pivots
        (w,), signs = self._reduced(pivot, (rows,), tuple(earlier))
        block = self.diagonal_block(rows, tuple(earlier))
        subtract_gram_in_place(block, w, signs)
        return block

    def eliminated(
        self, targets: Array, rows: np.ndarray, pivots: Blocks
    ) -> tuple[Array, Array, Array]:
        """A block S_pp (lower triangle), [ỹ G]_p, and GᵀH_c[ỹ G], without the pivots.

        G are the unpenalised columns, each times √w.

        The right-hand sides go through the forward elimination only: what they lose to
        rounding is then √cond·eps, where a full solve H_c[ỹ G] would lose cond·eps before the
        cancellation in [ỹ G]_p − K̃_pc H_c[ỹ G].
        """
        right = self.right_hand_side(targets, rows)
        t = targets.shape[1]
        if not pivots:
            border = self.namespace.zeros((right.shape[1] - t, right.shape[1]), right)
            return self.diagonal_block(rows, ()), right, border
        *others, pivot = pivots
        earlier = tuple(others)
        w, z, signs = self._reduced_with_right(targets, pivot, rows, earlier)
        block, right, border = self.eliminated(targets, rows, earlier)
        subtract_gram_in_place(block, w, signs)
        signed = z if signs is None else z * signs[:, None]
        return block, right - w.T @ signed, border + z[:, t:].T @ signed

    def _reduced_with_right(
        self, targets: Array, pivot: np.ndarray, rows: np.ndarray, earlier: Blocks
    ) -> tuple[Array, Array, Array | None]:
        """W = L⁻¹S_jp and L⁻¹[ỹ G]_j, with S_jj = LJLᵀ; L is dropped on return."""
        block, right, _ = self.eliminated(targets, pivot, earlier)
        factor = self._factorise(block, pivot, earlier)
        del block
        z = factor.half_solve(right)
        w = self._off_diagonal_block(pivot, rows, earlier)
        half_solve_in_place(factor, w)
        return w, z, factor.signs()

    def _off_diagonal_block(self, rows: np.ndarray, columns: np.ndarray, pivots: Blocks) -> Array:
        """S_pq."""
        if not pivots:
            block = self.matrix.live.track(self.matrix.gram.block(rows, columns))
            self._weigh(block, rows, columns)
            return block
        *earlier, pivot = pivots
        (left, right), signs = self._reduced(pivot, (rows, columns), tuple(earlier))
        block = self._off_diagonal_block(rows, columns, tuple(earlier))
        subtract_product_in_place(block, left, right, signs)
        return block

    def _reduced(
        self, pivot: np.ndarray, others: Blocks, earlier: Blocks
    ) -> tuple[list[Array], Array | None]:
        """W_p = L⁻¹S_jp for each of `others`, with S_jj = LLᵀ; L is dropped on return.

        Where S_jj is not positive definite, S_jj = LJLᵀ with signs J, which come second.
        """
        factor = self.factor(pivot, earlier)
        reduced = []
        for rows in others:
            block = self._off_diagonal_block(pivot, rows, earlier)
            half_solve_in_place(factor, block)
            reduced.append(block)
        return reduced, factor.signs()

    def factor(self, rows: np.ndarray, pivots: Blocks) -> Factor:
        return self._factorise(self.diagonal_block(rows, pivots), rows, pivots)

    def _factorise(self, block: Array, rows: np.ndarray, pivots: Blocks) -> Factor:
        # Computed anew, a block costs as much as the elimination so far, at every level of the
        # recursion: where a copy is small, one is kept until the factor is there.
        small = block.shape[0] ** 2 * self.matrix.gram.itemsize <= CACHE_BYTES
        kept = self.namespace.copy(block) if pivots and small else None

        def refill(storage: Array) -> None:
            storage[...] = self.diagonal_block(rows, pivots) if kept is None else kept

        scale = self.matrix.scale if pivots else 0.0
        factor = factorise(self.namespace, block, refill, scale)
        return self.regular(factor)

    def regular(self, factor: Factor) -> Factor:
        """The factor without eigenvalues that are nothing but rounding error."""
        if not isinstance(factor, SpectralFactor):
            return factor
        return factor.regular(self.alpha, semidefinite=self.matrix.gram.semidefinite)

    # -- few right-hand sides ------------------------------------------------------------

    def predict(self, targets: Array, rows: np.ndarray) -> Array:
        """Predictions for `rows` by the model of the pivot rows."""
        namespace, columns = self.namespace, self.columns
        right = [self.right_hand_side(targets, block) for block in self.pivots]
        solved = self.solve(right)
        t = targets.shape[1]
        dual = [part[:, :t] for part in solved]
        out = namespace.zeros((len(rows), t), targets)
        if columns is not None:
            everything = namespace.xp.concat(solved, axis=0)
            basis = namespace.xp.concat([part[:, t:] for part in right], axis=0)
            _, coordinates, _ = without_penalty(namespace.xp, everything, basis)
            dual = [part[:, :t] - part[:, t:] @ coordinates for part in solved]
            out = out + namespace.take_rows(columns, rows) @ coordinates
        for block, part in zip(self.pivots, dual, strict=True):
            out += self.multiply(rows, block, part, weigh_rows=False)
        return out

    def right_hand_side(self, targets: Array, rows: np.ndarray) -> Array:
        """[ỹ G] of some rows: targets and unpenalised columns, both times √w."""
        namespace, roots = self.namespace, self.matrix.roots
        found = namespace.take_rows(targets, rows)
        if self.columns is not None:
            own = namespace.take_rows(self.columns, rows)
            found = namespace.xp.concat([found, own], axis=1)
        return found if roots is None else found * namespace.take_rows(roots, rows)[:, None]

    def solve(self, right: list[Array]) -> list[Array]:
        """(K̃_cc + αI)⁻¹ applied to skinny right-hand sides, one part a pivot block.

        The factor of the last pivot's S is the largest to compute, so it comes first, while
        no other factor is kept.
        """
        factors: list[Factor] = []
        for j in reversed(range(len(self.pivots))):
            factors.insert(0, self.factor(self.pivots[j], self.pivots[:j]))
        return self._substitute(factors, right, len(self.pivots))

    def _substitute(self, factors: list[Factor], right: list[Array], count: int) -> list[Array]:
        """Solve with the leading `count` blocks."""
        last = count - 1
        if last == 0:
            return [factors[0].solve(right[0])]
        forward = self._substitute(factors, right, last)
        y = right[last] - self._row_times(last, forward)
        x = factors[last].solve(y)
        updated = [
            right[i] - self.multiply(self.pivots[i], self.pivots[last], x) for i in range(last)
        ]
        return [*self._substitute(factors, updated, last), x]

    def _row_times(self, row: int, parts: list[Array]) -> Array:
        products = [
            self.multiply(self.pivots[row], self.pivots[i], part) for i, part in enumerate(parts)
        ]
        return sum(products[1:], products[0])

    def multiply(
        self, rows: np.ndarray, columns: np.ndarray, v: Array, *, weigh_rows: bool = True
    ) -> Array:
        """K̃[rows, columns] v, without the rows' own weights if they are to be predicted."""
        namespace, roots = self.namespace, self.matrix.roots
        if roots is not None:
            v = v * namespace.take_rows(roots, columns)[:, None]
        out = self.matrix.gram.product(rows, columns, v)
        if roots is not None and weigh_rows:
            out = out * namespace.take_rows(roots, rows)[:, None]
        return out
