"""Every promise names tests that exist."""

from __future__ import annotations

import ast
import re

import pytest

from documentation import ROOT

PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


def functions(path: str) -> dict[str, bool]:
    """Tests of a file, and whether they belong to the full matrix."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name: any("mark.full" in ast.unparse(d) for d in node.decorator_list)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_test_that_is_named_exists(path, name):
    assert name in functions(path)


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_tests_of_the_full_matrix_are_marked_as_such(path, name):
    marked = f"*full*: `{path}::{name}`" in PAGE
    assert functions(path)[name] is marked


def test_every_promise_has_a_test():
    rows = [
        line
        for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith("| what |")
    ]
    assert len(rows) > 30
    assert all("`tests/" in row for row in rows)


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "promises").glob("test_*.py")))
def test_every_test_of_a_promise_is_on_the_page(path):
    name = path.relative_to(ROOT).as_posix()
    for function in functions(name):
        if function.startswith("test_"):
            assert f"`{name}::{function}`" in PAGE
