"""A progress bar for long searches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ridgefold.crossval import Progress, no_progress


@contextmanager
def progress_bar(verbose: int, description: str) -> Iterator[Progress]:
    """A bar on the terminal if `verbose`, else nothing; it goes from 0 to 1."""
    if not verbose:
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(description, total=1.0)
        yield lambda share: bar.update(task, completed=share)
