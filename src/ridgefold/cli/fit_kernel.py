"""`ridgefold fit-kernel`: a kernel machine with settings of one's own, for a table."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ridgefold.cli.automatic_fit import choices_of, front_door, read_table, say_problems
from ridgefold.cli.exit_codes import command
from ridgefold.cli.fit_outputs import FitOutputs
from ridgefold.cli.fit_summary import fit_summary
from ridgefold.cli.kernel_machine import ScalesToLearn, choose_model
from ridgefold.cli.options import (
    Categories,
    CommandLineError,
    Kept,
    Task,
    messages,
    require_device,
    require_executor,
    require_jobs,
    require_kernel,
    require_memory,
    require_positive,
)
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.streaming import rows_on_disk, worth_streaming

if TYPE_CHECKING:
    from ridgefold.tables.diagnosis import TableDiagnosis
    from ridgefold.tables.table_stream import WrittenTable

_LONG = 60.0
"""A fit that is predicted to take more seconds than this is announced."""
_USUAL_WIDTHS = 7
"""Kernel widths that a search tries where none is given."""


@command
def fit_kernel(
    data: Options.Data,
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    task: Annotated[
        Task, typer.Option(help="auto: classes if the target is text or has two values.")
    ] = Task.auto,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            help="rbf (the default), matern, laplacian, linear, polynomial, …; given twice, the "
            "better one is chosen; auto: the family is chosen.",
        ),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Ridge; chosen by cross-validation if not given.")
    ] = None,
    length_scale: Annotated[
        float | None,
        typer.Option(help="Width of the kernel; chosen by cross-validation if not given."),
    ] = None,
    nu: Annotated[
        float | None, typer.Option(help="Smoothness of the matern kernel: 0.5, 1.5 or 2.5.")
    ] = None,
    cv: Annotated[str, typer.Option(help="Number of folds, or loo for leave-one-out.")] = "5",
    learn_scales: Annotated[
        bool,
        typer.Option(
            "--learn-scales",
            help="Learn one length scale a column: columns that do not matter lose their weight.",
        ),
    ] = False,
    partitions: Annotated[
        str | None,
        typer.Option(
            help="Cut the rows into this many overlapping cells, or auto: for many rows, at a "
            "small loss of accuracy. Each cell chooses its own width and ridge."
        ),
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            help="A folder in which finished kernels or cells are kept: the same command goes on "
            "where it was stopped."
        ),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            help="Where kernels or cells are worked on: serial, threads, processes, dask, or the "
            "address of a Dask scheduler, as tcp://host:8786."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Kernels or cells worked on at once on this machine; -1: all cores."),
    ] = None,
    wait_for_workers: Annotated[
        float | None,
        typer.Option(
            help="Seconds without any worker after which work on a Dask cluster is given up; 60 "
            "if not given."
        ),
    ] = None,
    columns: Options.Columns = None,
    drop: Options.Drop = None,
    categories: Annotated[
        Categories,
        typer.Option(
            help="With --learn-scales: one_hot learns a scale for each category, product one for "
            "each column of categories."
        ),
    ] = Categories.one_hot,
    standardise: Annotated[
        bool, typer.Option(help="Bring numbers to mean 0 and standard deviation 1.")
    ] = True,
    shuffle: Annotated[
        bool,
        typer.Option(help="Mix the rows before folds are cut: files are often sorted."),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of the mixing.")] = 0,
    intervals: Annotated[
        Kept,
        typer.Option(
            help="What to keep for predict --coverage: auto or cv+ (a number a row and fold), "
            "jackknife+ (rows × rows), none."
        ),
    ] = Kept.auto,
    report: Annotated[
        Path | None,
        typer.Option(help="An HTML page to write: how good the model is, and why it is so."),
    ] = None,
    float32: Annotated[
        bool, typer.Option("--float32", help="Halve the model file: seven digits.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(help="Compute there with torch, as cuda; the processor if not given."),
    ] = None,
    memory: Options.Memory = "auto",
    time_limit: Options.Time = None,
    force: Options.Force = False,
    quiet: Options.Quiet = False,
    as_json: Options.Json = False,
) -> None:
    """Fit and save a kernel machine of one column of a table.

    Kernel width and ridge are chosen by exact cross-validation. The table is read as ridgefold fit
    reads it, and the model file holds how, so that raw tables can be predicted.
    """
    outputs = FitOutputs(
        data, output, report, force=force, float32=float32, quiet=quiet, as_json=as_json
    )
    talk = outputs.talk
    if categories is Categories.product and not learn_scales:
        raise CommandLineError(
            "--categories product learns one scale for each column of categories, and needs "
            "--learn-scales"
        )
    if partitions is not None and time_limit is not None:
        raise CommandLineError(
            f"--time {time_limit:g} does not go with --partitions: cells are not planned by their "
            "time. Leave it out, or ask for more cells, which are faster"
        )
    folds, cells, kernels = folds_of_text(cv), _partitions(partitions), kernel or ["rbf"]
    for name in kernels:
        require_kernel(name)
    if alpha is not None and not 0 <= alpha < math.inf:
        raise CommandLineError(f"--alpha must be a number >= 0, got {alpha:g}")
    require_positive("--length-scale", length_scale)
    require_positive("--time", time_limit)
    require_executor(executor)
    require_memory(memory)
    require_device(device)
    if nu is not None and kernels != ["matern"]:
        raise CommandLineError(
            f"--nu is for --kernel matern alone, got --kernel {' --kernel '.join(kernels)}"
        )
    if nu is not None and nu not in (0.5, 1.5, 2.5):
        raise CommandLineError(f"--nu must be 0.5, 1.5 or 2.5, got {nu:g}")
    require_jobs(jobs)
    choices = choices_of(columns, drop, target, task.value)

    def make(diagnosis: TableDiagnosis) -> Any:
        scales = ScalesToLearn(categories.value, diagnosis.encoder.columns)
        return choose_model(
            str(diagnosis.task),
            kernels=kernels,
            alpha=alpha,
            length_scale=length_scale,
            nu=nu,
            cv=folds,
            scales=scales if learn_scales else None,
            partitions=cells,
            run_dir=None if run_dir is None else str(run_dir),
            executor=executor,
            jobs=jobs,
            wait_for_workers=wait_for_workers,
            intervals=None if intervals is Kept.none else intervals.value,
            memory=memory,
            time_limit=time_limit,
            device=device,
            verbose=talk,
        )

    def finish(inner: Any, table: TableDiagnosis | WrittenTable, diagnosis: TableDiagnosis) -> None:
        # Cells go to the device themselves.
        model = front_door(diagnosis, inner, None if partitions is not None else device).fit(table)
        outputs.write(model, diagnosis, fit_summary(model))
        if talk:
            messages().print(f"next: ridgefold predict {output} NEW.csv -o OUT.csv", markup=False)

    if partitions is not None and worth_streaming(data, memory):
        with rows_on_disk(data, target, choices, standardise, run_dir) as table:
            if talk:
                say_problems(table.diagnosis, data)
                lost = f"; {table.without_target:,} have no target" if table.without_target else ""
                said = f"{len(table.X) + table.without_target:,} rows, read in batches{lost}"
                messages().print(said, markup=False)
            finish(make(table.diagnosis), table, table.diagnosis)
        return
    read = read_table(
        data,
        target,
        columns=columns,
        drop=drop,
        task=task.value,
        memory=memory,
        talk=talk,
        standardise=standardise,
    )
    diagnosis = read.diagnosis
    if talk:
        say_problems(diagnosis, data)
    inner = make(diagnosis)
    if talk:
        _say_if_long(inner, len(diagnosis.rows), max(1, len(diagnosis.encoder.names)))
    if shuffle:
        assert diagnosis.y is not None
        order = np.random.default_rng(seed).permutation(len(diagnosis.rows))
        diagnosis = replace(diagnosis, rows=diagnosis.rows[order], y=diagnosis.y[order])
    finish(inner, diagnosis, diagnosis)


def _say_if_long(model: Any, n: int, d: int) -> None:
    """Say before a long search how long it may take, and what would be faster."""
    from ridgefold.estimators.cross_validated import CrossValidatedModel
    from ridgefold.estimators.explain import explain
    from ridgefold.planning.amounts import in_seconds

    if not isinstance(model, CrossValidatedModel) or model.kernel == "auto" or model.metric:
        return  # how much there is to learn is found out on the way
    step = explain(model, n_samples=n, n_features=d).steps[0]
    if step["method"] is None:
        return  # the fit will say so
    seconds = _USUAL_WIDTHS * step["predicted_seconds_at_most"]
    if seconds > _LONG:
        messages().print(
            f"choosing kernel and alpha on {n:,} rows may take up to {in_seconds(seconds)}; "
            "--partitions auto is faster",
            markup=False,
        )


def folds_of_text(text: str) -> int | str:
    """What `--cv` stands for."""
    if text == "loo":
        return text
    if text.isascii() and text.isdigit() and int(text) >= 2:
        return int(text)
    raise CommandLineError(f"--cv must be a number of folds >= 2 or loo, got {text!r}")


def _partitions(text: str | None) -> int | str | None:
    if text is None or text == "auto":
        return text
    if text.isascii() and text.isdigit() and int(text) >= 1:
        return int(text)
    raise CommandLineError(f"--partitions must be auto or a whole number >= 1, got {text!r}")
