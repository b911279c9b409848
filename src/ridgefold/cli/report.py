"""`ridgefold report`: a page about a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ridgefold.cli.exit_codes import command, reading, require_free
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.options import say
from ridgefold.cli.unseen_table import errors_on, rows_with_targets


@command
def report(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The page to write; the model's name with .html if not given."
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="A table of rows that took no part in the fit, with the target."),
    ] = None,
    force: Options.Force = False,
    quiet: Options.Quiet = False,
    as_json: Options.Json = False,
) -> None:
    """Write one HTML page about a model: how good it is, why it is so, what it took.

    The page is a single file that opens in any browser and asks the network for nothing. With
    --test, the error on these rows is printed, too.
    """
    page = Path(model.name).with_suffix(".html") if output is None else output
    require_free(page, force)
    from ridgefold.estimators.saving import unpack_estimator
    from ridgefold.report import write_report
    from ridgefold.storage import read_model
    from ridgefold.storage.model_file import named_in_errors

    with reading(model):
        contents = read_model(model)
    with named_in_errors(model):
        fitted = unpack_estimator(contents.model)
    target, data = contents.notes.get("target"), contents.notes.get("data")
    title = model.name if target is None else f"{target} from {data}" if data else target
    rows, targets = (
        (None, None) if test is None else rows_with_targets(test, fitted, contents.notes)
    )
    write_report(fitted, page, rows, targets, target_name=target, title=title, force=force)
    say(
        {
            **({} if targets is None else errors_on(fitted, rows, targets)),
            "report": str(page),
            "report_bytes": page.stat().st_size,
        },
        quiet=quiet,
        as_json=as_json,
        title=str(model),
    )
