"""Predictions out: rows of a table to CSV or Parquet, batch by batch, whole or not at all.

Text cells that a spreadsheet would run as a formula (they begin with = + - @, their wide forms
＝ ＋ － ＠, a tab or a line break) get an apostrophe in front; cells that are numbers are never
touched. Cells are in quotes only where they must be: what is copied stays as it was written.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet

from ridgefold.errors import TableError
from ridgefold.storage.atomic import written_whole

Write = Callable[[pa.Table], None]
_RISKY = r"^[=+\-@＝＋－＠\t\r\n]"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def safe_text(values: pa.ChunkedArray | pa.Array) -> Any:
    """Text without formulas: an apostrophe in front of what a spreadsheet would run."""
    values = values.cast(pa.large_string())
    risky = pc.and_(
        pc.match_substring_regex(values, _RISKY),
        pc.invert(pc.match_substring_regex(values, _NUMBER)),
    )
    apostrophe, nothing = (pa.scalar(text, pa.large_string()) for text in ("'", ""))
    quoted = pc.binary_join_element_wise(apostrophe, values, nothing)
    return pc.if_else(risky, quoted, values)


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def without_formulas(table: pa.Table) -> pa.Table:
    """A table whose text cells and column names are safe to open in a spreadsheet."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.itercolumns()
    ]
    columns = [safe_text(column) if _is_text(column.type) else column for column in columns]
    names = safe_text(pa.array(table.column_names, pa.string())).to_pylist()
    return pa.Table.from_arrays(columns, names=names)


@contextlib.contextmanager
def writing(path: Path | None, *, replace: bool = True) -> Iterator[Write]:
    """A function that writes tables one after the other; None is CSV on standard output."""
    if path is None:
        with _csv(sys.stdout.buffer) as write:
            yield write
        return
    kinds = {".csv": _csv, ".parquet": _parquet}
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise TableError(
            f"cannot write {str(path)!r}: its name must end in {' or '.join(kinds)}, which says "
            "what to write"
        )
    with written_whole(path, replace=replace) as file, kind(file) as write:
        yield write


@contextlib.contextmanager
def _csv(file: Any) -> Iterator[Write]:
    started = False

    def write(table: pa.Table) -> None:
        nonlocal started
        table = without_formulas(table)
        if not started:
            names = _quoted(pa.array(table.column_names, pa.large_string()))
            file.write((",".join(names.to_pylist()) + "\n").encode())
        started = True
        cells = [_quoted(column) for column in table.combine_chunks().itercolumns()]
        lines = pc.binary_join_element_wise(*cells, pa.scalar(",", pa.large_string()))
        file.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())

    yield write
    file.flush()


def _quoted(values: Any) -> Any:
    """Cells as CSV has them: in quotes where they would be read as something else."""
    is_text = _is_text(values.type)
    texts = values.cast(pa.large_string()).fill_null("")
    if not is_text:
        return texts
    quote = pa.scalar('"', pa.large_string())
    inner = pc.replace_substring(texts, '"', '""')
    nothing = pa.scalar("", pa.large_string())
    enclosed = pc.binary_join_element_wise(quote, inner, quote, nothing)
    return pc.if_else(pc.match_substring_regex(texts, r'[",\r\n]'), enclosed, texts)


@contextlib.contextmanager
def _parquet(file: Any) -> Iterator[Write]:
    writers: list[pa_parquet.ParquetWriter] = []

    def write(table: pa.Table) -> None:
        if not writers:
            writers.append(pa_parquet.ParquetWriter(file, table.schema))
        writers[0].write_table(table)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
