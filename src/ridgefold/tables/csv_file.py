"""CSV as other readers read it: cells with line breaks, and cells longer than a block, are whole.

pyarrow reads blocks of a file apart from each other, and says nothing of a quote that is never
closed: the rest of the file becomes one cell. So an end mark is put behind the file, a line with
too many cells. The reader reports such lines; if it does not report the mark, the mark is in
quotes, and so is all that stands before it.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pa_csv

from ridgefold.tables.numbers_in_text import parse_numbers
from ridgefold.tables.table_file import Share, TableFile, called_twice, first_line
from ridgefold.tables.text_layout import AsUtf8, TextLayout, layout_of
from ridgefold.tables.written_numbers import MISSING_WORDS

_BLOCK_BYTES = 4 << 20
_COLUMNS_OF_A_BLOCK = 4096
"""Every block costs some work for each column: blocks of wider tables are larger in proportion."""
_LONGEST_ROW = 1 << 28
"""Bytes of one row: more of them are an unclosed quote, and reading on would fill the memory."""
_END = "ridgefold reads to here"
_LINES_SHOWN = 5
"""Lines with a wrong number of cells that an error names."""
_HEAD_BYTES = 64
_OTHER_FILES = {
    b"pk\x03\x04": "a workbook of a spreadsheet, or another zip archive: save the table as CSV",
    b"\xd0\xcf\x11\xe0": "a workbook of an older spreadsheet: save the table as CSV",
    b"par1": "a Parquet file: its name must end in .parquet",
    b"\x1f\x8b": "compressed: its name must end in .csv.gz",
    b"<!doctype": "a web page: save the table in it as CSV",
    b"<html": "a web page: save the table in it as CSV",
    b"<?xml": "XML: save the table in it as CSV",
    b'{"': "JSON: save the table in it as CSV",
    b"[{": "JSON: save the table in it as CSV",
    b"[[": "JSON: save the table in it as CSV",
    b"%pdf": "a PDF: save the table in it as CSV",
}
"""What other files begin with, in small letters, and what to do about them."""
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


class CsvFile(TableFile):
    """Separated text with a header line, perhaps compressed; separator and encoding are found."""

    types_are_declared = False

    def __init__(self, path: Path, usual_separator: str = ",") -> None:
        super().__init__(path)
        self._usual_separator = usual_separator
        self._names: list[str] | None = None
        self._written: dict[str, str] = {}
        """The names as they stand in the file, perhaps with blanks around them."""

    @functools.cached_property
    def layout(self) -> TextLayout:
        """The encoding and separator, as the beginning of the file shows them."""
        with self._readable():
            return layout_of(self._bytes, self._usual_separator)

    @property
    def _delimiter(self) -> str:
        return self.layout.separator

    def names(self) -> list[str]:
        if self._names is None:
            with self._readable():
                self._names = self._read_names()
        return list(self._names)

    def _read_names(self) -> list[str]:
        self._require_text()
        if self.layout.extra_cell:
            names = [name.strip() for name in next(self._records())[1]]
            return self._once(["", *names] if self.layout.extra_cell == "first" else [*names, ""])

        def of_first_block(block_bytes: int) -> list[str]:
            with (
                self._opened("\n") as text,
                self._reader(text, pa_csv.ConvertOptions(), block_bytes) as reader,
            ):
                return list(reader.schema.names)

        return self._once(self._in_blocks(of_first_block, _BLOCK_BYTES))

    def _once(self, names: list[str]) -> list[str]:
        """Names without the blanks around them; what is wrong with lines is said with them."""
        plain = [name.strip() for name in names]
        if called_twice(plain):
            raise self.error(self._wrong_lines())
        self._written = dict(zip(plain, names, strict=True))
        return plain

    def _require_text(self) -> None:
        """Refuse files of other kinds that are called as text."""
        with self._bytes() as file:
            head = file.read(_HEAD_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        for mark, kind in _OTHER_FILES.items():
            if head.startswith(mark):
                raise self.error(f"it is {kind}")

    def read(self, columns: Sequence[str], texts: Collection[str] = ()) -> pa.Table:
        convert = self._convert(columns, dict.fromkeys(texts, pa.string()))

        def whole(block_bytes: int) -> pa.Table:
            with self._opened(self._end) as text:
                table = pa_csv.read_csv(
                    text,
                    read_options=self._rows(block_bytes, use_threads=True),
                    parse_options=self._parse(text.note),
                    convert_options=convert,
                )
                self._require_end(text, table.num_rows)
            return table

        with self._readable():
            table = self._in_blocks(whole, self._block_bytes)
            return self._text_of(table.rename_columns(list(columns)))

    def batches(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], share: Share
    ) -> Iterator[pa.Table]:
        done, block_bytes, types = 0, self._block_bytes, dict(types)
        wanted: dict[str, pa.DataType] = {}
        with self._readable():
            while True:
                try:
                    # From the beginning again where the last pass could not go on.
                    for start, table in self._pass(columns, types, share, block_bytes):
                        new = table.slice(max(0, done - start))
                        done = max(done, start + table.num_rows)
                        if new.num_rows:
                            yield _as_wanted(self._text_of(new), wanted)
                    return
                except pa.ArrowInvalid as error:
                    if _is_too_long(error) and block_bytes < _LONGEST_ROW:
                        block_bytes *= 8
                    elif "conversion error" in str(error) and _numbers_among(types):
                        wanted = _numbers_among(types)
                        types |= dict.fromkeys(wanted, pa.string())
                    else:
                        raise

    def _pass(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], share: Share, size: int
    ) -> Iterator[tuple[int, pa.Table]]:
        """Blocks of rows, each with the number of its first one."""
        bytes_in_all, start = max(self.path.stat().st_size, 1), 0
        with (
            self._opened(self._end) as text,
            self._reader(text, self._convert(columns, types), size, self._rows(size)) as reader,
        ):
            for batch in reader:
                yield start, pa.Table.from_batches([batch]).rename_columns(list(columns))
                start += batch.num_rows
                share(min(1.0, text.tell() / bytes_in_all))
            self._require_end(text, start)
            share(1.0)

    def places(self, rows: Sequence[int]) -> list[str]:
        """Lines, as editors number them."""
        wanted, lines = set(rows), {}
        with contextlib.suppress(csv.Error):
            for row, (line, _) in enumerate(self._records(), start=-1):
                if row in wanted:
                    lines[row] = line
                    if len(lines) == len(wanted):
                        break
        return [f"line {lines[row]}" if row in lines else f"row {row + 1}" for row in rows]

    # -- the options of pyarrow's reader -------------------------------------------------

    @property
    def _block_bytes(self) -> int:
        return int(_BLOCK_BYTES * max(1.0, len(self.names()) / _COLUMNS_OF_A_BLOCK))

    @property
    def _end(self) -> str:
        return f"\n{_END}{self._delimiter * len(self.names())}\n"

    def _convert(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType]
    ) -> pa_csv.ConvertOptions:
        self.names()
        return pa_csv.ConvertOptions(
            include_columns=[self._written[name] for name in columns],
            column_types={self._written[name]: kind for name, kind in types.items()},
            null_values=list(MISSING_WORDS),
            strings_can_be_null=True,
        )

    def _parse(self, note: Callable[[Any], str]) -> pa_csv.ParseOptions:
        return pa_csv.ParseOptions(
            delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=note
        )

    @contextlib.contextmanager
    def _opened(self, end: str) -> Iterator[_MarkedText]:
        with self.path.open("rb") as file:
            text = self._decompressed(file)
            if self.layout.encoding != "utf-8":
                text = AsUtf8(text, self.layout.encoding)
            with contextlib.closing(text):
                yield _MarkedText(text, file, end)

    def _decompressed(self, file: BinaryIO) -> Any:
        compression = COMPRESSED.get(self.path.suffix.lower())
        return file if compression is None else pa.CompressedInputStream(file, compression)

    @contextlib.contextmanager
    def _bytes(self) -> Iterator[Any]:
        with self.path.open("rb") as file, contextlib.closing(self._decompressed(file)) as text:
            yield text

    def _rows(self, block_bytes: int, use_threads: bool = False) -> pa_csv.ReadOptions:
        """All rows; where some cells have no name, the names are ours and theirs are skipped."""
        ours = self.names() if self.layout.extra_cell else None
        return pa_csv.ReadOptions(
            block_size=block_bytes,
            use_threads=use_threads,
            skip_rows=self.layout.lines_before,
            column_names=ours,
            skip_rows_after_names=0 if ours is None else 1,
        )

    @contextlib.contextmanager
    def _reader(
        self, text: _MarkedText, convert: Any, block_bytes: int, rows: Any = None
    ) -> Iterator[Any]:
        with_names = pa_csv.ReadOptions(
            block_size=block_bytes, use_threads=False, skip_rows=self.layout.lines_before
        )
        reader = pa_csv.open_csv(
            text,
            read_options=with_names if rows is None else rows,
            parse_options=self._parse(text.note),
            convert_options=convert,
        )
        with contextlib.closing(reader):
            yield reader

    def _in_blocks(self, read: Callable[[int], Any], block_bytes: int) -> Any:
        """What `read` gives, with blocks that hold the longest row."""
        while True:
            try:
                return read(block_bytes)
            except pa.ArrowInvalid as error:
                if not _is_too_long(error) or block_bytes >= _LONGEST_ROW:
                    raise
                block_bytes *= 8

    # -- what cannot be read -------------------------------------------------------------

    def _text_of(self, table: pa.Table) -> pa.Table:
        for field in table.schema:
            if pa.types.is_binary(field.type):
                raise self.error(
                    f"column {field.name!r} is not in UTF-8: save the file in this encoding"
                )
        return table

    def _require_end(self, text: _MarkedText, n_rows: int) -> None:
        if not text.ended:
            raise self.error(
                f'a quote (") in row {n_rows}, the last that could be read, is never closed: close '
                "it, or double it where it belongs to the text"
            )

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise self.error(self._reason(error)) from None
        except OSError as error:
            raise self.error(error.strerror or first_line(error)) from None

    def _reason(self, error: Exception) -> str:
        if self.path.stat().st_size == 0:
            return "it is empty"
        if _is_too_long(error):
            return f'a row is longer than {_LONGEST_ROW >> 20} MB, or a quote (") is never closed'
        if "columns, got" in str(error):
            return self._wrong_lines() or first_line(error)
        return first_line(error)

    def _wrong_lines(self) -> str:
        """What is wrong with the lines of the file, all at once: names, and numbers of cells."""
        names: list[str] = []
        with contextlib.suppress(csv.Error, StopIteration):
            names = [name.strip() for name in next(self._records())[1]]
        return "; ".join(filter(None, [called_twice(names), self._ragged_lines()]))

    def _ragged_lines(self) -> str:
        """Which lines have more or fewer cells than there are names, in words."""
        ragged: list[str] = []
        width = more = 0
        with contextlib.suppress(csv.Error):
            for line, cells in self._records():
                width = width or len(cells)
                if len(cells) != width:
                    if len(ragged) < _LINES_SHOWN:
                        ragged.append(f"line {line} has {len(cells)}")
                    else:
                        more += 1
        if not ragged:
            return ""
        rest = f" and {more:,} more lines" if more else ""
        before = self.layout.lines_before
        names = f"line {before + 1}, that of the names," if before else "its first line"
        return (
            f"{names} has {width} cells, but {', '.join(ragged)}{rest}. Correct these "
            f"lines; a cell that holds {self._delimiter!r} must stand in quotes, and quotes must "
            "be closed"
        )

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The cells of every record, and the line in which it begins; blank lines are none."""
        with self._opened("") as text:
            lines = io.TextIOWrapper(
                io.BufferedReader(text), encoding="utf-8-sig", errors="replace", newline=""
            )
            before = self.layout.lines_before
            for _ in range(before):
                lines.readline()
            reader, end = csv.reader(lines, delimiter=self._delimiter), before
            for cells in reader:
                begin, end = end + 1, before + reader.line_num
                if len(cells) > 1 or (cells and cells[0].strip(" \t")):
                    yield begin, cells


class _MarkedText(io.RawIOBase):
    """The bytes of a file, and behind them an end mark of which the reader should tell."""

    def __init__(self, text: Any, file: BinaryIO, end: str) -> None:
        super().__init__()
        self._text, self._file, self._end = text, file, end.encode()
        self._mark = end.strip("\n")
        self._held = b""
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """At most as many bytes, and none after a carriage return: pyarrow's next block would lose
        a line feed that follows it, also in quotes."""
        piece = self._held + self._text.read(len(buffer) - len(self._held))
        if len(piece) == len(self._held):
            piece += self._end[: len(buffer) - len(piece)]
            self._end = self._end[len(piece) - len(self._held) :]
        self._held = b"\r" if len(piece) > 1 and piece.endswith(b"\r") else b""
        count = len(piece) - len(self._held)
        buffer[:count] = piece[:count]
        return count

    def tell(self) -> int:
        """How far it is in the file itself, which may be compressed."""
        return self._file.tell()

    def note(self, row: Any) -> str:
        """What to do with a line that has more or fewer cells than there are columns."""
        if row.text == self._mark:
            self.ended = True
            return "skip"
        # Blank lines are none to other readers, too.
        return "error" if row.text.strip(" \t") else "skip"


def _as_wanted(table: pa.Table, wanted: Mapping[str, pa.DataType]) -> pa.Table:
    """Columns of text as numbers (or true and false), but for those in which a cell is none."""
    columns = []
    for field, column in zip(table.schema, table.itercolumns(), strict=True):
        if field.name in wanted:
            kind = wanted[field.name]
            values, unreadable = parse_numbers(column, boolean=pa.types.is_boolean(kind))
            if not unreadable.any():
                column = pa.chunked_array([pa.array(values, from_pandas=True).cast(kind)])  # noqa: PLW2901
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def _numbers_among(types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    return {
        name: kind
        for name, kind in types.items()
        if pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    }


def _is_too_long(error: Exception) -> bool:
    return "straddl" in str(error) or "Empty CSV file or block" in str(error)
