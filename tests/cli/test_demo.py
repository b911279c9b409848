"""The demo runs on real data, prints its tables and writes its page."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from ridgefold.cli import app


def demo(tmp_path, *more):
    path = tmp_path / "demo.html"
    result = CliRunner().invoke(app, ["demo", "-o", str(path), *more], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    assert str(path) in result.output
    return result.output, path.read_text("utf-8")


def test_demo_prints_what_was_tried_and_errors_and_writes_a_page(tmp_path):
    printed, page = demo(tmp_path, "--time", "3")
    assert "On test rows, the model is off by" in page
    for text in (
        "Combined Cycle Power Plant",
        "by 5-fold cross-validation",
        "candidate",
        "linear",
        "together",
        "predicting the mean",
        "HistGradientBoosting",
        "90% intervals",
    ):
        assert text in printed


@pytest.mark.full
def test_demo_predicts_the_plant_better_than_boosting(tmp_path):
    printed, _ = demo(tmp_path, "--time", "300")
    lines = [line for line in printed.splitlines() if line.startswith("│")]
    errors = {cells[1].strip(): float(cells[2]) for cells in (line.split("│") for line in lines)}
    assert errors["ridgefold"] < 2.75
    assert errors["ridgefold"] < 0.85 * errors["scikit-learn's HistGradientBoosting"]


def test_help_names_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for name in ("demo", "diagnose", "fit", "fit-kernel", "predict", "report"):
        assert name in result.output
