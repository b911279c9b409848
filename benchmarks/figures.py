"""Fill in every measured figure that the README and the documentation quote: `make figures`.

A page quotes a number as

    <!-- figure: fit → KernelRidge.fit, n = 8000: time / scikit-learn's -->0.58<!-- /figure -->

with the name of a file of benchmarks/results and what the figure is called there; a third part
names an entry of its `detail`, and a last one in brackets says how to write it (`[.0f]`,
`[%]`; three digits otherwise). A page quotes a table of `tables.py` as

    <!-- table: readme -->
    …
    <!-- /table -->

`--check` writes nothing and fails if a page and the results disagree.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
FIGURE = re.compile(r"<!-- figure: (?P<source>[^>]+?) -->(?P<text>[^<]*)<!-- /figure -->")
TABLE = re.compile(r"<!-- table: (?P<name>[\w-]+) -->\n(?P<text>.*?)<!-- /table -->", re.DOTALL)


class UnknownFigureError(Exception):
    """A page quotes something that the results do not hold."""


def pages() -> list[Path]:
    """Every page that may quote a figure."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [p for p in found if not {"_build", "gallery", "generated"} & set(p.parts)]


@cache
def results(name: str) -> dict[str, Any]:
    """One result file."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise UnknownFigureError(f"there is no {path.relative_to(ROOT)}")
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def figure(name: str, what: str) -> dict[str, Any]:
    """One figure of a result file, by what it is called."""
    found = [f for f in results(name)["figures"] if f["what"] == what]
    if not found:
        raise UnknownFigureError(f"{name}.json has no figure {what!r}")
    entry: dict[str, Any] = found[0]
    return entry


def value(name: str, what: str, detail: str | None = None) -> float:
    """A measured number, or one of those behind it."""
    entry = figure(name, what)
    if detail is not None and detail not in entry["detail"]:
        raise UnknownFigureError(f"{name}.json, {what!r}: no detail {detail!r}")
    number = entry["measured"] if detail is None else entry["detail"][detail]
    if number is None:
        raise UnknownFigureError(f"{name}.json, {what!r} was not measured: {entry['unit']}")
    return float(number)


def written(number: float, style: str | None = None) -> str:
    """A number as text: three significant digits unless a style says otherwise."""
    if style == "%":
        return f"{number:.0%}"
    if style is not None:
        return format(number, style)
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def quoted(source: str) -> str:
    """What a `figure` comment asks for."""
    match = re.fullmatch(r"(?P<path>.*?)(?: \[(?P<style>[^\]]+)\])?", source)
    assert match is not None
    parts = match["path"].split(" → ")
    if len(parts) not in (2, 3):
        raise UnknownFigureError(
            f"{source!r} should read: file → figure, or file → figure → detail"
        )
    return written(value(*parts), match["style"])


def filled(text: str) -> str:
    """A page with all its figures and tables as the results have them."""
    from tables import TABLES

    def table(match: re.Match[str]) -> str:
        if match["name"] not in TABLES:
            raise UnknownFigureError(f"tables.py has no table {match['name']!r}")
        body = TABLES[match["name"]]().strip()
        return f"<!-- table: {match['name']} -->\n{body}\n<!-- /table -->"

    def number(match: re.Match[str]) -> str:
        return f"<!-- figure: {match['source']} -->{quoted(match['source'])}<!-- /figure -->"

    return FIGURE.sub(number, TABLE.sub(table, text))


def out_of_date() -> Iterator[tuple[Path, str]]:
    """Pages that say something else than the results, with what they should say."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = filled(text)
        if new != text:
            yield page, new


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail on differences")
    check = parser.parse_args().check
    try:
        stale = list(out_of_date())
    except UnknownFigureError as error:
        print(f"a page quotes what was not measured: {error}", file=sys.stderr)
        return 2
    for page, text in stale:
        print(f"{page.relative_to(ROOT)} {'is out of date' if check else 'written'}")
        if not check:
            page.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.modules["figures"] = sys.modules["__main__"]
    sys.exit(main())
