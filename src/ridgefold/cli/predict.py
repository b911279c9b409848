"""`ridgefold predict`: a model file and a table in, predictions out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ridgefold.cli.exit_codes import command, reading, require_free
from ridgefold.cli.options import CommandLineError, messages, require_memory, say
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.errors import InvalidInputError
from ridgefold.tables.names import require_columns
from ridgefold.tables.numbers_in_text import ColumnOfText, Places, report_unreadable

ENDINGS = (".csv", ".parquet")
OUTSIDE = "outside"
"""The column that says which rows are unlike all that the model has seen."""


@command
def predict(
    model: Annotated[Path, typer.Argument(help="A model file that ridgefold wrote.")],
    data: Options.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv or .parquet file; CSV on stdout if not given."),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Add the ends of intervals that should hold this share, as 0.9, and a column "
            "that says which rows lie outside what the model has seen."
        ),
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column for each class.")
    ] = False,
    outside: Annotated[
        bool,
        typer.Option(
            "--outside",
            help="Add a column that is true for rows unlike all that the model has seen.",
        ),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A column of the data to copy to the output; may be given again."),
    ] = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Copy all columns of the data.")
    ] = False,
    memory: Options.Memory = "auto",
    force: Options.Force = False,
    quiet: Options.Quiet = False,
    as_json: Options.Json = False,
) -> None:
    """Predict the rows of a table, a block at a time: files larger than the memory are fine."""
    if output is not None:
        if output.suffix.lower() not in ENDINGS:
            raise CommandLineError(
                f"--output must end in {' or '.join(ENDINGS)}, which says what to write, got "
                f"{str(output)!r}"
            )
        require_free(output, force)
    elif as_json:
        raise CommandLineError("--json needs --output: both write to stdout")
    if coverage is not None and not 0 < coverage < 1:
        raise CommandLineError(f"--coverage must lie between 0 and 1, got {coverage:g}")
    require_memory(memory)
    started = time.perf_counter()
    import pyarrow as pa

    from ridgefold.estimators.saving import load
    from ridgefold.storage.results import writing
    from ridgefold.tables.tables import open_table

    with reading(model):
        fitted = load(model)
    getattr(fitted, "model_", fitted).memory_budget = memory  # the reader's, not the fitter's
    predictor = _Predictor(fitted, coverage, probabilities, outside)
    file = open_table(data)
    names = file.names()
    kept = list(names) if keep_all else list(dict.fromkeys(keep or []))
    require_columns(kept, names, "--keep")
    inputs = predictor.input_names(names)
    require_columns(inputs, names, f"the model {model.name} needs the column")
    columns = [*kept, *(name for name in inputs if name not in kept)]
    # What is only copied is copied as text, cell by cell.
    types = {name: pa.string() for name in kept} | predictor.input_types(inputs)
    n_rows = n_outside = 0
    with (
        writing(output, replace=force) as write,
        _progress(quiet or as_json or output is None) as share,
    ):
        for table in file.batches(columns, {n: types[n] for n in columns if n in types}, share):
            if table.num_rows == 0:
                continue
            results = predictor(table, n_rows, file.places)
            n_rows += table.num_rows
            n_outside += sum(v.true_count for name, v in results if name == OUTSIDE)
            write(_joined(table.select(kept), results))
        predictor.report_unreadable(file.places)
        if n_rows == 0:
            raise InvalidInputError(f"{str(data)!r} has no rows to predict")
    summary = {
        "rows": n_rows,
        "rows_outside": n_outside or None,
        "seconds": round(time.perf_counter() - started, 2),
        "output": "stdout" if output is None else str(output),
    }
    if output is not None:
        say(summary, quiet=quiet, as_json=as_json, title=f"{data.name} by {model.name}")


def _joined(kept: Any, results: Sequence[tuple[str, Any]]) -> Any:
    taken = set(kept.column_names)
    for name, values in results:
        while name in taken:
            name = f"{name}_"  # noqa: PLW2901 - a column of the data has the name already
        taken.add(name)
        kept = kept.append_column(name, values)
    return kept


class _Predictor:
    """Columns of results for a table, whatever kind of model was saved."""

    def __init__(
        self, fitted: Any, coverage: float | None, probabilities: bool, outside: bool
    ) -> None:
        self._fitted, self._coverage, self._probabilities = fitted, coverage, probabilities
        self._outside = outside
        self._columns = getattr(fitted, "columns_", None)
        self._seen: dict[str, ColumnOfText] = {}
        # Columns are found by name here: the model gets plain numbers.
        names = None if self._columns is not None else vars(fitted).pop("feature_names_in_", None)
        self._names = None if names is None else [str(name) for name in names]
        if coverage is not None and not hasattr(fitted, "predict_interval"):
            raise CommandLineError("--coverage is for regression: this model predicts classes")
        if outside and not hasattr(fitted, "is_outside"):
            raise CommandLineError("--outside does not go with this kind of model")
        if probabilities and not hasattr(fitted, "classes_"):
            raise CommandLineError("--probabilities is for classes: this model predicts numbers")
        if probabilities and not hasattr(fitted, "predict_proba"):
            raise CommandLineError(
                "--probabilities needs a classifier fitted with probability=True (ridgefold fit "
                "does so)"
            )

    def input_names(self, available: Sequence[str]) -> list[str]:
        """Columns that the model reads: by name, or all in order if it knows no names."""
        if self._columns is not None:
            return list(self._columns.names)
        if self._names is not None:
            return self._names
        if len(available) != self._fitted.n_features_in_:
            raise InvalidInputError(
                f"the model takes {self._fitted.n_features_in_} columns and knows no names, but "
                f"the table has {len(available)} columns"
            )
        return list(available)

    def input_types(self, names: list[str]) -> dict[str, Any]:
        """Types that the model's columns must have, so that they need not be guessed."""
        import pyarrow as pa

        from ridgefold.tables.table_stream import types_to_read

        if self._columns is None:
            return {name: pa.float64() for name in names}
        return types_to_read(self._columns)

    def report_unreadable(self, places: Places) -> None:
        """Announce what stood in columns of numbers and is none."""
        report_unreadable(list(self._seen.values()), places)

    def __call__(self, table: Any, first_row: int, places: Places) -> list[tuple[str, Any]]:
        import pyarrow as pa

        from ridgefold.tables.encode import numbers_for
        from ridgefold.tables.frames import as_frame

        rows: Any = as_frame(table.select(self.input_names(table.column_names)))
        if self._columns is None:
            rows = self._matrix(rows, first_row, places)
        else:
            rows = numbers_for(rows, self._columns, self._seen, first_row)
        return [
            (name, pa.array(values, from_pandas=True))  # NaN is no prediction
            for name, values in self._values(self._fitted, rows)
        ]

    def _matrix(self, rows: Any, first_row: int, places: Places) -> np.ndarray:
        """The rows for a model that knows no columns; all of them must be numbers."""
        from ridgefold.tables.frames import is_text, numbers_of, texts_as_arrow

        out, wrong = np.empty((len(rows), len(rows.columns))), []
        for j, name in enumerate(rows.columns):
            if is_text(rows[name]):
                cells = ColumnOfText(name)
                out[:, j] = cells.add(texts_as_arrow(rows[name]), first_row=first_row)
                wrong.append(cells)
            else:
                out[:, j] = numbers_of(rows[name])
        report_unreadable(wrong, places, refuse=True)
        return out

    def _values(self, model: Any, rows: Any) -> Iterator[tuple[str, np.ndarray]]:
        predicted = np.asarray(model.predict(rows))
        if predicted.ndim == 1:
            yield "prediction", predicted
        else:
            for j in range(predicted.shape[1]):
                yield f"prediction_{j}", predicted[:, j]
        if self._coverage is not None:
            ends = model.predict_interval(rows, self._coverage)
            for name, end in zip(("lower", "upper"), ends, strict=True):
                if end.ndim == 1:
                    yield name, end
                else:
                    for j in range(end.shape[1]):
                        yield f"{name}_{j}", end[:, j]
        if self._probabilities:
            values = model.predict_proba(rows)
            for j, label in enumerate(model.classes_):
                yield f"probability of {label}", values[:, j]
        if (self._outside or self._coverage is not None) and hasattr(model, "is_outside"):
            yield OUTSIDE, np.asarray(model.is_outside(rows), dtype=bool)


@contextmanager
def _progress(silent: bool) -> Iterator[Any]:
    """A bar with the time left, on stderr; nothing where nobody looks."""
    console = messages()
    if silent or not console.is_terminal:
        yield lambda share: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("predicting"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share: bar.update(task, completed=share)
