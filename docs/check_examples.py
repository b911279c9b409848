"""Run what the documentation shows: code blocks without prompts.

Blocks with `>>>` are doctests, run by pytest; the scripts of examples/ run when the gallery of the
site is built. `make docs` does all three.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_blocks(page: Path) -> int:
    """Run the blocks of one page in one namespace, in order; return how many there were."""
    blocks = [b for b in BLOCK.findall(page.read_text(encoding="utf-8")) if ">>>" not in b]
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)  # noqa: S102
    return len(blocks)


def main() -> None:
    for page in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
    ]:
        if count := run_blocks(page):
            print(f"-- {page.relative_to(ROOT)}: {count} block(s) ran", flush=True)


if __name__ == "__main__":
    sys.exit(main())
