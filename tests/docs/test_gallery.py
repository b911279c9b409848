"""The gallery shows every example, each with a title and a figure."""

from __future__ import annotations

import ast
import importlib
import sys

import pytest

from documentation import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_every_example_has_its_place():
    folder = str(ROOT / "docs" / "_extensions")
    sys.path.insert(0, folder)
    try:
        order = importlib.import_module("reading_order").ORDER
    finally:
        sys.path.remove(folder)
    assert sorted(order) == [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_every_example_has_a_title_sections_and_a_figure(path):
    text = path.read_text(encoding="utf-8")
    title, line = (ast.get_docstring(ast.parse(text)) or "").splitlines()[:2]
    assert len(title) <= len(line)
    assert set(line) == {"="}
    assert "\n# %%\n" in text
    assert "plt.show()" in text
