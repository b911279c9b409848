"""The demo runs on real data, prints its table and writes its page."""

from __future__ import annotations

from typer.testing import CliRunner

from ridgefold.cli import app


def test_demo_prints_a_table_of_errors_and_writes_a_page(tmp_path):
    path = tmp_path / "demo.html"
    result = CliRunner().invoke(app, ["demo", "-o", str(path)], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert str(path) in result.output
    assert "On test rows, the model is off by" in path.read_text("utf-8")
    assert "Combined Cycle Power Plant" in result.output
    for text in (
        "choosing kernel and alpha",
        "measured",
        "not eigendecomposition: ",
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
