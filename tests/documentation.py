"""The pages of the documentation as they are written, not as they are built."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MADE = {"_build", "gallery", "generated"}
"""Folders that a build makes."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if not MADE & set(p.parts)),
]


def text_of_docs() -> str:
    """Everything that is written under docs/, in one piece."""
    pages = [p for p in PAGES if p.is_relative_to(ROOT / "docs")]
    pages.append(ROOT / "docs" / "api" / "index.rst")
    return "\n".join(p.read_text(encoding="utf-8") for p in pages)


def names_in_code(text: str) -> set[str]:
    """Words that stand in code quotes, alone or as the value of an argument."""
    found: set[str] = set()
    for code in re.findall(r"`+([^`\n]+)`+", text):
        found.update(re.findall(r"[\w+-]+", code))
    return found
