"""A folder in which a fit keeps what it has done, so that the same fit can go on from there.

    run.json        what was asked: data, settings, versions (`storage.fingerprint`)
    lock            held by the process that works here
    manifest.jsonl  a line for every finished file: its name and SHA-256
    steps/          values that were computed once: learned scales, the cells, the choice
    cells/          results, one file for every task of cells
    kernels/        held-out predictions, one file for every kernel of a search
    data/           rows, targets and folds that workers read
    rows/           rows in the order of the cells, where they are kept on disk
    model/          arrays of the model, where they are kept on disk
    predictions/    what some cells predict, while the workers of a cluster predict

A finished file is a container (`storage.container`) that names the run and itself and holds the
SHA-256 of everything in it. It is used only if that, and the manifest where it lists the file,
say that it is whole and of this run; else it is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ridgefold.errors import (
    ModelFileError,
    RidgefoldError,
    RunDirectoryError,
    RunDirectoryLockedError,
    RunDirectoryMismatchError,
    WorkerLostError,
)
from ridgefold.storage import strict_json
from ridgefold.storage.atomic import written_whole
from ridgefold.storage.container import READ_BYTES, open_container, read_arrays, write_container
from ridgefold.storage.fingerprint import differences, digest_of, listed
from ridgefold.storage.tree import Packer, Unpacker

VERSION = 1
"""Version of the folder's layout: a part of what is asked, so that another one is refused."""
MOST_TRIES = 3
"""Tries of a task before it is refused: one process may die by chance, three do not."""
PIECE_KIND = "ridgefold-run-piece"
_ASKED, _LOCK, _MANIFEST = "run.json", "lock", "manifest.jsonl"
_FOLDERS = ("steps", "cells", "kernels", "predictions", "rows", "model")
_MOST_VALUES = 1_000_000
"""Values that run.json may hold: far more than any fit's settings, and little memory."""
_FAILURES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip
"""The errors by which a computation with values of the wrong type or shape fails."""


@dataclass(frozen=True)
class Piece:
    """The place of one finished file and the run it belongs to: all that a worker needs."""

    path: Path
    run: str
    name: str

    def made(self, make: Callable[[], Any]) -> str:
        """Keep the value of `make()`; returns the SHA-256 of the file.

        A whole file that is there already stays: the worker that wrote it may have been lost before
        it could say so.
        """
        if self.path.exists():
            with contextlib.suppress(ModelFileError):
                self.read()
                return file_digest(self.path)
        with self.tried():
            return self.write(make())

    def write(self, value: Any) -> str:
        """Keep a value; returns the SHA-256 of the file."""
        packer = Packer()
        document = {"run": self.run, "name": self.name, "value": packer.pack(value, "value")}
        return write_container(self.path, document, packer.arrays, kind=PIECE_KIND)

    @contextlib.contextmanager
    def tried(self) -> Iterator[None]:
        """Count a try to make this file, and refuse after three tries that never ended.

        A try that ends, well or by an error, is taken back, so that only the deaths of workers are
        counted.
        """
        path = self.path.with_suffix(".tries")
        if path.exists() and path.stat().st_size >= MOST_TRIES:
            raise WorkerLostError(
                f"{self.name} was begun {MOST_TRIES} times, and each time the process that worked "
                "on it died: it may need more memory than there is, or crash; use workers with "
                "more memory, or smaller tasks (of cells: a larger n_partitions)"
            )
        with path.open("ab") as file:
            file.write(b".")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def read(self) -> Any:
        """The value that was kept; a typed error if the file is not whole, or of another run."""
        opened = open_container(self.path, kind=PIECE_KIND)
        if opened.document.get("run") != self.run or opened.document.get("name") != self.name:
            raise ModelFileError(f"it is not {self.name!r} of this run")
        unpacker = Unpacker(read_arrays(opened))
        value = unpacker.unpack(opened.document.get("value"), "value")
        unpacker.require_all_used()
        return value


class RunDirectory:
    """The folder of one fit, held by this process while it is open."""

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path = path
        self.asked = {"format": VERSION, **asked}
        self.run = digest_of(self.asked)
        self._folder = digest_of({"folder": str(Path(path).resolve())})[:8]
        self.reused: list[str] = []
        """Names of the files that were there already."""
        self.made: list[str] = []
        """Names of the files that were written by this process."""
        self._digests: dict[str, str] = {}
        self._lock: BinaryIO | None = None

    # -- opening -------------------------------------------------------------------------

    @contextlib.contextmanager
    def opened(self) -> Iterator[RunDirectory]:
        """Create or continue; the lock is given back whatever happens."""
        self._create()
        self._take_lock()
        try:
            self._compare()
            self._clean()
            self._digests = self._read_manifest()
            with self._unusable_if_it_fails():
                yield self
        finally:
            assert self._lock is not None
            self._lock.close()
            self._lock = None

    @contextlib.contextmanager
    def _unusable_if_it_fails(self) -> Iterator[None]:
        """Name the folder in the error of a fit that fails on values it has read back.

        By their digests the files are whole and of this run. But whoever can write to the folder
        can write matching digests too, and a computation with such values may fail anywhere.
        """
        try:
            yield
        except RidgefoldError:
            raise
        except _FAILURES as error:
            if not self.reused:
                raise
            raise RunDirectoryError(
                f"the fit cannot go on from what is kept in {str(self.path)!r} "
                f"({type(error).__name__}: {str(error)[:200]}): delete the folder, or choose "
                "another"
            ) from error

    def _create(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise RunDirectoryError(f"run_dir must name a folder, but {str(self.path)!r} is a file")
        for name in (_ASKED, _LOCK, _MANIFEST):
            require_file(self.path / name)
        ours = (self.path / _ASKED).exists() or (self.path / _LOCK).exists()
        if self.path.is_dir() and not ours and any(self.path.iterdir()):
            raise RunDirectoryError(
                f"{str(self.path)!r} holds other files and is no run directory: choose a new or "
                "empty folder"
            )
        for name in _FOLDERS:
            folder = self.path / name
            if folder.exists() and not folder.is_dir():
                raise RunDirectoryError(
                    f"{str(folder)!r} must be a folder, and is none: delete it, or choose another "
                    "run_dir"
                )
            folder.mkdir(parents=True, exist_ok=True)

    def _take_lock(self) -> None:
        import fcntl

        self._lock = (self.path / _LOCK).open("a+b")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            who = self._lock.read(200).decode("ascii", "replace").strip()
            self._lock.close()
            raise RunDirectoryLockedError(
                f"another process ({who or 'unknown'}) works in {str(self.path)!r}: wait for it, "
                "or choose another folder"
            ) from None
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        self._lock.flush()

    def _compare(self) -> None:
        path = self.path / _ASKED
        if not path.exists():
            with written_whole(path) as file:
                file.write(strict_json.dumps(self.asked))
            return
        try:
            there = strict_json.loads(path.read_bytes(), most_values=_MOST_VALUES)
        except ModelFileError as error:
            raise RunDirectoryError(
                f"{str(path)!r} cannot be read ({error}): delete the folder, or choose another"
            ) from None
        differing = differences(there, json.loads(strict_json.dumps(self.asked)))
        if differing:
            raise RunDirectoryMismatchError(
                f"{str(self.path)!r} belongs to another fit: {listed(differing)}. Choose another "
                "folder, or delete this one"
            )

    def _clean(self) -> None:
        """Remove what writers that were killed left behind."""
        for folder in (self.path, *(self.path / name for name in _FOLDERS)):
            for path in (*folder.glob(".*.part"), *folder.glob("*.tries")):
                require_file(path)
                path.unlink(missing_ok=True)

    # -- the manifest --------------------------------------------------------------------

    def _read_manifest(self) -> dict[str, str]:
        path, digests = self.path / _MANIFEST, {}
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        for line in lines:
            try:
                entry = strict_json.loads(line, most_values=100)
                digests[str(entry["name"])] = str(entry["sha256"])
            except (ModelFileError, KeyError, TypeError):
                continue  # the end of a line that was cut off
        return digests

    def record(self, name: str, sha256: str) -> None:
        """Note that a file is finished."""
        self.made.append(name)
        self._digests[name] = sha256
        with (self.path / _MANIFEST).open("ab") as file:
            # A line that was cut off before ends here.
            file.write(b"\n" + strict_json.dumps({"name": name, "sha256": sha256}) + b"\n")

    # -- pieces --------------------------------------------------------------------------

    def piece(self, name: str) -> Piece:
        return Piece(self.path / f"{name}.piece", self.run, name)

    def key(self, name: str) -> str:
        """A name for a task that is the same whenever the same fit in this folder comes to it."""
        return f"ridgefold-{self.run[:16]}-{self._folder}-{name.replace('/', '-')}"

    def is_whole(self, name: str) -> bool:
        """Whether a piece is there, of this run and unchanged; a file that is not is removed."""
        piece = self.piece(name)
        require_file(piece.path)
        if not piece.path.exists():
            return False
        try:
            if file_digest(piece.path) != self._digests.get(name):
                # Finished, but not noted before the process that would have done so ended.
                if name in self._digests:
                    raise ModelFileError("it is not the file that the manifest lists")
                piece.read()
        except (ModelFileError, OSError):
            piece.path.unlink(missing_ok=True)
            return False
        return True

    def step(
        self,
        name: str,
        make: Callable[[], Any],
        rng: np.random.Generator | None = None,
    ) -> Any:
        """The value of `make()`, computed or read back; `rng` is left as `make` leaves it."""
        name = f"steps/{name}"
        if not self.is_whole(name):
            value = make()
            state = None if rng is None else json.dumps(rng.bit_generator.state)
            self.record(name, self.piece(name).write({"value": value, "rng": state}))
            return value
        self.reused.append(name)
        kept = self.piece(name).read()
        if rng is not None:
            rng.bit_generator.state = strict_json.loads(kept["rng"].encode(), most_values=100)
        return kept["value"]


class NoRunDirectory:
    """The run directory of a fit without one: every step is computed, and nothing is kept."""

    path = None

    def __init__(self) -> None:
        self._own = uuid.uuid4().hex[:16]

    def key(self, name: str) -> str:
        """A name for a task of this fit alone: others may run on the same cluster."""
        return f"ridgefold-{self._own}-{name.replace('/', '-')}"

    def step(
        self,
        name: str,
        make: Callable[[], Any],
        rng: np.random.Generator | None = None,
    ) -> Any:
        return make()


Run = RunDirectory | NoRunDirectory


def require_file(path: Path) -> None:
    """Refuse a path at which something other than a regular file lies."""
    if path.exists() and not path.is_file():
        raise RunDirectoryError(
            f"{str(path)!r} must be a file, and is {'a folder' if path.is_dir() else 'none'}: "
            "delete it, or choose another run_dir"
        )


def asked_before(path: Path) -> dict[str, Any] | None:
    """What the fit of a run directory was asked to do; None if there is no run directory."""
    if not (path / _ASKED).is_file():
        return None
    try:
        asked = strict_json.loads((path / _ASKED).read_bytes(), most_values=_MOST_VALUES)
    except (ModelFileError, OSError):
        return None
    return asked if isinstance(asked, dict) else None


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()
