"""Every way to cut gives cells that cover all rows, and finds them again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ridgefold.cells.cut
from ridgefold.cells.cut import PARTITIONERS, KMeansCells
from ridgefold.cells.cut.base import first_direction
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF

FOLDER = Path(ridgefold.cells.cut.__file__).parent
IN_SPACE = [name for name, partitioner in PARTITIONERS.items() if partitioner.in_space]
DRAWN = [name for name in PARTITIONERS if name not in IN_SPACE]
BALANCED = ["tree", "principal", "hyperplanes", *DRAWN]


def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(1).standard_normal((503, 3)) * [3.0, 1.0, 0.5]


def members(cells):
    return np.split(cells.rows, cells.offsets[1:-1])


def test_every_file_is_registered():
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "base"}
    assert files == set(PARTITIONERS)


@pytest.mark.parametrize("name", PARTITIONERS)
@pytest.mark.parametrize("m", [1, 2, 5, 16])
def test_cells_without_overlap_are_disjoint_and_cover_all_rows(name, m, X):
    cells = PARTITIONERS[name].fit(X, m, 0.0, rng())
    assert np.array_equal(np.sort(cells.rows), np.arange(len(X)))
    assert len(cells.offsets) - 1 <= m
    assert np.diff(cells.offsets).min() > 0
    assert all(np.all(np.diff(rows) > 0) for rows in members(cells))


@pytest.mark.parametrize("name", BALANCED)
@pytest.mark.parametrize("m", [2, 5, 7, 16])
def test_cells_are_balanced(name, m, X):
    sizes = np.diff(PARTITIONERS[name].fit(X, m, 0.0, rng()).offsets)
    assert len(sizes) == m
    assert sizes.max() - sizes.min() <= 4


@pytest.mark.parametrize("name", IN_SPACE)
def test_training_rows_are_routed_to_the_cell_that_holds_them(name, X):
    partitioner = PARTITIONERS[name]
    cells = partitioner.fit(X, 8, 0.0, rng())
    for cell, rows in enumerate(members(cells)):
        assert np.all(partitioner.route(cells.router, X[rows]) == cell)


@pytest.mark.parametrize("name", IN_SPACE)
@pytest.mark.parametrize("overlap", [0.1, 0.5, 1.0])
def test_weights_are_a_partition_of_unity(name, overlap, X):
    partitioner = PARTITIONERS[name]
    cells = partitioner.fit(X, 8, overlap, rng())
    new = 2.0 * np.random.default_rng(2).standard_normal((400, 3))
    found = partitioner.membership(cells.router, new)
    assert np.all(found.weights >= 0)
    assert np.allclose(np.bincount(found.rows, found.weights), 1.0)
    assert np.allclose(np.bincount(cells.rows, cells.weights), 1.0)
    assert len(cells.rows) > len(X)
    assert np.diff(cells.offsets).min() > 0


@pytest.mark.parametrize("name", IN_SPACE)
def test_weights_change_continuously_across_cells(name, X):
    partitioner = PARTITIONERS[name]
    cells = partitioner.fit(X, 8, 0.5, rng())
    m = len(cells.offsets) - 1
    line = np.linspace(-4, 4, 20001)[:, None] * np.array([[1.0, 0.3, -0.2]])
    found = partitioner.membership(cells.router, line)
    table = np.zeros((len(line), m))
    table[found.rows, found.cells] = found.weights
    assert np.max(np.abs(np.diff(table, axis=0))) < 0.02
    assert np.max(table.sum(axis=1)) < 1 + 1e-12
    assert np.unique(np.argmax(table, axis=1)).size > 2


@pytest.mark.parametrize("name", IN_SPACE)
def test_without_overlap_weights_are_the_route(name, X):
    partitioner = PARTITIONERS[name]
    cells = partitioner.fit(X, 6, 0.0, rng())
    found = partitioner.membership(cells.router, X)
    held = found.weights > 0
    assert np.all(found.weights[held] == 1)
    order = np.argsort(found.rows[held])
    assert np.array_equal(found.cells[held][order], partitioner.route(cells.router, X))


@pytest.mark.parametrize("name", PARTITIONERS)
def test_more_cells_than_rows_become_as_many_as_rows(name):
    X = np.random.default_rng(3).standard_normal((7, 2))
    cells = PARTITIONERS[name].fit(X, 50, 0.0, rng())
    assert len(cells.offsets) - 1 <= 7
    assert np.array_equal(np.sort(cells.rows), np.arange(7))


@pytest.mark.parametrize("name", IN_SPACE)
@pytest.mark.parametrize("overlap", [0.0, 0.5])
def test_rows_that_are_all_equal_stay_in_one_cell(name, overlap):
    cells = PARTITIONERS[name].fit(np.ones((40, 3)), 4, overlap, rng())
    assert np.array_equal(cells.rows, np.arange(40))
    assert len(cells.offsets) == 2


@pytest.mark.parametrize("name", IN_SPACE)
def test_equal_rows_stay_together(name):
    X = np.repeat(np.arange(6.0), 20)[:, None] * [1.0, 0.5]
    partitioner = PARTITIONERS[name]
    cells = partitioner.fit(X, 4, 0.0, rng())
    labels = partitioner.route(cells.router, X)
    for value in np.unique(X[:, 0]):
        assert np.unique(labels[X[:, 0] == value]).size == 1
    assert len(cells.offsets) - 1 >= 2
    for cell, rows in enumerate(members(cells)):
        assert np.all(labels[rows] == cell)


@pytest.mark.parametrize("name", PARTITIONERS)
def test_constant_columns_and_one_row_are_no_obstacle(name, X):
    wide = np.column_stack([X, np.full(len(X), 7.0)])
    assert len(PARTITIONERS[name].fit(wide, 4, 0.0, rng()).rows) == len(X)
    assert len(PARTITIONERS[name].fit(wide[:1], 4, 0.0, rng()).rows) == 1


@pytest.mark.parametrize("name", PARTITIONERS)
def test_the_same_generator_gives_the_same_cells(name, X):
    first, second = (PARTITIONERS[name].fit(X, 6, 0.25, rng()) for _ in range(2))
    assert np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.offsets, second.offsets)


@pytest.mark.parametrize("name", ["tree", "hyperplanes"])
def test_float32_rows_are_routed_to_their_cells(name, X):
    X = X.astype(np.float32)
    partitioner = PARTITIONERS[name]
    cells = partitioner.fit(X, 8, 0.0, rng())
    labels = np.empty(len(X), dtype=int)
    for cell, rows in enumerate(members(cells)):
        labels[rows] = cell
    assert np.mean(partitioner.route(cells.router, X) == labels) == 1.0


def test_the_rule_of_the_last_cell_is_the_corrected_one():
    X = np.arange(10.0)[:, None]
    partitioner = PARTITIONERS["hyperplanes"]
    cells = partitioner.fit(X, 3, 0.0, rng())
    # Cuts at round(10/3) = 3 and round(20/3) = 7: means of the projections on either side.
    assert np.allclose(cells.router["cuts"], [2.5, 6.5])
    new = np.array([[-5.0], [2.5], [2.6], [6.5], [6.6], [1e6]])
    assert partitioner.route(cells.router, new).tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("learning_numbers", [1 << 22, 300])  # from all rows, and from a sample
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_between_hyperplanes_are_where_they_are_routed(monkeypatch, learning_numbers, dtype):
    monkeypatch.setattr(ridgefold.cells.cut.base, "_LEARNING_NUMBERS", learning_numbers)
    X = np.random.default_rng(5).standard_normal((500, 3)).astype(dtype)
    partitioner = PARTITIONERS["hyperplanes"]
    cells = partitioner.fit(X, 7, 0.0, rng())
    numbers = np.repeat(np.arange(7), np.diff(cells.offsets))
    np.testing.assert_array_equal(partitioner.route(cells.router, X[cells.rows]), numbers)


def test_hyperplanes_use_the_centred_direction():
    X = np.column_stack([np.full(100, 50.0), np.linspace(-1, 1, 100)])
    X[:, 0] += 0.01 * np.random.default_rng(0).standard_normal(100)
    router = PARTITIONERS["hyperplanes"].fit(X, 2, 0.0, rng()).router
    assert abs(router["direction"][1]) > 0.99


@pytest.mark.parametrize("shape", [(700, 5), (700, 220), (700, 300), (300, 700)])
@pytest.mark.parametrize("decay", [0.0, 0.5])  # without it, the largest variances are close
@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e170])
def test_first_direction_is_the_first_singular_vector(shape, decay, scale):
    X = np.random.default_rng(3).standard_normal(shape) / np.arange(1, shape[1] + 1) ** decay
    expected = np.linalg.svd(X - X.mean(axis=0))[2][0]
    found = first_direction(X * scale)
    assert np.max(found) == np.max(np.abs(found))
    np.testing.assert_allclose(abs(found @ expected), 1.0, rtol=1e-13)
    np.testing.assert_allclose(found, expected * np.sign(found @ expected), atol=1e-12)


def test_first_direction_of_equal_wide_rows_is_zero():
    np.testing.assert_array_equal(first_direction(np.ones((300, 400))), np.zeros(400))


def test_first_direction_of_rows_on_a_wide_line_is_that_of_the_line():
    line = np.random.default_rng(4).standard_normal(400)
    found = first_direction(np.linspace(-1.0, 2.0, 300)[:, None] * line)
    np.testing.assert_allclose(abs(found @ line), np.linalg.norm(line), rtol=1e-13)


@pytest.mark.parametrize("name", DRAWN)
def test_cells_that_are_drawn_have_no_place_for_new_rows(name, X):
    cells = PARTITIONERS[name].fit(X, 4, 0.0, rng())
    with pytest.raises(InvalidInputError, match="average"):
        PARTITIONERS[name].route(cells.router, X)
    with pytest.raises(InvalidInputError, match="average"):
        PARTITIONERS[name].membership(cells.router, X)


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("m", [3, 20, 40])
def test_equal_rows_are_drawn_as_others_are(name, m):
    sizes = np.diff(PARTITIONERS[name].fit(np.ones((40, 3)), m, 0.0, rng()).offsets)
    assert len(sizes) == m
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("m", [2, 5, 16])
def test_of_neighbours_on_a_line_every_cell_gets_one(m):
    line = np.random.default_rng(5).uniform(size=32 * m)
    labels = np.empty(len(line), dtype=int)
    for cell, rows in enumerate(
        members(PARTITIONERS["stratified"].fit(line[:, None], m, 0, rng()))
    ):
        labels[rows] = cell
    neighbours = labels[np.argsort(line)].reshape(-1, m)
    assert np.array_equal(np.sort(neighbours, axis=1), np.tile(np.arange(m), (32, 1)))
    assert len(np.unique(neighbours, axis=0)) > 1  # drawn, not dealt in one order


def test_strata_are_limited_in_number(monkeypatch, X):
    from ridgefold.cells.cut import stratified

    asked = []

    class Tree(stratified.PrincipalTree):
        def fit(self, X, n_cells, overlap, rng):
            asked.append(n_cells)
            return super().fit(X, n_cells, overlap, rng)

    monkeypatch.setattr(stratified, "PrincipalTree", Tree)
    monkeypatch.setattr(stratified, "_MOST_STRATA", 10)
    for m in (2, 100):
        sizes = np.diff(PARTITIONERS["stratified"].fit(X, m, 0.0, rng()).offsets)
        assert sizes.max() - sizes.min() == 1
    assert asked == [10, len(X) // 100]


def test_kernel_k_means_separates_what_rows_alone_do_not():
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.concatenate([0.1 * ring, 10 * ring])
    partitioner = KMeansCells(kernel=RBF(1.0))
    cells = partitioner.fit(X, 12, 0.0, rng())
    labels = partitioner.route(cells.router, X)
    assert np.unique(labels[:400]).size == 1
    assert not set(labels[:400]) & set(labels[400:])


@pytest.mark.parametrize("name", ["tree", "stratified"])
def test_memory_mapped_rows_give_the_same_cells(name, tmp_path, X):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    ours, theirs = (PARTITIONERS[name].fit(rows, 9, 0.2, rng()) for rows in (mapped, X))
    assert np.array_equal(ours.rows, theirs.rows)
    assert np.array_equal(ours.weights, theirs.weights)


def test_large_parts_are_cut_without_copying_them(monkeypatch, X):
    from ridgefold.cells.cut import principal

    whole = PARTITIONERS["tree"].fit(X, 9, 0.2, rng())
    monkeypatch.setattr(principal, "_GATHERED_BYTES", 2000.0)
    pieces = PARTITIONERS["tree"].fit(X, 9, 0.2, rng())
    assert np.array_equal(whole.rows, pieces.rows)


@pytest.mark.parametrize("name", IN_SPACE)
def test_rows_that_come_in_blocks_keep_their_numbers(name, monkeypatch, X):
    partitioner = PARTITIONERS[name]
    router = partitioner.fit(X, 8, 0.3, rng()).router

    def table():
        found = partitioner.membership(router, X)
        order = np.lexsort((found.cells, found.rows))
        return np.column_stack([found.rows, found.cells, found.weights])[order]

    whole = table()
    monkeypatch.setattr(ridgefold.cells.cut.base, "_BLOCK_BYTES", 4000)
    np.testing.assert_allclose(table(), whole, rtol=1e-12)


@pytest.mark.parametrize("name", IN_SPACE)
def test_rows_of_noise_in_many_columns_belong_to_few_cells(name, monkeypatch):
    """Cells are learned from few rows a column, and hold others no more often than those."""
    monkeypatch.setattr(ridgefold.cells.cut.base, "_LEARNING_NUMBERS", 1)
    monkeypatch.setattr(ridgefold.cells.cut.base, "_LEARNING_ROWS_A_CELL", 60)
    noise = np.random.default_rng(3).standard_normal((8000, 100))
    cells = PARTITIONERS[name].fit(noise, 16, 0.25, rng())
    sizes = np.diff(cells.offsets)
    assert sizes.sum() < 2.4 * len(noise)
    new = np.random.default_rng(4).standard_normal((1000, 100))
    held = PARTITIONERS[name].membership(cells.router, new)
    assert np.sum(held.weights > 0) < 2.6 * len(new)
    if name in BALANCED:
        assert sizes.max() < 2.0 * np.median(sizes)


def test_rows_of_float32_far_from_the_origin_are_cut_evenly():
    places = rng().normal([37.0, -120.0], 2.0, (60_000, 2)).astype(np.float32)
    cells = PARTITIONERS["tree"].fit(places, 64, 0.0, rng())
    sizes = np.diff(cells.offsets)
    assert len(sizes) == 64
    assert sizes.max() <= 1.05 * sizes.min()


@pytest.mark.parametrize("overlap", [0.0, 0.25])
def test_cells_around_centres_are_the_same_far_from_the_origin(overlap, X):
    near, far = (PARTITIONERS["kmeans"].fit(X + shift, 8, overlap, rng()) for shift in (0.0, 1e8))
    assert len(far.offsets) == len(near.offsets)
    np.testing.assert_array_equal(far.rows, near.rows)
