"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ridgefold.errors import InvalidInputError


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` only once all of it is on the disk.

    It is written beside `path` under a name of its own, flushed to the disk and renamed: who
    reads `path` sees the old file or the new one, whatever fails in between.
    """
    require_place_for(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def require_place_for(path: Path) -> None:
    """Refuse a path at which no file can be written: to be known before long work."""
    if path.is_dir():
        raise InvalidInputError(f"path must name a file, but {str(path)!r} is a folder")
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}; create it first"
        )


def _flush_folder(folder: Path) -> None:
    """Make the new name durable too, on systems that can open a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
