"""Run what the documentation shows: scripts of examples/, and code blocks without prompts.

Blocks with `>>>` are doctests, run by pytest (`make docs` does both).
"""

from __future__ import annotations

import re
import runpy
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
        *sorted((ROOT / "docs").rglob("*.md")),
    ]:
        if count := run_blocks(page):
            print(f"-- {page.relative_to(ROOT)}: {count} block(s) ran", flush=True)
    for script in sorted((ROOT / "examples").glob("*.py")):
        print(f"-- {script.relative_to(ROOT)}", flush=True)
        runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    sys.exit(main())
