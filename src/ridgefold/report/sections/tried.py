"""What models were tried, how good each is alone, and what they are together."""

from __future__ import annotations

from ridgefold.planning.words import in_seconds
from ridgefold.records import Attempt
from ridgefold.report.formatting import clean, number, percent
from ridgefold.report.layout import Canvas, Cell, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel

_LINEAR = "linear"


def tried(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """A row for each candidate."""
    facts = reported.facts.tried
    if facts is None or not facts.attempts:
        return None
    shares = [each for each in facts.attempts if each.share > 0]
    if len(shares) == 1:
        lead = f"The model is one of those tried: {clean(shares[0].candidate)}."
    else:
        lead = (
            f"The model is a weighted sum of {len(shares)} of those tried. The weights were found "
            "from predictions of rows that each had not seen."
        )
    linear = [each.held_out_error for each in facts.attempts if each.candidate == _LINEAR]
    if linear and linear[0]:
        gain = 1.0 - facts.error / linear[0]
        lead += (
            f" Its held-out {facts.measure} is {percent(gain)} below that of a linear model."
            if gain > 0.01
            else " A linear model alone is as good."
        )
    rows = [_row(each) for each in facts.attempts]
    rows.append(
        [text("together"), Cell(number(facts.error), facts.error), *map(text, ("", "", ""))]
    )
    table = Table(
        ("candidate", f"held-out {facts.measure}", "share", "time", "note"),
        rows_of(rows),
        caption="Isotropic or one width: all columns count alike. Slopes: length scales from the "
        "slopes of a first fit. Descended: learned by the gradient of the held-out error. "
        "Transformed: columns bent to where they say more. In cells: many local models.",
        numbers=frozenset({1, 2, 3}),
    )
    return Section("tried", "What was tried", lead, (), (table,))


def _row(attempt: Attempt) -> list[Cell]:
    error = attempt.held_out_error
    return [
        text(clean(attempt.candidate)),
        text("–") if error is None else Cell(number(error), error),
        Cell(percent(attempt.share), attempt.share) if attempt.share > 0 else text(""),
        Cell(in_seconds(attempt.seconds), attempt.seconds) if attempt.seconds > 0 else text(""),
        text(clean(attempt.note)),
    ]
