"""`ridgefold fit-kernel`: a kernel machine with settings of one's own, for a table."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ridgefold.cli.exit_codes import command, require_free
from ridgefold.cli.options import (
    Categories,
    CommandLineError,
    Kept,
    Missing,
    Task,
    messages,
    require_device,
    require_executor,
    require_jobs,
    require_kernel,
    require_memory,
    require_positive,
    say,
)
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.streaming import fitted_from_stream, worth_streaming
from ridgefold.cli.training import choose_model, read_training_table, summary_of
from ridgefold.storage.atomic import created_whole

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
    ignore: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be given again.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="A column of numbers that are categories; may be given again."),
    ] = None,
    categories: Annotated[
        Categories,
        typer.Option(
            help="With --learn-scales: one_hot learns a scale for each category, product one for "
            "each column of categories."
        ),
    ] = Categories.one_hot,
    missing: Annotated[
        Missing,
        typer.Option(
            help="error: refuse missing values; drop: leave such rows out; fill: the mean for "
            "numbers, a category of its own for text."
        ),
    ] = Missing.error,
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
    """Choose, fit and save a model of one column of a table.

    Kernel width and ridge are chosen by exact cross-validation. Numbers are standardised and text
    becomes categories inside the model file, so that raw tables can be predicted.
    """
    require_free(output, force)
    if report is not None:
        require_free(report, force)
        if report.resolve() == output.resolve():
            raise CommandLineError(f"--report and --output both name {str(output)!r}")
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
    if nu is not None and (nu not in (0.5, 1.5, 2.5) or kernels != ["matern"]):
        raise CommandLineError(f"--nu must be 0.5, 1.5 or 2.5, with --kernel matern, got {nu:g}")
    require_jobs(jobs)
    started, talk = time.perf_counter(), not (quiet or as_json)

    def make(task: str) -> Any:
        return choose_model(
            task,
            kernels=kernels,
            alpha=alpha,
            length_scale=length_scale,
            nu=nu,
            cv=folds,
            learn_scales=learn_scales,
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

    def finish(model: Any, task: str) -> None:
        notes = {"target": target, "task": task, "data": data.name}
        with created_whole(output, replace=force) as path:
            model.save(path, dtype="float32" if float32 else None, notes=notes)
        title = f"{target} from {data.name}"
        if report is not None:
            from ridgefold.report import write_report

            write_report(model, report, target_name=target, title=title, force=force)
        summary: dict[str, Any] = {
            **summary_of(model, target, task),
            "seconds": round(time.perf_counter() - started, 2),
            "model": str(output),
            "model_bytes": output.stat().st_size,
            **({} if report is None else {"report": str(report)}),
        }
        say(summary, quiet=quiet, as_json=as_json, title=title)
        if talk:
            messages().print(f"next: ridgefold predict {output} NEW.csv -o OUT.csv", markup=False)

    if partitions is not None and worth_streaming(data, memory):
        with fitted_from_stream(
            data,
            target,
            make,
            ignore=ignore or [],
            categorical=categorical or [],
            categories=categories.value,
            missing=missing.value,
            standardise=standardise,
            task=task.value,
            run_dir=run_dir,
            quiet=not talk,
        ) as streamed:
            finish(streamed.model, streamed.task)
        return
    table = read_training_table(
        data,
        target,
        ignore=ignore or [],
        categorical=categorical or [],
        missing=missing.value,
        task=task.value,
        quiet=not talk,
    )
    order = np.arange(len(table.y))
    if shuffle:
        order = np.random.default_rng(seed).permutation(len(order))
    from ridgefold.estimators.table_model import TableModel

    inner = make(table.task)
    if talk:
        _say_if_long(inner, len(order), len(table.frame.columns))
    model = TableModel(
        inner,
        standardise=standardise,
        categorical=[name for name in categorical or () if name in table.frame.columns],
        categories=categories.value,
        missing=missing.value,
        device=None if partitions is not None else device,  # cells go there themselves
    ).fit(table.frame[order], table.y[order])
    finish(model, table.task)


def _say_if_long(model: Any, n: int, d: int) -> None:
    """Say before a long search how long it may take, and what would be faster."""
    from ridgefold.estimators.cross_validated import CrossValidatedModel
    from ridgefold.estimators.explain import explain
    from ridgefold.planning.words import in_seconds

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
