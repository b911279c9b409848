"""How predictions change with every column."""

from __future__ import annotations

import numpy as np

from ridgefold.errors import RidgefoldError
from ridgefold.estimators.effects_table import MarginalEffects
from ridgefold.report.displays.effects import EffectsDisplay
from ridgefold.report.formatting import clean, count, number
from ridgefold.report.layout import Canvas, Cell, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel

_MOST_BARS = 12
_MOST_ROWS = 200
"""Effects that the table lists: of more, nobody reads the rest."""
_MOST_OUTPUTS = 6
"""Targets or classes that have rows in the table: of more, nobody compares them."""


def effects(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """Slopes and differences, their averages and quartiles."""
    if reported.facts.effects is None:
        return None
    try:
        effects = reported.facts.effects()
    except RidgefoldError:
        return None  # a kernel without slopes, or one that overflows at some of the rows
    if not (len(effects.outputs) <= _MOST_OUTPUTS and np.all(np.isfinite(effects.average))):
        return None
    names = reported.target_names if effects.outputs[0].startswith("target ") else effects.outputs
    display = EffectsDisplay(effects=effects, most=_MOST_BARS)
    bars = len(display.names)
    picture = canvas.draw(
        display.plot,
        title=f"Average effect of every column on {_what(reported, names[0])}",
        caption=display.caption(),
        height=0.9 + 0.3 * bars,
    )
    lead = (
        "A slope says by how much the prediction rises with one unit of a column, the others "
        "unchanged; a difference, by how much from one value to another. Averages are over "
        f"{count(len(effects.pointwise))} training rows: they describe the model, and an effect "
        "where the quartiles lie far apart is no one number."
    )
    remarks = (effects.note,) if effects.note else ()
    return Section(
        "effects", "How predictions change", lead, (picture,), (_table(effects, names),), remarks
    )


def _what(reported: ReportedModel, output: str) -> str:
    if output == "prediction":
        return f"the predicted {clean(reported.target_names[0], 40)}"
    return clean(output, 40)


def _table(effects: MarginalEffects, outputs: tuple[str, ...]) -> Table:
    columns = effects.to_dict()
    titles = {
        "output": "of",
        "effect": "column",
        "kind": "kind",
        "average": "average",
        "standard_error": "standard error",
        "posterior_std": "posterior sd",
        "q25": "25%",
        "q50": "median",
        "q75": "75%",
    }
    if "output" in columns:
        by_name = dict(zip(effects.outputs, outputs, strict=True))
        columns["output"] = [by_name[name] for name in columns["output"]]
    words = [key for key in columns if key in ("output", "effect", "kind")]
    rows = []
    for values in list(zip(*columns.values(), strict=True))[:_MOST_ROWS]:
        rows.append(
            [
                text(clean(value, 80)) if key in words else Cell(number(value), float(value))
                for key, value in zip(columns, values, strict=True)
            ]
        )
    return Table(
        tuple(titles[key] for key in columns),
        rows_of(rows),
        numbers=frozenset(range(len(words), len(columns))),
        sortable=True,
        folded="" if len(rows) <= 10 else f"All {len(rows)} effects as a table",
    )
