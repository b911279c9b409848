"""How a text file of rows is written: its encoding, and the mark between its cells."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

_HEAD_BYTES = 1 << 18
"""Enough rows to see which mark divides all of them alike, and few enough to read at once."""
_CHECKED_BYTES = 1 << 28
"""A file is looked through for bytes that are not UTF-8 up to here: a fraction of a second."""
_PIECE = 1 << 20
_SEPARATORS = (",", ";", "\t", "|")
_MOST_RECORDS = 300
_SAYS_SEPARATOR = re.compile(r'"?sep=(?P<mark>[,;|\t])"?[^\S\n]*\n')
"""The first line by which spreadsheets are told what separates the cells."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


_MOST_LINES_BEFORE = 20
"""More lines above the names are no title: the file holds something else."""
_MOST_RAGGED = 0.1
"""Of the rows below a title; with more of them, the lines above are none."""


@dataclass(frozen=True)
class TextLayout:
    """How the text of a file is read."""

    encoding: str
    separator: str
    lines_before: int = 0
    """Lines above the names, as programs write titles, comments or ``sep=;``."""
    extra_cell: str = ""
    """ "first" or "last" if every row has one cell more than there are names: a name of the row,
    as R writes it, or nothing behind a mark that ends the line."""


def layout_of(open_bytes: Callable[[], Any], usual_separator: str) -> TextLayout:
    """Look at the beginning of a file; `usual_separator` is taken where nothing speaks against it.

    `open_bytes` opens the file, decompressed.
    """
    with open_bytes() as file:
        head = file.read(_HEAD_BYTES)
    encoding = _encoding(head, open_bytes)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(head).lstrip("\ufeff")
    if said := _SAYS_SEPARATOR.match(text):
        text, separator, before = text[said.end() :], said["mark"], 1
    else:
        separator, before = (
            separator_of(text, usual_separator),
            _lines_before(text, usual_separator),
        )
        if before:
            text = text.split("\n", before)[-1]
            separator = separator_of(text, usual_separator)
    return TextLayout(encoding, separator, before, _extra_cell(text, separator))


def _encoding(head: bytes, open_bytes: Callable[[], Any]) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    # Text of mostly Latin letters in UTF-16 has a zero in every second byte, and no other does.
    for name, first in (("utf-16-be", 0), ("utf-16-le", 1)):
        zeros = head[first::2].count(0)
        if len(head) >= 4 and zeros > 0.4 * len(head) // 2 and head[1 - first :: 2].count(0) == 0:
            return name
    return "utf-8" if _is_utf8(open_bytes) else "cp1252"


def _is_utf8(open_bytes: Callable[[], Any]) -> bool:
    decoder, seen = codecs.getincrementaldecoder("utf-8")(), 0
    with open_bytes() as file:
        while seen < _CHECKED_BYTES:
            piece = file.read(_PIECE)
            try:
                decoder.decode(piece, final=not piece)
            except UnicodeDecodeError:
                return False
            if not piece:
                break
            seen += len(piece)
    return True


def separator_of(text: str, usual: str) -> str:
    """The mark that cuts the line of names, and most of the rows, into the same number of cells."""
    best = (0.0, 0, usual)
    for separator in (usual, *(mark for mark in _SEPARATORS if mark != usual)):
        widths = _widths(text, separator)
        if not widths or widths[0] < 2:
            continue
        alike = sum(width == widths[0] for width in widths) / len(widths)
        # The usual mark comes first and stays unless another is better.
        is_wider = best[2] != usual and widths[0] > best[1]
        if alike > best[0] or (alike == best[0] and is_wider):
            best = (alike, widths[0], separator)
    return best[2]


def _lines_before(text: str, usual: str) -> int:
    """Lines above the names: of one cell, or comments, above rows of several cells."""
    if _widths(text, separator_of(text, usual))[:1] > [1] and not text.startswith("#"):
        return 0
    lines = text.split("\n", _MOST_LINES_BEFORE + 1)
    for separator in (usual, *(mark for mark in _SEPARATORS if mark != usual)):
        records = [next(csv.reader([line], delimiter=separator), []) for line in lines[:-1]]
        before = 0
        while before < len(records) and (
            len(records[before]) < 2 or records[before][0].startswith("#")
        ):
            before += 1
        if not 0 < before < len(records):
            continue
        widths = _widths(text.split("\n", before)[-1], separator)
        if records[0] and len(records[0]) == widths[0]:
            continue  # a name that begins with "#"
        ragged = sum(width != widths[0] for width in widths) / len(widths)
        names = records[before]
        if len(widths) > before and ragged <= _MOST_RAGGED and not any(map(_is_number, names)):
            return before
    return 0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _extra_cell(text: str, separator: str) -> str:
    """Which cell of the rows has no name, if every row has one more than there are names."""
    records = _records(text, separator)
    if len(records) < 2 or len(records[0]) < 2:
        return ""
    if any(len(record) != len(records[0]) + 1 for record in records[1:]):
        return ""
    return "first" if any(record[-1].strip() for record in records[1:]) else "last"


def _widths(text: str, separator: str) -> list[int]:
    """The number of cells of the first records."""
    return [len(record) for record in _records(text, separator)]


def _records(text: str, separator: str) -> list[list[str]]:
    """The first records that are not empty."""
    records: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for record in reader:
            if record:
                records.append(record)
            if len(records) > _MOST_RECORDS:
                break
    except csv.Error:
        return records
    # The last record of the piece that was read may be cut off.
    return records[:-1] if len(records) > 2 and len(text) >= _HEAD_BYTES // 4 else records


class AsUtf8(io.RawIOBase):
    """The bytes of a text in another encoding, as UTF-8."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        super().__init__()
        self._file, self._held = file, b""
        # cp1252 has five bytes that stand for nothing; they become the mark for such.
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """At most `size` bytes; none at the end."""
        if size is None or size < 0:
            whole = self._held + self._decoder.decode(self._file.read(), final=True).encode()
            self._held = b""
            return whole
        while not self._held:
            piece = self._file.read(size)
            self._held = self._decoder.decode(piece, final=not piece).encode()
            if not piece:
                break
        out, self._held = self._held[:size], self._held[size:]
        return out

    def close(self) -> None:
        self._file.close()
        super().close()
