"""Every method gives what fitting each fold anew gives."""

from __future__ import annotations

import numpy as np
import pytest
from allpairspy import AllPairs

from contracts.oracle import (
    ALPHAS,
    DTYPES,
    FOLDS,
    KERNELS,
    WEIGHTS,
    Setting,
    attempt,
    axes,
    disagreements,
    every_combination,
    make_case,
    refits,
    run,
)
from namespaces import EVERYWHERE, to_numpy
from namespaces import LIBRARIES as OTHER_LIBRARIES
from ridgefold.crossval import METHODS
from ridgefold.errors import InvalidInputError

LIBRARIES = ["numpy", "read-only", *OTHER_LIBRARIES]
AXES = axes(LIBRARIES)


def covering_set() -> list[Setting]:
    """Every pair of values of any two axes occurs together in one of these."""
    return [Setting(*values) for values in AllPairs(list(AXES.values()))]


def check(method: str, setting: Setting, expected: np.ndarray | None = None) -> list[str]:
    """What is wrong with one method at one setting."""
    case, convert = make_case(setting), EVERYWHERE[setting.library]
    if not case.solvable:
        with pytest.raises(InvalidInputError, match="no training rows of positive weight"):
            run(method, case, convert)
        return []
    expected = refits(case) if expected is None else expected
    result = attempt(method, case, convert)
    if result is None:
        return []
    return disagreements(method, case, result, to_numpy(result.predictions), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("setting", covering_set(), ids=str)
def test_every_method_agrees_with_refitting(method, setting):
    assert check(method, setting) == []


@pytest.mark.full
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("folds", FOLDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_method_agrees_with_refitting_in_every_case(library, kernel, folds, dtype):
    wrong = []
    for rest in every_combination(
        bias=[False, True], weights=list(WEIGHTS), targets=[1, 3], alphas=list(ALPHAS)
    ):
        setting = Setting(kernel=kernel, folds=folds, dtype=dtype, library=library, **rest)
        case = make_case(setting)
        expected = refits(case) if case.solvable else None
        wrong += [
            f"{setting}: {line}" for method in METHODS for line in check(method, setting, expected)
        ]
    assert wrong == []


def test_block_recursive_stays_tame_where_rounding_exceeds_the_ridge():
    """What several eliminations leave of an eigenvalue of α may lie far below zero by rounding."""
    setting = Setting(
        kernel="polynomial",
        folds="leave-one-out, some rows twice",
        bias=True,
        weights="a fold of zeros",
        targets=1,
        dtype="float32",
        library="numpy",
        alphas="tiny",
    )
    case = make_case(setting)
    expected = refits(case)
    found = attempt("block_recursive", case).predictions
    assert np.max(np.abs(found - expected)) <= 2.0 * np.max(np.abs(expected))
