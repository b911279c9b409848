"""`ridgefold explain`: how something would be computed, or how a model was, and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from ridgefold.cli.exit_codes import code_of, command, reading, say_error
from ridgefold.cli.fit_kernel import folds_of_text
from ridgefold.cli.options import CommandLineError, plain_text, require_kernel, values_of_options
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.errors import BudgetError


@command
def explain(
    model: Annotated[
        Path | None, typer.Argument(help="A model file, to see how it was computed.")
    ] = None,
    rows: Annotated[float | None, typer.Option(help="Rows to fit, as 1e5.")] = None,
    columns: Annotated[float | None, typer.Option(help="Columns to learn from.")] = None,
    targets: Annotated[int, typer.Option(help="Columns to predict.")] = 1,
    alphas: Annotated[
        int | None, typer.Option(help="Ridge values to choose from; 25 if not given.")
    ] = None,
    cv: Annotated[
        str | None,
        typer.Option(help="Number of folds, or loo for leave-one-out; 5 if not given."),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help="Plan what fit-kernel does with this kernel, and not what fit does."),
    ] = None,
    float32: Annotated[bool, typer.Option("--float32", help="Numbers of four bytes.")] = False,
    workers: Annotated[
        float | None,
        typer.Option(
            help="Plan a fit in cells on so many worker processes of a cluster; --memory is what "
            "each of them has."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Plan for this device of torch, as cuda; one that is not here needs --memory."
        ),
    ] = None,
    memory: Options.Memory = "auto",
    time_limit: Options.Time = None,
    as_json: Options.Json = False,
) -> None:
    """Show what a fit to data of a given size would do, at what cost, and why not otherwise.

    No data are needed: the plan is made from shapes alone. It is that of ridgefold fit; with one of
    --kernel, --alphas, --cv, --float32, --device and --workers, that of ridgefold fit-kernel.
    """
    if (model is None) == (rows is None or columns is None):
        raise CommandLineError(
            "give either a model file, or both --rows and --columns: "
            "ridgefold explain --rows 1e5 --columns 20"
        )
    if model is not None:
        with reading(model):
            explanation = _of_file(model)
    else:
        assert rows is not None
        assert columns is not None
        from ridgefold.estimators.explain import explain as explain_shapes
        from ridgefold.estimators.kernel_ridge_cv import LSSVMRegressorCV

        by_hand = (kernel, alphas, cv, workers, device)
        automatic = not float32 and all(value is None for value in by_hand)
        kernel, cv = kernel or "rbf", cv or "5"
        require_kernel(kernel)
        with values_of_options():
            n = _whole("--rows", rows)
            if automatic:
                from ridgefold.automatic.regressor import RidgefoldRegressor

                model = RidgefoldRegressor(
                    time_budget="auto" if time_limit is None else time_limit, memory_budget=memory
                )
                shape = (n, _whole("--columns", columns), _whole("--targets", targets))
                explanation = model.explain_shape(*shape)
                # Of its steps, all but the first are done only if there is room for them.
                _show_or_refuse(explanation, explanation.steps[:1], as_json)
                return
            if workers is not None:
                for option, value in (("--device", device), ("--time", time_limit)):
                    if value is not None:
                        raise CommandLineError(
                            f"{option} {value} does not go with --workers, whose processes are "
                            "planned by their memory alone: leave one of them out"
                        )
                _explain_cluster(
                    n,
                    _whole("--columns", columns),
                    _whole("--targets", targets),
                    workers=_whole("--workers", workers),
                    kernel=kernel,
                    single=float32,
                    memory=memory,
                    as_json=as_json,
                )
                return
            values = (
                None if alphas is None else np.geomspace(1e-7 * n, n, _whole("--alphas", alphas))
            )
            explanation = explain_shapes(
                LSSVMRegressorCV(values, kernel=kernel, cv=folds_of_text(cv)),
                n_samples=n,
                n_features=_whole("--columns", columns),
                n_targets=_whole("--targets", targets),
                dtype=np.float32 if float32 else np.float64,
                memory_budget=memory,
                time_budget=time_limit,
                device=device,
            )
    _show_or_refuse(explanation, explanation.steps, as_json)


def _show_or_refuse(explanation: Any, needed: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Show the plans; end with the code of a budget if one of the needed steps has none."""
    refused = [str(step["step"]) for step in needed if step["method"] is None]
    if not refused:
        _show(explanation, as_json)
        return
    what = "nothing" if len(refused) == len(needed) else f"no method for {refused[0]!r}"
    error = BudgetError(
        f"{what} fits the budget: raise --memory or --time, use fewer rows, or cut them into cells "
        "(ridgefold fit-kernel --partitions auto)"
    )
    if not as_json:
        _show(explanation, as_json)
    # With --json the plans are part of the one object that says the error.
    say_error(error, as_json=as_json, steps=list(explanation.steps))
    code = code_of(error)
    assert code is not None
    raise typer.Exit(code)


def _show(explanation: Any, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(list(explanation.steps), ensure_ascii=False) + "\n")
    else:
        Console().print(plain_text(str(explanation)))


def _explain_cluster(
    rows: int,
    columns: int,
    targets: int,
    *,
    workers: int,
    kernel: str,
    single: bool,
    memory: str,
    as_json: bool,
) -> None:
    from ridgefold.estimators.explain import explain as explain_shapes
    from ridgefold.estimators.partitioned import PartitionedLSSVMRegressor

    explanation = explain_shapes(
        PartitionedLSSVMRegressor(kernel=kernel),
        n_samples=rows,
        n_features=columns,
        n_targets=targets,
        dtype=np.float32 if single else np.float64,
        memory_budget=memory,
        n_workers=workers,
    )
    _show(explanation, as_json)


def _whole(option: str, value: float) -> int:
    if not 1 <= value < 1e15 or value != int(value):
        raise CommandLineError(f"{option} must be a whole number >= 1, got {value:g}")
    return int(value)


def _of_file(path: Path) -> Any:
    from ridgefold.estimators.saving import load

    fitted = load(path)
    return fitted.explain()
