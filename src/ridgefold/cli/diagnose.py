"""`ridgefold diagnose`: what a table holds, and what is in the way of learning from it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from ridgefold.cli.exit_codes import command
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.options import column_choices, say


@command
def diagnose(
    data: Options.Data,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The column to predict.")
    ] = None,
    columns: Options.Columns = None,
    drop: Options.Drop = None,
    as_json: Options.Json = False,
) -> None:
    """Show what every column of a table is, what is done with it, and all problems at once.

    Nothing is fitted or written. Each problem comes with an option that decides otherwise.
    """
    from ridgefold.tables.diagnose import diagnose as diagnosis_of

    diagnosis = diagnosis_of(data, target, columns=column_choices(columns, drop))
    if as_json:
        say(diagnosis.to_dict(), quiet=False, as_json=True, title=data.name)
        return
    console = Console()
    console.soft_wrap = False
    if console.is_terminal:
        console.print(diagnosis)
    else:
        typer.echo(str(diagnosis))  # a pipe has no width
