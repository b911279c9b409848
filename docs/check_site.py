"""Check a built site: its pages ask for nothing outside themselves.

Links that a reader may follow are left alone; scripts, styles, pictures and fonts must lie in the
site, and must be there.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
FROM_STYLES = re.compile(r"""(?:url\(|@import\s+)\s*['"]?((?:https?:)?//[^'")\s]+)""")


class _Loads(HTMLParser):
    """What a page loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and {"stylesheet", "icon", "preload"} & set(
            (given.get("rel") or "").split()
        ):
            self.found.append(given.get("href") or "")
        elif tag in LOADED and given.get(LOADED[tag]):
            self.found.append(given[LOADED[tag]] or "")


def faults(site: Path) -> list[str]:
    """Everything that a page or a style asks for and should not, or that is not there."""
    found = []
    for page in sorted(site.rglob("*.html")):
        loads = _Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        for address in loads.found:
            parts = urlsplit(address)
            name = page.relative_to(site)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                found.append(f"{name} loads {address}")
            elif parts.path and not (page.parent / unquote(parts.path)).exists():
                found.append(f"{name} loads {address}, which is not there")
    for style in sorted(site.rglob("*.css")):
        for address in FROM_STYLES.findall(style.read_text(encoding="utf-8")):
            found.append(f"{style.relative_to(site)} loads {address}")
    return found


def main() -> int:
    site = Path(sys.argv[1])
    if not any(site.rglob("*.html")):
        print(f"{site} holds no pages", file=sys.stderr)
        return 2
    wrong = faults(site)
    print("\n".join(wrong) or f"{site}: no page asks for anything outside the site")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
