"""The walk through a messy table prints what its page shows."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from documentation import ROOT
from ridgefold.cli import app

PAGE = (ROOT / "docs" / "how-to" / "messy-tables.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)
COMMANDS = re.findall(r"`ridgefold ((?:diagnose|fit|predict) \w[^`]*)` (?:prints|says)", PAGE)
SAME_EVERYWHERE = {"target", "task", "rows", "columns", "features", "model"}
"""Lines of the summary that depend on neither the time nor the machine."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "houses.csv").write_text(BLOCKS[0], encoding="utf-8")
    (tmp_path / "new.csv").write_text(BLOCKS[4], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(command):
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return done.output


def lines_of(printed):
    """The names and values of a summary."""
    pairs = (re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in printed.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def test_the_page_shows_what_is_printed(folder):
    diagnose = COMMANDS[0]
    assert diagnose.startswith("diagnose houses.csv")
    assert ran(diagnose) == BLOCKS[1]
    ran(BLOCKS[2].removeprefix("ridgefold "))


def test_the_table_is_fitted_and_new_rows_are_predicted_as_shown(folder):
    _, fit, predict = COMMANDS
    found, shown = lines_of(ran(fit)), lines_of(BLOCKS[3])
    assert {name: found[name] for name in SAME_EVERYWHERE} == {
        name: shown[name] for name in SAME_EVERYWHERE
    }
    assert set(shown) == set(found)
    header, *rows = ran(predict).splitlines()
    expected_header, *expected = BLOCKS[5].splitlines()
    assert header == expected_header
    for row, wanted in zip(rows, expected, strict=True):
        assert row.split(",")[0] == wanted.split(",")[0]
        _, prediction, lower, upper, outside = row.split(",")
        assert outside == wanted.split(",")[-1]
        assert float(lower) < float(prediction) < float(upper)
