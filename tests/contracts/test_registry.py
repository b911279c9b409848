"""Planner, tests and documentation read one registry: nothing may be missing from it."""

from __future__ import annotations

from pathlib import Path

import pytest

import ridgefold.crossval
from ridgefold.crossval import METHODS
from ridgefold.records import FoldShape, Problem

FOLDER = Path(ridgefold.crossval.__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


@pytest.mark.parametrize("name", FILES)
def test_every_file_of_the_folder_is_a_registered_method(name):
    assert name in METHODS
    assert METHODS[name].name == name
    assert type(METHODS[name]).__module__ == f"ridgefold.crossval.{name}"


def test_every_method_has_a_file_of_its_name():
    assert sorted(METHODS) == FILES


@pytest.mark.parametrize("name", METHODS)
def test_every_method_declares_its_limits_and_cost_from_shapes_alone(name):
    problem = Problem(
        n_rows=1000,
        n_columns=5,
        n_alphas=10,
        folds=(FoldShape(200, 800, 5),),
        smallest_alpha=1e-3,
    )
    method = METHODS[name]
    assert isinstance(method.exact, bool)
    reason = method.can_run(problem)
    assert reason is None or len(reason) > 10
    cost = method.cost(problem)
    assert cost.peak_bytes > 0
    assert all(work >= 0 for work in cost.flops.values())
    assert sum(cost.flops.values()) > 0


@pytest.mark.parametrize("name", METHODS)
def test_every_class_says_in_a_sentence_what_it_does(name):
    assert len(type(METHODS[name]).__doc__.strip()) > 20
