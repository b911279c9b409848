"""How the project guards itself."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "marshal", "shelve", "subprocess", "pty"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen"}


def test_warnings_are_errors_in_the_tests():
    assert SETTINGS["pytest"]["ini_options"]["filterwarnings"] == ["error"]
    with pytest.raises(UserWarning, match="as an error"):
        __import__("warnings").warn("as an error", stacklevel=1)


def test_security_rules_are_on_for_the_library():
    lint = SETTINGS["ruff"]["lint"]
    assert "S" in lint["select"]
    assert not [rule for rule in lint["ignore"] if rule.startswith("S") and rule[1:2].isdigit()]
    for pattern, rules in lint["per-file-ignores"].items():
        if pattern.startswith("src"):
            assert not [r for r in rules if r.startswith("S") and r != "S101"], pattern


def test_the_library_never_unpickles_evaluates_or_calls_a_shell():
    sources = sorted((ROOT / "src").rglob("*.py"))
    assert len(sources) > 100
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
                assert not FORBIDDEN_MODULES & {n.split(".")[0] for n in names}, source
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Name):
                    assert node.func.id not in FORBIDDEN_CALLS, (source, node.lineno)
                if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                    call = (node.func.value.id, node.func.attr)
                    assert call not in {("os", "system"), ("os", "popen")}, (source, node.lineno)
