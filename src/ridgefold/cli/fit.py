"""`ridgefold fit`: a table in, a model file out; everything is chosen within a time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ridgefold.cli.automatic_fit import fitted_beside, fitted_model, read_table, say_problems
from ridgefold.cli.exit_codes import command
from ridgefold.cli.fit_outputs import FitOutputs
from ridgefold.cli.fit_summary import fit_summary, what_next
from ridgefold.cli.options import (
    CommandLineError,
    Task,
    messages,
    require_device,
    require_jobs,
    require_memory,
    require_positive,
)
from ridgefold.cli.options import CommandOptions as Options

_TABLE = "The table"
_COST = "Time, memory, machine"
_OUTPUT = "What comes out"


@command
def fit(
    data: Options.Data,
    target: Annotated[
        str,
        typer.Option("--target", "-t", help="The column to predict.", rich_help_panel=_TABLE),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The model file to write.", rich_help_panel=_OUTPUT),
    ],
    task: Annotated[
        Task,
        typer.Option(
            help="auto: classes if the target is text or has two values.", rich_help_panel=_TABLE
        ),
    ] = Task.auto,
    columns: Options.Columns = None,
    drop: Options.Drop = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="A column that says which rows belong together, as those of one patient do: they "
            "are held out together.",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="A column of numbers that says how much every row counts.", rich_help_panel=_TABLE
        ),
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(
            "--class-weight",
            help="balanced: rare classes count as much as frequent ones; or the weight of every "
            "class, as spam=1,ham=5.",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    cv: Annotated[
        int,
        typer.Option(min=2, help="Folds by which the error is found.", rich_help_panel=_TABLE),
    ] = 5,
    seed: Annotated[
        int, typer.Option(min=0, help="Of samples and folds.", rich_help_panel=_TABLE)
    ] = 0,
    time_limit: Annotated[
        str,
        typer.Option(
            "--time",
            help="Seconds for the whole fit; auto: some for thousands of rows, about a minute for "
            "a hundred thousand. It ends sooner if nothing is left to gain.",
            rich_help_panel=_COST,
        ),
    ] = "auto",
    memory: Annotated[
        str,
        typer.Option(
            help="Most memory to use, as 4GB; auto is a share of what is free.",
            rich_help_panel=_COST,
        ),
    ] = "auto",
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Cells worked on at once on this machine; -1: all cores.", rich_help_panel=_COST
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Compute there with torch, as cuda; the processor if not given.",
            rich_help_panel=_COST,
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Also fit scikit-learn's gradient boosting on the same folds; its time is no "
            "part of --time.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            help="An HTML page to write: how good the model is, and why it is so.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    float32: Annotated[
        bool,
        typer.Option(
            "--float32", help="Halve the model file: seven digits.", rich_help_panel=_OUTPUT
        ),
    ] = False,
    force: Options.Force = False,
    quiet: Options.Quiet = False,
    as_json: Options.Json = False,
) -> None:
    """Fit the best model of one column of a table that a time allows, and save it.

    The table is taken as it is: numbers however they are written, dates, categories, gaps. What
    every column is taken for is said by ridgefold diagnose, and --columns and --drop decide
    otherwise. Families of models are tried and put together by their errors on held-out rows.
    """
    outputs = FitOutputs(
        data, output, report, force=force, float32=float32, quiet=quiet, as_json=as_json
    )
    budget = seconds_of_text(time_limit)
    require_memory(memory)
    require_device(device)
    require_jobs(jobs)
    talk = outputs.talk
    read = read_table(
        data,
        target,
        columns=columns,
        drop=drop,
        task=task.value,
        groups=groups,
        weights=weights,
        class_weight=class_weight,
        memory=memory,
        talk=talk,
    )
    if talk:
        say_problems(read.diagnosis, data)
    model = fitted_model(
        read,
        talk=talk,
        time_budget=budget,
        memory_budget=memory,
        cv=cv,
        random_state=seed,
        n_jobs=jobs,
        device=device,
    )
    fitted_in = outputs.seconds()
    beside = fitted_beside(read, model, talk=talk) if compare else None
    outputs.write(model, read.diagnosis, fit_summary(model, beside), fitted_in)
    if talk:
        for line in what_next(model, read, data, output):
            messages().print(f"next: {line}", markup=False, highlight=False)


def seconds_of_text(text: str) -> float | str:
    """What `--time` stands for."""
    if text == "auto":
        return text
    try:
        seconds = float(text)
    except ValueError:
        raise CommandLineError(
            f"--time must be auto or a number of seconds > 0, got {text!r}"
        ) from None
    require_positive("--time", seconds)
    return seconds
