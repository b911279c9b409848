"""CSV files are read as pandas reads them, wherever blocks end, or refused; never otherwise."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ridgefold.errors import TableError
from ridgefold.tables import csv_file
from ridgefold.tables.tables import open_table

N_FILES = 320
NUMBERS = ["1", "-2", "+3", "0.5", ".25", "7.", "1e5", "-1.5E-3", " 4 ", "1e300", "007", "-0"]
MISSING = ["", "NA", "nan", "NULL", "n/a", "#N/A", "<NA>", "-nan"]
TEXTS = [
    *("plain", "two words", "with, comma", 'a "quoted" word', "line\nbreak", "crlf\r\nbreak"),
    *(
        "\n",
        '"',
        '""',
        "naïve ☃ 漢字",
        "tab\there",
        "semi;colon",
        "=1+1",
        "'",
        "a\n\n\nb",
        ',"\n",',
    ),
]


def cell(rng, kind):
    if rng.random() < 0.1:
        return rng.choice(MISSING)
    if kind == "number":
        return rng.choice(NUMBERS)
    if rng.random() < 0.04:
        return str(rng.choice(["x\n", "long ", '"']) * int(rng.integers(1, 900)))
    return rng.choice(TEXTS)


def written(rng, delimiter):
    """The text of a file, with the columns that hold numbers."""
    kinds = ["number", *rng.choice(["number", "text"], rng.integers(1, 5))]
    names = [f"{kind} {j}" for j, kind in enumerate(kinds)]
    if rng.random() < 0.3:
        names[-1] += '\nof "two" lines'
    end = str(rng.choice(["\n", "\r\n"]))
    quoting = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    rows = []
    for _ in range(int(rng.integers(1, 60))):
        row = [str(cell(rng, kind)) for kind in kinds]
        rows.append(row if any(row) else ["1", *row[1:]])
    lines = []

    class Line:
        write = staticmethod(lines.append)

    writer = csv.writer(Line, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerows([names, *rows])
    for _ in range(int(rng.integers(0, 4))):  # blank lines between rows
        lines.insert(int(rng.integers(1, len(lines) + 1)), end)
    text = "".join(lines)
    if rng.random() < 0.3:
        text = text.removesuffix(end)
    return ("\ufeff" if rng.random() < 0.2 else "") + text, names, kinds


def as_lists(table):
    return {
        name: [None if v is None or v != v else v for v in table.column(name).to_pylist()]  # noqa: PLR0124
        for name in table.column_names
    }


def expected_of(path, delimiter, names, kinds):
    frame = pd.read_csv(path, sep=delimiter, dtype=str)
    assert list(frame.columns) == names
    read = {
        name: float if kind == "number" else str for name, kind in zip(names, kinds, strict=True)
    }
    return {
        name: [None if pd.isna(v) else read[name](v) for v in frame[name].tolist()]
        for name in names
    }


def check(seed, folder, monkeypatch):
    rng = np.random.default_rng(seed)
    delimiter = str(rng.choice([",", "\t"]))
    text, names, kinds = written(rng, delimiter)
    ending = {",": ".csv", "\t": ".tsv"}[delimiter]
    if rng.random() < 0.2:
        path = folder / f"{seed}{ending}.gz"
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path = folder / f"{seed}{ending}"
        path.write_bytes(text.encode())
    expected = expected_of(path, delimiter, names, kinds)
    # Python's own reader agrees on how many rows there are.
    if not path.name.endswith(".gz"):
        with path.open(encoding="utf-8-sig", newline="") as file:
            n_rows = sum(1 for row in csv.reader(file, delimiter=delimiter) if row) - 1
        assert n_rows == len(expected[names[0]])
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", int(rng.integers(20, 2000)))
    file = open_table(path)
    assert file.names() == names
    texts = [n for n, k in zip(names, kinds, strict=True) if k == "text"]
    types = {n: pa.string() if n in texts else pa.float64() for n in names}
    found = as_lists(file.read(names, texts))
    assert found == expected, seed
    batches = list(file.batches(names, types, lambda share: None))
    assert as_lists(pa.concat_tables(batches)) == expected, seed
    # A column that is ignored may hold what it likes.
    some = [names[int(rng.integers(len(names)))]]
    assert as_lists(file.read(some, set(some) & set(texts))) == {n: expected[n] for n in some}
    one = list(file.batches(some, {n: types[n] for n in some}, lambda share: None))
    assert as_lists(pa.concat_tables(one)) == {name: expected[name] for name in some}, seed


@pytest.mark.parametrize("part", range(8))
def test_files_are_read_as_other_readers_read_them(part, tmp_path, monkeypatch):
    for seed in range(part, N_FILES, 8):
        check(seed, tmp_path, monkeypatch)


def test_no_row_is_invented_where_a_large_file_is_cut_into_blocks(tmp_path):
    path = tmp_path / "t.csv"
    with path.open("w") as file:
        file.write("x,note,y\n")
        for i in range(60_000):
            file.write(f'{i},"a note\n{i},of two lines,{i}\n{i},, more",{2 * i}\n')
    assert path.stat().st_size > csv_file._BLOCK_BYTES / 2
    with path.open("a") as file:
        file.writelines(f'{i},"{"long " * 40}\n1,2,3",{2 * i}\n' for i in range(60_000, 100_000))
    assert path.stat().st_size > 2 * csv_file._BLOCK_BYTES
    whole = open_table(path).read(["x", "y"])
    assert whole.column("x").to_pylist() == list(range(100_000))
    assert whole.column("y").to_pylist() == list(range(0, 200_000, 2))
    types = {"y": pa.float64()}
    parts = pa.concat_tables(open_table(path).batches(["y"], types, lambda share: None))
    assert parts.column("y").to_pylist() == list(range(0, 200_000, 2))


def test_a_value_longer_than_a_block_is_whole(tmp_path):
    path, long = tmp_path / "t.csv", "word\n" * (csv_file._BLOCK_BYTES // 4)
    path.write_text("x,note\n" + "1,short\n" * 10 + f'2,"{long}"\n3,end\n')
    table = open_table(path).read(["x", "note"], ["note"])
    assert table.column("x").to_pylist() == [*[1] * 10, 2, 3]
    assert table.column("note").to_pylist()[10] == long
    types = {"x": pa.float64(), "note": pa.string()}
    parts = pa.concat_tables(open_table(path).batches(["x", "note"], types, lambda share: None))
    assert parts.column("note").to_pylist() == table.column("note").to_pylist()


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("rows_after", [0, 1, 3, 200])
def test_a_quote_that_is_never_closed_is_refused(column, rows_after, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 500)
    monkeypatch.setattr(csv_file, "_LONGEST_ROW", 1000)
    row = ["1", "2", "3"]
    row[column] = '"' + row[column]
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,2,3\n" + ",".join(row) + "\n" + "4,5,6\n" * rows_after)
    for name in ("a", "c"):
        with pytest.raises(TableError, match=r"never closed|first line has 3 cells"):
            open_table(path).read([name])
        with pytest.raises(TableError, match=r"never closed|first line has 3 cells"):
            list(open_table(path).batches([name], {name: pa.string()}, lambda share: None))


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be"]
)
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_encodings_and_separators_are_found(encoding, separator, tmp_path):
    path = tmp_path / "t.csv"
    lines = ["größe,note", '1,"é; ü|x"', "2,plain", "3,z"]
    path.write_bytes("\n".join(lines).replace(",", separator).encode(encoding))
    table = open_table(path).read(["größe", "note"])
    assert table.column("größe").to_pylist() == [1, 2, 3]
    assert table.column("note").to_pylist() == ["é; ü|x", "plain", "z"]
    assert open_table(path).places([0, 2]) == ["line 2", "line 4"]


def test_lines_with_another_number_of_cells_are_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n"x\ny",2\n1,2,3\n\n4\n')
    with pytest.raises(TableError, match="first line has 2 cells, but line 5 has 3, line 7 has 1"):
        open_table(path).read(["a"])


def test_lines_are_numbered_as_editors_do(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,"b\nb"\n1,"x\ny"\n\n  \n2,z\n3,"""\n"\n4,5\n')
    assert open_table(path).places([0, 1, 2, 3]) == ["line 3", "line 7", "line 8", "line 10"]
    assert open_table(path).read(["a"]).column("a").to_pylist() == [1, 2, 3, 4]
