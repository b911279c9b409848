"""`ridgefold fit-kernel` of tables beyond the memory: batch by batch to disk, then cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ridgefold.cli.options import messages
from ridgefold.cli.training import columns_to_learn_from
from ridgefold.errors import InvalidInputError

_SHARE = 0.125
"""A table that would take more of the memory budget as numbers is streamed."""


@dataclass(frozen=True)
class Streamed:
    """A fitted model of a streamed table."""

    model: Any
    task: str


def worth_streaming(path: Path, memory: str) -> bool:
    """Whether a table is too large to be read whole."""
    from ridgefold.planning import available_resources
    from ridgefold.tables.table_stream import bytes_as_numbers

    if not path.is_file() or path.suffix.lower() == ".npz":
        return False
    return bytes_as_numbers(path) > _SHARE * available_resources(memory).memory_bytes


@contextmanager
def fitted_from_stream(
    path: Path,
    target: str,
    make: Callable[[str], Any],
    *,
    ignore: Collection[str],
    categorical: Collection[str],
    categories: str,
    missing: str,
    standardise: bool,
    task: str,
    run_dir: Path | None,
    quiet: bool,
) -> Iterator[Streamed]:
    """A model that `make(task)` and the table give; its rows are on disk as long as it is used."""
    from ridgefold.estimators.table_model import TableModel
    from ridgefold.storage.mapped import open_array
    from ridgefold.tables.table_stream import TableStream
    from ridgefold.tables.tables import open_table

    file = open_table(path)
    used = columns_to_learn_from(file.names(), target, ignore=ignore, categorical=categorical)
    texts = [name for name in categorical if name in used]
    stream = TableStream(
        file,
        used,
        target,
        categorical=texts,
        missing=missing,
        classify=task == "classification",
    )
    scanned = stream.scan(standardise=standardise)
    found = _task(task, scanned, target)
    if not quiet:
        lost = scanned.without_target
        left_out = f"; left out {lost:,} rows without a target" if lost else ""
        messages().print(
            f"{found}: {scanned.n_rows:,} rows, read in batches{left_out}", markup=False
        )
    # Beside the run directory, which workers see, if there is one.
    near = None if run_dir is None else str(run_dir.resolve().parent)
    with TemporaryDirectory(prefix="ridgefold-", dir=near) as folder:
        rows, y = stream.write(scanned, Path(folder), labels=found == "classification")
        targets = open_array(y) if isinstance(y, Path) else y
        model = TableModel(
            make(found),
            standardise=standardise,
            categorical=texts,
            categories=categories,
            missing=missing,
        )
        yield Streamed(model.fit_numbers(scanned.columns, open_array(rows), targets), found)


def _task(task: str, scanned: Any, target: str) -> str:
    few = scanned.target_is_text or scanned.target_is_boolean or len(scanned.target_values) == 2
    if task == "auto":
        return "classification" if few else "regression"
    if task == "regression" and scanned.target_is_text:
        raise InvalidInputError(
            f"the target {target!r} holds text, and regression needs numbers: pass "
            "--task classification"
        )
    return task
