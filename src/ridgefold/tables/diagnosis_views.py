"""A diagnosis for terminals, as plain text, for notebooks and for programs: one list of cells."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ridgefold.tables.diagnosis import Problem, TableDiagnosis

HEADER = ("column", "kind", "missing", "values", "what is done", "why")
_WIDEST = 44
"""Letters of a cell in plain text; longer ones go on in the next line."""


def cells_of(diagnosis: TableDiagnosis) -> list[tuple[str, ...]]:
    """A row of texts for each column of the table."""
    return [
        (
            printable(column.name),
            column.kind,
            f"{100 * column.missing:.1f}%" if column.missing else "",
            f"{column.n_distinct:,}",
            column.treatment,
            printable(column.reason),
        )
        for column in diagnosis.columns
    ]


def printable(text: str) -> str:
    """Text from data without control characters, which could move the cursor of a terminal."""
    return "".join(c if c.isprintable() else "�" for c in text)


def title_of(diagnosis: TableDiagnosis) -> str:
    """What the table is, in a line."""
    used = sum(column.is_used for column in diagnosis.columns)
    features = len(diagnosis.encoder.feature_names)
    said = [
        f"{printable(diagnosis.source)}: {diagnosis.n_rows:,} rows, "
        f"{used} of {len(diagnosis.columns)} columns used as {features} features"
    ]
    if diagnosis.separator is not None:
        separator = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
        said.append(f"separated by {separator[diagnosis.separator]}, in {diagnosis.encoding}")
    return "; ".join(said)


def target_line(diagnosis: TableDiagnosis) -> str:
    """What the target is, in a line; nothing without one."""
    target = diagnosis.target
    if target is None:
        return ""
    classes = ""
    if target.classes:
        shown = ", ".join(printable(label) for label in target.classes[:5])
        more = f" and {len(target.classes) - 5} more" if len(target.classes) > 5 else ""
        classes = f": {shown}{more}"
    return (
        f"target {printable(target.name)}: {target.task}, because {target.reason}{classes}; "
        f"{len(diagnosis.rows):,} rows have one"
    )


def problem_line(problem: Problem, *, in_python: bool = True) -> str:
    """A problem with its ways out, on the command line and, unless told otherwise, in Python."""
    said = (problem.python, problem.command) if in_python else (problem.command,)
    ways = " or ".join(way for way in said if way)
    return printable(problem.message + (f"; {problem.purpose}: {ways}" if ways else ""))


def as_dict(diagnosis: TableDiagnosis) -> dict[str, Any]:
    """The diagnosis as plain values."""
    target = diagnosis.target
    return {
        "source": diagnosis.source,
        "rows": diagnosis.n_rows,
        "separator": diagnosis.separator,
        "encoding": diagnosis.encoding,
        "target": None
        if target is None
        else {
            "name": target.name,
            "task": target.task,
            "reason": target.reason,
            "rows_without": target.n_missing,
            "classes": list(target.classes),
        },
        "columns": [
            {
                **dataclasses.asdict(column),
                "features": list(column.features),
                "used": column.is_used,
            }
            for column in diagnosis.columns
        ],
        "problems": [
            {**dataclasses.asdict(problem), "columns": list(problem.columns)}
            for problem in diagnosis.problems
        ],
        "groups": list(diagnosis.groups),
        "repeated_rows": diagnosis.repeated_rows,
        "features": list(diagnosis.encoder.feature_names),
    }


def as_text(diagnosis: TableDiagnosis) -> str:
    """The diagnosis as plain text."""
    rows = [HEADER, *cells_of(diagnosis)]
    widths = [min(_WIDEST, max(len(row[j]) for row in rows)) for j in range(len(HEADER))]
    lines = [title_of(diagnosis)]
    if target_line(diagnosis):
        lines.append(target_line(diagnosis))
    lines.append("")
    for row in rows:
        lines += _wrapped(row, widths)
        if row is HEADER:
            lines.append("  ".join("-" * width for width in widths))
    if diagnosis.problems:
        lines += ["", "What you should know:"]
        lines += [f"- {problem_line(problem)}" for problem in diagnosis.problems]
    return "\n".join(lines)


def _wrapped(row: tuple[str, ...], widths: list[int]) -> list[str]:
    """One row as lines of cells that are not wider than their column."""
    import textwrap

    cells = [textwrap.wrap(text, width) or [""] for text, width in zip(row, widths, strict=True)]
    height = max(map(len, cells))
    return [
        "  ".join(
            (cell[line] if line < len(cell) else "").ljust(width)
            for cell, width in zip(cells, widths, strict=True)
        ).rstrip()
        for line in range(height)
    ]


def as_rich(diagnosis: TableDiagnosis) -> Any:
    """The diagnosis for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in HEADER:
        table.add_column(name, overflow="fold", justify="right" if name == "values" else "left")
    for column, row in zip(diagnosis.columns, cells_of(diagnosis), strict=True):
        table.add_row(*map(Text, row), style="" if column.is_used else "dim")
    parts: list[Any] = [Text(title_of(diagnosis), style="bold")]
    if target_line(diagnosis):
        parts.append(Text(target_line(diagnosis)))
    parts += [Text(""), table]
    if diagnosis.problems:
        parts += [Text(""), Text("What you should know:", style="bold")]
        parts += [Text(f"- {problem_line(problem)}") for problem in diagnosis.problems]
    return Group(*parts)


def as_html(diagnosis: TableDiagnosis) -> str:
    """The diagnosis for notebooks; all text from the data is escaped."""
    head = "".join(f"<th>{name}</th>" for name in HEADER)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in cells_of(diagnosis)
    )
    problems = "".join(
        f"<li>{html.escape(problem_line(problem))}</li>" for problem in diagnosis.problems
    )
    return (
        f"<p><b>{html.escape(title_of(diagnosis))}</b><br>{html.escape(target_line(diagnosis))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f"<p><b>What you should know</b></p><ul>{problems}</ul>" if problems else "")
    )
