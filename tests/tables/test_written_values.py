"""However numbers and dates are written, they are read as meant, or the column is reported."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ridgefold
from ridgefold.records import NumberText
from ridgefold.tables.written_dates import part_of_dates, read_dates
from ridgefold.tables.written_numbers import read_numbers

DOUBTS = {"doubtful numbers", "several units", "unreadable", "mixed", "doubtful dates"}
UNITS = [
    *[("", ""), ("$", ""), ("€ ", ""), ("", " EUR"), ("", "%"), ("", " %"), ("", " lbs")],
    *[("", "km"), ("", " km/h"), ("", " m²"), ("USD ", ""), ("", " sq ft")],
]
"""What stands before and behind a number."""


def written(value: int, digits: int, decimal: str, thousands: str, *, trim: bool) -> str:
    """A number of so many thousandths, with at most three digits behind the decimal mark."""
    whole, part = divmod(abs(value), 1000)
    text = f"{whole:,}".replace(",", thousands)
    behind = f"{part:03}"[:digits]
    if trim:
        behind = behind.rstrip("0")
    return ("-" if value < 0 else "") + text + (decimal + behind if behind else "")


@st.composite
def columns_of_numbers(draw):
    """Cells and what they mean; NaN for a gap."""
    digits = draw(st.integers(0, 3))
    decimal, thousands = draw(
        st.sampled_from(
            [(".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'")]
        )
    )
    before, behind = draw(st.sampled_from(UNITS))
    largest = draw(st.sampled_from([20, 900, 5_000, 3_000_000]))
    whole = draw(st.lists(st.integers(-largest, largest), min_size=12, max_size=40, unique=True))
    fine = draw(st.lists(st.integers(0, 999), min_size=len(whole), max_size=len(whole)))
    trim = draw(st.booleans())
    cells, meant = [], []
    for big, small in zip(whole, fine, strict=True):
        value = 1000 * big + (small // 10 ** (3 - digits)) * 10 ** (3 - digits)
        text = written(value, digits, decimal, thousands, trim=trim)
        cells.append(f"{before}{text}{behind}")
        meant.append(value / 1000)
    gaps = draw(st.sets(st.integers(0, len(cells) - 1), max_size=2))
    mark = draw(st.sampled_from(["", "NA", "?", "-", "n/a", "abc", "1.2.3.4"]))
    for row in gaps:
        cells[row], meant[row] = mark, np.nan
    return cells, np.array(meant)


@settings(max_examples=150, deadline=None)
@given(columns_of_numbers())
def test_numbers_are_read_as_they_are_meant_or_reported(column):
    cells, meant = column
    found = ridgefold.diagnose({"measure": cells, "other": np.sin(np.arange(len(cells)))})
    kind = found.column("measure").kind
    reported = {p.topic for p in found.problems if "measure" in p.columns} & DOUBTS
    if kind != "number" or reported:
        return
    record = found.encoder.columns.columns[0]
    values, unreadable = read_numbers(pa.array(cells), record.text)
    assert not unreadable.any()
    np.testing.assert_allclose(values, meant, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(columns_of_numbers())
def test_most_columns_of_numbers_are_numbers(column):
    cells, meant = column
    kind = ridgefold.diagnose({"measure": cells}).column("measure").kind
    counts_rows = np.array_equal(meant, meant[0] + np.arange(len(meant)))
    assert kind == "number" or (kind == "index" and counts_rows)


FORMS = ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%m/%d/%y", "%d %b %Y", "%B %d, %Y"]
DAYS = st.dates(datetime.date(1970, 1, 1), datetime.date(2068, 12, 31))


@settings(max_examples=60, deadline=None)
@given(st.lists(DAYS, min_size=3, max_size=30, unique=True), st.sampled_from(FORMS))
def test_dates_are_read_as_they_are_meant_or_reported(days, form):
    cells = [day.strftime(form) for day in days]
    found = ridgefold.diagnose({"when": cells, "x": np.arange(len(days)) % 3})
    assert found.column("when").kind == "date"
    if {p.topic for p in found.problems if "when" in p.columns} & DOUBTS:
        return
    record = found.encoder.columns.columns[0]
    dates, unreadable = read_dates(pa.array(cells), record.order)
    assert not unreadable.any()
    assert dates.astype("datetime64[D]").tolist() == days


@pytest.mark.parametrize(
    ("cell", "rule", "value"),
    [
        ("1,013", NumberText(".", ","), 1013.0),
        ("1.013,50", NumberText(",", "."), 1013.5),
        ("-$1,013.5", NumberText(".", ",", "$"), -1013.5),
        ("$-1,013.5", NumberText(".", ",", "$"), -1013.5),
        ("(12)", NumberText(), -12.0),
        ("−3", NumberText(), -3.0),
        ("+3", NumberText(), 3.0),
        (".5", NumberText(), 0.5),
        ("5.", NumberText(), 5.0),
        ("1e3 km", NumberText(unit="km"), 1000.0),
        ("7 KM", NumberText(unit="km"), 7.0),
        ("1 013", NumberText(thousands=" "), 1013.0),
        ("1\u202f013", NumberText(thousands=" "), 1013.0),
    ],
)
def test_a_cell_is_read_by_its_rule(cell, rule, value):
    values, unreadable = read_numbers(pa.array([cell]), rule)
    assert values.tolist() == [value]
    assert not unreadable.any()


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        ("1,50", NumberText(".", ",")),
        ("1,0131", NumberText(".", ",")),
        ("1.5.2", NumberText()),
        ("12 mi", NumberText(unit="km")),
        ("A12", NumberText()),
        ("12a", NumberText()),
        ("0x10", NumberText()),
        ("1_000", NumberText()),
        ("inf", NumberText()),
        ("", NumberText(unit="$")),
    ],
)
def test_a_cell_that_is_no_number_is_none(cell, rule):
    values, unreadable = read_numbers(pa.array([cell]), rule)
    assert np.isnan(values).all()
    assert unreadable.tolist() == [cell != ""]


def test_parts_of_dates_are_those_of_the_calendar():
    rng = np.random.default_rng(0)
    days = [
        datetime.date(1900, 1, 1) + datetime.timedelta(int(j)) for j in rng.integers(0, 70_000, 500)
    ]
    dates = np.array(days, dtype="datetime64[s]")
    assert part_of_dates(dates, "year").tolist() == [day.year for day in days]
    assert part_of_dates(dates, "month").tolist() == [day.month for day in days]
    assert part_of_dates(dates, "day_of_week").tolist() == [day.weekday() for day in days]
    assert part_of_dates(dates, "day_of_year").tolist() == [day.timetuple().tm_yday for day in days]
    assert np.isnan(part_of_dates(np.array(["NaT"], "datetime64[s]"), "hour")).all()
