"""The demo runs on real data and prints its table."""

from __future__ import annotations

from typer.testing import CliRunner

from ridgefold.cli import app


def test_demo_prints_a_table_of_errors_and_succeeds():
    result = CliRunner().invoke(app, ["demo"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "Combined Cycle Power Plant" in result.output
    for text in (
        "cross-validation method",
        "linear",
        "polynomial",
        "RBF as chosen",
        "primal",
        "cholesky",
        "RMSE",
    ):
        assert text.lower() in result.output.lower()


def test_help_names_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output
