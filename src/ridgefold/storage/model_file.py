"""The `.ridgefold` model file: a tree of values, the versions that wrote it, and notes."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import ridgefold
from ridgefold.errors import InvalidInputError, ModelFileError
from ridgefold.storage.annotations import check_fields
from ridgefold.storage.container import (
    DOCUMENT,
    VERSION,
    open_container,
    read_arrays,
    write_container,
)
from ridgefold.storage.paths import usable_path
from ridgefold.storage.tree import Packer, Unpacker

_FIRST_BYTES = {
    b"\x80": "a pickle, which could run code when loaded",
    b"PK": "a zip archive (as .npz, joblib or torch files are)",
    b"\x93NUMPY": "a NumPy array",
    b"PAR1": "a Parquet table",
    b"{": "JSON text",
}
"""How files of other kinds begin, and what an error says of them."""


@dataclass(frozen=True)
class StoredArray:
    """The description of one array in a file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    n_bytes: int


@dataclass(frozen=True)
class ModelContents:
    """All that a model file holds."""

    model: Mapping[str, Any]
    notes: Mapping[str, str]
    written_by: Mapping[str, str]
    """Versions of the libraries that wrote the file."""
    format_version: int
    file_bytes: int
    arrays: tuple[StoredArray, ...]


def library_versions() -> dict[str, str]:
    """Versions of ridgefold and what its numbers depend on."""
    return {
        "ridgefold": ridgefold.__version__,
        "python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "scipy", "scikit-learn")},
    }


def write_model(
    path: str | PathLike[str], model: Mapping[str, Any], notes: Mapping[str, str] | None = None
) -> None:
    """Write a tree of values whole or not at all. The same tree gives the same bytes."""
    target = usable_path(path)
    notes = {} if notes is None else dict(notes)
    if not all(isinstance(text, str) for pair in notes.items() for text in pair):
        raise InvalidInputError(f"notes must be a dict of texts, got {notes!r}")
    packer = Packer()
    document = {
        "model": packer.pack(model, "model"),
        "notes": notes,
        "written_by": library_versions(),
    }
    write_container(target, document, packer.arrays)


def read_model(path: str | PathLike[str]) -> ModelContents:
    """Read a file, each bit of it checked; a typed error if it is not what was written."""
    path = usable_path(path)
    with named_in_errors(path):
        opened = open_container(path)
        check_fields(
            "its document",
            opened.document,
            {
                "model": Any,
                "notes": Mapping[str, str],
                "written_by": Mapping[str, str],
                "arrays": Mapping[str, Any],
            },
            {},
        )
        unpacker = Unpacker(read_arrays(opened))
        model = unpacker.unpack(opened.document["model"], "model")
        unpacker.require_all_used()
        return ModelContents(
            model=model,
            notes=opened.document["notes"],
            written_by=opened.document["written_by"],
            format_version=VERSION,
            file_bytes=opened.file_bytes,
            arrays=tuple(
                StoredArray(e.name, e.dtype.name, e.shape, e.stop - e.start)
                for e in opened.entries.values()
                if e.name != DOCUMENT
            ),
        )


@contextlib.contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Put the file's name, and what it may be instead, in front of what is wrong with it."""
    try:
        yield
    except ModelFileError as error:
        if path.name in str(error):
            raise
        hint = _looks_like(path)
        text = f"{str(path)!r} cannot be loaded as a ridgefold model: {error}"
        raise type(error)(f"{text}. It looks like {hint}" if hint else text) from None


def _looks_like(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(8)
    return next((kind for first, kind in _FIRST_BYTES.items() if start.startswith(first)), None)
