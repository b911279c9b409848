"""Tables that pages quote, made from the result files. `figures.py` puts them in their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from figures import RESULTS, UnknownFigureError, results, value, written


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return (
        "\n".join(f"| {' | '.join(line)} |" for line in lines)
        .replace("| --- ", "|---")
        .replace("|--- |", "|---|")
    )


def result_table(name: str, position: int) -> str:
    """A table of a result page, counted from zero."""
    page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    found = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    if position >= len(found):
        raise UnknownFigureError(f"{name}.md has {len(found)} tables")
    return str(found[position])


def seconds(number: float) -> str:
    """A time in the unit that people would use."""
    if number >= 180:
        return f"{number / 60:.0f} min"
    return f"{number:.0f} s" if number >= 10 else f"{number:.2g} s"


# -- beside others -------------------------------------------------------------------------


def _times(job: str, other: str, ours: float, theirs: float, error: str) -> list[str]:
    """A row of times, the smaller one in bold."""
    left, right = seconds(ours), seconds(theirs)
    return [
        job,
        other,
        *((f"**{left}**", right) if ours <= theirs else (left, f"**{right}**")),
        error,
    ]


def _whole_job(data: str, n: int, key: str, what: str, other: str, error: str) -> list[str]:
    name = f"{data}, n = {n}: {what} / ours"
    ours, theirs = (value("whole_job", name, part) for part in ("ours", key))
    return _times(f"7 widths × 25 ridges, 5 folds, {data}, {n:,} rows", other, ours, theirs, error)


def _liquid(data: str, n: int) -> list[str]:
    ratio = value("whole_job", f"{data}, n = {n}: our test RMSE / liquidSVM's")
    what = "liquidSVM's lsSVM, its own 10×10 grid"
    return _whole_job(data, n, "liquidsvm", what, "liquidSVM, its own grid", f"{ratio:.2f}")


def _cells(data: str, rows: str) -> list[str]:
    runs = results("cells")["runs"][data]
    ours, theirs = runs["rbf"], runs["liquidSVM, cells"]
    ratio = f"{ours['rmse'] / theirs['rmse']:.2f}"
    job = f"choose and fit in cells, {data}, {rows} rows"
    return _times(job, "liquidSVM, cells", ours["seconds"], theirs["seconds"], ratio)


def _boosting_means() -> dict[str, dict[str, tuple[float, float]]]:
    """Mean error and seconds by set and model, over splits on which all models were measured."""
    runs: dict[str, Any] = results("boosting")["runs"]
    by_set: dict[str, dict[str, dict[str, Any]]] = {}
    for key, run in runs.items():
        data, split, model = key.split("/")
        by_set.setdefault(data, {}).setdefault(model, {})[split] = run
    means = {}
    for data, models in by_set.items():
        splits = set.intersection(*(set(found) for found in models.values()))
        if not splits:
            continue
        means[data] = {
            model: tuple(fmean(found[s][part] for s in splits) for part in ("rmse", "seconds"))
            for model, found in models.items()
        }
    return means


def _range(numbers: Sequence[float], write: Callable[[float], str]) -> str:
    return f"{write(min(numbers))}–{write(max(numbers))}"


def _boosting() -> list[str]:
    errors, ours, theirs = [], [], []
    for models in _boosting_means().values():
        others = {model: mean for model, mean in models.items() if model != "learned scales"}
        best = min(others.values())
        errors.append(models["learned scales"][0] / best[0])
        ours.append(models["learned scales"][1])
        theirs.append(best[1])
    job = f"learned scales, {len(errors)} data sets of 6,000 to 12,000 rows"
    return [
        job,
        "the best of three boosting libraries on each",
        f"{_range(ours, lambda s: f'{s:.0f}')} s",
        f"**{_range(theirs, lambda s: f'{s:.0f}')} s**",
        _range(errors, lambda e: f"{e:.2f}"),
    ]


def _plain_fit(n: int) -> list[list[str]]:
    speed = f"KernelRidge.fit, n = {n}: time / Gram matrix and its factor alone"
    room = f"KernelRidge.fit, n = {n}: peak memory beyond the data / 8n² bytes"
    ours, theirs = (value("fit", speed, part) for part in ("ours, s", "scikit-learn, s"))
    memory = [value("fit", room, part) for part in ("ours, MB", "scikit-learn, MB")]
    text = [f"{m / 1000:.2g} GB" for m in memory]
    return [
        _times(
            f"one exact fit, {n:,} rows", "scikit-learn's KernelRidge", ours, theirs, "the same"
        ),
        [f"its memory beyond the data, {n:,} rows", "the same", f"**{text[0]}**", text[1], ""],
    ]


def readme() -> str:
    """The short table of the README: the same job here and elsewhere, losses included."""
    ten_million = results("rows")["runs"]["10000000"]
    minutes = (ten_million["fit_seconds"] + ten_million["predict_seconds"]) / 60
    room = ten_million["peak_bytes"] / 1e9
    fit = value("gpu", "KernelRidge.fit, n = 50000, cholesky")
    search = value("gpu", "5-fold, 30 alphas, n = 50000, anchored")
    few = value("gpu", "5-fold, 30 alphas, n = 50000 and 8 columns, auto: preconditioned")
    grid = "GridSearchCV(KernelRidge)"
    rows = [
        _whole_job(
            "cpusmall", 2000, "scikit_learn", grid, "scikit-learn's GridSearchCV", "the same"
        ),
        _whole_job("ccpp", 2000, "scikit_learn", grid, "scikit-learn's GridSearchCV", "the same"),
        _whole_job("cpusmall", 2000, "rlscore", "RLScore's KfoldRLS", "RLScore, the same grid", ""),
        _liquid("cpusmall", 2000),
        _liquid("ccpp", 2000),
        _liquid("cpusmall", 6000),
        _cells("cpusmall", "6,000"),
        _cells("california", "16,000"),
        _cells("protein", "40,000"),
        _boosting(),
        *_plain_fit(8000),
        [
            "choose, fit, predict in cells, 10⁷ rows of 10 columns, 2 cores",
            "",
            f"{minutes:.1f} min, {room:.1f} GB",
            "",
            "",
        ],
        ["one exact fit, 50,000 rows, one GPU (H200)", "", f"{fit:.2g} s", "", ""],
        [
            "5 folds × 30 ridges, 50,000 rows of 64 columns, the same GPU",
            "",
            f"{search:.2g} s",
            "",
            "",
        ],
        ["the same, of 8 columns", "", f"{few:.2g} s", "", ""],
    ]
    table = markdown(["job", "beside", "ridgefold", "the other", "error, ours / theirs"], rows)
    return f"{table}\n\n{_where('whole_job')}"


def _where(name: str) -> str:
    """When and on what something was measured."""
    facts = results(name)["machine"]
    versions = ", ".join(f"{p} {facts[p]}" for p in ("numpy", "scipy", "scikit-learn"))
    return f"Measured {facts['date']}, one core of an {facts['processor']} unless said: {versions}."


# -- targets -------------------------------------------------------------------------------


def _title(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def _names() -> list[str]:
    """Every result page but those of the source, which has no targets."""
    found = sorted(path.stem for path in RESULTS.glob("*.json"))
    return [name for name in found if not name.startswith("house_")]


def targets() -> str:
    """How many targets each benchmark met."""
    rows = []
    for name in _names():
        held = [f["held"] for f in results(name)["figures"] if f["held"] is not None]
        link = f"[{_title(name)}](../benchmarks/results/{name}.md)"
        rows.append([link, str(len(held)), str(held.count(True)), str(held.count(False))])
    return markdown(["benchmark", "targets", "met", "missed"], rows)


def missed() -> str:
    """Every target that was missed."""
    rows = []
    for name in _names():
        for f in results(name)["figures"]:
            if f["held"] is False:
                sign, goal = (
                    ("≤", f["at_most"]) if f["at_most"] is not None else ("≥", f["at_least"])
                )
                close = written(f["measured"]) == written(goal)
                number = written(f["measured"], ".5g" if close else None)
                measured = f"{number} {f['unit']}".strip()
                link = f"[{name}](../benchmarks/results/{name}.md)"
                rows.append([link, f["what"], f"{sign} {written(goal)}", measured])
    return markdown(["benchmark", "what", "target", "measured"], rows)


def every_peer() -> str:
    """Time, memory and error of every library on one small job."""
    rows, end = [], ": time / ours"
    figures = results("every_peer")["figures"]
    ours = figures[0]["detail"] | {"test RMSE": figures[0]["measured"]}
    taken = {"ridgefold": ours} | {
        f["what"].removesuffix(end): f["detail"] for f in figures if f["what"].endswith(end)
    }
    for name, detail in taken.items():
        if detail:
            took, peak, error = (detail[key] for key in ("seconds", "peak, MB", "test RMSE"))
            rows.append([name, seconds(took), f"{peak:,.0f} MB", f"{error:.2f}"])
    return markdown(["library", "time", "peak memory", "test RMSE"], rows)


# -- the house -----------------------------------------------------------------------------


def house() -> str:
    """The source before a rebuilding and, once measured, after it."""
    sides = [side for side in ("before", "after") if (RESULTS / f"house_{side}.json").is_file()]
    measured = {
        side: {f["what"]: f["measured"] for f in results(f"house_{side}")["figures"]}
        for side in sides
    }
    names = dict.fromkeys(what for side in sides for what in measured[side])
    return markdown(
        ["what", *sides],
        [
            [what, *(f"{measured[s][what]:,.0f}" if what in measured[s] else "" for s in sides)]
            for what in names
        ],
    )


TABLES: dict[str, Callable[[], str]] = {
    "boosting": lambda: result_table("boosting", 1),
    "cells": lambda: result_table("cells", 1),
    "coverage": lambda: result_table("intervals", 1),
    "every-peer": every_peer,
    "house": house,
    "missed": missed,
    "readme": readme,
    "rows": lambda: result_table("rows", 1),
    "targets": targets,
}
