"""What a model that chose everything is, and how good it is, for people and for --json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ridgefold.automatic.gradient_boosting import BoostingBeside
    from ridgefold.cli.automatic_fit import TableToFit

_COVERAGE = 0.9
_MOST_COLUMNS = 5
"""Columns that are named: the report has all of them."""
_ROWS_EXCHANGED = 200
"""Rows whose values change places: enough for the first few columns, and quick."""
_LONGER = 4
"""How many times the time is proposed where candidates had none."""


def is_automatic(fitted: Any) -> bool:
    """Whether a fitted model is one of those that chose everything."""
    from ridgefold.automatic.table_estimator import TableEstimator

    return isinstance(fitted, TableEstimator) and fitted.model is None


def fit_summary(model: Any, beside: BoostingBeside | None = None) -> dict[str, Any]:
    """What was learned."""
    facts = _class_facts(model, beside) if hasattr(model, "classes_") else _facts(model, beside)
    return {
        "target": getattr(model, "target_", None),
        "task": "classification" if hasattr(model, "classes_") else "regression",
        "rows": len(model._counts),
        "columns": f"{len(model._encoder.names)} of {model.n_features_in_}",
        "features": len(model._encoder.feature_names),
        **facts,
        **_top_columns(model),
        "models": {
            f"{each.share:.0%}": each.candidate for each in model.leaderboard_ if each.share > 0
        }
        or "the mean",
        "time_budget": round(model.time_budget_, 1),
    }


def _linear_error(model: Any) -> float | None:
    """Of the linear model that every fit begins with."""
    errors = [each.held_out_error for each in model.leaderboard_ if each.candidate == "linear"]
    return errors[0] if errors else None


def _facts(model: Any, beside: BoostingBeside | None) -> dict[str, Any]:
    y, counts = np.asarray(model._targets_fit, dtype=np.float64), model._counts
    mean = np.average(y, axis=0, weights=counts)
    spread = float(np.sqrt(np.average((y - mean) ** 2, axis=0, weights=counts).mean()))
    error = float(model.held_out_error_)
    facts: dict[str, Any] = {
        "held_out_rmse": error,
        "rmse_of_a_linear_model": _linear_error(model),
        "rmse_of_gradient_boosting": None if beside is None else beside.error,
        "seconds_of_gradient_boosting": None if beside is None else round(beside.seconds, 2),
        "rmse_of_the_mean": spread,
        "held_out_r2": 1.0 - (error / spread) ** 2 if spread > 0 else None,
    }
    if model._held_out is not None and model._held_out.shape[1] == 1:
        misses = np.abs(y - model._held_out)[counts > 0]
        facts["nine_in_ten_within"] = float(np.quantile(misses, _COVERAGE))
    return facts


def _class_facts(model: Any, beside: BoostingBeside | None) -> dict[str, Any]:
    from ridgefold.estimators.ls_svm import labels_of

    codes, counts = np.asarray(model._targets_fit), model._counts
    classes = np.asarray(model.classes_)
    shares = np.bincount(codes, weights=counts, minlength=len(classes)) / counts.sum()
    known = shares[shares > 0]
    facts: dict[str, Any] = {"classes": [str(label) for label in classes]}
    tested = counts > 0
    if model._held_out is not None and tested.any():
        decisions = model._held_out[tested]
        right = labels_of(classes, decisions) == classes[codes[tested]]
        facts["held_out_accuracy"] = float(np.average(right, weights=counts[tested]))
    facts |= {
        "accuracy_of_the_largest_class": float(shares.max()),
        "held_out_log_loss": float(model.held_out_error_),
        "log_loss_of_a_linear_model": _linear_error(model),
        "log_loss_of_gradient_boosting": None if beside is None else beside.error,
        "seconds_of_gradient_boosting": None if beside is None else round(beside.seconds, 2),
        "log_loss_of_the_shares": float(-np.sum(known * np.log(known))),
    }
    if model._held_out is not None and tested.any():
        sure = model.probabilities_of(decisions).max(axis=1) >= _COVERAGE
        if sure.any():
            facts["sure"] = (
                f"of a class with {_COVERAGE:.0%} or more in {sure.mean():.0%} of the rows, and "
                f"right in {right[sure].mean():.0%} of these"
            )
    return facts


def _top_columns(model: Any) -> dict[str, Any]:
    """The columns without whose values the held-out error rises most.

    Models in cells would have to be fitted again without each fold: their report does that.
    """
    in_cells = any(each.in_cells for each in model.stack_)
    if not hasattr(model, "held_out_importances") or in_cells or model._held_out is None:
        return {}
    found = model.held_out_importances(max_rows=_ROWS_EXCHANGED)
    order = np.argsort(-found.rises, kind="stable")[:_MOST_COLUMNS]
    clear = [j for j in order if found.rises[j] > 2 * found.standard_errors[j]]
    shown = {found.names[j]: f"{100 * found.rises[j]:.1f}%" for j in clear}
    lost = "lost_without" if hasattr(model, "classes_") else "r2_lost_without"
    return {lost: shown or "no column clearly"}


def what_next(model: Any, read: TableToFit, data: Path, output: Path) -> Iterator[str]:
    """What to do with the model, and what may make it better."""
    yield f"ridgefold predict {output} NEW.csv -o OUT.csv"
    yield f"ridgefold report {output} shows how good it is, and why"
    waiting = sum("time budget" in each.note for each in model.leaderboard_)
    if waiting:
        candidates = "candidate" if waiting == 1 else "candidates"
        given, longer = model.time_budget_, _LONGER * model.time_budget_
        yield f"--time {longer:.0f}: {waiting} {candidates} had no time in {given:.0f} s"
    if read.diagnosis.groups and read.groups is None:
        name = read.diagnosis.groups[0]
        yield f"--groups {name}: with several rows of one {name!r}, errors look too small"
    near = [
        problem.columns[0]
        for problem in read.diagnosis.problems
        if problem.topic == "near copy of the target"
    ]
    if near:
        yield f"--drop {near[0]}, if it is not known before the target is"
