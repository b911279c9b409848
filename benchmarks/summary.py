"""One page of all results: what was reproduced, what held, what was missed and why.

Reads results/*.json and misses.toml, writes results/README.md. A miss without an explanation is
an error, and so is an explanation without a miss: the page cannot hide one or keep an old one.
`--check` writes nothing.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import RESULTS, Figure, machine_line, number
from provenance import changed_since

HERE = Path(__file__).resolve().parent
FOLDERS = {
    "papers": "The papers, theirs beside ours",
    "peers": "Beside other libraries",
    "scale": "Against the machine's limits, and how cost grows",
}


@dataclass(frozen=True)
class Page:
    """The results of one benchmark."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    machine: dict[str, str]
    changed: tuple[str, ...] | None
    """What has changed in the code since; None if the results do not say what they measured."""

    @property
    def code_since(self) -> str:
        """Whether the page is as old as the code, in words."""
        if self.changed is None:
            return "not recorded"
        return f"changed: {', '.join(self.changed)}" if self.changed else "the same"

    @property
    def missed(self) -> list[Figure]:
        return [figure for figure in self.figures if figure.held is False]


@dataclass(frozen=True)
class Explanation:
    """Why some targets of one benchmark are missed."""

    page: str
    figures: str
    """How the names of the figures begin."""
    why: str
    next: str


def read_page(name: str) -> Page:
    record: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    figures = []
    for entry in record["figures"]:
        entry.pop("held")
        figures.append(Figure(**entry))
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    title = text.splitlines()[0].removeprefix("# ")
    changed = changed_since(record, script_of(name))
    return Page(
        name,
        title,
        tuple(figures),
        record["machine"],
        None if changed is None else tuple(changed),
    )


def script_of(name: str) -> Path:
    """The script that measures a page."""
    return next(path for folder in FOLDERS for path in (HERE / folder).glob(f"{name}.py"))


def machine_paragraph() -> list[str]:
    """The machine that `run.py` measured last, with its rates."""
    path = RESULTS / "machine.json"
    if not path.exists():
        return []
    facts = json.loads(path.read_text(encoding="utf-8"))
    rates = facts.pop("rates")
    lines = ["", f"Machine: {machine_line(facts)}.", ""]
    lines += ["| kind of work | operations a second, one thread |", "|---|---|"]
    return lines + [f"| {kind} | {rate:.2g} |" for kind, rate in rates.items()]


def explanations() -> list[Explanation]:
    with (HERE / "misses.toml").open("rb") as file:
        return [Explanation(**entry) for entry in tomllib.load(file)["miss"]]


def explain(page: Page, figure: Figure, known: list[Explanation]) -> Explanation | None:
    fitting = [e for e in known if e.page == page.name and figure.what.startswith(e.figures)]
    return max(fitting, key=lambda e: len(e.figures)) if fitting else None


def unexplained(pages: list[Page], known: list[Explanation]) -> list[str]:
    """Misses without an explanation, and explanations without a miss."""
    used, problems = set(), []
    for page in pages:
        for figure in page.missed:
            found = explain(page, figure, known)
            if found is None:
                problems.append(f"misses.toml does not explain {page.name}: {figure.what}")
            else:
                used.add(found)
    problems += [f"nothing is missed for {e.page}: {e.figures}" for e in known if e not in used]
    return problems


def pages_of(folder: str) -> tuple[list[Page], list[str]]:
    """Pages of the benchmarks of a folder, and the names of those without results."""
    names = [p.stem for p in sorted((HERE / folder).glob("*.py")) if not p.stem.startswith("_")]
    there = [name for name in names if (RESULTS / f"{name}.json").exists()]
    return [read_page(name) for name in there], [name for name in names if name not in there]


def render() -> tuple[str, list[str]]:
    known = explanations()
    lines = [
        "# Results",
        "",
        "`make bench` runs every benchmark and writes this page (`make bench-quick`:",
        "small sizes, nothing written). Figures are ratios of processor times on one thread, in",
        "one run, unless a page says otherwise; every page has the machine, date and setting.",
        "Where several runs were made, a figure is their median, with the range in brackets.",
        *machine_paragraph(),
    ]
    everything: list[Page] = []
    for folder, heading in FOLDERS.items():
        pages, absent = pages_of(folder)
        everything += pages
        lines += [
            "",
            f"## {heading}",
            "",
            "| page | measured | code since | targets | held | missed |",
        ]
        lines += ["|---|---|---|---|---|---|"]
        for page in pages:
            judged = [f for f in page.figures if f.held is not None]
            lines.append(
                f"| [{page.title}]({page.name}.md) | {page.machine['date']} | "
                f"{page.code_since} | {len(judged)} | "
                f"{len(judged) - len(page.missed)} | {len(page.missed)} |"
            )
        if absent:
            lines += ["", f"Not measured yet: {', '.join(absent)}."]
    lines += ["", "## Missed targets", ""]
    lines += ["| figure | target | measured | why | next idea |", "|---|---|---|---|---|"]
    for page in everything:
        for figure in page.missed:
            found = explain(page, figure, known)
            assert figure.measured is not None
            lines.append(
                f"| [{page.name}]({page.name}.md): {figure.what} | {figure.target} | "
                f"{number(figure.measured)} {figure.unit} | {found.why if found else ''} | "
                f"{found.next if found else ''} |"
            )
    return "\n".join(lines) + "\n", unexplained(everything, known)


def without_age(text: str) -> str:
    """The page without its words on what has changed since, which every change of code changes."""
    return re.sub(r"\| (the same|not recorded|changed: [^|]*) \|", "|", text)


def main() -> int:
    text, problems = render()
    if "--check" not in sys.argv:
        (RESULTS / "README.md").write_text(text, encoding="utf-8")
    elif without_age((RESULTS / "README.md").read_text(encoding="utf-8")) != without_age(text):
        problems.append("results/README.md is not what summary.py writes: run it")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
