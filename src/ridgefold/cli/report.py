"""`ridgefold report`: a page about a model file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ridgefold.cli.exit_codes import command, reading, require_free
from ridgefold.cli.options import CommandLineError, say
from ridgefold.cli.options import CommandOptions as Options


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

    The page is a single file that opens in any browser and asks the network for nothing.
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
    rows, targets = (None, None) if test is None else _test_set(test, fitted, contents.notes)
    write_report(fitted, page, rows, targets, target_name=target, title=title, force=force)
    say(
        {"report": str(page), "report_bytes": page.stat().st_size},
        quiet=quiet,
        as_json=as_json,
        title=str(model),
    )


def _test_set(path: Path, fitted: Any, notes: Mapping[str, str]) -> tuple[Any, np.ndarray]:
    """Rows and targets of a table, read as those of the fit were."""
    from ridgefold.cli.training import read_training_table
    from ridgefold.records import CategoryColumn
    from ridgefold.tables.names import require_columns
    from ridgefold.tables.tables import open_table

    columns = getattr(fitted, "columns_", None)
    if columns is None or "target" not in notes or "task" not in notes:
        raise CommandLineError(
            "--test needs a model that ridgefold fit has written, which knows its columns and "
            "target: use ridgefold.write_report(model, page, X_test, y_test) for others"
        )
    names = open_table(path).names()
    require_columns(columns.names, names, "the model needs the column")
    categories = [each.name for each in columns.columns if isinstance(each, CategoryColumn)]
    known = {*columns.names, notes["target"]}
    table = read_training_table(
        path,
        notes["target"],
        ignore=[name for name in names if name not in known],
        categorical=categories,
        missing="drop",
        task=notes["task"],
        quiet=True,
    )
    return table.frame, table.y
