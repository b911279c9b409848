"""Which code a result was measured with, and whether that code has changed since.

A result file keeps a fingerprint of its own script and of every folder of the library that its
process had imported. Fingerprints are of what the code does: comments, docstrings and layout do
not count.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent / "src" / "ridgefold"
TOP = "(top)"
"""The files of the library that lie in no folder."""


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                each
                for each in body
                if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]
    return tree


def fingerprint(files: Iterable[Path]) -> str:
    """Of the code in some files, by their names and what they do."""
    digest = hashlib.sha256()
    for path in sorted(files):
        tree = _without_docstrings(ast.parse(path.read_text(encoding="utf-8")))
        digest.update(f"{path.name}\n{ast.dump(tree)}\n".encode())
    return digest.hexdigest()[:16]


@cache
def library_fingerprints() -> dict[str, str]:
    """One for every folder of the library."""
    folders = sorted(p for p in LIBRARY.iterdir() if p.is_dir() and any(p.rglob("*.py")))
    return {
        TOP: fingerprint(LIBRARY.glob("*.py")),
        **{folder.name: fingerprint(folder.rglob("*.py")) for folder in folders},
    }


def folders_in_use() -> list[str]:
    """Folders of the library that this process has imported; all, where it has imported none.

    A script that runs the library only in other processes has imported none.
    """
    names = {name.split(".")[1] for name in sys.modules if name.startswith("ridgefold.")}
    known = library_fingerprints()
    used = sorted(names & known.keys())
    return [TOP, *used] if used else list(known)


def recorded_now(script: Path | None) -> dict[str, Any]:
    """What a result file keeps: the fingerprints of the script and of the folders in use."""
    known = library_fingerprints()
    return {
        "script": None if script is None else fingerprint([script]),
        "folders": {folder: known[folder] for folder in folders_in_use()},
    }


def changed_since(record: Mapping[str, Any], script: Path) -> list[str] | None:
    """What has changed since a result was measured, in words; None if it does not say."""
    sources = record.get("sources")
    if not isinstance(sources, Mapping):
        return None
    known = library_fingerprints()
    changed = [name for name, was in sources["folders"].items() if known.get(name) != was]
    if sources["script"] is not None and fingerprint([script]) != sources["script"]:
        changed.insert(0, "the script")
    return changed
