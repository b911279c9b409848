"""Unpenalised columns of raw tables: by name, level by level, in the units of the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ridgefold import (
    KernelRidge,
    PartitionedKernelRidge,
    RidgefoldRegressor,
    load,
)
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Columns, Constant, Linear
from ridgefold.report import write_report

rng = np.random.default_rng(2)
N = 120
TABLE = pd.DataFrame(
    {
        "age": rng.uniform(20, 70, N),
        "income": rng.normal(3000, 900, N),
        "town": rng.choice(["a", "b", "c"], N),
    }
)
EFFECT = TABLE["town"].map({"a": 0.0, "b": 2.0, "c": -1.0}).to_numpy()
Y = 0.1 * TABLE["age"].to_numpy() + EFFECT + 5.0 + 0.05 * rng.standard_normal(N)


def least_squares(*columns):
    F = np.column_stack([np.ones(N), *columns])
    solution, squares, _, _ = np.linalg.lstsq(F, Y, rcond=None)
    errors = np.sqrt(np.diagonal(np.linalg.inv(F.T @ F)) * squares[0] / (N - F.shape[1]))
    return solution, errors


def model(**settings):
    """With next to no kernel: what is left is least squares."""
    kernel = 1e-9 * Columns(Linear(), [1]) + 1e-12 * Constant()
    return RidgefoldRegressor(model=KernelRidge(1.0, kernel=kernel, fit_intercept=True, **settings))


def test_names_of_a_table_are_taken_and_coefficients_are_in_its_units():
    levels = [TABLE["town"] == "b", TABLE["town"] == "c"]
    expected, errors = least_squares(TABLE["age"], *levels)
    found = model(fixed=["age", "town"]).fit(TABLE, Y)
    assert list(found.fixed_names_) == ["age", "town=b", "town=c"]
    np.testing.assert_allclose(found.fixed_coef_, expected[1:], rtol=1e-6)
    np.testing.assert_allclose(found.fixed_coef_std_, errors[1:], rtol=1e-4)


def test_one_level_of_a_column_can_be_named():
    found = model(fixed=["town=c"]).fit(TABLE, Y)
    expected, _ = least_squares(TABLE["town"] == "c")
    np.testing.assert_allclose(found.fixed_coef_, expected[1:], rtol=1e-6)


def test_a_file_gives_names_and_coefficients_back(tmp_path):
    found = model(fixed=["town", "age"]).fit(TABLE, Y)
    found.save(tmp_path / "model.rfm")
    again = load(tmp_path / "model.rfm")
    np.testing.assert_array_equal(again.predict(TABLE), found.predict(TABLE))
    np.testing.assert_array_equal(again.fixed_coef_, found.fixed_coef_)
    assert list(again.fixed_names_) == list(found.fixed_names_)


def test_a_model_that_is_fitted_again_without_columns_has_none_left():
    found = model(fixed=["age"]).fit(TABLE, Y)
    found.model.set_params(fixed=None)
    assert not hasattr(found.fit(TABLE, Y), "fixed_coef_")


def test_cells_of_a_table_have_coefficients_and_no_standard_errors():
    cells = PartitionedKernelRidge(n_partitions=2, fit_intercept=True, fixed=["age"])
    found = RidgefoldRegressor(model=cells).fit(TABLE, Y)
    assert found.fixed_coef_.shape == (2, 1, 1)
    np.testing.assert_allclose(found.fixed_coef_, 0.1, atol=0.1)
    assert not hasattr(found, "fixed_coef_std_")


def test_a_name_that_the_table_lacks_is_refused_with_those_it_has():
    with pytest.raises(InvalidInputError, match="its columns are age, income, town"):
        model(fixed=["height"]).fit(TABLE, Y)


def test_a_report_names_the_columns(tmp_path):
    found = model(fixed=["age", "town=c"]).fit(TABLE, Y)
    write_report(found, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Columns without a penalty" in page
    assert "age, town=c" in page
