"""Intervals of partitioned models are those of refitting every cell without every row."""

from __future__ import annotations

import numpy as np
import pytest

import ridgefold
from ridgefold import CellOptions, LSSVMRegressor, PartitionedLSSVMRegressor
from ridgefold.cells.combine import COMBINERS
from ridgefold.cells.cut import PARTITIONERS
from ridgefold.errors import InvalidInputError
from ridgefold.tables import load_bundled

GENERATOR = np.random.default_rng(0)
X, X_NEW = GENERATOR.uniform(0, 4, (90, 2)), GENERATOR.uniform(0, 4, (14, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + GENERATOR.normal(scale=0.2, size=90)
TWO = np.stack([Y, X[:, 0] ** 2 - Y], axis=1)
NOISY = Y + GENERATOR.normal(scale=2.0, size=90)
WEIGHTS = GENERATOR.uniform(0.2, 3, 90) * (np.arange(90) % 11 > 0)


def in_metric(model, rows):
    """Rows in the metric in which the cells were cut."""
    return rows if model.length_scales_ is None else rows / model.length_scales_


def without(model, y, weights, row, new):
    """The combined function on X and new rows when a row is taken out of every cell."""
    cells, local = model._cells, model._models
    both = np.concatenate([X, new]) / (
        1.0 if model.length_scales_ is None else model.length_scales_
    )
    partitioner = PARTITIONERS[model.partition]
    assignment = COMBINERS[model.combine].assign(
        partitioner, cells.router, len(cells.offsets) - 1, both
    )
    out = np.zeros((len(both), *y.shape[1:]))
    for c in range(len(cells.offsets) - 1):
        members = cells.rows[cells.offsets[c] : cells.offsets[c + 1]]
        members = members[members != row]
        part = LSSVMRegressor(
            local.alpha[c],
            kernel=local.kernels[local.kernel_of_cell[c]],
            fit_intercept=model.fit_intercept,
        ).fit(both[members], y[members], None if weights is None else weights[members])
        rows, shares = assignment.of_cell(c)
        if len(rows):
            values = part.predict(both[rows])
            if local.lowest is not None:  # new rows only: leave-one-out residuals are as they are
                low, high = (
                    r[c] if y.ndim == 2 else r[c, 0] for r in (local.lowest, local.highest)
                )
                is_new = np.asarray(rows) >= len(X)
                values[is_new] = np.clip(values[is_new], low, high)
            out[rows] += values * shares.reshape(-1, *[1] * (y.ndim - 1))
    if model._coarse_model is None:
        return out
    coarse = coarse_without(model._coarse_model, both, y.reshape(90, -1), weights, row)
    share = model.coarse_model_share_
    return out + (share if y.ndim == 2 else share[0]) * (coarse.reshape(out.shape) - out)


def coarse_without(coarse_model, rows, y, weights, row):
    """The coarse model at some rows, the first of which were fitted, refitted without one of them.

    With ψ as it is, the fit of all rows minimises Σ w(y − b − ψᵀc)² + cᵀ(I − Σ wψψᵀ)c.
    """
    psi = (
        coarse_model.kernel(rows, coarse_model.centres) @ coarse_model.projection
        - coarse_model.offset
    )
    w = np.ones(len(X)) if weights is None else weights.copy()
    penalty = np.eye(psi.shape[1]) - psi[: len(X)].T @ (w[:, None] * psi[: len(X)])
    w[row] = 0.0
    A = np.column_stack([psi, np.ones(len(psi))])
    left = A[: len(X)].T @ (w[:, None] * A[: len(X)])
    left[:-1, :-1] += penalty
    return A @ np.linalg.solve(left, A[: len(X)].T @ (w[:, None] * y))


def by_definition(model, y, weights, new, coverage):
    """Jackknife+ over the rows of the cell that weighs most for each new row."""
    cells = model._cells
    assignment = COMBINERS[model.combine].assign(
        PARTITIONERS[model.partition],
        cells.router,
        len(cells.offsets) - 1,
        in_metric(model, new),
    )
    weight = np.zeros((len(cells.offsets) - 1, len(X_NEW)))
    for c in range(len(weight)):
        rows, shares = assignment.of_cell(c)
        weight[c, rows] = shares
    functions = [without(model, y, weights, i, new) for i in range(90)]
    ends = []
    for x in range(len(X_NEW)):
        c = int(np.argmax(weight[:, x]))
        members = cells.rows[cells.offsets[c] : cells.offsets[c + 1]]
        if weights is not None:
            members = members[weights[members] > 0]
        values = np.stack([functions[i][90 + x] for i in members])
        errors = np.stack([np.abs(y[i] - functions[i][i]) for i in members])
        n = len(members)
        # Rounding must not move an order statistic: 0.2·(34 + 1) is seven.
        below = int((1 - coverage) * (n + 1) + 1e-9)
        above = int(np.ceil(coverage * (n + 1) - 1e-9))
        low = np.sort(values - errors, axis=0)[below - 1]
        high = np.sort(values + errors, axis=0)[above - 1]
        ends.append((low, high))
    return np.stack([low for low, _ in ends]), np.stack([high for _, high in ends])


CASES = {
    "blended trees": ({"n_partitions": 4, "cells__overlap": 0.3}, Y, None),
    "routed trees": ({"n_partitions": 4, "combine": "route"}, Y, None),
    "planes": ({"partition": "hyperplanes", "n_partitions": 3, "cells__overlap": 0.3}, Y, None),
    "weights": ({"n_partitions": 4, "cells__overlap": 0.3}, Y, WEIGHTS),
    "two targets": ({"n_partitions": 4, "cells__overlap": 0.3}, TWO, None),
    "far away": ({"n_partitions": 4, "cells__overlap": 0.3, "scale_new": 3.0}, Y, None),
    "far away, without limits": (
        {"n_partitions": 4, "cells__overlap": 0.3, "scale_new": 3.0, "cells__clip": False},
        Y,
        None,
    ),
    "learned scales": ({"n_partitions": 3, "metric": "learned", "gamma": None}, Y, None),
    "a coarse model behind": (
        {"n_partitions": 4, "cells__overlap": 0.3, "alpha": None, "gamma": None},
        NOISY,
        None,
    ),
    "a coarse model behind, weights": (
        {
            "n_partitions": 4,
            "cells__overlap": 0.3,
            "cells__weighted_scores": False,
            "alpha": None,
            "gamma": None,
        },
        NOISY,
        WEIGHTS,
    ),
    "no bias": ({"n_partitions": 4, "cells__overlap": 0.3, "fit_intercept": False}, Y, None),
    "one ridge for all": (
        {
            "n_partitions": 4,
            "cells__overlap": 0.3,
            "alpha": 0.1,
            "gamma": 0.5,
            "intervals": "jackknife+",
        },
        Y,
        None,
    ),
}


SLOW = {"planes", "no bias", "two targets", "one ridge for all", "far away, without limits"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.full) if n in SLOW else n for n in CASES]
)
def test_intervals_are_those_of_refits_with_the_same_cells(name):
    options, y, weights = CASES[name]
    options = {"alpha": [0.1, 1.0], "gamma": [0.2, 1.0], **options}
    new = X_NEW * options.pop("scale_new", 1.0)
    model = PartitionedLSSVMRegressor().set_params(**options).fit(X, y, weights)
    assert (model.coarse_model_share_ is not None) == name.startswith("a coarse model")
    expected = by_definition(model, y, weights, new, 0.8)
    for ours, theirs in zip(model.predict_interval(new, 0.8), expected, strict=True):
        assert ours.shape == model.predict(X_NEW).shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)


def test_intervals_of_singular_cells_are_those_of_a_tiny_ridge():
    flat = np.column_stack([X, X.sum(axis=1)])
    settings = {"n_partitions": 3, "kernel": "linear", "intervals": "jackknife+"}
    ends = [
        np.stack(
            PartitionedLSSVMRegressor(alpha=alpha)
            .set_params(**settings)
            .fit(flat, Y)
            .predict_interval(flat[:20], 0.8)
        )
        for alpha in (1e-14, 1e-6)
    ]
    np.testing.assert_allclose(*ends, atol=1e-6)


def test_models_of_files_without_targets_say_what_to_do():
    model = PartitionedLSSVMRegressor(n_partitions=4).fit(X, Y)
    del model.y_fit_
    with pytest.raises(InvalidInputError, match="fit and save it again"):
        model.predict_interval(X_NEW)


def test_intervals_survive_a_file(tmp_path):
    model = PartitionedLSSVMRegressor(n_partitions=4).fit(X, Y, WEIGHTS)
    model.save(tmp_path / "m")
    np.testing.assert_allclose(
        ridgefold.load(tmp_path / "m").predict_interval(X_NEW),
        model.predict_interval(X_NEW),
        rtol=1e-10,
    )
    model.save(tmp_path / "n", intervals=False)
    with pytest.raises(InvalidInputError, match=r'intervals="jackknife\+"'):
        ridgefold.load(tmp_path / "n").predict_interval(X_NEW)


def test_models_without_intervals_say_what_to_do():
    fixed = PartitionedLSSVMRegressor(n_partitions=4, alpha=0.1, gamma=0.5).fit(X, Y)
    with pytest.raises(InvalidInputError, match=r'fit with intervals="jackknife\+"'):
        fixed.predict_interval(X_NEW)
    average = PartitionedLSSVMRegressor("random", 3, "average", alpha=0.1, gamma=0.5).fit(X, Y)
    with pytest.raises(InvalidInputError, match='combine="blend"'):
        average.predict_interval(X_NEW)
    refined = PartitionedLSSVMRegressor(
        n_partitions=3, alpha=0.1, gamma=0.5, cells=CellOptions(refine=2)
    ).fit(X, Y)
    with pytest.raises(InvalidInputError, match="refine=None"):
        refined.predict_interval(X_NEW)
    with pytest.raises(InvalidInputError, match="intervals must be"):
        PartitionedLSSVMRegressor(intervals="cv+").fit(X, Y)
    with pytest.raises(InvalidInputError, match="coverage must lie"):
        PartitionedLSSVMRegressor(n_partitions=4).fit(X, Y).predict_interval(X_NEW, 2)


def test_nine_of_ten_outputs_of_a_power_plant_are_covered_by_cells():
    data = load_bundled("ccpp")
    order = np.random.default_rng(0).permutation(len(data.y))
    train, test = order[:1500], order[1500:4500]
    A = (data.X - data.X[train].mean(axis=0)) / data.X[train].std(axis=0)
    model = PartitionedLSSVMRegressor(n_partitions=6).fit(A[train], data.y[train])
    lower, upper = model.predict_interval(A[test], 0.9)
    covered = np.mean((lower <= data.y[test]) & (data.y[test] <= upper))
    assert 0.87 < covered < 0.94
