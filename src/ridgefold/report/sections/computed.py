"""How it was computed: the plan, its predicted and its measured cost."""

from __future__ import annotations

from typing import Any

from ridgefold.planning.words import in_bytes, in_seconds
from ridgefold.report.formatting import clean
from ridgefold.report.layout import Canvas, Cell, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel


def computed(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """One row a step, and why other methods were not taken."""
    facts = reported.facts
    if facts.explain is None:
        return None
    planned, steps = facts.methods_compared, facts.explain().steps
    measured = all("measured_seconds" in step for step in steps)
    titles = ["step", "method", "predicted time"]
    titles += ["measured time"] if measured else []
    titles += ["predicted memory"]
    titles += ["measured memory"] if measured else []
    rows = []
    for step in steps:
        ran = step.get("ran", step["method"])
        if not planned:  # names that say less than those of methods and solvers
            ran = f"{ran}, {step['accuracy']}"
        row = [
            text(clean(step["step"])),
            text(clean(ran)),
            Cell(in_seconds(step["predicted_seconds"]), step["predicted_seconds"]),
        ]
        if measured:
            row.append(Cell(in_seconds(step["measured_seconds"]), step["measured_seconds"]))
        row.append(Cell(in_bytes(step["predicted_bytes"]), step["predicted_bytes"]))
        if measured:
            used = step["measured_bytes"]
            row.append(Cell(in_bytes(used) if used else "–", used))
        rows.append(row)
    table = Table(tuple(titles), rows_of(rows), numbers=frozenset(range(2, len(titles))))
    lead = (
        "The method with the least predicted cost within the memory budget was taken for each step."
        if planned
        else "A fit on cells goes by these steps; there is one way to do each."
        if facts.tried is None
        else "A fit goes by these steps as long as there is time."
    )
    if measured:
        total = sum(step["measured_seconds"] for step in steps)
        lead += f" Together they took {in_seconds(total)}."
    others = [_others(step) for step in steps]
    return Section(
        "computed",
        "How it was computed",
        lead,
        (),
        (table, *(other for other in others if other is not None)),
    )


def _others(step: dict[str, Any]) -> Table | None:
    if not step["not_chosen"]:
        return None
    rows = [[text(clean(name)), text(clean(why))] for name, why in step["not_chosen"].items()]
    return Table(
        ("method", "why it was not taken"),
        rows_of(rows),
        caption=f"{clean(step['problem'])}; the result is {clean(step['accuracy'])}.",
        folded=f"Methods not taken for {clean(step['step'])}",
    )
