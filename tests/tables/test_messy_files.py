"""Every messy file: all decisions are named, the numbers are what is meant, nothing leaks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

import ridgefold
from messy_files import FILES, PE
from ridgefold.errors import InvalidInputError

ACCEPTED = [file for file in FILES if not file.refused]
REFUSED = [file for file in FILES if file.refused]


def named(file):
    return file.name


@pytest.mark.parametrize("file", ACCEPTED, ids=named)
def test_every_decision_is_named(file, tmp_path):
    found = ridgefold.diagnose(file.write(tmp_path), file.target)
    assert {column.name: column.kind for column in found.columns} == file.kinds
    said: dict[str, set[str]] = {}
    for problem in found.problems:
        for name in problem.columns or ("",):
            said.setdefault(name, set()).add(problem.topic)
    assert said == file.said
    printed = str(found)
    for column in found.columns:
        assert column.treatment
        assert column.reason
        assert column.name in printed
        assert column.is_used or column.name in said


@pytest.mark.parametrize("file", ACCEPTED, ids=named)
def test_the_numbers_are_those_that_are_meant(file, tmp_path):
    found = ridgefold.diagnose(file.write(tmp_path), file.target, standardise=False)
    data = found.training_data()
    y = PE if file.y is None else file.y
    if found.task == "regression":
        np.testing.assert_allclose(data.y, y, rtol=1e-12)
    else:
        assert data.y.tolist() == list(y)
    features = dict(zip(data.feature_names, data.X.T, strict=True))
    for name, values in file.features.items():
        np.testing.assert_allclose(features[name], values, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("file", ACCEPTED, ids=named)
def test_nothing_gives_the_target_away_without_a_word(file, tmp_path):
    found = ridgefold.diagnose(file.write(tmp_path), file.target)
    data = found.training_data()
    _, y = np.unique(data.y, return_inverse=True)
    warned = {name for problem in found.problems for name in problem.columns}
    for name, origin, values in zip(data.feature_names, data.origins, data.X.T, strict=True):
        if origin not in warned:
            assert abs(spearmanr(values, y).statistic) < 0.98, name
            assert abs(spearmanr(values, np.arange(len(y))).statistic) < 0.98, name


@pytest.mark.parametrize("file", REFUSED, ids=named)
def test_what_cannot_be_used_is_refused_with_all_that_is_wrong(file, tmp_path):
    with pytest.raises(InvalidInputError) as refused:
        ridgefold.diagnose(file.write(tmp_path), file.target)
    for words in file.refused:
        assert words in str(refused.value)


def test_there_are_many_of_them():
    assert len(FILES) >= 25
    assert len({file.name for file in FILES}) == len(FILES)
