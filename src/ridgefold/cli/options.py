"""Options that several commands have, and how results are shown."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ridgefold.errors import InvalidInputError


class CommandLineError(InvalidInputError):
    """An option has a value that it does not take, or does not go with another."""


@contextmanager
def values_of_options() -> Iterator[None]:
    """What is wrong here is the value of an option, and not the data."""
    try:
        yield
    except InvalidInputError as error:
        raise CommandLineError(str(error)) from None


def require_memory(memory: str) -> None:
    """Refuse what is no amount of memory."""
    from ridgefold.planning import available_resources

    with values_of_options():
        available_resources(memory)


def require_positive(option: str, value: float | None) -> None:
    """Refuse what is no positive number."""
    if value is not None and not 0 < value < math.inf:
        raise CommandLineError(f"{option} must be a number > 0, got {value:g}")


def require_jobs(jobs: int | None) -> None:
    """Refuse what is no number of cores."""
    if jobs is not None and (jobs == 0 or jobs < -1):
        raise CommandLineError(
            f"--jobs must be a whole number >= 1, or -1 for all cores, got {jobs}"
        )


def require_kernel(name: str) -> None:
    """Refuse what is no kernel of a table."""
    from ridgefold.kernels import NAMED_KERNELS

    names = sorted(set(NAMED_KERNELS) - {"precomputed"})
    if name not in ("auto", *names):
        raise CommandLineError(f"--kernel must be auto or one of {', '.join(names)}, got {name!r}")


def require_executor(executor: str | None) -> None:
    """Refuse what is neither a way to work nor the address of a scheduler."""
    names = ("auto", "serial", "threads", "processes", "dask")
    if executor is not None and executor not in names and "://" not in executor:
        raise CommandLineError(
            f"--executor must be one of {', '.join(names)} or the address of a Dask scheduler "
            f"(tcp://…, tls://…), got {executor!r}"
        )


def require_device(device: str | None) -> None:
    """Refuse a device that torch does not have."""
    if device is not None:
        import numpy as np

        from ridgefold.linalg.namespace import on_device

        with values_of_options():
            on_device(np.zeros(1), device)


class Task(StrEnum):
    """What is predicted."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


class Categories(StrEnum):
    """How columns of categories enter a learned kernel."""

    one_hot = "one_hot"
    product = "product"


class Kept(StrEnum):
    """What to keep for intervals."""

    auto = "auto"
    cv_plus = "cv+"
    jackknife_plus = "jackknife+"
    none = "none"


class CommandOptions:
    """Types of the shared options."""

    Data = Annotated[Path, typer.Argument(help="A .csv, .tsv, .txt, .parquet, .npy or .npz file.")]
    Memory = Annotated[
        str, typer.Option(help="Most memory to use, as 4GB; auto is a share of what is free.")
    ]
    Time = Annotated[
        float | None,
        typer.Option("--time", help="Seconds that one step may take at most, as predicted."),
    ]
    Force = Annotated[bool, typer.Option("--force", "-f", help="Replace files that are there.")]
    Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
    Columns = Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            help="What a column is, as zip=category; number, category, ordered, date, "
            "date:day_first, date:month_first, or the levels of an order, as 'size=S<M<L'. Several "
            "are separated by commas, or the option is given again.",
            rich_help_panel="The table",
        ),
    ]
    Drop = Annotated[
        list[str] | None,
        typer.Option(
            "--drop",
            help="A column to leave out; may be given again.",
            rich_help_panel="The table",
        ),
    ]
    Json = Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout instead of text.")
    ]


def column_choices(columns: Sequence[str] | None, drop: Sequence[str] | None) -> dict[str, Any]:
    """What `--columns` and `--drop` say, as the argument `columns` of `diagnose`."""
    choices: dict[str, Any] = {}
    for entry in (each for text in columns or () for each in text.split(",")):
        name, equals, kind = entry.rpartition("=")
        if not equals or not kind:
            raise CommandLineError(
                f"--columns must be name=kind, as zip=category, got {entry!r} (a name that holds a "
                "comma can be given in Python only)"
            )
        levels = [level.strip() for level in kind.split("<")]
        choices[name] = levels if len(levels) > 1 else kind
    return choices | dict.fromkeys(drop or (), "drop")


_LABELS = {
    "test_rmse": "error on these rows (RMSE)",
    "test_r2": "R² on these rows",
    "test_accuracy": "accuracy on these rows",
    "held_out_rmse": "held-out error (RMSE)",
    "rmse_of_the_mean": "error of predicting the mean",
    "rmse_of_a_linear_model": "error of a linear model",
    "rmse_of_gradient_boosting": "error of gradient boosting",
    "seconds_of_gradient_boosting": "seconds of gradient boosting",
    "held_out_r2": "held-out R²",
    "nine_in_ten_within": "nine in ten rows are within ±",
    "accuracy_of_the_largest_class": "accuracy of naming the largest class",
    "held_out_log_loss": "held-out log-loss",
    "log_loss_of_a_linear_model": "log-loss of a linear model",
    "log_loss_of_gradient_boosting": "log-loss of gradient boosting",
    "log_loss_of_the_shares": "log-loss of the shares of classes",
    "r2_lost_without": "R² lost if shuffled",
    "lost_without": "knowledge lost if shuffled",
    "shares_in_distance": "shares in distance\n(how finely a column is\nresolved, not importance)",
    "time_budget": "seconds it was given",
    "held_out_accuracy": "held-out accuracy",
    "cross_validation": "cross-validation",
    "model_bytes": "bytes",
    "report_bytes": "bytes",
}


def messages() -> Console:
    """For progress, notes and errors: stderr, so that results can be piped."""
    console = Console(stderr=True)
    # Lines are broken between words for people, and not at all for programs.
    console.soft_wrap = not console.is_terminal
    return console


def say(summary: Mapping[str, Any], *, quiet: bool, as_json: bool, title: str) -> None:
    """Show a result: as JSON, as a table, or not at all."""
    if as_json:
        sys.stdout.write(json.dumps(_plain(summary), ensure_ascii=False) + "\n")
        return
    if quiet:
        return
    table = Table(title=plain_text(title), title_justify="left", show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in summary.items():
        if value is not None:
            shown = _shares(value) if name == "models" else _words(value)
            table.add_row(_LABELS.get(name, name.replace("_", " ")), plain_text(shown))
    Console().print(table)


def plain_text(text: str) -> Any:
    """Text from data or files as it is: no markup, no control characters."""
    from rich.text import Text

    return Text("".join(c if c.isprintable() or c == "\n" else "�" for c in text))


def _digits(value: float) -> str:
    """A number with the four digits that matter, or all of those before the point."""
    if value.is_integer() and abs(value) < 1e9:
        return f"{value:,.0f}"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.4g}"
    return f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"


def _shares(models: Sequence[Mapping[str, Any]]) -> str:
    """Of which models a sum is made, one a line."""
    lines = [f"{each['share']:.0%}: {each['candidate']}" for each in models]
    return "\n".join(lines) or "the mean"


def _words(value: Any) -> str:
    if isinstance(value, float):
        return _digits(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {_words(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(item) for item in value)
    return str(value)


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
