"""Tables beyond the memory: which they are, and their rows on disk for `ridgefold fit-kernel`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ridgefold.tables.table_stream import WrittenTable

_SHARE = 0.125
"""A table that would take more of the memory budget as numbers is streamed."""


def worth_streaming(path: Path, memory: str) -> bool:
    """Whether a table is too large to be read whole."""
    from ridgefold.planning import available_resources
    from ridgefold.tables.table_stream import bytes_as_numbers

    if not path.is_file() or path.suffix.lower() == ".npz":
        return False
    return bytes_as_numbers(path) > _SHARE * available_resources(memory).memory_bytes


@contextmanager
def rows_on_disk(
    path: Path, target: str, columns: Mapping[str, Any], standardise: bool, run_dir: Path | None
) -> Iterator[WrittenTable]:
    """A table read in batches; its rows are on disk as long as they are used."""
    from ridgefold.tables.table_stream import written_table

    # Beside the run directory, which workers see, if there is one.
    near = None if run_dir is None else str(run_dir.resolve().parent)
    with TemporaryDirectory(prefix="ridgefold-", dir=near) as folder:
        yield written_table(path, target, Path(folder), columns=columns, standardise=standardise)
