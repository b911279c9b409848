"""Names of columns and categories are text, whatever they look like."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ridgefold
from ridgefold import KernelRidge, RidgefoldRegressor
from ridgefold.cli import app

HOSTILE = [
    "../../etc/passwd",
    "[bold red]x[/bold red]",
    "[/]",
    "<script>alert(1)</script>",
    "=1+1",
    "$(touch here)",
    "{0.__class__}",
    "%s%n",
    "a,b",
    'quote"inside',
    "line\nbreak",
    "null\0byte",
    "\u202eright-to-left",
    "длинное имя" * 200,
    "__class__",
    "model/state/rows",
]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=32) for name in HOSTILE})
    frame["category"] = [HOSTILE[i % len(HOSTILE)] for i in range(32)]
    return frame


def test_hostile_names_are_kept_as_they_are(tmp_path):
    frame = table()
    y = frame[HOSTILE[0]].to_numpy() * 2.0
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(frame, y)
    path = tmp_path / "m.ridgefold"
    model.save(path, notes={name: name for name in HOSTILE})
    again = ridgefold.load(path)
    assert again.columns_ == model.columns_
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    shown = CliRunner().invoke(app, ["inspect", str(path), "--json"])
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["notes"] == {name: name for name in HOSTILE}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", HOSTILE[1:4])
def test_markup_in_names_is_shown_and_not_followed(tmp_path, name):
    frame = pd.DataFrame({name: np.linspace(0, 1, 30), "y": np.sin(np.linspace(1, 9, 30))})
    frame.to_csv(tmp_path / "d.csv", index=False)
    path = tmp_path / "m.ridgefold"
    command = [
        "fit-kernel",
        str(tmp_path / "d.csv"),
        "--target",
        "y",
        "-o",
        str(path),
        "--alpha",
        "1",
    ]
    fitted = CliRunner().invoke(app, [*command, "--length-scale", "1"])
    assert fitted.exit_code == 0, fitted.output
    shown = CliRunner().invoke(app, ["inspect", str(path)], terminal_width=200)
    assert shown.exit_code == 0, shown.output
    assert name in shown.output
