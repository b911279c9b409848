"""What every way of cutting promises, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ridgefold.linalg.blocks import row_blocks
from ridgefold.records import Cells, Membership, Slopes

Router = Mapping[str, np.ndarray]

_BLOCK_BYTES = float(1 << 25)
"""Size of the blocks of X that are routed at once: memory-mapped data are never read whole."""
MOST_REPEATS = 2.0
"""Overlapping cells together hold at most about so many times the rows: work and memory grow with
them."""
SAMPLE_ROWS = 2000
"""Rows from which directions and distances are estimated: more hardly change them."""


class Partitioner(Protocol):
    """One way to cut. Registered in `cells/cut/__init__.py`.

    `route` and `membership` see new rows and the arrays of a router, no other state: a
    fitted partition is data.
    """

    in_space: bool
    """True if a new row has a cell of its own; False if cells are drawn at random."""

    def fit(self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator) -> Cells:
        """Cut the rows of X into at most `n_cells` cells, none of them empty."""

    def learn(
        self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator
    ) -> tuple[Router, int]:
        """The geometry of at most `n_cells` cells, each with some of these rows, and how many.

        X is in memory: all rows, or those of `learning_rows`.
        """

    def route(self, router: Router, X: np.ndarray) -> np.ndarray:
        """The cell of every row."""

    def membership(self, router: Router, X: np.ndarray) -> Membership:
        """Every row's cells where cells overlap, with weights that change continuously."""

    def accepts(self, router: Router, n_cells: int, n_columns: int) -> bool:
        """True if the arrays of a router can place rows of n_columns in n_cells cells."""


@runtime_checkable
class Guided(Protocol):
    """A partitioner that cuts better where it knows in which directions targets change."""

    slopes: Slopes | None
    """How much targets change in every direction; None if that is not known."""

    def guided_by(self, slopes: Slopes) -> Partitioner:
        """The same partitioner, guided by these slopes."""


def finite_floats(router: Router, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """True if the router has these arrays of finite numbers, in these shapes."""
    return all(
        name in router
        and router[name].shape == shape
        and router[name].dtype in (np.float32, np.float64)
        and bool(np.all(np.isfinite(router[name])))
        for name, shape in shapes.items()
    )


def blocks_of(X: np.ndarray, numbers_a_row: int) -> Iterator[slice]:
    """Slices of rows that need at most some megabytes each."""
    return row_blocks(X.shape[0], X.itemsize * numbers_a_row, _BLOCK_BYTES)


def route_in_blocks(
    X: np.ndarray, place: Callable[[np.ndarray], np.ndarray], numbers_a_row: int = 0
) -> np.ndarray:
    """`place(rows)` of every block of rows, one after the other."""
    numbers = numbers_a_row or 2 * X.shape[1]
    return np.concatenate([place(np.asarray(X[rows])) for rows in blocks_of(X, numbers)])


def membership_in_blocks(
    X: np.ndarray, place: Callable[[np.ndarray], Membership], numbers_a_row: int = 0
) -> Membership:
    """`place(rows)`, a membership, of every block of rows, put together."""
    memberships = []
    for rows in blocks_of(X, numbers_a_row or 4 * X.shape[1]):
        of_block = place(np.asarray(X[rows]))
        memberships.append(Membership(of_block.rows + rows.start, of_block.cells, of_block.weights))
    return joined(memberships)


def joined(memberships: Sequence[Membership]) -> Membership:
    """Several memberships as one."""
    return Membership(
        np.concatenate([each.rows for each in memberships]),
        np.concatenate([each.cells for each in memberships]),
        np.concatenate([each.weights for each in memberships]),
    )


def sample_of(X: np.ndarray, rows: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Some rows of X in float64, drawn without repeats; all if there are few."""
    n = X.shape[0] if rows is None else len(rows)
    if n > SAMPLE_ROWS:
        chosen = np.sort(rng.choice(n, SAMPLE_ROWS, replace=False))
        rows = chosen if rows is None else rows[chosen]
    sample = X if rows is None else X[rows]
    return np.asarray(sample, dtype=np.float64)


_LEARNING_NUMBERS = 1 << 22
"""Cells are learned from a sample of at least so many numbers, or from all rows if there are fewer:
32 MB, which any machine holds."""
_LEARNING_ROWS_A_CELL = 16
"""Rows of the sample for every cell, at least: fewer could not tell where a cell ends."""


def learning_sample(n_rows: int, n_columns: int, n_cells: int) -> int:
    """How many rows cells are learned from."""
    size = max(_LEARNING_NUMBERS // max(1, n_columns), _LEARNING_ROWS_A_CELL * n_cells)
    return min(n_rows, size)


def learning_rows(
    n_rows: int, n_columns: int, n_cells: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Rows from which cells are learned, in ascending order; None if it is from all.

    Of many rows a sample is enough: one row in each of as many stretches of equal length. It does
    not depend on where the rows are kept, so that cells of rows on disk are those of the same rows
    in memory.
    """
    size = learning_sample(n_rows, n_columns, n_cells)
    if n_rows <= size:
        return None
    places = (np.arange(size) + rng.random(size)) * (n_rows / size)
    return np.unique(np.minimum(places.astype(np.int64), n_rows - 1))


def cut(
    partitioner: Partitioner, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator
) -> Cells:
    """Learn cells, and put every row of X into its own."""
    rows = learning_rows(X.shape[0], X.shape[1], n_cells, rng)
    router, m = partitioner.learn(X if rows is None else X[rows], n_cells, overlap, rng)
    if overlap > 0 and m > 1:
        return overlapping_cells(partitioner.membership(router, X), m, router)
    return cells_of(partitioner.route(router, X), m, router)


def cells_of(labels: np.ndarray, n_cells: int, router: Router) -> Cells:
    """Cells that do not overlap, from the cell of every row."""
    order = np.argsort(labels, kind="stable")
    offsets = np.zeros(n_cells + 1, dtype=np.int64)
    np.cumsum(np.bincount(labels, minlength=n_cells), out=offsets[1:])
    return Cells(order, offsets, None, router)


def overlapping_cells(membership: Membership, n_cells: int, router: Router) -> Cells:
    """Cells from pairs of rows and cells; entries of weight zero are left out."""
    held = membership.weights > 0
    rows, cells, weights = membership.rows[held], membership.cells[held], membership.weights[held]
    order = np.lexsort((rows, cells))
    offsets = np.zeros(n_cells + 1, dtype=np.int64)
    np.cumsum(np.bincount(cells, minlength=n_cells), out=offsets[1:])
    return Cells(rows[order], offsets, weights[order], router)


def first_direction(sample: np.ndarray) -> np.ndarray:
    """The first principal direction of centred rows, of unit length.

    Its sign is fixed (the largest entry is positive) so that results do not depend on
    the LAPACK that computed it. Rows that are all the same give zeros.
    """
    centred = sample - sample.mean(axis=0)
    scale = float(max(centred.max(), -centred.min())) if centred.size else 0.0
    if not 0.0 < scale < np.inf:
        return np.zeros(sample.shape[1])
    centred /= scale
    direction = _by_steps(centred)
    if direction is None:
        direction = _by_products(centred)
    return of_fixed_sign(direction)


def of_fixed_sign(direction: np.ndarray) -> np.ndarray:
    """The direction with its largest entry positive."""
    largest = direction[np.argmax(np.abs(direction))]
    return np.asarray(direction if largest > 0 else -direction)


_WIDE = 192
"""Columns from which on Lanczos steps are faster than a reduction to tridiagonal form."""
_WIDER = 256
"""Columns from which on Lanczos steps with the rows are faster than a matrix of their products."""
_QUICK, _PATIENT = (16, 2), (20, 10)
"""Lanczos vectors that are kept, and how often they are restarted at most."""


def _by_steps(centred: np.ndarray) -> np.ndarray | None:
    """The direction without a matrix of products; None if that takes too many steps, or if there
    are so few rows or columns that it gains nothing."""
    if min(centred.shape) < _WIDER:
        return None
    d = centred.shape[1]
    products = LinearOperator((d, d), lambda v: (centred @ v.ravel()) @ centred, dtype=np.float64)
    return _by_lanczos(products, *_QUICK)


def _by_products(centred: np.ndarray) -> np.ndarray:
    """The direction from the products of all columns, or of all rows if they are fewer."""
    if centred.shape[1] <= centred.shape[0]:
        return _last_eigenvector(centred.T @ centred)
    direction = centred.T @ _last_eigenvector(centred @ centred.T)
    return np.asarray(direction / np.linalg.norm(direction))


def _last_eigenvector(matrix: np.ndarray) -> np.ndarray:
    """The eigenvector of the largest eigenvalue, without the others: a third of the time.

    Wide matrices are tried by Lanczos steps first. Where the two largest eigenvalues are too close
    for these, and in other matrices, a reduction to tridiagonal form gives it.
    """
    last = matrix.shape[0] - 1
    vector = _by_lanczos(matrix, *_PATIENT) if last >= _WIDE else None
    if vector is None:
        vector = eigh(matrix, subset_by_index=[last, last], check_finite=False, driver="evr")[1]
    return np.asarray(vector).ravel()


def _by_lanczos(matrix: np.ndarray | LinearOperator, kept: int, restarts: int) -> np.ndarray | None:
    """The last eigenvector to full precision, from a fixed start; None if it takes too long."""
    start = np.random.default_rng(0).standard_normal(matrix.shape[0])
    try:
        _, vectors = eigsh(matrix, k=1, which="LA", v0=start, ncv=kept, maxiter=restarts)
    except ArpackError:
        return None
    return np.asarray(vectors[:, 0])


def ramp(position: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    """0 up to `low`, 1 from `high` on, linear between; a step after `low` if they coincide."""
    width = np.asarray(high) - np.asarray(low)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = (position - low) / np.where(width > 0, width, 1.0)
    return np.asarray(
        np.where(width > 0, np.clip(inside, 0.0, 1.0), (position > low).astype(np.float64))
    )
