"""`ridgefold inspect`: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ridgefold.cli.exit_codes import command, reading
from ridgefold.cli.fit_summary import (
    fit_summary,
    intervals_of,
    is_automatic,
    kernel_summary,
    ways_of,
)
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.options import say

_MOST_ARRAYS = 4
"""Arrays that are named, the largest ones; with --json all of them."""
_MOST_COLUMNS = 12
"""Columns that are named: a longer list hides what else is said."""


@command
def inspect(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    as_json: Options.Json = False,
) -> None:
    """Show what a model file holds, after checking every bit of it. Nothing in it is run."""
    summary = summary_of(model, every_array=as_json)
    say(summary, quiet=False, as_json=as_json, title=str(model))


def summary_of(model: Path, *, every_array: bool = False) -> dict[str, Any]:
    """What a model file holds; of its arrays the large ones, or all."""
    from ridgefold.estimators.saving import unpack_estimator
    from ridgefold.storage import read_model
    from ridgefold.storage.model_file import named_in_errors

    with reading(model):
        contents = read_model(model)
    with named_in_errors(model):
        fitted = unpack_estimator(contents.model)
    shown = None if every_array else _MOST_ARRAYS
    return {
        "file": f"{contents.file_bytes:,} bytes, format {contents.format_version}, SHA-256 right",
        **_model_summary(fitted),
        "notes": dict(contents.notes) or None,
        "left out": dict(contents.model["left_out"]) or None,
        "written by": dict(contents.written_by),
        "arrays": {
            array.name: f"{array.dtype}, {' × '.join(map(str, array.shape)) or 'one number'}"
            for array in sorted(contents.arrays, key=lambda array: -array.n_bytes)[:shown]
        },
    }


def _model_summary(fitted: Any) -> dict[str, Any]:
    if hasattr(fitted, "leaderboard_"):
        name = type(fitted if is_automatic(fitted) else fitted.model_).__name__
        return {"model": name, **fit_summary(fitted), **_columns_shown(fitted)}
    classes = getattr(fitted, "classes_", None)
    return {
        "model": type(fitted).__name__,
        **kernel_summary(fitted),
        "training rows": int(fitted.X_fit_.shape[0]),
        **_columns_shown(fitted),
        "classes": None if classes is None else [str(label) for label in classes],
        "held-out score": getattr(fitted, "best_score_", None),
        **ways_of(fitted),
        "intervals": None if classes is not None else intervals_of(fitted),
    }


def _columns_shown(fitted: Any) -> dict[str, Any]:
    """The names of the columns that are read, or their number."""
    columns = getattr(fitted, "columns_", None)
    names = list(columns.names) if columns else getattr(fitted, "feature_names_in_", None)
    if names is None:
        return {"columns": int(fitted.n_features_in_)}
    shown = [str(name) for name in names[:_MOST_COLUMNS]]
    more = len(names) - len(shown)
    return {"columns": [*shown, f"and {more} more"] if more else shown}
