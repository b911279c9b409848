"""Put plans, and what they came to, into words: one structure, three forms.

An explanation is a tree of plain values (so that it is JSON already), made from plans alone or,
after a fit, from the record of the run; text and HTML are two renderings of it.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ridgefold.crossval import METHODS
from ridgefold.planning.cell_steps import CELL_WORK
from ridgefold.planning.words import in_bytes, in_seconds
from ridgefold.records import Plan, Problem, RunRecord
from ridgefold.solvers import SOLVERS


@dataclass(frozen=True)
class Explanation:
    """What will be computed or was, how, why so, and at what cost.

    `str()` gives text, `to_json()` JSON, and a notebook shows HTML.
    """

    steps: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        return "\n".join(line for step in self.steps for line in _text(step))

    def to_json(self) -> str:
        return json.dumps(list(self.steps), indent=1, ensure_ascii=False)

    def _repr_html_(self) -> str:
        return "".join(_html(step) for step in self.steps)


def explain_plans(plans: Sequence[tuple[str, Plan | Exception]]) -> Explanation:
    """From plans that have not run; a refusal takes the place of a plan."""
    return Explanation(tuple(_planned(name, plan) for name, plan in plans))


def explain_run(record: RunRecord) -> Explanation:
    """From plans that have run, with their measured costs."""
    steps = []
    for step in record.steps:
        described = _planned(step.name, step.plan)
        described["measured_seconds"] = step.seconds
        described["measured_bytes"] = step.peak_bytes
        described["ran"] = step.method
        steps.append(described)
    return Explanation(tuple(steps))


def _planned(name: str, plan: Plan | Exception) -> dict[str, Any]:
    if isinstance(plan, Exception):
        return {"step": name, "method": None, "refused": str(plan)}
    return {
        "step": name,
        "problem": _problem(plan.problem),
        "method": plan.method,
        "accuracy": _accuracy(plan.method),
        "predicted_seconds": plan.seconds,
        "predicted_seconds_at_most": plan.seconds_at_most,
        "predicted_bytes": plan.cost.peak_bytes,
        "memory_budget": plan.resources.memory_bytes,
        "time_budget": plan.resources.seconds,
        "threads": plan.resources.threads,
        "device": plan.resources.device,
        "where": plan.where,
        "moves": plan.moves,
        "if_it_gives_up": list(plan.fallbacks),
        "not_chosen": {each.method: each.reason for each in plan.rejected},
    }


def _problem(problem: Problem) -> str:
    columns = f"{problem.n_columns} columns"
    if problem.columns_left_out:
        every = problem.n_columns + problem.columns_left_out
        columns = f"{problem.n_columns} of {every} columns"
    parts = [f"{problem.n_rows} rows", columns]
    if problem.n_targets > 1:
        parts.append(f"{problem.n_targets} targets")
    if problem.folds:
        whole = max(fold.test for fold in problem.folds) == 1
        parts.append("leave-one-out" if whole else f"{problem.n_folds} folds")
    if problem.n_alphas > 1:
        parts.append(f"{problem.n_alphas} ridge values")
    parts += ["bias"] if problem.bias else []
    if problem.fixed:
        parts.append(f"{problem.fixed} unpenalised column{'s' if problem.fixed > 1 else ''}")
    parts += ["weights"] if problem.weighted else []
    parts += [f"{problem.n_kernels} kernels"] if problem.n_kernels > 1 else []
    parts.append("float32" if problem.itemsize == 4 else "float64")
    return ", ".join(parts)


def _accuracy(method: str) -> str:
    known = METHODS.get(method) or SOLVERS.get(method)
    if known is None:
        return CELL_WORK.get(method, "not stated")
    return (
        "exact up to rounding" if known.exact else "to a tolerance, with a certificate of the error"
    )


# -- text --------------------------------------------------------------------------------


def _text_of_parts(step: dict[str, Any]) -> list[str]:
    """A fit of many steps: where each runs, what it takes, and what moves."""
    lines = [
        f"{step['step']} on {step['workers']:,} workers: {step['problem']}",
        f"predicted {in_seconds(step['predicted_seconds'])}, of which "
        f"{in_seconds(step['serial_seconds'])} for which workers wait; "
        f"{in_bytes(step['disk_bytes'])} of shared files",
    ]
    for part in step["parts"]:
        lines += [
            f"├─ {part['step']}",
            f"│  ├─ on {part['where']}: {in_seconds(part['predicted_seconds'])}, "
            f"{in_bytes(part['predicted_bytes'])} each of {in_bytes(part['memory_budget'])}",
            f"│  └─ moves {part['moves']}",
        ]
        if part["refused"]:
            lines.insert(-1, f"│  ├─ does not fit: {part['refused']}")
    lines.append(f"└─ assumed: {'; '.join(step['assumptions'])}")
    return lines


def _text(step: dict[str, Any]) -> list[str]:
    if "parts" in step:
        return _text_of_parts(step)
    if step["method"] is None:
        return [f"{step['step']}: refused", f"└─ {step['refused']}"]
    lines = [f"{step['step']}: {step['problem']}"]
    branches = [f"{step['method']} ({step['accuracy']})", _predicted(step)]
    branches += _places(step)
    if "measured_seconds" in step:
        branches.append(_measured(step))
    if step["if_it_gives_up"]:
        branches.append(f"if it gives up: {', then '.join(step['if_it_gives_up'])}")
    branches += [f"not {name}: {why}" for name, why in step["not_chosen"].items()]
    for i, branch in enumerate(branches):
        lines.append(f"{'└─' if i == len(branches) - 1 else '├─'} {branch}")
    return lines


def _places(step: dict[str, Any]) -> list[str]:
    """Where a step runs that does not run here, and what moves."""
    where = [f"on {step['where']}"] if step["where"] else []
    return [*where, *([f"moves {step['moves']}"] if step["moves"] else [])]


def _predicted(step: dict[str, Any]) -> str:
    limit = f"of {in_bytes(step['memory_budget'])}"
    if step["time_budget"] is not None:
        limit += f" and {in_seconds(step['time_budget'])}"
    where = f"{step['threads']} thread{'s' if step['threads'] > 1 else ''}"
    if step["device"] is not None:
        where = f"on {step['device']}"
    seconds = in_seconds(step["predicted_seconds"])
    if step["if_it_gives_up"]:
        seconds += f", at most {in_seconds(step['predicted_seconds_at_most'])}"
    return f"predicted {seconds}, {in_bytes(step['predicted_bytes'])} {limit}, {where}"


def _measured(step: dict[str, Any]) -> str:
    memory = step["measured_bytes"]
    text = f"measured  {in_seconds(step['measured_seconds'])}"
    text += "" if memory is None else f", {in_bytes(memory)}"
    return text if step["ran"] == step["method"] else f"{text}, by {step['ran']}"


# -- HTML --------------------------------------------------------------------------------


def _html(step: dict[str, Any]) -> str:
    """What matters as a small table; why not others folded below it."""
    if "parts" in step:
        return f"<pre>{html.escape(chr(10).join(_text_of_parts(step)))}</pre>"
    if step["method"] is None:
        rows, others = [("refused", step["refused"])], {}
    else:
        rows = [("data", step["problem"]), ("method", f"{step['method']} ({step['accuracy']})")]
        rows.append(("predicted", _predicted(step).removeprefix("predicted ")))
        rows += [(words.split()[0], words.partition(" ")[2]) for words in _places(step)]
        if "measured_seconds" in step:
            rows.append(("measured", _measured(step).removeprefix("measured").strip()))
        if step["if_it_gives_up"]:
            rows.append(("if it gives up", ", then ".join(step["if_it_gives_up"])))
        others = step["not_chosen"]
    cells = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for name, text in rows
    )
    items = "".join(
        f"<li>not {html.escape(name)}: {html.escape(why)}</li>" for name, why in others.items()
    )
    folded = f"<details><summary>not chosen</summary><ul>{items}</ul></details>" if items else ""
    return (
        f'<div class="ridgefold-plan"><strong>{html.escape(step["step"])}</strong>'
        f"<table>{cells}</table>{folded}</div>"
    )
