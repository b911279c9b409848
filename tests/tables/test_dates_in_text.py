"""New dates are read as those of the fit were, and too many that cannot be are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from ridgefold import KernelRidge, RidgefoldRegressor
from ridgefold.cli import app
from ridgefold.errors import InvalidInputError, UnreadableNumberWarning

N = 200
DAYS = pd.date_range("2021-01-01", periods=N, freq="D")
X = np.arange(float(N)) % 7
Y = X + np.sin(np.arange(N) / 30)
frames = pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame])


def columns(form="%d.%m.%Y", rows=slice(None)):
    return {"day": DAYS[rows].strftime(form).tolist(), "x": X[rows]}


@pytest.fixture(scope="module")
def fitted():
    return RidgefoldRegressor(model=KernelRidge()).fit(columns(), Y)


@frames
def test_dates_in_any_readable_form_or_type_are_predicted_alike(frame, fitted):
    expected = fitted.predict(columns())
    for form in ("%Y-%m-%d", "%d/%m/%Y", "%d %B %Y"):
        np.testing.assert_allclose(fitted.predict(frame(columns(form))), expected)
    stamps = {**columns(), "day": DAYS.to_numpy().astype("datetime64[us]")}
    np.testing.assert_allclose(fitted.predict(frame(stamps)), expected)


@frames
def test_dates_of_the_other_order_are_refused_with_the_way_to_write_them(frame, fitted):
    said = r"too many to be typing errors.*with the month first: rewrite them as 2021-01-13"
    with pytest.raises(InvalidInputError, match=said):
        fitted.predict(frame(columns("%m/%d/%Y")))


def test_the_order_that_reads_every_cell_is_named_and_no_other():
    model = RidgefoldRegressor(model=KernelRidge()).fit(columns("%Y-%m-%d"), Y)
    with pytest.raises(InvalidInputError, match="with the day first: rewrite them as 2021-01-01"):
        model.predict(columns())
    with pytest.raises(InvalidInputError, match=r"with the day or the month first: rewrite them$"):
        model.predict(columns(rows=slice(12)))


def test_a_mixture_of_orders_is_refused_without_advice_that_would_misread_half(fitted):
    day, month = columns(), columns("%m/%d/%Y")
    mixed = {"day": day["day"] + month["day"], "x": np.append(X, X)}
    with pytest.raises(InvalidInputError, match=r"typing errors: correct them$"):
        fitted.predict(mixed)


@frames
def test_a_few_typing_errors_count_as_missing_with_a_warning(frame, fitted):
    table = columns()
    table["day"][7] = "31.02.2021"
    with pytest.warns(UnreadableNumberWarning, match=r"1 of 200 .*'31\.02\.2021' in row 8"):
        found = fitted.predict(frame(table))
    table["day"][7] = None
    np.testing.assert_array_equal(found, fitted.predict(frame(table)))


def test_numbers_that_are_no_dates_are_refused_where_dates_of_eight_digits_were_learned():
    whole = [int(text) for text in DAYS.strftime("%Y%m%d")]
    model = RidgefoldRegressor(model=KernelRidge()).fit({"day": whole, "x": X}, Y)
    expected = model.predict(columns("%Y-%m-%d"))
    np.testing.assert_allclose(model.predict({"day": whole, "x": X}), expected)
    with pytest.raises(InvalidInputError, match="'99999999' in row 1"):
        model.predict({"day": [99999999] * N, "x": X})


def test_the_command_line_refuses_and_leaves_no_file(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    pd.DataFrame(columns("%m/%d/%Y")).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    arguments = ["predict", tmp_path / "m", tmp_path / "new.csv", "-o", out]
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 3
    assert "'01/13/2021' in line 14" in " ".join(done.output.split())
    assert not out.exists()
