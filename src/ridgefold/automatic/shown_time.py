"""A bar that shows what a fit is doing, and how much of its time is left at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ridgefold.automatic.promised_time import PromisedTime
from ridgefold.planning.words import in_seconds


@contextmanager
def time_shown(verbose: int, time: PromisedTime) -> Iterator[Callable[[str], None]]:
    """Gives a function that is told what is done next; a bar on stderr if `verbose`.

    The bar moves by itself, also while one step takes long.
    """
    if not verbose:
        yield lambda words: None
        return
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, TextColumn
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    class TimeBar(ProgressColumn):
        def render(self, task: Any) -> ProgressBar:
            return ProgressBar(total=time.budget, completed=min(time.passed, time.budget), width=30)

    class TimeLeft(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(f"at most {in_seconds(max(time.left, 0.0))} left")

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeBar(), TimeLeft())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking at the table", total=None)
        yield lambda words: bar.update(task, description=words)
