"""`ridgefold report`: a page about a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ridgefold.cli.exit_codes import command, require_free
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.options import say


@command
def report(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The page to write; the model's name with .html if not given."
        ),
    ] = None,
    force: Options.Force = False,
    quiet: Options.Quiet = False,
    as_json: Options.Json = False,
) -> None:
    """Write one HTML page about a model: how good it is, why it is so, what it took.

    The page is a single file that opens in any browser and asks the network for nothing.
    """
    page = Path(model.name).with_suffix(".html") if output is None else output
    require_free(page, force)
    from ridgefold.estimators.saving import unpack_estimator
    from ridgefold.report import write_report
    from ridgefold.storage import read_model
    from ridgefold.storage.model_file import named_in_errors

    contents = read_model(model)
    with named_in_errors(model):
        fitted = unpack_estimator(contents.model)
    target, data = contents.notes.get("target"), contents.notes.get("data")
    title = model.name if target is None else f"{target} from {data}" if data else target
    write_report(fitted, page, target_name=target, title=title, force=force)
    say(
        {"report": str(page), "report_bytes": page.stat().st_size},
        quiet=quiet,
        as_json=as_json,
        title=str(model),
    )
