"""Which columns count, by what held-out errors rise by without them; and what they do."""

from __future__ import annotations

import numpy as np

from ridgefold.errors import NumericalError
from ridgefold.estimators.facts import ModelFacts
from ridgefold.records import Importances
from ridgefold.report.displays.effect_curve import EffectCurveDisplay
from ridgefold.report.displays.importance import ImportanceDisplay, most_important
from ridgefold.report.formatting import clean, count, number, plural
from ridgefold.report.layout import Canvas, Cell, Picture, Section, Table, rows_of, text
from ridgefold.report.reported_model import ReportedModel

_MOST_BARS = 12
"""Columns that are drawn, the most important ones."""
_MOST_ROWS = 200
"""Columns that the table lists: of more, nobody reads the rest."""
_MOST_SAMPLED = 300
"""Rows that are held out and looked at."""
_MOST_VALUES = 5e8
"""Kernel values that are computed for the section, at a few nanoseconds each: some seconds."""
_COLUMNS_A_VALUE = 20.0
"""So many columns of distances take as long as one kernel value."""
_REPEATS = 5
_CURVES = 4
"""Columns whose curves are drawn."""
_NAMED = 3
"""Columns that the sentence names."""


def importance(reported: ReportedModel, canvas: Canvas) -> Section | None:
    """Rises of the held-out error, as bars and as a table."""
    importances = _importances(reported.facts)
    if importances is None or not np.any(np.isfinite(importances.rises)):
        return None
    clear = importances.rises > 2 * importances.standard_errors
    order = most_important(importances)
    named = [clean(importances.names[j], 40) for j in order[:_NAMED] if clear[j]]
    lead = (
        "Rows are predicted by models that have not seen them, as they are and with the values of "
        "one column taken from other rows. What the error rises by then is how much the model "
        "relies on the column"
    )
    lead += f": most on {_listed(named)}." if named else "; no column stands out from chance."
    chance = int(np.sum(~clear))
    remarks = [
        f"Measured is the {importances.measure}, which is {number(importances.error)} with nothing "
        f"exchanged, on {count(importances.n_rows)} rows ({importances.how}). Columns that say the "
        "same share their importance, because the model can rely on the other one."
    ]
    if chance and named:
        remarks.append(
            f"The rise of {plural(chance, 'column')} of {len(importances.names)} is below two "
            "standard errors, and may be chance."
        )
    bars = min(len(importances.names), _MOST_BARS)
    display = ImportanceDisplay(importances=importances, most=_MOST_BARS)
    picture = canvas.draw(
        display.plot,
        title="Rise of the held-out error when a column's values are exchanged",
        caption="Whiskers: two standard errors to each side. Pale: may be chance."
        + (
            ""
            if bars == len(importances.names)
            else f" The first {bars} of {len(importances.names)} columns."
        ),
        height=0.5 + 0.27 * bars,
    )
    curves = _curves(reported, canvas, [importances.names[j] for j in order[:_CURVES] if clear[j]])
    return Section(
        "importance",
        "Which columns count",
        lead,
        (picture, *curves),
        (_table(importances, order),),
        tuple(remarks),
    )


def _curves(reported: ReportedModel, canvas: Canvas, names: list[str]) -> list[Picture]:
    """How the prediction moves with the columns that count most."""
    if reported.facts.effect_curves is None or not names:
        return []
    pictures = []
    for curve in reported.facts.effect_curves(names, None):
        band = "" if curve.standard_errors is None else " Band: two standard errors."
        if curve.levels is not None:
            band = "" if curve.standard_errors is None else " Lines: two standard errors."
        which = f" of {reported.target_names[0]}" if reported.facts.classes is None else ""
        pictures.append(
            canvas.draw(
                EffectCurveDisplay(curve=curve).plot,
                title=f"What {clean(curve.name, 40)} does",
                caption=f"The {clean(curve.quantity, 60)}{which} with each of these values in the "
                f"place of the rows' own.{band}",
                height=2.4 if curve.levels is None else 0.9 + 0.22 * min(12, len(curve.levels)),
            )
        )
    return pictures


def _importances(facts: ModelFacts) -> Importances | None:
    if facts.importances is None:
        return None
    n = facts.n_rows if facts.cells is None else int(np.max(facts.cells.sizes))
    columns, features = facts.n_table_columns or len(facts.column_names), len(facts.column_names)
    for_a_column = float(min(_MOST_SAMPLED, facts.n_rows)) * (n + features)
    for_once = columns * for_a_column * (1.0 + features / _COLUMNS_A_VALUE)
    if for_once > 4 * _MOST_VALUES:
        return None
    repeats = int(np.clip(_MOST_VALUES / for_once, 1, _REPEATS))
    try:
        return facts.importances(repeats, _MOST_SAMPLED)
    except NumericalError:  # of rows so far apart that cells cannot be fitted without some of them
        return None


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _table(importances: Importances, order: np.ndarray) -> Table:
    rows = []
    for j in order[:_MOST_ROWS]:
        rise, error = float(importances.rises[j]), float(importances.standard_errors[j])
        name = text(clean(importances.names[j], 80))
        rows.append([name, Cell(number(rise), rise), Cell(number(error), error)])
    return Table(
        ("column", "rise of the error", "standard error"),
        rows_of(rows),
        numbers=frozenset((1, 2)),
        sortable=True,
        folded="" if len(rows) <= 10 else f"All {len(rows)} columns as a table",
    )
