"""Tables are read whole or streamed, and written without formulas."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest

from ridgefold.errors import TableError
from ridgefold.storage.results import safe_text, without_formulas, writing
from ridgefold.tables import csv_file, tables
from ridgefold.tables.tables import open_table

TABLE = pa.table(
    {
        "a": np.arange(100) / 7,
        "b": [None if i % 9 == 0 else f"level {i % 3}" for i in range(100)],
        "n": [None if i % 10 == 0 else i for i in range(100)],
    }
)


@pytest.fixture(params=["csv", "csv.gz", "tsv", "parquet"])
def file(request, tmp_path):
    path = tmp_path / f"table.{request.param}"
    if request.param == "parquet":
        pa_parquet.write_table(TABLE, path, row_group_size=30)
        return open_table(path)
    text = io.BytesIO()
    delimiter = "\t" if request.param == "tsv" else ","
    pa_csv.write_csv(TABLE, text, pa_csv.WriteOptions(delimiter=delimiter))
    data = text.getvalue()
    path.write_bytes(gzip.compress(data) if request.param.endswith("gz") else data)
    return open_table(path)


def test_whole_tables_and_batches_hold_the_same(file, monkeypatch):
    monkeypatch.setattr(tables, "_BATCH_ROWS", 17)
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 1000)
    assert file.names() == ["a", "b", "n"]
    whole = file.read(["n", "b", "a"])
    assert whole.column_names == ["n", "b", "a"]
    assert whole.column("b").to_pylist() == TABLE.column("b").to_pylist()
    np.testing.assert_allclose(whole.column("a").to_numpy(), TABLE.column("a").to_numpy())
    shares = []
    types = {"n": pa.float64(), "b": pa.string()}
    parts = list(file.batches(["b", "n"], types, shares.append))
    assert len(parts) > 1
    together = pa.concat_tables(parts, promote_options="permissive")
    assert together.column("b").to_pylist() == TABLE.column("b").to_pylist()
    assert together.column("n").null_count == 10
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_numpy_files_are_tables_of_numbers(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50)
    np.save(tmp_path / "rows.npy", X)
    np.savez(tmp_path / "both.npz", X=X, y=y)
    np.savez(tmp_path / "named.npz", X=X, y=y, feature_names=["a", "b", "c"])
    assert open_table(tmp_path / "rows.npy").names() == ["x0", "x1", "x2"]
    both = open_table(tmp_path / "both.npz")
    assert both.names() == ["x0", "x1", "x2", "y"]
    np.testing.assert_array_equal(both.read(["y", "x1"]).column("x1").to_numpy(), X[:, 1])
    np.testing.assert_array_equal(both.read(["y", "x1"]).column("y").to_numpy(), y)
    assert open_table(tmp_path / "named.npz").names() == ["a", "b", "c", "y"]
    (batch,) = both.batches(["x2"], {}, lambda share: None)
    np.testing.assert_array_equal(batch.column("x2").to_numpy(), X[:, 2])


def test_types_are_found_in_the_whole_file_and_not_in_its_first_block(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 1000)
    path = tmp_path / "late.csv"
    path.write_text("a,b\n" + "1,2\n" * 1000 + "1.5,text\n")
    whole = open_table(path).read(["a", "b"])
    assert whole.schema.field("a").type == pa.float64()
    assert whole.schema.field("b").type == pa.string()


@pytest.mark.parametrize("word", ["", "NA", "nan", "NaN", "null", "N/A"])
def test_words_for_missing_values_are_known(word, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,x\n{word},{word}\n")
    table = open_table(path).read(["a", "b"])
    assert table.column("a").null_count == table.column("b").null_count == 1


def read_all(path):
    file = open_table(path)
    return file.read(file.names())


def write_and_fail(path):
    with writing(path) as write:
        write(TABLE)
        raise KeyError("stop")


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(TableError, match="there is no file"):
        open_table(tmp_path / "none.csv")
    refused = {"t.xlsx": "workbook", "t": "must end in", "t.csv.zip": "must end in"}
    for name, words in refused.items():
        (tmp_path / name).write_text("a\n1\n")
        with pytest.raises(TableError, match=words):
            open_table(tmp_path / name)
    for name, text in {
        "empty.csv": "",
        "ragged.csv": "a,b\n1,2\n1,2,3\n",
        "twice.csv": "a,a\n1,2\n",
        "not.parquet": "PAR1 and no more",
        "not.npy": "numbers",
    }.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(TableError, match=name):
            read_all(tmp_path / name)
    np.savez(tmp_path / "other.npz", rows=np.eye(2))
    with pytest.raises(TableError, match="must be called X"):
        open_table(tmp_path / "other.npz")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match=r"objects\.npy"):
        open_table(tmp_path / "objects.npy")
    np.save(tmp_path / "flat.npy", np.arange(3.0))
    with pytest.raises(TableError, match="must be a matrix"):
        open_table(tmp_path / "flat.npy")
    (tmp_path / "dates.csv").write_text("a\n1\nx\n")
    with pytest.raises(TableError, match="invalid value '1'"):
        list(open_table(tmp_path / "dates.csv").batches(["a"], {"a": pa.date32()}, print))


FORMULAS = ["=1+2", "+A1", "-A1", "@SUM(A1)", "\tx", '=HYPERLINK("http://x")', "-", "=", "+-1"]
HARMLESS = ["a=1", "-1", "+1.5", "-.5", "-1e-5", "1-2", "", "'=x", "text", "x@y"]


def test_formulas_get_an_apostrophe_and_numbers_do_not():
    assert safe_text(pa.array(FORMULAS)).to_pylist() == [f"'{text}" for text in FORMULAS]
    assert safe_text(pa.array([*HARMLESS, None])).to_pylist() == [*HARMLESS, None]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_results_are_written_batch_by_batch(ending, tmp_path):
    path = tmp_path / f"out.{ending}"
    numbers = [-1.5, 2.0, -1e-300, None]
    batch = pa.table({"=name": ["=1", "-2", None, "b"], "x": numbers})
    with writing(path) as write:
        write(batch)
        write(batch)
    if ending == "parquet":  # not text: as it is
        assert pa_parquet.read_table(path).to_pydict() == pa.concat_tables([batch] * 2).to_pydict()
        return
    with path.open(newline="") as file:
        found = list(csv.reader(file))
    assert found[0] == ["'=name", "x"]
    assert [row[0] for row in found[1:5]] == ["'=1", "-2", "", "b"]
    assert [float(row[1]) for row in found[1:4]] == numbers[:3]
    assert found[4][1] == ""
    assert len(found) == 9


def test_a_failure_while_writing_leaves_nothing(tmp_path):
    with pytest.raises(KeyError, match="stop"):
        write_and_fail(tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TableError, match="must end in"), writing(tmp_path / "out.txt"):
        pass


def test_categories_are_written_as_text():
    frame = pa.Table.from_pandas(pd.DataFrame({"c": pd.Categorical(["=x", "y"])}))
    assert without_formulas(frame).to_pydict() == {"c": ["'=x", "y"]}
