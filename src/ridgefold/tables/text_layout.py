"""How a text file of rows is written: its encoding, and the mark between its cells."""

from __future__ import annotations

import codecs
import csv
import io
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
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class TextLayout:
    """How the text of a file is read."""

    encoding: str
    separator: str


def layout_of(open_bytes: Callable[[], Any], usual_separator: str) -> TextLayout:
    """Look at the beginning of a file; `usual_separator` is taken where nothing speaks against it.

    `open_bytes` opens the file, decompressed.
    """
    with open_bytes() as file:
        head = file.read(_HEAD_BYTES)
    encoding = _encoding(head, open_bytes)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(head)
    return TextLayout(encoding, separator_of(text.lstrip("\ufeff"), usual_separator))


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


def _widths(text: str, separator: str) -> list[int]:
    """The number of cells of the first records."""
    widths: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for record in reader:
            if record:
                widths.append(len(record))
            if len(widths) > _MOST_RECORDS:
                break
    except csv.Error:
        return widths
    # The last record of the piece that was read may be cut off.
    return widths[:-1] if len(widths) > 2 and len(text) >= _HEAD_BYTES // 4 else widths


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
