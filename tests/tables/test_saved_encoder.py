"""The encoder of a diagnosis is data that model files hold, and predictions read raw tables by."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import ridgefold
from messy_tables import N, clean, text
from ridgefold.cli import app
from ridgefold.tables.wide_columns import packed_columns, unpacked_columns

CLEAN = clean()
RNG = np.random.default_rng(4)
DAYS = [
    datetime.date(2019, 5, 1) + datetime.timedelta(days=int(j)) for j in RNG.integers(0, 900, N)
]
MEANT = {
    "x": [None if j == 5 else float(v) for j, v in enumerate(CLEAN.x)],
    "member": (CLEAN.count % 2 == 0).tolist(),
    "colour": CLEAN.colour,
    "city": [f"c{j}" for j in RNG.integers(0, 60, N)],
    "size": [("low", "medium", "high")[j] for j in RNG.integers(0, 3, N)],
    "when": DAYS,
    "y": CLEAN.y,
}
WRITTEN = {
    **MEANT,
    "x": ["?" if v is None else f"${v:,.2f}" for v in MEANT["x"]],
    "member": ["yes" if v else "no" for v in MEANT["member"]],
    "when": [day.strftime("%d.%m.%Y") for day in DAYS],
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "t.csv").write_text(text(WRITTEN, separator=";"))
    diagnosis = ridgefold.diagnose(folder / "t.csv", "y")
    inner = ridgefold.LSSVMRegressor(0.1, kernel="rbf", kernel_params={"length_scale": 3.0})
    model = ridgefold.RidgefoldRegressor(model=inner).fit(diagnosis)
    model.save(folder / "m.ridgefold")
    return folder, diagnosis, model


def test_every_kind_of_column_is_there(saved):
    _, diagnosis, _ = saved
    kinds = {column.name: column.kind for column in diagnosis.columns}
    assert kinds == {
        "x": "number",
        "member": "boolean",
        "colour": "category",
        "city": "category",
        "size": "ordered",
        "when": "date",
    }


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("columns", [MEANT, WRITTEN])
def test_a_loaded_model_predicts_raw_tables(columns, frame, saved):
    folder, _, model = saved
    loaded = ridgefold.load(folder / "m.ridgefold")
    assert loaded.columns_ == model.columns_
    expected = model.predict(folder / "t.csv")
    np.testing.assert_allclose(loaded.predict(frame(columns)), expected, rtol=1e-9)


def test_the_command_predicts_raw_files(saved):
    folder, _, model = saved
    out = folder / "out.csv"
    arguments = [
        "predict",
        str(folder / "m.ridgefold"),
        str(folder / "t.csv"),
        "-f",
        "-o",
        str(out),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], model.predict(MEANT), rtol=1e-9)


def test_a_table_of_many_columns_keeps_all_kinds(tmp_path):
    more = {f"z{j}": RNG.normal(size=N) for j in range(1001)}
    found = ridgefold.diagnose({**more, **WRITTEN}, "y").encoder.columns
    packed = packed_columns(found)
    assert isinstance(packed, dict)
    assert unpacked_columns("columns", packed) == found
