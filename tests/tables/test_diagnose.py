"""Messy tables are understood: what every column is, and the numbers of the clean table."""

from __future__ import annotations

import datetime
import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

import ridgefold
from messy_tables import N, clean, decimal_comma, english, german, text
from ridgefold.errors import InvalidInputError, TableError

CLEAN = clean()
KINDS = {"x": "number", "count": "number", "colour": "category"}


def kinds(diagnosis):
    return {column.name: column.kind for column in diagnosis.columns}


def topics(diagnosis, name=None):
    return {p.topic for p in diagnosis.problems if name is None or name in p.columns}


def encoded(table, **options):
    return ridgefold.diagnose(table, "y", **options).training_data()


def require_same(found, expected, *, without=()):
    """The features of a clean table, and its targets; `without` has left out columns."""
    assert found.feature_names == expected.feature_names
    assert found.origins == expected.origins
    np.testing.assert_allclose(found.X, expected.X, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-12)


@pytest.fixture
def write(tmp_path):
    def write(content, name="t.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_encodings_and_separators_make_no_difference(separator, encoding, write):
    colours = [{"red": "rötlich"}.get(c, c) for c in CLEAN.colour]
    columns = {**CLEAN.columns(), "colour": colours}
    path = write(text(columns, separator=separator), encoding=encoding)
    found = ridgefold.diagnose(path, "y")
    assert kinds(found) == KINDS
    assert found.separator == separator
    require_same(found.training_data(), encoded(columns))


@pytest.mark.parametrize(
    ("separator", "number"),
    [
        (";", decimal_comma),
        (";", german),
        ("\t", german),
        (",", german),
        (",", english),
        (";", english),
        (",", lambda v: f"${v:,.2f}"),
        (",", lambda v: f"-${-v:,.2f}" if v < 0 else f"${v:,.2f}"),
        (";", lambda v: f"{german(v)} EUR"),
        (";", lambda v: f"{german(v)} €"),
        (",", lambda v: f"{v:,.2f} USD"),
        (",", lambda v: f"{v} lbs"),
        (",", lambda v: f"{v}km"),
        (",", lambda v: f"{v} %"),
        (",", lambda v: f"{v}%"),
        (",", lambda v: f"{v} °C"),
        (";", lambda v: f"{v:,.2f}".replace(",", "\u00a0").replace(".", ",")),
        (";", lambda v: f"{v:,.2f}".replace(",", "'")),
        (",", lambda v: f"({-v})" if v < 0 else str(v)),
        (",", lambda v: f"{v:.10e}"),
        (",", lambda v: f"  {v}  "),
    ],
)
def test_numbers_are_read_however_they_are_written(separator, number, write):
    columns = CLEAN.columns()
    path = write(text(columns, separator=separator, number=number))
    found = ridgefold.diagnose(path, "y")
    assert kinds(found) == KINDS
    assert found.task == "regression"
    # The target has three decimals, of which some ways to write it keep two.
    digits = 3 if number(1.235).count("235") else 2
    expected = encoded({**columns, "y": np.round(CLEAN.y, digits)})
    np.testing.assert_allclose(found.training_data().X, expected.X, rtol=1e-9)
    np.testing.assert_allclose(found.training_data().y, expected.y, atol=0.011)


@pytest.mark.parametrize(
    ("form", "order"),
    [
        ("%Y-%m-%d", "year_first"),
        ("%Y/%m/%d", "year_first"),
        ("%d.%m.%Y", "day_first"),
        ("%d/%m/%Y", "day_first"),
        ("%m/%d/%Y", "month_first"),
        ("%m/%d/%y", "month_first"),
        ("%d %B %Y", "year_first"),
        ("%b %d, %Y", "year_first"),
        ("%d-%b-%Y", "year_first"),
    ],
)
def test_dates_are_decided_by_the_whole_column(form, order, write):
    days = [datetime.date(2019, 1, 1) + datetime.timedelta(days=37 * j % 1400) for j in range(N)]
    columns = CLEAN.columns(when=[day.strftime(form) for day in days])
    found = ridgefold.diagnose(write(text(columns)), "y")
    assert kinds(found) == {**KINDS, "when": "date"}
    assert found.encoder.columns.columns[-1].order == order
    assert "doubtful dates" not in topics(found)
    expected = encoded({**columns, "when": days})
    require_same(found.training_data(), expected)
    assert "when day_of_week" in expected.feature_names
    raw = ridgefold.diagnose(columns, "y", standardise=False).training_data()
    parts = dict(zip(raw.feature_names, raw.X.T, strict=True))
    assert parts["when year"].tolist() == [day.year for day in days]
    assert parts["when month"].tolist() == [day.month for day in days]
    assert parts["when day_of_week"].tolist() == [day.weekday() for day in days]
    assert parts["when day_of_year"].tolist() == [day.timetuple().tm_yday for day in days]
    assert np.diff(parts["when elapsed_days"]).tolist() == [
        (later - earlier).days for earlier, later in itertools.pairwise(days)
    ]


def test_dates_that_can_be_read_in_two_ways_are_said(write):
    columns = CLEAN.columns(when=[f"{1 + j % 12:02}/{1 + j * 5 % 12:02}/2021" for j in range(N)])
    found = ridgefold.diagnose(write(text(columns)), "y")
    assert "doubtful dates" in topics(found, "when")
    problem = next(p for p in found.problems if p.topic == "doubtful dates")
    assert problem.python == "columns={'when': 'date:day_first'}"
    other = ridgefold.diagnose(columns, "y", columns={"when": "date:day_first"})
    assert other.encoder.columns.columns[-1].order == "day_first"
    assert "doubtful dates" not in topics(other)


def test_times_of_day_are_a_part(write):
    times = [datetime.datetime(2021, 3, 1) + datetime.timedelta(hours=7 * j) for j in range(N)]
    columns = CLEAN.columns(when=[t.strftime("%Y-%m-%d %H:%M") for t in times])
    found = ridgefold.diagnose(write(text(columns)), "y")
    assert "when hour" in found.encoder.feature_names
    require_same(found.training_data(), encoded({**columns, "when": times}))


@pytest.mark.parametrize("mark", ["", "NA", "n/a", "?", "-", "NaN", "null", "#N/A", "#DIV/0!"])
def test_marks_for_missing_values_are_gaps(mark, write):
    rows = [3, 17, 60]
    x = [mark if j in rows else repr(float(v)) for j, v in enumerate(CLEAN.x)]
    colour = [mark if j in rows else c for j, c in enumerate(CLEAN.colour)]
    found = ridgefold.diagnose(write(text({**CLEAN.columns(), "x": x, "colour": colour})), "y")
    assert kinds(found) == KINDS
    assert found.column("x").missing == pytest.approx(3 / N)
    gaps = np.where(np.isin(np.arange(N), rows), np.nan, CLEAN.x)
    expected = encoded(
        {
            **CLEAN.columns(),
            "x": gaps,
            "colour": [None if j in rows else c for j, c in enumerate(CLEAN.colour)],
        }
    )
    require_same(found.training_data(), expected)
    at = expected.feature_names.index("x missing")
    assert np.flatnonzero(expected.X[:, at]).tolist() == rows
    filled = expected.X[rows, expected.feature_names.index("x")]
    known = np.sort(expected.X[np.isfinite(gaps), expected.feature_names.index("x")])
    np.testing.assert_allclose(filled, np.median(known))
    assert "colour missing" in expected.feature_names
    assert ("marks for missing" in topics(found)) == (mark in ("?", "-", "#DIV/0!"))


def test_typing_errors_among_numbers_are_named_by_their_lines(write):
    x = [repr(float(v)) for v in CLEAN.x]
    x[4], x[100] = "1.5.2", "abc"
    note = ["two\nlines" if j == 0 else "one line" for j in range(N)]
    found = ridgefold.diagnose(write(text({"note": note, **CLEAN.columns(), "x": x})), "y")
    problem = next(p for p in found.problems if p.topic == "unreadable")
    assert "'1.5.2' in line 7, 'abc' in line 103" in problem.message
    assert found.column("x").kind == "number"
    gaps = np.where(np.isin(np.arange(N), [4, 100]), np.nan, CLEAN.x)
    require_same(found.training_data(), encoded({"note": note, **CLEAN.columns(), "x": gaps}))


@pytest.mark.parametrize(
    "pair", [("yes", "no"), ("true", "false"), ("Y", "N"), ("TRUE", "FALSE"), ("t", "f")]
)
def test_booleans_are_one_feature(pair, write):
    truth = CLEAN.count > 30
    columns = CLEAN.columns(member=[pair[0] if t else pair[1] for t in truth])
    found = ridgefold.diagnose(write(text(columns)), "y")
    assert kinds(found)["member"] == "boolean"
    require_same(found.training_data(), encoded({**columns, "member": truth}))


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__", "row"])
@pytest.mark.parametrize("start", [0, 1])
def test_index_columns_are_left_out(name, start, write):
    columns = {name: np.arange(start, start + N), **CLEAN.columns()}
    found = ridgefold.diagnose(write(text(columns)), "y")
    assert kinds(found) == {name: "index", **KINDS}
    assert "index" in topics(found, name)
    require_same(found.training_data(), encoded(CLEAN.columns()))


def test_an_index_without_a_name_is_left_out_though_it_is_mixed(write):
    order = np.random.default_rng(3).permutation(N)
    columns = {"Unnamed: 0": order, **CLEAN.columns()}
    assert kinds(ridgefold.diagnose(write(text(columns)), "y"))["Unnamed: 0"] == "index"


def test_the_index_of_a_pandas_frame_is_left_out(tmp_path):
    frame = pd.DataFrame(CLEAN.columns()).set_index(pd.Index(CLEAN.y * 2 + 1, name="where"))
    frame.to_parquet(tmp_path / "t.parquet")
    found = ridgefold.diagnose(tmp_path / "t.parquet", "y")
    assert kinds(found)["where"] == "index"
    require_same(found.training_data(), encoded(CLEAN.columns()))
    require_same(encoded(frame), encoded(CLEAN.columns()))


def test_time_that_counts_from_row_to_row_is_kept(write):
    found = ridgefold.diagnose(write(text({"day": np.arange(N), **CLEAN.columns()})), "y")
    assert kinds(found)["day"] == "number"


def test_identifiers_are_left_out_and_said(write):
    rng = np.random.default_rng(5)
    columns = CLEAN.columns(
        order_id=rng.permutation(10 * N)[:N],
        uuid=[f"{v:032x}" for v in rng.integers(0, 2**60, N)],
        name=[f"Person {j}" for j in rng.permutation(N)],
        patientID=[f"P{j}" for j in rng.integers(0, 30, N)],
    )
    found = ridgefold.diagnose(write(text(columns)), "y")
    named = dict.fromkeys(["order_id", "uuid", "name", "patientID"], "identifier")
    assert kinds(found) == {**KINDS, **named}
    assert found.groups == ("patientID",)
    problem = next(p for p in found.problems if p.topic == "groups")
    assert problem.command == "--groups patientID"
    require_same(found.training_data(), encoded(CLEAN.columns()))
    forced = ridgefold.diagnose(columns, "y", columns={"patientID": "category"})
    assert forced.column("patientID").is_used


def test_free_text_is_left_out_and_said(write):
    words = ["the", "car", "was", "old", "but", "ran", "well", "seller"]
    rng = np.random.default_rng(1)
    notes = [" ".join(rng.choice(words, 8)) for _ in range(N)]
    found = ridgefold.diagnose(write(text(CLEAN.columns(note=notes))), "y")
    assert kinds(found)["note"] == "text"
    require_same(found.training_data(), encoded(CLEAN.columns()))


def test_constant_and_empty_columns_are_left_out(write):
    columns = CLEAN.columns(one=["x"] * N, seven=[7] * N, nothing=[""] * N, marks=["?"] * N)
    found = ridgefold.diagnose(write(text(columns)), "y")
    constant = dict.fromkeys(["one", "seven", "nothing", "marks"], "constant")
    assert kinds(found) == {**KINDS, **constant}
    require_same(found.training_data(), encoded(CLEAN.columns()))


def test_columns_that_repeat_another_are_left_out(write):
    columns = CLEAN.columns(again=[f"${v:,.2f}" for v in CLEAN.x], farbe=CLEAN.colour)
    found = ridgefold.diagnose(write(text(columns)), "y")
    assert kinds(found) == {**KINDS, "again": "duplicate", "farbe": "duplicate"}
    require_same(found.training_data(), encoded(CLEAN.columns()))


@pytest.mark.parametrize(
    "copy",
    [lambda y: y, lambda y: 3 - 2 * y, lambda y: np.exp(y / 50), lambda y: [f"${v}" for v in y]],
)
def test_copies_of_the_target_are_left_out_unless_they_are_asked_for(copy, write):
    columns = CLEAN.columns(copy=copy(CLEAN.y))
    found = ridgefold.diagnose(write(text(columns)), "y")
    assert kinds(found)["copy"] == "target copy"
    require_same(found.training_data(), encoded(CLEAN.columns()))
    assert ridgefold.diagnose(columns, "y", columns={"copy": "number"}).column("copy").is_used


def test_near_copies_of_the_target_are_warned_of():
    rng = np.random.default_rng(2)
    y = np.round(CLEAN.y, 1)
    near = y + 0.02 * y.std() * rng.normal(size=N)
    table = {**CLEAN.columns(), "y": y, "near": near}
    found = ridgefold.diagnose(table, "y")
    assert found.column("near").is_used
    problem = next(p for p in found.problems if p.topic == "near copy of the target")
    assert problem.columns == ("near",)
    assert problem.command == "--drop near"
    assert not any("near copy of the target" in topics(found, name) for name in KINDS)


def test_a_column_that_is_the_class_in_other_words_is_left_out():
    y = CLEAN.count > 30
    table = {
        **CLEAN.columns(label=["survived" if v else "died" for v in y]),
        "y": y.astype(int),
    }
    found = ridgefold.diagnose(table, "y")
    assert found.task == "classification"
    assert kinds(found)["label"] == "target copy"


def test_many_levels_stop_nothing(write):
    rng = np.random.default_rng(7)
    city = [f"city {j}" for j in rng.geometric(0.02, 4000) % 500]
    table = {"city": city, "x": rng.normal(size=4000), "y": rng.normal(size=4000)}
    found = ridgefold.diagnose(write(text(table)), "y")
    column = found.encoder.columns.columns[0]
    assert kinds(found)["city"] == "category"
    assert len(column.levels) <= 40
    assert column.other_level
    data = found.training_data()
    own = [j for j, name in enumerate(data.origins) if name == "city"]
    assert np.all(data.X[:, own].sum(axis=1) == 1.0)
    new = found.encoder.apply({"city": ["nowhere", city[0]], "x": [0.0, 1.0]})
    assert new.X[0, new.feature_names.index("city other")] == 1.0


def test_500_levels_of_a_few_rows_each_are_pooled(write):
    rng = np.random.default_rng(8)
    table = {
        "city": [f"c{j}" for j in rng.integers(0, 500, 2000)],
        "x": rng.normal(size=2000),
        "y": rng.normal(size=2000),
    }
    found = ridgefold.diagnose(write(text(table)), "y")
    assert found.column("city").kind == "category"
    assert "many levels" in topics(found, "city")
    assert found.training_data().X.shape[1] <= 42


def test_codes_that_begin_with_zero_are_categories(write):
    zips = [("01234", "10115", "80331")[j % 3] for j in range(N)]
    columns = CLEAN.columns(place=zips)
    found = ridgefold.diagnose(write(text(columns)), "y")
    assert kinds(found)["place"] == "category"
    assert found.encoder.columns.columns[-1].levels == ("01234", "10115", "80331")
    numbers = ridgefold.diagnose(write(text(columns)), "y", columns={"place": "number"})
    assert kinds(numbers)["place"] == "number"


def test_words_with_an_order_keep_it(write):
    sizes = [("small", "medium", "large")[j % 3] for j in range(N)]
    found = ridgefold.diagnose(write(text(CLEAN.columns(size=sizes))), "y")
    assert kinds(found)["size"] == "ordered"
    declared = pd.DataFrame(CLEAN.columns(size=sizes))
    declared["size"] = pd.Categorical(sizes, ["small", "medium", "large"], ordered=True)
    require_same(encoded(declared), found.training_data())
    own = ridgefold.diagnose(
        CLEAN.columns(size=[s[0] for s in sizes]), "y", columns={"size": ["s", "m", "l"]}
    )
    np.testing.assert_allclose(own.training_data().X, found.training_data().X)


def test_every_library_gives_the_same(tmp_path):
    rng = np.random.default_rng(0)
    days = [
        datetime.date(2020, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 900, N)
    ]
    columns = CLEAN.columns(when=days, member=(CLEAN.count > 20).tolist())
    expected = encoded(columns)
    arrow = pa.table({k: list(v) for k, v in columns.items()})
    pa_parquet.write_table(arrow, tmp_path / "t.parquet")
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    frame = pd.DataFrame(columns)
    stamped = frame.assign(when=pd.to_datetime(frame["when"]))
    for table in (
        pl.DataFrame(columns),
        arrow,
        stamped,
        frame.astype({"colour": "category"}),
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
        str(tmp_path / "t.csv"),
    ):
        require_same(encoded(table), expected)


def test_arrays_are_tables_with_or_without_names():
    X = np.column_stack([CLEAN.x, CLEAN.count])
    found = ridgefold.diagnose(X, CLEAN.y)
    assert kinds(found) == {"x0": "number", "x1": "number"}
    named = np.rec.fromarrays([CLEAN.x, CLEAN.count, CLEAN.y], names=["x", "count", "y"])
    np.testing.assert_allclose(encoded(named).X, found.training_data().X)
    mixed = np.array([[1, "red"], [2, "blue"], [3, "red"]], dtype=object)
    assert kinds(ridgefold.diagnose(mixed)) == {"x0": "number", "x1": "category"}


def test_columns_of_a_matrix_are_what_somebody_has_chosen():
    found = ridgefold.diagnose(np.arange(50.0)[:, None], np.arange(50.0) ** 2)
    assert kinds(found) == {"x0": "number"}
    assert "near copy of the target" in topics(found)


def test_new_rows_are_encoded_as_the_table_was():
    found = ridgefold.diagnose(CLEAN.columns(), "y")
    whole = found.training_data().X
    some = {
        "colour": CLEAN.colour[5:9],
        "count": CLEAN.count[5:9],
        "x": CLEAN.x[5:9],
        "more": "abcd",
    }
    some["more"] = list("abcd")
    np.testing.assert_array_equal(found.encoder.apply(some).X, whole[5:9])
    as_text = {
        "colour": CLEAN.colour[5:9],
        "count": [str(c) for c in CLEAN.count[5:9]],
        "x": CLEAN.x[5:9],
    }
    np.testing.assert_array_equal(found.encoder.apply(as_text).X, whole[5:9])
    with pytest.raises(InvalidInputError, match="lacks 'x'"):
        found.encoder.apply({"colour": ["red"], "count": [1]})


def test_new_rows_may_have_gaps_where_the_table_had_none():
    found = ridgefold.diagnose(CLEAN.columns(), "y")
    new = found.encoder.apply({"colour": [None], "count": [None], "x": [None]})
    assert np.isfinite(new.X).all()


# -- targets ---------------------------------------------------------------------------------


def test_a_target_with_gaps_leaves_these_rows_out(write):
    y = [None if j in (2, 9) else repr(float(v)) for j, v in enumerate(CLEAN.y)]
    found = ridgefold.diagnose(write(text({**CLEAN.columns(), "y": y})), "y")
    assert found.target.n_missing == 2
    assert len(found.rows) == N - 2
    assert "target" in topics(found)
    expected = {k: np.delete(np.asarray(v), [2, 9]) for k, v in CLEAN.columns().items()}
    require_same(found.training_data(), encoded(expected))


@pytest.mark.parametrize("number", [lambda v: f"${v:,.3f}", lambda v: f"{v} lbs", decimal_comma])
def test_a_target_in_disguise_is_a_number(number, write):
    columns = {**CLEAN.columns(), "y": [number(float(v)) for v in CLEAN.y]}
    found = ridgefold.diagnose(write(text(columns, separator=";")), "y")
    assert found.task == "regression"
    np.testing.assert_allclose(found.y, CLEAN.y)


def test_a_target_that_is_half_a_number_is_refused_with_the_ways_out(write):
    y = ["none sold" if j % 3 == 0 else repr(float(v)) for j, v in enumerate(CLEAN.y)]
    with pytest.raises(
        InvalidInputError, match=r"'none sold' in line 2, .*line 5.*--columns y=number"
    ):
        ridgefold.diagnose(write(text({**CLEAN.columns(), "y": y})), "y")
    columns = {**CLEAN.columns(), "y": y}
    found = ridgefold.diagnose(columns, "y", columns={"y": "number"})
    assert (found.task, found.target.n_missing) == ("regression", N // 3)


@pytest.mark.parametrize("labels", [("spam", "ham", "eggs"), ("yes", "no", "no"), (0, 1, 1)])
def test_classes_are_found(labels, write):
    y = [labels[j % 3] for j in range(N)]
    found = ridgefold.diagnose(write(text({**CLEAN.columns(), "y": y})), "y")
    assert found.task == "classification"
    assert found.training_data().y.tolist() == y


def test_a_target_of_names_is_refused():
    with pytest.raises(InvalidInputError, match="120 different texts"):
        ridgefold.diagnose({"x": CLEAN.x, "y": [f"name {j}" for j in range(N)]}, "y")


@pytest.mark.parametrize("price", ["{:,.2f} €", "{:.2f}", "{:.4g} EUR"])
def test_many_different_numbers_are_said_to_be_numbers_and_no_classes(price):
    table = {"x": CLEAN.x, "y": [price.format(1000.37 + 13 * j) for j in range(N)]}
    said = (
        rf"{N} different numbers \(such as '.*'\).*RidgefoldRegressor.*or group them into classes"
    )
    with pytest.raises(InvalidInputError, match=said):
        ridgefold.RidgefoldClassifier().fit(table, target="y")


def test_a_target_that_is_not_there_is_refused_with_the_nearest_name():
    with pytest.raises(TableError, match=r"target 'Count': .* did you mean 'count'"):
        ridgefold.diagnose(CLEAN.columns(), "Count")


def test_a_constant_target_is_refused():
    with pytest.raises(InvalidInputError, match="in every row"):
        ridgefold.diagnose({"x": CLEAN.x, "y": np.ones(N)}, "y")


# -- files that are no tables ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("a,b,y\n", "0 rows"),
        ("a,b\n1,2\n1,2,3\n1\n", r"line 3 has 3, line 4 has 1"),
        ('a,b\n1,2\n"1,2\n', "closed"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
    ],
)
def test_files_that_are_no_tables_are_refused_with_the_reason(content, words, write):
    with pytest.raises(InvalidInputError, match=words):
        ridgefold.diagnose(write(content), "y")


def test_one_column_is_a_table(write):
    found = ridgefold.diagnose(write("x\n" + "\n".join(map(str, CLEAN.x))))
    assert kinds(found) == {"x": "number"}
    assert ridgefold.diagnose(write("y\n1.5\n2\n3\n"), "y").encoder.feature_names == ()


def test_line_breaks_in_quotes_belong_to_the_cell(write):
    colours = [f"{c}\nish" for c in CLEAN.colour]
    columns = {**CLEAN.columns(), "colour": colours}
    require_same(encoded(write(text(columns, end="\r\n"))), encoded(columns))


# -- the rest --------------------------------------------------------------------------------


def test_numbers_that_can_be_read_in_two_ways_are_said(write):
    table = {"a": ["1,013", "2,500", "3,125"] * 10, "y": list(range(30))}
    found = ridgefold.diagnose(write(text(table)), "y")
    assert "doubtful numbers" in topics(found, "a")
    # Another column leaves no doubt.
    table["b"] = ["1,5", "2,25", "3,75"] * 10
    other = ridgefold.diagnose(write(text(table, separator=";")), "y", standardise=False)
    assert other.training_data().X[:3, 0].tolist() == [1.013, 2.5, 3.125]


def test_several_units_are_said(write):
    x = [f"{v} {'km' if j % 2 else 'mi'}" for j, v in enumerate(CLEAN.x)]
    found = ridgefold.diagnose(write(text({**CLEAN.columns(), "x": x})), "y")
    assert found.column("x").kind != "number"
    few = [f"{v} {'mi' if j == 5 else 'km'}" for j, v in enumerate(CLEAN.x)]
    found = ridgefold.diagnose(write(text({**CLEAN.columns(), "x": few})), "y")
    assert {"several units", "unreadable"} <= topics(found, "x")


def test_repeated_rows_are_counted():
    table = {
        k: np.concatenate([np.asarray(v), np.asarray(v)[:7]]) for k, v in CLEAN.columns().items()
    }
    found = ridgefold.diagnose(table, "y")
    assert found.repeated_rows == 7
    assert "repeated rows" in topics(found)


def test_choices_that_there_are_not_are_refused():
    with pytest.raises(TableError, match="did you mean 'colour'"):
        ridgefold.diagnose(CLEAN.columns(), "y", columns={"color": "category"})
    with pytest.raises(InvalidInputError, match="'integer'"):
        ridgefold.diagnose(CLEAN.columns(), "y", columns={"x": "integer"})
    with pytest.raises(InvalidInputError, match="no cell is one"):
        ridgefold.diagnose(CLEAN.columns(), "y", columns={"colour": "number"})


def test_a_diagnosis_is_shown_and_is_data(write):
    columns = CLEAN.columns(evil=["<b>\x1b[31m", "[red]x"] * (N // 2))
    found = ridgefold.diagnose(write(text({"Unnamed: 0": np.arange(N), **columns})), "y")
    assert "Unnamed: 0" in str(found)
    assert "--columns 'Unnamed: 0=number'" in str(found)
    assert "\x1b" not in str(found)
    assert "<b>" not in found._repr_html_().replace("<b>What", "").replace("<p><b>", "")
    plain = json.loads(json.dumps(found.to_dict()))
    assert [column["name"] for column in plain["columns"]] == ["Unnamed: 0", *columns][:-1]
    assert plain["target"]["task"] == "regression"


def test_a_diagnosis_without_a_target_has_no_training_data():
    with pytest.raises(InvalidInputError, match="target"):
        ridgefold.diagnose(CLEAN.columns()).training_data()
