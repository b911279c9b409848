"""The walk through a messy table prints what its page shows."""

from __future__ import annotations

import re

from typer.testing import CliRunner

from documentation import ROOT
from ridgefold.cli import app

PAGE = (ROOT / "docs" / "how-to" / "messy-tables.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_page_shows_what_is_printed(tmp_path, monkeypatch):
    table, printed, again = BLOCKS
    (tmp_path / "houses.csv").write_text(table, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["diagnose", "houses.csv", "--target", "price"])
    assert done.exit_code == 0, done.output
    assert done.output == printed
    assert CliRunner().invoke(app, again.split()[1:]).exit_code == 0
