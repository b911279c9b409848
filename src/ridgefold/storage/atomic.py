"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ridgefold.errors import OutputError, OutputExistsError

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
"""Errors of file systems without hard links (FAT, some network shares)."""


@contextlib.contextmanager
def written_whole(path: Path, *, replace: bool = True) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` only once all of it is on the disk.

    It is written beside `path` under a name of its own, flushed to the disk and renamed. Whoever
    reads `path` sees the old file or the new one, whatever fails in between. With
    ``replace=False`` an existing file stays, even one that was created in the meantime: of several
    processes that create it at once, one succeeds.
    """
    require_place_for(path)
    if not replace:
        require_absent(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(temporary, path)
        else:
            _create(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


@contextlib.contextmanager
def created_whole(path: Path, *, replace: bool) -> Iterator[Path]:
    """A path to write a file to, which is renamed to `path` at the end; as `written_whole`.

    For those who write to a path, and always replace what is there.
    """
    if replace:
        yield path
        return
    require_place_for(path)
    require_absent(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        yield temporary
        _create(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _flush_folder(path.parent)


def _create(temporary: Path, path: Path) -> None:
    """Rename a file to a name that must be new: checked and taken in one step."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # The name is reserved by an empty file, which the whole one replaces.
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            raise _exists(path) from None
        os.replace(temporary, path)
    else:
        temporary.unlink()


def require_absent(path: Path) -> None:
    """Refuse to replace what is there: to be known before long work."""
    if path.exists() or path.is_symlink():
        raise _exists(path)


def require_place_for(path: Path) -> None:
    """Refuse a path at which no file can be written: to be known before long work."""
    if path.is_dir():
        raise OutputError(f"path must name a file, but {str(path)!r} is a folder")
    if not path.parent.is_dir():
        raise OutputError(
            f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}; create it first"
        )


def _exists(path: Path) -> OutputExistsError:
    return OutputExistsError(
        f"{str(path)!r} exists: choose another path, or pass force=True (--force on the command "
        "line), which replaces it"
    )


def _flush_folder(folder: Path) -> None:
    """Make the new name durable too, on systems that can open a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
