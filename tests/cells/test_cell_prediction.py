"""Cells that predict elsewhere: what is sent to them, and that they predict the same."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from cases import rows
from ridgefold import PartitionedLSSVMRegressor
from ridgefold.cells import cell_prediction, cell_rows
from ridgefold.cells.cell_prediction import busy_batches, predict_cells
from ridgefold.cells.cell_rows import rows_alone
from ridgefold.executors import Serial

X = rows(1500, 3, seed=1)
Y = np.sin(2 * X[:, 0]) + X[:, 1]
NEW = rows(400, 3, seed=2)


class Sending(Serial):
    """Every task goes through a pickle, as it does to another process."""

    def __init__(self):
        self.sizes = []

    def map(self, task, items, keys=None):
        for item in items:
            sent = pickle.dumps(item)
            self.sizes.append(len(sent))
            yield task(pickle.loads(sent))  # noqa: S301


def predicted(model, executor):
    return predict_cells(
        rows_alone(model.X_fit_),
        model._cells,
        model._models,
        model._assignment(NEW),
        new=NEW,
        executor=executor,
    )[:, 0]


@pytest.mark.parametrize("settings", [{}, {"partition": "random", "combine": "average"}])
def test_tasks_that_are_sent_predict_the_same(settings, monkeypatch):
    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 200)
    model = PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 1.0}, n_partitions=12, alpha=0.1
    ).set_params(**settings)
    model.fit(X, Y)
    executor = Sending()
    np.testing.assert_array_equal(predicted(model, executor), model.predict(NEW))
    assert len(executor.sizes) > 5


def test_what_is_sent_does_not_grow_with_the_number_of_cells(monkeypatch):
    """Beside the training rows, which processes share, a task holds what its own cells need."""
    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 1)
    beside = []
    for m in (8, 64):
        model = PartitionedLSSVMRegressor(
            kernel_params={"length_scale": 1.0}, n_partitions=m, alpha=0.1
        ).fit(X, Y)
        executor = Sending()
        predicted(model, executor)
        beside.append(max(executor.sizes) - len(pickle.dumps(model.X_fit_)))
    assert beside[1] < 0.5 * beside[0]


def test_many_cells_make_no_more_batches_than_are_worth_it(monkeypatch):
    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 1)
    model = PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 1.0}, n_partitions=40, alpha=0.1
    ).fit(X, Y)
    assignment = model._assignment(X)
    assert len(busy_batches(model._cells, assignment)) == 40
    monkeypatch.setattr(cell_prediction, "_MOST_BATCHES", 10)
    batches = busy_batches(model._cells, assignment)
    assert 8 <= len(batches) <= 10
    assert sorted(cell for numbers in batches for cell in numbers) == list(range(40))


def test_batches_of_cells_that_predict_every_row_stay_small(monkeypatch):
    """A batch of them holds what all of its cells predict."""
    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 1)
    monkeypatch.setattr(cell_prediction, "_MOST_BATCHES", 2)
    model = PartitionedLSSVMRegressor(
        "random", 10, kernel_params={"length_scale": 1.0}, combine="average", alpha=0.1
    )
    model.fit(X, Y)
    assert len(busy_batches(model._cells, model._assignment(X))) == 10


def test_rows_of_cells_can_be_gone_through_again():
    model = PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 1.0}, n_partitions=6, alpha=0.1
    ).fit(X, Y)
    some = rows_alone(model.X_fit_).batch(model._cells, (1, 4))
    for first, again in zip(some, some, strict=True):
        np.testing.assert_array_equal(first, again)
    assert len(list(some)) == 2
