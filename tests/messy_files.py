"""Files as they come: measured and bundled rows, written down in the ways that people do.

Every file says what is meant by it: the kind of each column, what its owner must be told, the
numbers that it holds, and which columns give the target away.
"""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from messy_tables import english, german, text
from ridgefold.tables import load_bundled

N = 150
PLANT = load_bundled("ccpp")
_ROWS = np.random.default_rng(0).permutation(len(PLANT.y))[:N]
AT, V, AP, RH = PLANT.X[_ROWS].T
PE = PLANT.y[_ROWS]
CREDIT = load_bundled("german")
_DAYS = [datetime.date(2019, 1, 1) + datetime.timedelta(days=37 * j % 1400) for j in range(N)]
_RNG = np.random.default_rng(1)
NUMBERS = dict.fromkeys(["AT", "V", "AP", "RH"], "number")


def plant(**more: Any) -> dict[str, Any]:
    """The rows of the power plant, with further columns before the target."""
    return {"AT": AT, "V": V, "AP": AP, "RH": RH, **more, "PE": PE}


@dataclass(frozen=True)
class MessyFile:
    """A file, and what is meant by it."""

    name: str
    content: Callable[[], bytes | pa.Table | pd.DataFrame]
    kinds: dict[str, str] = field(default_factory=lambda: dict(NUMBERS))
    """What every column but the target is."""
    said: dict[str, set[str]] = field(default_factory=dict)
    """The topics of what is said of each column, and no others; of the table under ""."""
    features: dict[str, Any] = field(default_factory=dict)
    """Some features of the rows that have a target, as numbers."""
    target: str = "PE"
    y: Any = None
    """The targets; None for those of the plant."""
    refused: tuple[str, ...] = ()
    """What the error says, all at once, where nothing can be done with the file as it is."""
    ending: str = "csv"

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.{self.ending}"
        content = self.content()
        if isinstance(content, pd.DataFrame):
            content.to_parquet(path)
        elif isinstance(content, pa.Table):
            pa_parquet.write_table(content, path)
        else:
            path.write_bytes(content)
        return path


def _file(columns: dict[str, Any], encoding: str = "utf-8", **how: Any) -> bytes:
    return text(columns, **how).encode(encoding)


def _with_cells(values: Any, cells: dict[int, str], number: Callable[[float], str] = repr):
    return [cells.get(j, number(float(value))) for j, value in enumerate(values)]


def _gaps(values: Any, rows: Any) -> np.ndarray:
    out = np.array(values, dtype=float)
    out[list(rows)] = np.median(np.delete(out, list(rows)))
    return out


def _lines(content: bytes) -> list[bytes]:
    return content.split(b"\n")


def _with_line(content: bytes, at: int, line: bytes) -> bytes:
    lines = _lines(content)
    return b"\n".join([*lines[:at], line, *lines[at:]])


_RANKS = np.argsort(np.argsort(PE + 3.0 * np.random.default_rng(2).normal(size=N)))
"""Numbers of rows that were once sorted by something close to the target."""
_FUELS = [("Gas", "gas", "GAS ", "öl")[j % 4] for j in range(N)]
_GAS = np.array([fuel.strip().lower() == "gas" for fuel in _FUELS], dtype=float)
_WORDS = ["the", "plant", "ran", "well", "until", "noon", "then", "stopped", "for", "repairs"]
_NOTES = [" ".join(_RNG.choice(_WORDS, 9)) for _ in range(N)]
_SITES = _RNG.integers(0, 30, N)
_CITIES = [f"city {j}" for j in _RNG.integers(0, 500, 2000)]
_BIG = {"city": _CITIES, "x": _RNG.normal(size=2000), "PE": _RNG.normal(size=2000)}
_DATE_PARTS = {
    "on year": [day.year for day in _DAYS],
    "on month": [day.month for day in _DAYS],
    "on day_of_week": [day.weekday() for day in _DAYS],
}


def _dated(form: str) -> Callable[[], bytes]:
    return lambda: _file(plant(on=[day.strftime(form) for day in _DAYS]), separator=";")


def _credit_columns() -> dict[str, Any]:
    purposes = ["car", "tv", "repairs", "education"]
    return {
        "months": CREDIT.X[:N, 1],
        "amount": [f"EUR {1000 * v:,.0f}" for v in CREDIT.X[:N, 3]],
        "phone": [("yes", "no")[int(v) % 2] for v in CREDIT.X[:N, 18]],
        "purpose": [purposes[int(v) % 4] for v in CREDIT.X[:N, 2]],
        "grade": ["good" if v > 0 else "bad" for v in CREDIT.y[:N]],
    }


FILES = [
    MessyFile(
        "semicolons-and-decimal-commas",
        lambda: _file(plant(), separator=";", number=lambda v: repr(v).replace(".", ",")),
        features={"AT": AT, "RH": RH},
    ),
    MessyFile(
        "german-latin-1",
        lambda: _file(
            {**plant(Brennstoff=_FUELS)}, "cp1252", separator=";", number=german, end="\r\n"
        ),
        kinds={**NUMBERS, "Brennstoff": "category"},
        said={"Brennstoff": {"capital letters"}},
        features={"AP": np.round(AP, 2), "Brennstoff=Gas": _GAS},
    ),
    MessyFile(
        "spreadsheet-text-utf-16",
        lambda: _file(plant(), "utf-16", separator="\t", end="\r\n", number=english),
        ending="txt",
        features={"AP": np.round(AP, 2)},
    ),
    MessyFile(
        "byte-order-mark",
        lambda: _file(plant(), "utf-8-sig", separator="\t"),
        ending="tsv",
        features={"AT": AT},
    ),
    MessyFile(
        "says-its-separator",
        lambda: b"sep=;\r\n" + _file(plant(), separator=";", end="\r\n"),
        said={"": {"lines above the names"}},
        features={"AT": AT},
    ),
    MessyFile(
        "title-and-comments",
        lambda: b"# made on a Monday, by hand\nPower plant 7\n\n" + _file(plant()),
        said={"": {"lines above the names"}},
        features={"AT": AT},
    ),
    MessyFile(
        "blanks-around-names-and-cells",
        lambda: _file(plant(), number=lambda v: f" {v} ").replace(b"V,AP,RH", b" V , AP, RH", 1),
        features={"AT": AT},
    ),
    MessyFile(
        "row-names-of-r",
        lambda: b"\n".join(
            line if j == 0 else b'"%d",%s' % (j, line)
            for j, line in enumerate(_lines(_file(plant()).rstrip(b"\n")))
        ),
        kinds={"": "index", **NUMBERS},
        said={"": {"index"}},
        features={"AT": AT},
    ),
    MessyFile(
        "a-mark-that-ends-the-line",
        lambda: _file(plant(), end=";\n", separator=";").replace(b"PE;", b"PE", 1),
        kinds={**NUMBERS, "": "constant"},
        said={"": {"constant"}},
        features={"AT": AT},
    ),
    MessyFile(
        "unnamed-index",
        lambda: pd.DataFrame(plant()).to_csv().encode(),
        kinds={"": "index", **NUMBERS},
        said={"": {"index"}},
    ),
    MessyFile(
        "row-numbers-of-a-mixed-sample",
        lambda: (
            pd.DataFrame({"rownames": 7 + _RANKS, "nth": 11 + _RANKS, **plant()})
            .set_index(_RANKS)
            .to_csv()
            .encode()
        ),
        kinds={"": "index", "rownames": "index", "nth": "index", **NUMBERS},
        said={"": {"index"}, "rownames": {"index"}, "nth": {"index"}},
    ),
    MessyFile(
        "row-numbers-sorted-by-the-target",
        lambda: _file({"row": np.arange(1, N + 1), **_sorted_by_target()}),
        kinds={"row": "index", **NUMBERS},
        said={"row": {"index"}},
        y=np.sort(PE),
    ),
    MessyFile(
        "index-of-pandas-in-parquet",
        lambda: pd.DataFrame(plant()).set_index(pd.Index(3.0 * PE + 1.0, name="load")),
        kinds={**NUMBERS, "load": "index"},
        said={"load": {"index"}},
        ending="parquet",
    ),
    MessyFile(
        "types-of-parquet",
        lambda: pa.table(
            plant(
                on=pa.array(_DAYS),
                site=pa.array([f"site {j % 3}" for j in range(N)]).dictionary_encode(),
                running=pa.array([None if j % 9 == 0 else j % 2 == 0 for j in range(N)]),
                runs=pa.array([[1, 2]] * N),
                empty=pa.nulls(N),
            )
        ),
        kinds={
            **NUMBERS,
            "on": "date",
            "site": "category",
            "running": "boolean",
            "runs": "unsupported",
            "empty": "constant",
        },
        said={"runs": {"unsupported"}, "empty": {"constant"}},
        features=_DATE_PARTS,
        ending="parquet",
    ),
    MessyFile(
        "currency-and-thousands",
        lambda: _file(plant(cost=[f"${v:,.0f}" for v in 37 * AP]), number=repr),
        kinds={**NUMBERS, "cost": "number"},
        said={"cost": {"doubtful numbers"}},
        features={"cost": np.round(37 * AP)},
    ),
    MessyFile(
        "percent-and-units",
        lambda: _file(
            plant(load=[f"{v} %" for v in RH], weight=[f"{v:.0f} lbs" for v in 2 * AP])
            | {"RH": RH + AT}
        ),
        kinds={**NUMBERS, "load": "number", "weight": "number"},
        features={"load": RH, "weight": np.round(2 * AP)},
    ),
    MessyFile(
        "marks-for-missing-values",
        lambda: _file(
            {
                **plant(),
                "AT": _with_cells(AT, {3: "?", 70: "-"}),
                "V": _with_cells(V, {5: "NA", 9: ""}),
                "PE": _with_cells(PE, {8: "n/a"}),
            }
        ),
        said={"AT": {"marks for missing"}, "PE": {"target"}},
        y=np.delete(PE, 8),
    ),
    MessyFile(
        "typing-errors",
        lambda: _file({**plant(), "AT": _with_cells(AT, {3: "21.3.4", 70: "abc", 71: "O.5"})}),
        said={"AT": {"unreadable"}},
        features={"AT": _gaps(AT, [3, 70, 71])},
    ),
    MessyFile(
        "names-again-in-the-middle",
        lambda: _with_line(_file(plant()), 40, b"AT,V,AP,RH,PE"),
        said={"PE": {"target"}},
        features={"AT": AT},
    ),
    MessyFile(
        "blank-lines-and-empty-rows",
        lambda: _with_line(_with_line(_file(plant()), 40, b""), 60, b",,,,") + b"\n\n",
        said={"PE": {"target"}},
        features={"AT": AT},
    ),
    MessyFile(
        "iso-dates",
        _dated("%Y-%m-%d"),
        kinds={**NUMBERS, "on": "date"},
        features=_DATE_PARTS,
    ),
    MessyFile(
        "days-first",
        _dated("%d.%m.%y"),
        kinds={**NUMBERS, "on": "date"},
        features=_DATE_PARTS,
    ),
    MessyFile(
        "months-first-and-times",
        _dated("%m/%d/%Y 07:30 PM"),
        kinds={**NUMBERS, "on": "date"},
        features=_DATE_PARTS,
    ),
    MessyFile(
        "dates-of-eight-digits",
        _dated("%Y%m%d"),
        kinds={**NUMBERS, "on": "date"},
        features=_DATE_PARTS,
    ),
    MessyFile(
        "doubtful-dates",
        lambda: _file(plant(on=[f"{1 + j % 12:02}/{1 + j * 5 % 12:02}/2021" for j in range(N)])),
        kinds={**NUMBERS, "on": "date"},
        said={"on": {"doubtful dates"}},
    ),
    MessyFile(
        "times-of-day",
        lambda: _file(plant(at=[f"{7 * j % 24:02}:{15 * (j % 4):02}" for j in range(N)])),
        kinds={**NUMBERS, "at": "date"},
        features={"at hour": [7 * j % 24 + (j % 4) / 4 for j in range(N)]},
    ),
    MessyFile(
        "booleans",
        lambda: _file(
            plant(
                gas=[("Yes", "no", "YES", "")[j % 4] for j in range(N)],
                on=[("TRUE", "FALSE")[j // 3 % 2] for j in range(N)],
            )
        ),
        kinds={**NUMBERS, "gas": "boolean", "on": "boolean"},
        features={"on": [1.0 - j // 3 % 2 for j in range(N)]},
    ),
    MessyFile(
        "identifiers-and-groups",
        lambda: _file(
            plant(
                reading_id=_RNG.permutation(10 * N)[:N],
                uuid=[f"{v:032x}" for v in _RNG.integers(0, 2**60, N)],
                patient=[f"P{j}" for j in _SITES],
                zip=[("01234", "10115", "80331")[j % 3] for j in _SITES],
            )
        ),
        kinds={
            **NUMBERS,
            "reading_id": "identifier",
            "uuid": "identifier",
            "patient": "identifier",
            "zip": "category",
        },
        said={
            "reading_id": {"identifier"},
            "uuid": {"identifier"},
            "patient": {"identifier", "groups"},
        },
    ),
    MessyFile(
        "copies-of-the-target",
        lambda: _file(
            plant(
                megawatts=PE,
                kilowatts=[f"{1000 * v:,.0f} kW" for v in PE],
                rank=np.argsort(np.argsort(PE)) * 2,
                rounded=np.round(PE),
            )
        ),
        kinds={
            **NUMBERS,
            "megawatts": "target copy",
            "kilowatts": "target copy",
            "rank": "target copy",
            "rounded": "number",
        },
        said={
            "megawatts": {"target copy"},
            "kilowatts": {"target copy"},
            "rank": {"target copy"},
            "rounded": {"near copy of the target"},
        },
    ),
    MessyFile(
        "columns-that-say-nothing",
        lambda: _file(
            plant(unit=["C"] * N, plant=[7] * N, empty=[""] * N, marks=["?"] * N, again=AT)
        ),
        kinds={
            **NUMBERS,
            **dict.fromkeys(["unit", "plant", "empty", "marks"], "constant"),
            "again": "duplicate",
        },
        said={
            **{name: {"constant"} for name in ["unit", "plant", "empty", "marks"]},
            "again": {"duplicate"},
        },
    ),
    MessyFile(
        "repeated-rows",
        lambda: _file({name: np.tile(values[:75], 2) for name, values in plant().items()}),
        said={"": {"repeated rows"}},
        y=np.tile(PE[:75], 2),
    ),
    MessyFile(
        "500-levels",
        lambda: _file(_BIG),
        kinds={"city": "category", "x": "number"},
        said={"city": {"many levels"}},
        y=_BIG["PE"],
    ),
    MessyFile(
        "free-text-with-line-breaks",
        lambda: _file(plant(note=[f'{note},\n"again"' for note in _NOTES]), end="\r\n"),
        kinds={**NUMBERS, "note": "text"},
        said={"note": {"text"}},
        features={"AT": AT},
    ),
    MessyFile(
        "words-with-an-order",
        lambda: _file(plant(wind=[("low", "medium", "high")[j % 3] for j in range(N)])),
        kinds={**NUMBERS, "wind": "ordered"},
        features={"wind": [j % 3 for j in range(N)]},
    ),
    MessyFile(
        "ordinals",
        lambda: _file(plant(place=[("3rd", "1st", "2nd", "10th")[j % 4] for j in range(N)])),
        kinds={**NUMBERS, "place": "ordered"},
        features={"place": [(2, 0, 1, 3)[j % 4] for j in range(N)]},
    ),
    MessyFile(
        "minus-999-for-missing",
        lambda: _file({**plant(), "RH": np.where(np.arange(N) % 20 == 0, -999.0, RH)}),
        said={"RH": {"mark among numbers"}},
    ),
    MessyFile(
        "several-units",
        lambda: _file(
            {**plant(), "V": [f"{v} {'mmHg' if j == 7 else 'cm'}" for j, v in enumerate(V)]}
        ),
        said={"V": {"several units", "unreadable"}},
        features={"V": _gaps(V, [7])},
    ),
    MessyFile(
        "target-in-disguise",
        lambda: _file({**plant(), "PE": [f"{v:,.2f} MW" for v in PE]}, separator="|"),
        y=np.round(PE, 2),
        features={"AT": AT},
    ),
    MessyFile(
        "classes-with-currency-and-booleans",
        lambda: _file(_credit_columns()),
        kinds={
            "months": "number",
            "amount": "number",
            "phone": "boolean",
            "purpose": "category",
        },
        said={"amount": {"doubtful numbers"}, "": {"repeated rows"}},
        features={"amount": 1000 * CREDIT.X[:N, 3]},
        target="grade",
        y=_credit_columns()["grade"],
    ),
    MessyFile(
        "compressed-under-its-name",
        lambda: gzip.compress(_file(plant(), "utf-16", separator=";"), mtime=0),
        ending="csv.gz",
        features={"AT": AT},
    ),
    MessyFile(
        "ragged-and-names-twice",
        lambda: _with_line(_file(plant()).replace(b"V,AP", b"AT,RH", 1), 40, b"1,2,3"),
        refused=("'AT', 'RH'", "line 41 has 3"),
    ),
    MessyFile(
        "target-that-is-half-a-number",
        lambda: _file({**plant(), "PE": _with_cells(PE, dict.fromkeys(range(0, N, 3), "closed"))}),
        refused=("'closed' in line 2", "line 5", "--columns PE=number", "PE': 'category'"),
    ),
    MessyFile(
        "no-line-of-names",
        lambda: b"\n".join(_lines(_file(plant()))[1:]),
        refused=("first line", "holds numbers", "line of names"),
    ),
    MessyFile(
        "workbook-under-the-name-of-csv",
        lambda: b"PK\x03\x04" + bytes(range(256)),
        refused=("workbook", "as CSV"),
    ),
    MessyFile(
        "a-quote-that-is-never-closed",
        lambda: _with_line(_file(plant()), 40, b'1,2,"3,4,5'),
        refused=("line 41 has 3", "quotes must be closed"),
    ),
]


def _sorted_by_target() -> dict[str, Any]:
    order = np.argsort(PE, kind="stable")
    return {name: np.asarray(values)[order] for name, values in plant().items()}
