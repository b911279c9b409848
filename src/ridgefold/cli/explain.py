"""`ridgefold explain`: how something would be computed, or how a model was, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ridgefold.cli.exit_codes import command
from ridgefold.cli.fit import folds_of_text
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.options import plain_text, say
from ridgefold.errors import BudgetError, InvalidInputError


@command
def explain(
    model: Annotated[
        Path | None, typer.Argument(help="A model file, to see how it was computed.")
    ] = None,
    rows: Annotated[float | None, typer.Option(help="Rows to fit, as 1e5.")] = None,
    columns: Annotated[float | None, typer.Option(help="Columns to learn from.")] = None,
    targets: Annotated[int, typer.Option(help="Columns to predict.")] = 1,
    alphas: Annotated[int, typer.Option(help="Ridge values to choose from.")] = 22,
    cv: Annotated[str, typer.Option(help="Number of folds, or loo for leave-one-out.")] = "5",
    kernel: Annotated[str, typer.Option(help="Name of the kernel.")] = "rbf",
    float32: Annotated[bool, typer.Option("--float32", help="Numbers of four bytes.")] = False,
    memory: Options.Memory = "auto",
    as_json: Options.Json = False,
) -> None:
    """Show which method would run for data of a given size, what it would cost, and why not the
    others. No data are needed: the plan is made from shapes alone."""
    if (model is None) == (rows is None or columns is None):
        raise InvalidInputError(
            "give either a model file, or both --rows and --columns: "
            "ridgefold explain --rows 1e5 --columns 20"
        )
    if model is not None:
        plans = _plans_of(model)
    else:
        assert rows is not None
        assert columns is not None
        plans = _plans_for(
            _whole("--rows", rows),
            _whole("--columns", columns),
            targets=_whole("--targets", targets),
            alphas=_whole("--alphas", alphas),
            cv=folds_of_text(cv),
            kernel=kernel,
            itemsize=4 if float32 else 8,
            memory=memory,
        )
    if as_json:
        say(
            {name: _described(plan) for name, plan in plans.items()},
            quiet=False,
            as_json=True,
            title="",
        )
        return
    for name, plan in plans.items():
        _print(name, _described(plan))
    if all(isinstance(plan, BudgetError) for plan in plans.values()):
        raise BudgetError("nothing fits the memory budget: raise --memory, or use fewer rows")


def _whole(option: str, value: float) -> int:
    if not 1 <= value < 1e15 or value != int(value):
        raise InvalidInputError(f"{option} must be a whole number >= 1, got {value:g}")
    return int(value)


def _plans_of(path: Path) -> dict[str, Any]:
    from ridgefold.estimators.saving import load

    fitted = load(path)
    inner = getattr(fitted, "model_", fitted)
    found = {"choosing kernel and alpha": "cv_plan_", "fitting": "plan_"}
    plans = {words: getattr(inner, name) for words, name in found.items() if hasattr(inner, name)}
    if not plans:
        raise InvalidInputError(f"{str(path)!r} holds a {type(inner).__name__} without a plan")
    return plans


def _plans_for(
    n: int,
    d: int,
    *,
    targets: int,
    alphas: int,
    cv: int | str,
    kernel: str,
    itemsize: int,
    memory: str,
) -> dict[str, Any]:
    from dataclasses import replace

    from ridgefold.kernels import KernelSettings, resolve_kernel
    from ridgefold.planning import available_resources, plan_cross_validation, plan_fit
    from ridgefold.records import FoldShape, Problem

    resources = available_resources(memory)
    shape = resolve_kernel(kernel, KernelSettings(), d)
    fit = Problem(
        n_rows=n,
        n_columns=d,
        n_targets=targets,
        itemsize=itemsize,
        feature_dimension=shape.feature_dimension(d),
        bias=True,
        kernel=shape.evaluation,
        semidefinite=shape.semidefinite,
    )
    count = n if cv == "loo" else int(cv)
    if not 2 <= count <= n:
        raise InvalidInputError(f"--cv must lie between 2 and the number of rows, got {cv}")
    large = n % count
    folds = [FoldShape(n // count, n - n // count, count - large)]
    folds += [FoldShape(n // count + 1, n - n // count - 1, large)] if large else []
    search = replace(
        fit, n_alphas=alphas, smallest_alpha=n * 1e-7, folds=tuple(f for f in folds if f.count)
    )
    plans: dict[str, Any] = {}
    for name, make, problem in (
        (f"choosing alpha for one kernel width (cv={cv})", plan_cross_validation, search),
        ("fitting", plan_fit, fit),
    ):
        try:
            plans[name] = make(problem, resources)
        except BudgetError as error:
            plans[name] = error
    return plans


def _described(plan: Any) -> dict[str, Any]:
    if isinstance(plan, BudgetError):
        return {"method": None, "why": str(plan)}
    return {
        "method": plan.method,
        "predicted_seconds": plan.seconds,
        "predicted_peak_bytes": plan.cost.peak_bytes,
        "memory_budget_bytes": plan.resources.memory_bytes,
        "if_it_gives_up": list(plan.fallbacks),
        "not_chosen": {each.method: each.reason for each in plan.rejected},
    }


def _print(name: str, plan: dict[str, Any]) -> None:
    console = Console()
    if plan["method"] is None:
        console.print(plain_text(f"{name}: {plan['why']}"))
        return
    console.print(
        plain_text(
            f"{name}: {plan['method']}, about {_seconds(plan['predicted_seconds'])}, "
            f"{_bytes(plan['predicted_peak_bytes'])} of {_bytes(plan['memory_budget_bytes'])}"
        ),
        style="bold",
    )
    if plan["if_it_gives_up"]:
        console.print(plain_text(f"  if it gives up: {', '.join(plan['if_it_gives_up'])}"))
    table = Table(show_header=False, box=None, padding=(0, 2))
    for method, reason in plan["not_chosen"].items():
        table.add_row(plain_text(f"not {method}"), plain_text(reason))
    console.print(table)


def _seconds(value: float) -> str:
    if value < 120:
        return f"{value:.2g} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _bytes(value: float) -> str:
    return f"{value / 1e9:.3g} GB" if value >= 1e8 else f"{value / 1e6:.3g} MB"
