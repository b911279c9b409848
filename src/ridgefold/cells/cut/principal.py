"""A balanced tree of cuts, each across the first principal direction of its own rows.

One direction for all cells (`hyperplanes`) makes thin slabs: neighbours along every other
direction are far apart within a slab. Here every part is cut across the direction in which it
is longest, at the quantile that leaves both sides the cells they are due, until every part is
one cell: cells are balanced, compact, and found by O(log m) projections of a row.

Overlap. A cut gets a band in which rows belong to both sides, the weight of each falling
linearly to zero at the band's far edge; a row's weight in a cell is the product along its
path, so that weights sum to 1 and predictions have no seams. A band is `overlap` times as wide
as the *cells* below the cut are thick in its direction (√12 times the median spread of their
rows, the thickness of a uniform slab): a share of a large part would be many cells wide. Nor
does it hold more than that share of the part's rows: where rows are dense and cells thin, what
is thin elsewhere would be many cells wide again; and in deep trees less, so that cells together
hold no more than about twice the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ridgefold.cells.cut.base import (
    MOST_REPEATS,
    Router,
    cut,
    finite_floats,
    first_direction,
    joined,
    membership_in_blocks,
    ramp,
    route_in_blocks,
    sample_of,
)
from ridgefold.linalg.blocks import row_blocks
from ridgefold.records import Cells, Membership

_GATHERED_BYTES = float(1 << 26)
"""Parts of up to this size are copied out of X once, and cut further in memory."""
_SPREAD_ROWS = 64
"""Rows of a cell from which its thickness is estimated."""
_SLAB = 12.0**0.5
"""Thickness of a uniform slab, in standard deviations."""
_FEW_ROWS_A_COLUMN = 4
"""In a part with fewer rows a column, a direction fits the very rows that it was found from."""
_SHORT_OF_A_ROW = 1.0 - 1e-6
"""Bands end just before the row that limits them: on it, rounding would decide."""
_FEWEST_ROWS_A_CELL = 8
"""With fewer rows a cell, half of them could not tell where to cut."""
_ROUNDING = 64.0
"""Projections that differ by fewer units in the last place count as equal."""


@dataclass
class _Growing:
    """A tree while it grows: nodes in the order of the cuts; a child < 0 is the cell −1 − child."""

    directions: list[np.ndarray]
    cuts: list[float]
    reaches: list[float]
    """The largest distance from each cut that its band may reach."""
    children: list[list[int]]
    ancestors: list[list[int]]
    """For every cell, the nodes above it."""


DirectionOf = Callable[[np.ndarray], np.ndarray]
"""The direction across which a part is cut, from some of its rows."""


@dataclass(frozen=True, eq=False)
class PrincipalTree:
    """Balanced cells by recursive cuts across principal directions."""

    in_space = True

    def direction_of(self, sample: np.ndarray) -> np.ndarray:
        """The direction across which to cut these rows; zeros if all are the same."""
        return first_direction(sample)

    def fit(self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator) -> Cells:
        return cut(self, X, n_cells, overlap, rng)

    def learn(
        self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator
    ) -> tuple[Router, int]:
        n = X.shape[0]
        grown = _Growing([], [], [], [], [])
        spreads: list[np.ndarray] = []
        depth = max(1.0, np.log2(max(1, min(n_cells, n))))
        # Every level multiplies the rows by 1 + share.
        share = min(overlap, MOST_REPEATS ** (1.0 / depth) - 1.0)
        _grow(X, min(n_cells, n), grown, self.direction_of, spreads=spreads, share=share, rng=rng)
        router = {
            "directions": np.array(grown.directions, dtype=X.dtype).reshape(-1, X.shape[1]),
            "cuts": np.array(grown.cuts, dtype=np.float64),
            "half_widths": np.minimum(
                0.5 * overlap * _thicknesses(grown, spreads), np.array(grown.reaches)
            ),
            "children": np.array(grown.children, dtype=np.int64).reshape(-1, 2),
        }
        return router, len(grown.ancestors)

    def route(self, router: Router, X: np.ndarray) -> np.ndarray:
        children, cuts = router["children"], router["cuts"]

        def place(rows: np.ndarray) -> np.ndarray:
            node = np.full(len(rows), 0 if len(cuts) else -1, dtype=np.int64)
            active = np.flatnonzero(node >= 0)
            while len(active):
                at = node[active]
                right = _project(rows, active, router["directions"], at) > cuts[at]
                node[active] = children[at, right.astype(np.intp)]
                active = active[node[active] >= 0]
            return -1 - node

        return route_in_blocks(X, place)

    def membership(self, router: Router, X: np.ndarray) -> Membership:
        children, cuts, half = router["children"], router["cuts"], router["half_widths"]

        def place(block: np.ndarray) -> Membership:
            rows = np.arange(len(block))
            node = np.full(len(block), 0 if len(cuts) else -1, dtype=np.int64)
            weight = np.ones(len(block))
            placed: list[Membership] = []
            while len(rows):
                done = node < 0
                placed.append(Membership(rows[done], -1 - node[done], weight[done]))
                rows, node, weight = rows[~done], node[~done], weight[~done]
                position = _project(block, rows, router["directions"], node)
                right = ramp(position, cuts[node] - half[node], cuts[node] + half[node])
                shares = np.concatenate([weight * (1.0 - right), weight * right])
                rows = np.concatenate([rows, rows])
                node = np.concatenate([children[node, 0], children[node, 1]])
                held = shares > 0
                rows, node, weight = rows[held], node[held], shares[held]
            return joined(placed)

        return membership_in_blocks(X, place)

    def accepts(self, router: Router, n_cells: int, n_columns: int) -> bool:
        shapes = {
            "directions": (n_cells - 1, n_columns),
            "cuts": (n_cells - 1,),
            "half_widths": (n_cells - 1,),
        }
        children = router.get("children")
        if (
            not finite_floats(router, shapes)
            or children is None
            or children.shape != (n_cells - 1, 2)
            or children.dtype.kind != "i"
        ):
            return False
        # Every node and cell hangs on one node above it: walks end, and reach all cells.
        nodes = np.sort(children, axis=None)
        whole_tree = np.sort(np.concatenate([np.arange(1, n_cells - 1), -1 - np.arange(n_cells)]))
        above = children > np.arange(n_cells - 1)[:, None]
        return bool(n_cells == 1 or np.array_equal(nodes, whole_tree)) and bool(
            np.all(above | (children < 0))
        )


def _project(
    X: np.ndarray, rows: np.ndarray, directions: np.ndarray, nodes: np.ndarray
) -> np.ndarray:
    """The projection of each row on its node's direction, in float64."""
    return np.asarray(np.einsum("ij,ij->i", X[rows], directions[nodes], dtype=np.float64))


def _grow(
    X: np.ndarray,
    n_cells: int,
    grown: _Growing,
    direction_of: DirectionOf,
    *,
    spreads: list[np.ndarray],
    share: float,
    rng: np.random.Generator,
) -> None:
    """Cut until every part is one cell; fills `grown` and `spreads`.

    `spreads` holds, for every cell, the standard deviations of its rows along the directions
    of the cuts above it. Parts wait on a stack, large ones as row numbers (in ascending order,
    so that a memory-mapped file is read from front to back), small ones with their rows.
    """
    stack: list[tuple[np.ndarray, np.ndarray | None, int, int, int]] = [
        (np.arange(X.shape[0]), None, n_cells, -1, 0)
    ]
    paths: list[list[int]] = [[]]
    while stack:
        rows, gathered, m, parent, side = stack.pop()
        path = paths.pop()
        if gathered is None and len(rows) * X.shape[1] * X.itemsize <= _GATHERED_BYTES:
            every = len(rows) == len(X) and isinstance(X, np.ndarray)
            gathered = X if every else np.asarray(X[rows])
        split = None if m == 1 else _cut(X, rows, gathered, direction_of, rng, m=m, share=share)
        if split is None:
            name = -1 - len(grown.ancestors)
            grown.ancestors.append(path)
            spreads.append(_spread(X, rows, gathered, [grown.directions[node] for node in path]))
        else:
            direction, value, reach, right = split
            name = len(grown.cuts)
            grown.directions.append(direction)
            grown.cuts.append(value)
            grown.reaches.append(reach)
            grown.children.append([0, 0])
            for inside, due, which in ((right, m - m // 2, 1), (~right, m // 2, 0)):
                values = None if gathered is None else gathered[inside]
                stack.append((rows[inside], values, due, name, which))
                paths.append([*path, name])
        if parent >= 0:
            grown.children[parent][side] = name


def _cut(
    X: np.ndarray,
    rows: np.ndarray,
    gathered: np.ndarray | None,
    direction_of: DirectionOf,
    rng: np.random.Generator,
    *,
    m: int,
    share: float,
) -> tuple[np.ndarray, float, float, np.ndarray] | None:
    """Direction, threshold, reach, and which rows lie beyond; None if all rows are the same.

    `gathered` holds the rows of the part, if they were copied out of X. The threshold lies in the
    middle of the gap nearest to the quantile that gives both sides of a part of m cells the rows
    they are due: equal rows stay together, and rounding cannot move a row across. About the given
    share of the rows lies within the reach on both sides.

    A direction found from few rows in many columns spreads these rows more than any others, which
    would then crowd around the cut. So half of the rows find the direction, and the other half
    says where to cut and how far to reach.
    """
    judges = _judges(rows, X.shape[1], m)
    if judges is None:
        sample = sample_of(X, rows, rng) if gathered is None else sample_of(gathered, None, rng)
    else:
        finders = X[rows[~judges]] if gathered is None else gathered[~judges]
        sample = np.asarray(finders, dtype=np.float64)
    direction = direction_of(sample).astype(X.dtype)
    # In float64: what rounding leaves apart in float32 can be hundreds of rows.
    position = np.empty(len(rows))
    for stretch in row_blocks(len(rows), X.shape[1] * 8.0, _GATHERED_BYTES / 2):
        block = X[rows[stretch]] if gathered is None else gathered[stretch]
        position[stretch] = block.astype(np.float64, copy=False) @ direction.astype(np.float64)
    place = m // 2 / m
    threshold = None if judges is None else _threshold(position[judges], place, share)
    threshold = threshold or _threshold(position, place, share)
    if threshold is None:
        return None
    value, reach = threshold
    return direction, value, reach, position > value


def _threshold(position: np.ndarray, place: float, share: float) -> tuple[float, float] | None:
    """Where to cut between these projections, and how far to reach; None if all are the same."""
    n = len(position)
    rank = min(max(1, round(place * n)), n - 1)
    blur = _ROUNDING * np.finfo(np.float64).eps * float(np.max(np.abs(position)))
    ends = [max(0, rank - 1 - round(share * n / 2)), min(n - 1, rank + round(share * n / 2))]
    ranks = [ends[0], rank - 1, rank, ends[1]]
    first, below, above, last = np.partition(position, ranks)[ranks]
    if not above - below > blur:
        ordered = np.sort(position)
        gaps = np.flatnonzero(np.diff(ordered) > blur)
        if len(gaps) == 0:
            return None
        nearest = gaps[np.argmin(np.abs(gaps + 1 - rank))]
        below, above = ordered[nearest], ordered[nearest + 1]
    value = float(below) + (float(above) - float(below)) / 2
    return value, _SHORT_OF_A_ROW * max(value - float(first), float(last) - value)


def _judges(rows: np.ndarray, n_columns: int, n_cells: int) -> np.ndarray | None:
    """Which rows of a part place the cut instead of finding its direction; None if all do both.

    Rows with odd numbers are judges in every part with few rows, so that no row ever changes sides.
    """
    few = len(rows) < _FEW_ROWS_A_COLUMN * n_columns
    if not few or len(rows) < max(2, n_cells) * _FEWEST_ROWS_A_CELL:
        return None
    judges = rows % 2 == 1
    return judges if 2 <= int(judges.sum()) <= len(rows) - 2 else None


def _spread(
    X: np.ndarray, rows: np.ndarray, gathered: np.ndarray | None, directions: list[np.ndarray]
) -> np.ndarray:
    """Standard deviations of a cell's rows (some of them) along directions."""
    if not directions:
        return np.empty(0)
    judges = _judges(rows, X.shape[1], 1)
    known = np.arange(len(rows)) if judges is None else np.flatnonzero(judges)
    chosen = known[np.linspace(0, len(known) - 1, min(len(known), _SPREAD_ROWS)).astype(np.intp)]
    sample = np.asarray(X[rows[chosen]] if gathered is None else gathered[chosen], dtype=np.float64)
    return np.asarray((sample @ np.stack(directions, axis=1)).std(axis=0))


def _thicknesses(grown: _Growing, spreads: list[np.ndarray]) -> np.ndarray:
    """For every cut, the median thickness, in its direction, of the cells below it."""
    below: list[list[float]] = [[] for _ in grown.cuts]
    for path, spread in zip(grown.ancestors, spreads, strict=True):
        for node, value in zip(path, spread, strict=True):
            below[node].append(float(value))
    return _SLAB * np.array([np.median(values) for values in below])
