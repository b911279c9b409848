"""What the command says when it cannot go on, and the code that it ends with."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import typer

from ridgefold import errors
from ridgefold.cli.options import CommandLineError, messages
from ridgefold.storage.atomic import require_absent, require_place_for

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
    143: "terminated, as by kill or a batch system",
}
"""Every exit code and what it means."""


_BY_TYPE: tuple[tuple[type[BaseException], int], ...] = (
    (CommandLineError, 2),
    (errors.OutputError, 7),
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
            with plain_warnings(), termination_raised():
                done = function(*arguments, **options)
                sys.stdout.flush()
                return done
        except BrokenPipeError:  # who reads our output has seen enough
            discard_output()
            raise typer.Exit(0) from None
        except _TerminatedError:
            messages().print(f"terminated; {_what_is_kept(options)}", markup=False)
            raise typer.Exit(143) from None
        except (errors.RidgefoldError, OSError) as error:
            code = code_of(error)
            assert code is not None
            try:
                say_error(error, as_json=bool(options.get("as_json")))
                sys.stdout.flush()
            except OSError:  # what could not be written cannot be written at the end either
                discard_output()
            raise typer.Exit(code) from None
        except KeyboardInterrupt:
            messages().print(f"interrupted; {_what_is_kept(options)}", markup=False)
            raise typer.Exit(130) from None

    return run  # type: ignore[return-value]


class _TerminatedError(BaseException):
    """SIGTERM came: not an Exception, so that nothing on the way holds it for a failure."""


@contextmanager
def termination_raised() -> Iterator[None]:
    """SIGTERM as an exception, so that files that are half written are removed."""
    ours = os.getpid()

    def stop(number: int, frame: Any) -> None:
        if os.getpid() != ours:  # a worker that was forked from us
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        signal.signal(number, signal.SIG_IGN)  # a second one must not break the cleaning up
        raise _TerminatedError

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield  # whoever calls the command as a function has a way of its own
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def discard_output() -> None:
    """Write what is left for stdout nowhere: Python would try again, and complain, as it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_streams() -> None:
    """Give a process whose stdout or stderr is closed one that goes nowhere.

    Otherwise the next file that is opened gets its number, and what is printed.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("r" if name == "stdin" else "w")  # noqa: SIM115 - for good
            setattr(sys, name, nowhere)


def _what_is_kept(options: Mapping[str, Any]) -> str:
    kept = options.get("run_dir")
    return "nothing was written" if kept is None else f"what is done is kept in {kept}"


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


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A file that cannot be read is wrong data, not an output that cannot be written."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise errors.InvalidInputError(f"there is no file {str(path)!r}") from None
        reason = error.strerror or str(error)
        raise errors.InvalidInputError(f"cannot read {str(path)!r}: {reason}") from None


def require_free(path: Path, force: bool) -> None:
    """Refuse to replace a file unless asked to, and what could not be written in the end."""
    require_place_for(path)
    if not force:
        require_absent(path)
