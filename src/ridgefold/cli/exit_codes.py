"""What the command says when it cannot go on, and the code that it ends with."""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer

from ridgefold import errors
from ridgefold.cli.options import messages
from ridgefold.storage.atomic import require_place_for

CODES = {
    0: "done",
    1: "an error that ridgefold did not expect: please report it",
    2: "the command line is wrong: an unknown option, or a value that it does not take",
    3: "the data cannot be used: a file or column is missing, or values are not what is needed",
    4: "a model file is damaged, from a newer ridgefold, or no model file",
    5: "nothing that could run fits the memory or time budget",
    6: "the numbers lost all their digits: scale the columns, or use a larger alpha",
    7: "a file is in the way (--force replaces it), or cannot be written",
    8: "the run directory is in use, or belongs to other data or settings",
    9: "workers died, or the cluster cannot be reached",
    130: "interrupted",
}
"""Every exit code and what it means."""


class OutputExistsError(errors.RidgefoldError):
    """The file to write is there already."""


_BY_TYPE: tuple[tuple[type[BaseException], int], ...] = (
    (OutputExistsError, 7),
    (errors.ModelFileError, 4),
    (errors.BudgetError, 5),
    (errors.NumericalError, 6),
    (errors.MethodGaveUpError, 6),
    (errors.RunDirectoryError, 8),
    (errors.ClusterError, 9),
    (errors.RidgefoldError, 3),
    (OSError, 7),
)

Command = TypeVar("Command", bound=Callable[..., Any])


def code_of(error: BaseException) -> int | None:
    """The exit code for an error; None if it is not one that was foreseen."""
    return next((code for cls, code in _BY_TYPE if isinstance(error, cls)), None)


def command(function: Command) -> Command:
    """Turn errors into one message on stderr (with --json, an object on stdout) and a code."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            with plain_warnings():
                return function(*arguments, **options)
        except BrokenPipeError:  # who reads our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (errors.RidgefoldError, OSError) as error:
            code = code_of(error)
            assert code is not None
            say_error(error, as_json=bool(options.get("as_json")))
            raise typer.Exit(code) from None
        except KeyboardInterrupt:
            kept = options.get("run_dir")
            done = "nothing was written" if kept is None else f"what is done is kept in {kept}"
            messages().print(f"interrupted; {done}", markup=False)
            raise typer.Exit(130) from None

    return run  # type: ignore[return-value]


def say_error(error: BaseException, *, as_json: bool, **more: Any) -> None:
    """Say what is wrong; `more` goes into the same JSON object."""
    if as_json:
        said = {"error": {"type": type(error).__name__, "message": str(error)}, **more}
        sys.stdout.write(json.dumps(said) + "\n")
    messages().print(f"error: {error}", style="red", markup=False, highlight=False)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings of ours as one line each, without the source line that Python adds."""
    before = warnings.showwarning
    console = messages()
    seen: set[str] = set()

    def show(message: Any, category: Any, *rest: Any, **more: Any) -> None:
        if not issubclass(category, errors.RidgefoldWarning):
            before(message, category, *rest, **more)
        elif str(message) not in seen:
            seen.add(str(message))
            console.print(f"note: {message}", style="yellow", markup=False, highlight=False)

    with warnings.catch_warnings():
        warnings.simplefilter("always", errors.RidgefoldWarning)
        warnings.simplefilter("ignore", errors.LeftOutWarning)
        warnings.showwarning = show
        yield


def require_free(path: Path, force: bool) -> None:
    """Refuse to replace a file unless asked to, and what could not be written in the end."""
    require_place_for(path)
    if path.exists() and not force:
        raise OutputExistsError(f"{str(path)!r} exists: choose another name, or pass --force")
