"""Figures in the text are those that were measured."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from documentation import PAGES, ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def figures():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("figures")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_every_quoted_figure_is_the_measured_one(figures):
    stale = [page.relative_to(ROOT).as_posix() for page, _ in figures.out_of_date()]
    assert not stale, "run `make figures`"


def test_figures_are_quoted_at_all(figures):
    text = "\n".join(p.read_text(encoding="utf-8") for p in PAGES)
    assert len(figures.FIGURE.findall(text)) > 10
    assert len(figures.TABLE.findall(text)) > 4


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_line_begins_with_a_figure(page):
    """A comment at the beginning of a line would end the paragraph."""
    lines = page.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.lstrip().startswith("<!-- figure")]


def test_every_table_is_quoted_somewhere(figures):
    text = "\n".join(p.read_text(encoding="utf-8") for p in PAGES)
    tables = importlib.import_module("tables").TABLES
    assert {name for name, _ in figures.TABLE.findall(text)} == set(tables)


def test_a_figure_that_changes_is_noticed(figures):
    source = "fit → KernelRidge.fit, n = 8000: time / scikit-learn's"
    page = f"<!-- figure: {source} -->9.99<!-- /figure -->"
    assert "9.99" not in figures.filled(page)


@pytest.mark.parametrize(
    "source",
    [
        "no_such_file → x",
        "fit → no such figure",
        "fit",
        "fit → import ridgefold: time / import sklearn → x",
    ],
)
def test_figures_that_were_not_measured_are_an_error(figures, source):
    with pytest.raises(figures.UnknownFigureError):
        figures.filled(f"<!-- figure: {source} -->1<!-- /figure -->")


@pytest.mark.parametrize(
    "path", sorted((BENCHMARKS / "results").glob("*.json")), ids=lambda p: p.stem
)
def test_result_pages_hold_the_numbers_of_their_files(path):
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    for figure in json.loads(path.read_text(encoding="utf-8"))["figures"]:
        if figure["measured"] is not None:
            number = figure["measured"]
            shown = f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"
            assert any(row.startswith(f"| {figure['what']} |") and shown in row for row in rows)


def test_every_miss_is_explained():
    command = [sys.executable, str(BENCHMARKS / "summary.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
