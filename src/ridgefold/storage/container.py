"""Named arrays and one JSON document in a safetensors file, read with no trust in it.

The layout is that of https://github.com/huggingface/safetensors (format section): eight bytes
with the length of a JSON header, the header, then the arrays one after the other. Ours is a
strict subset that its readers can open: the header is canonical JSON (written again, it gives
the same bytes), the arrays lie in order without gaps, and the document is the last one, of
bytes. The header holds the SHA-256 of the document, the document those of all arrays, with
their types and shapes; so no bit of a file can change unnoticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ridgefold.errors import ModelFileError, ModelFileVersionError
from ridgefold.storage import strict_json
from ridgefold.storage.atomic import written_whole
from ridgefold.storage.mapped import release

FORMAT = "ridgefold-model"
VERSION = 1
"""Version of the layout that this module writes; raised when older readers could not read it."""
DOCUMENT = "document.json"
"""Name of the array of bytes that holds the JSON document."""

_DTYPES: Mapping[str, np.dtype] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_MOST_HEADER_BYTES = 16_000_000
"""A header is refused above this: no model has arrays enough for it, and it is read as a whole."""
_LEAST_DOCUMENT_BYTES = 1_000_000
"""Headers and documents up to this size are read however small the file; larger ones may take a
quarter of it, so that the memory for them is bounded by what is there."""
READ_BYTES = 1 << 20
"""Bytes that are read and hashed at once: enough that calls cost nothing, little memory."""
_WRITE_BYTES = 1 << 24
"""Bytes that are written and hashed at once, after which the pages of a mapped file are let go."""


def storable(dtype: np.dtype) -> bool:
    """Whether arrays of this type can be stored."""
    return dtype.newbyteorder("<") in _NAMES


@dataclass(frozen=True)
class Entry:
    """One array of a file: type, shape, and where it lies after the header."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class Opened:
    """A checked header, and the document."""

    path: Path
    file_bytes: int
    entries: Mapping[str, Entry]
    data_start: int
    document: Mapping[str, Any]


# -- writing -------------------------------------------------------------------------------


def write_container(
    path: Path,
    document: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    kind: str = FORMAT,
) -> str:
    """Write a file whole or not at all; `document` gets the entry "arrays" with the digests.

    Returns the SHA-256 of the file.
    """
    stored = {name: _little_endian(array) for name, array in arrays.items()}
    order = sorted(stored, key=lambda name: (-stored[name].itemsize, name))
    text = strict_json.dumps(
        {**document, "arrays": {name: _description(stored[name]) for name in order}}
    )
    header: dict[str, Any] = {
        "__metadata__": {
            "format": kind,
            "version": str(VERSION),
            "sha256": hashlib.sha256(text).hexdigest(),
        }
    }
    position = 0
    for name in order:
        array = stored[name]
        header[name] = _header_entry(_NAMES[array.dtype], array.shape, position, array.nbytes)
        position += array.nbytes
    header[DOCUMENT] = _header_entry("U8", (len(text),), position, len(text))
    head = _padded(strict_json.dumps(header))
    digest = hashlib.sha256()
    with written_whole(path) as file:
        for data in (len(head).to_bytes(8, "little"), head):
            file.write(data)
            digest.update(data)
        for name in order:
            for piece in _pieces_of(stored[name]):
                file.write(piece)
                digest.update(piece)
        file.write(text)
        digest.update(text)
    return digest.hexdigest()


def _little_endian(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _pieces_of(array: np.ndarray) -> Iterator[memoryview]:
    """The bytes of an array, some megabytes at a time; pages of a mapped file are let go."""
    view = _bytes_of(array)
    for start in range(0, len(view), _WRITE_BYTES):
        yield view[start : start + _WRITE_BYTES]
        release(array)


def _description(array: np.ndarray) -> dict[str, Any]:
    digest = hashlib.sha256()
    for piece in _pieces_of(array):
        digest.update(piece)
    return {
        "dtype": _NAMES[array.dtype],
        "shape": list(array.shape),
        "sha256": digest.hexdigest(),
    }


def _header_entry(dtype: str, shape: tuple[int, ...], start: int, size: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, start + size]}


def _padded(head: bytes) -> bytes:
    return head + b" " * (-len(head) % 8)


# -- reading -------------------------------------------------------------------------------


def open_container(path: Path, *, kind: str = FORMAT) -> Opened:
    """Check the header and the document against each other; read no arrays."""
    with _regular_file(path) as (file, size):
        head, metadata, data_start = _read_header(file, size, kind)
        entries = _entries(head, data_start, size)
        text = _read_document(file, data_start, entries, size)
    if hashlib.sha256(text).hexdigest() != metadata["sha256"]:
        raise ModelFileError("its document does not have the SHA-256 that its header names")
    document = strict_json.loads(text, most_values=_most_values(size))
    if not isinstance(document, dict) or not isinstance(document.get("arrays"), dict):
        raise ModelFileError('its document must be an object with an entry "arrays"')
    described = document["arrays"]
    if set(described) != set(entries) - {DOCUMENT}:
        raise ModelFileError("its header and its document name different arrays")
    for name, described_array in described.items():
        entry = entries[name]
        expected = {"dtype": _NAMES[entry.dtype], "shape": list(entry.shape)}
        if (
            not isinstance(described_array, dict)
            or set(described_array) != {"dtype", "shape", "sha256"}
            or strict_json.dumps({key: described_array[key] for key in expected})
            != strict_json.dumps(expected)
        ):
            raise ModelFileError(f"its header and its document disagree on the array {name[:80]!r}")
    return Opened(path, size, entries, data_start, document)


def read_arrays(opened: Opened) -> dict[str, np.ndarray]:
    """Every array, each with the SHA-256 that the document names."""
    arrays = {}
    with _regular_file(opened.path) as (file, size):
        if size != opened.file_bytes:
            raise ModelFileError("it changed while it was read")
        for name, entry in opened.entries.items():
            if name == DOCUMENT:
                continue
            array = _empty(entry)
            view = _bytes_of(array)
            file.seek(opened.data_start + entry.start)
            if _read_into(file, view) != opened.document["arrays"][name]["sha256"]:
                raise ModelFileError(
                    f"its array {name[:80]!r} does not have the SHA-256 that its document names"
                )
            if entry.dtype == np.bool_ and np.any(array.view(np.uint8) > 1):
                raise ModelFileError(f"its array {name[:80]!r} holds bytes that are no booleans")
            arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return arrays


def _empty(entry: Entry) -> np.ndarray:
    try:
        return np.empty(entry.shape, dtype=entry.dtype)
    except ValueError:  # no entries, but dimensions beyond any array's
        raise ModelFileError(
            f"its array {entry.name[:80]!r} has an impossible shape, {entry.shape}"
        ) from None


@contextlib.contextmanager
def _regular_file(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """An open file and its size; a pipe or a device, which has no size to check, is refused."""
    if not path.is_file():
        path.stat()  # raises FileNotFoundError, which says it best
        raise ModelFileError("it is not a regular file")
    with path.open("rb", buffering=0) as file:
        yield file, os.fstat(file.fileno()).st_size


def _exactly(file: BinaryIO, count: int) -> bytearray:
    data = bytearray(count)
    _read_into(file, memoryview(data))
    return data


def _read_into(file: BinaryIO, view: memoryview) -> str:
    """Fill `view` from the file, and return the SHA-256 of the bytes read."""
    digest = hashlib.sha256()
    done = 0
    while done < len(view):
        piece = view[done : done + READ_BYTES]
        count = file.readinto(piece)  # type: ignore[attr-defined]
        if not count:
            raise ModelFileError("it ends too early: it was cut off, or not copied whole")
        digest.update(piece[:count])
        done += count
    return digest.hexdigest()


def _read_header(
    file: BinaryIO, size: int, kind: str
) -> tuple[dict[str, Any], dict[str, str], int]:
    """Descriptions of the arrays, the header's own entries, and where the arrays begin."""
    if size < 8:
        raise ModelFileError("it is too short to be a model file")
    length = int.from_bytes(_exactly(file, 8), "little")
    if not 2 <= length <= size - 8 or length % 8:
        raise ModelFileError(
            "it is no model file, or was cut off: the length of its header cannot be right"
        )
    if length > min(_MOST_HEADER_BYTES, max(_LEAST_DOCUMENT_BYTES, size // 4)):
        raise ModelFileError(f"its header is too large ({length} bytes)")
    text = _exactly(file, length)
    head = strict_json.loads(text, most_values=_most_values(size))
    if not isinstance(head, dict):
        raise ModelFileError("its header is not a JSON object")
    metadata = head.pop("__metadata__", None)
    if (
        not isinstance(metadata, dict)
        or not all(isinstance(value, str) for value in metadata.values())
        or metadata.get("format") != kind
    ):
        raise ModelFileError(f"its header does not say that it is a {kind.replace('-', ' ')}")
    _check_version(metadata.get("version", ""))
    if set(metadata) != {"format", "version", "sha256"}:
        raise ModelFileError("its header has entries that format 1 does not have")
    if _padded(strict_json.dumps({"__metadata__": metadata, **head})) != text:
        raise ModelFileError("its header is not in canonical form: it was changed")
    return head, metadata, 8 + length


def _check_version(version: str) -> None:
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        raise ModelFileError(f"its format version {version[:20]!r} is not a number")
    if int(version) > VERSION:
        raise ModelFileVersionError(
            f"it has format version {version}, and this ridgefold reads up to {VERSION}: "
            "upgrade ridgefold"
        )
    if int(version) < 1 or version != str(int(version)):
        raise ModelFileError(f"its format version {version!r} never existed")


def _most_values(size: int) -> int:
    """About 80 bytes of memory a value: together well below the size of a large file."""
    return 100_000 + size // 400


def _entries(head: Mapping[str, Any], data_start: int, size: int) -> dict[str, Entry]:
    entries = [_entry(name, value) for name, value in head.items()]
    entries.sort(key=lambda entry: (entry.start, entry.stop))
    position = 0
    for entry in entries:
        if entry.start != position:
            raise ModelFileError(f"its array {entry.name[:80]!r} does not follow on the one before")
        position = entry.stop
    if data_start + position != size:
        raise ModelFileError(
            f"it should have {data_start + position} bytes and has {size}: it was cut off or "
            "added to"
        )
    if not entries or entries[-1].name != DOCUMENT:
        raise ModelFileError("it has no document at its end")
    return {entry.name: entry for entry in entries}


def _entry(name: str, value: Any) -> Entry:
    wrong = ModelFileError(f"its header describes the array {name[:80]!r} wrongly")
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise wrong
    shape, offsets = value["shape"], value["data_offsets"]
    if not isinstance(value["dtype"], str) or value["dtype"] not in _DTYPES:
        raise wrong
    if not _whole_numbers(shape) or not _whole_numbers(offsets) or len(offsets) != 2:
        raise wrong
    dtype = _DTYPES[value["dtype"]]
    if len(shape) > 8 or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise ModelFileError(
            f"its array {name[:80]!r} of shape {shape[:8]} does not have the bytes for it"
        )
    return Entry(name, dtype, tuple(shape), offsets[0], offsets[1])


def _whole_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 2**62 for value in values
    )


def _read_document(
    file: BinaryIO, data_start: int, entries: Mapping[str, Entry], size: int
) -> bytearray:
    entry = entries[DOCUMENT]
    count = entry.stop - entry.start
    if entry.dtype != np.uint8 or len(entry.shape) != 1:
        raise ModelFileError("its document is not an array of bytes")
    if count > max(_LEAST_DOCUMENT_BYTES, size // 4):
        raise ModelFileError(f"its document is too large ({count} bytes)")
    file.seek(data_start + entry.start)
    return _exactly(file, count)
