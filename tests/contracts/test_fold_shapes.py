"""Any folds at all, and rows and folds in any order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.oracle import Case, Setting, attempt, disagreements, make_case, refits
from ridgefold.crossval import METHODS, make_folds

N = 17


def small_case(tests: list[list[int]], *, bias: bool, weights: str) -> Case:
    case = make_case(Setting("matern", "5", bias, weights, 2, "float64", "numpy", "ordinary"))
    splits = [(np.setdiff1d(np.arange(N), test), np.asarray(test)) for test in tests]
    return replace(
        case,
        X=case.X[:N],
        K=case.K[:N, :N],
        y=case.y[:N],
        weights=None if case.weights is None else case.weights[:N],
        alphas=np.array([0.03, 2.0]),
        folds=make_folds(splits, N),
    )


@st.composite
def partitions(draw) -> list[list[int]]:
    """Disjoint folds of any sizes that may miss rows."""
    order = draw(st.permutations(range(N)))
    cuts = sorted(draw(st.sets(st.integers(1, N - 1), min_size=1, max_size=N - 1)))
    parts = [order[a:b] for a, b in zip([0, *cuts], [*cuts, N], strict=True)]
    return parts[: draw(st.integers(1, len(parts)))]


overlapping = st.lists(
    st.lists(st.integers(0, N - 1), min_size=1, max_size=N - 2, unique=True),
    min_size=1,
    max_size=9,
)
methods = pytest.mark.parametrize("method", METHODS)


@methods
@given(tests=partitions() | overlapping, bias=st.booleans())
def test_any_folds_agree_with_refitting(method, tests, bias):
    case = small_case(tests, bias=bias, weights="random")
    result = attempt(method, case)
    if result is not None:
        wrong = disagreements(method, case, result, result.predictions, refits(case))
        assert wrong == []


@methods
@given(tests=partitions() | overlapping, order=st.permutations(range(N)), bias=st.booleans())
def test_permuted_rows_give_permuted_predictions(method, tests, order, bias):
    case = small_case(tests, bias=bias, weights="random")
    order = np.asarray(order)
    place = np.argsort(order)
    moved = replace(
        case,
        X=case.X[order],
        K=case.K[np.ix_(order, order)],
        y=case.y[order],
        weights=case.weights[order],
        folds=make_folds(
            [(np.setdiff1d(np.arange(N), place[t]), place[t]) for t in case.folds.test], N
        ),
    )
    expected, result = attempt(method, case), attempt(method, moved)
    if result is not None and expected is not None:
        wrong = disagreements(method, moved, result, result.predictions, expected.predictions)
        assert wrong == []


@methods
@given(tests=partitions() | overlapping, data=st.data())
def test_permuted_folds_give_permuted_blocks(method, tests, data):
    order = data.draw(st.permutations(range(len(tests))))
    case = small_case(tests, bias=True, weights="none")
    moved = small_case([tests[k] for k in order], bias=True, weights="none")
    expected, result = attempt(method, case), attempt(method, moved)
    if result is None or expected is None:
        return
    blocks = [expected.predictions[:, case.folds.runs[k]] for k in order]
    wrong = disagreements(method, moved, result, result.predictions, np.concatenate(blocks, axis=1))
    assert wrong == []
