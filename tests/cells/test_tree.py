"""Cuts across directions in which targets change."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.cells.cut import Guided, PrincipalTree, Tree
from ridgefold.records import Slopes

X = np.random.default_rng(1).standard_normal((600, 3)) * [2.0, 1.0, 1.0]


def rng():
    return np.random.default_rng(0)


def slopes(*squares):
    """Slopes along the columns, of mean 1."""
    squares = np.array(squares, dtype=float)
    return Slopes(np.eye(len(squares)), squares * len(squares) / squares.sum())


def test_only_the_tree_wants_to_know_slopes():
    assert isinstance(Tree(), Guided)
    assert not isinstance(PrincipalTree(), Guided)


@pytest.mark.parametrize(
    "known",
    [None, slopes(1.0, 1.0, 1.0)],
    ids=["none", "equal"],
)
def test_without_preferred_directions_cuts_are_principal(known):
    ours, theirs = (each.fit(X, 7, 0.2, rng()) for each in (Tree(known), PrincipalTree()))
    np.testing.assert_allclose(
        ours.router["directions"], theirs.router["directions"], rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(ours.rows, theirs.rows)


def test_trees_that_know_something_else_are_not_the_same():
    assert Tree(slopes(1.0, 2.0, 3.0)) != Tree()
    assert Tree(slopes(1.0, 2.0, 3.0)) != Tree(slopes(3.0, 2.0, 1.0))


def test_the_first_cut_goes_where_targets_change():
    directions = Tree().guided_by(slopes(0.0, 1.0, 0.0)).fit(X, 2, 0.2, rng()).router["directions"]
    assert abs(directions[0, 1]) > 0.95
    principal = PrincipalTree().fit(X, 2, 0.2, rng()).router["directions"]
    assert abs(principal[0, 0]) > 0.95


def test_the_direction_is_the_principal_one_of_stretched_rows():
    """The first eigenvector of (G + 0.2·I)·cov(x), of length 1."""
    found = slopes(1.0, 5.0, 2.0)
    direction = Tree().guided_by(found).direction_of(X)
    values, vectors = np.linalg.eig((np.diag(found.squares) + 0.2 * np.eye(3)) @ np.cov(X.T))
    expected = vectors[:, np.argmax(values)]
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    assert abs(direction @ expected) == pytest.approx(1.0)


def test_directions_that_are_left_out_count_as_flat():
    all_told = slopes(4.0, 2.0, 0.0)
    some = Slopes(all_told.directions[:, :2], all_told.squares[:2])
    np.testing.assert_allclose(
        Tree().guided_by(some).direction_of(X), Tree().guided_by(all_told).direction_of(X)
    )


def test_where_no_direction_of_slopes_is_left_parts_are_still_cut():
    """All rows alike in the one column that counts."""
    rows = X.copy()
    rows[:, 1] = 3.0
    cells = Tree().guided_by(slopes(0.0, 1.0, 0.0)).fit(rows, 6, 0.2, rng())
    assert len(cells.offsets) - 1 == 6


def test_rows_that_are_all_the_same_are_one_cell():
    cells = Tree().guided_by(slopes(0.0, 1.0, 0.0)).fit(np.ones((50, 3)), 6, 0.2, rng())
    assert len(cells.offsets) - 1 == 1
