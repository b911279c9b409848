"""The head of a page: one sentence, the figures that go with it, and what was asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.estimators.facts import ModelFacts, SearchFacts
from ridgefold.planning.words import in_seconds
from ridgefold.report.formatting import clean, count, number, percent, plural, setting
from ridgefold.report.kernel_description import described_kernel
from ridgefold.report.reported_model import ReportedModel
from ridgefold.report.unseen_rows import UnseenClasses, UnseenNumbers


@dataclass(frozen=True)
class Tile:
    """One figure in large letters."""

    value: str
    label: str


def headline(reported: ReportedModel) -> str:
    """How well the model does, in one sentence."""
    unseen = reported.unseen
    if isinstance(unseen, UnseenClasses):
        return _headline_of_classes(reported, unseen)
    if isinstance(unseen, UnseenNumbers):
        return _headline_of_numbers(reported, unseen)
    return (
        "How well this model does on rows it has not seen is not known: no row was left out when "
        "it was fitted. A test set, or a model that cross-validates, would show it."
    )


def _unseen(reported: ReportedModel) -> str:
    return "On test rows" if reported.tested else "On rows it had not seen"


def _headline_of_numbers(reported: ReportedModel, unseen: UnseenNumbers) -> str:
    if unseen.truth.shape[1] > 1:
        shares = _explained(unseen)
        if np.all(np.isnan(shares)):
            return f"{_unseen(reported)}, all true values of every target are the same."
        best, worst = int(np.nanargmax(shares)), int(np.nanargmin(shares))
        return (
            f"{_unseen(reported)}, the model explains {percent(float(np.nanmean(shares)))} of the "
            f"variance of {len(shares)} targets on average: from "
            f"{percent(float(shares[worst]))} of {clean(reported.target_names[worst], 40)} to "
            f"{percent(float(shares[best]))} of {clean(reported.target_names[best], 40)}."
        )
    error, spread = float(unseen.rmse[0]), float(unseen.spread[0])
    start = f"{_unseen(reported)}, the model is off by {number(error)} (root mean square)"
    if spread == 0:
        return f"{start}; all true values are the same."
    return f"{start}, {percent(error / spread)} of what predicting the mean is off by."


def _explained(unseen: UnseenNumbers) -> np.ndarray:
    """R² of every target; NaN where all true values are the same."""
    varies = unseen.spread > 0
    return np.where(varies, 1 - (unseen.rmse / np.where(varies, unseen.spread, 1.0)) ** 2, np.nan)


def _headline_of_classes(reported: ReportedModel, unseen: UnseenClasses) -> str:
    assert reported.class_names is not None
    counts = np.bincount(unseen.truth, minlength=len(reported.class_names))
    most = int(np.argmax(counts))
    return (
        f"{_unseen(reported)}, the model names the right class in {percent(unseen.accuracy)} of "
        f"the cases; always answering “{clean(reported.class_names[most], 40)}” would in "
        f"{percent(float(counts[most] / counts.sum()))}."
    )


def tiles(reported: ReportedModel) -> tuple[Tile, ...]:
    """The figures that people ask for first."""
    unseen = reported.unseen
    shown: list[Tile] = []
    if isinstance(unseen, UnseenNumbers) and unseen.truth.shape[1] == 1:
        error, spread = float(unseen.rmse[0]), float(unseen.spread[0])
        shown.append(Tile(number(error), "root mean square error"))
        if spread > 0:
            shown.append(Tile(number(1 - (error / spread) ** 2), "R²"))
        shown.append(Tile(number(float(np.mean(np.abs(unseen.residuals)))), "mean absolute error"))
        shown.append(Tile(number(spread), "error of the mean"))
    elif isinstance(unseen, UnseenNumbers):
        shares = _explained(unseen)
        if not np.all(np.isnan(shares)):
            shown.append(Tile(percent(float(np.nanmean(shares))), "mean R²"))
        shown.append(Tile(count(len(shares)), "targets"))
    elif isinstance(unseen, UnseenClasses):
        assert reported.class_names is not None
        k = len(reported.class_names)
        hits = np.asarray(
            [
                np.mean(unseen.predicted[unseen.truth == c] == c)
                for c in range(k)
                if np.any(unseen.truth == c)
            ]
        )
        shown.append(Tile(percent(unseen.accuracy), "right answers"))
        shown.append(Tile(percent(float(hits.mean())), "mean over classes"))
        if unseen.probabilities is not None:
            truth = unseen.truth[:, None] == np.arange(k)
            brier = float(np.mean(np.sum((unseen.probabilities - truth) ** 2, axis=1)))
            shown.append(Tile(number(brier), "Brier score, 0 is best"))
    shown.append(Tile(count(reported.facts.n_rows), "rows to learn from"))
    run = reported.facts.run
    if run is not None:
        shown.append(Tile(in_seconds(run.seconds), "to choose and fit"))
    return tuple(shown)


def asked(reported: ReportedModel) -> tuple[tuple[str, str], ...]:
    """What was asked for, and what was chosen, as pairs of a name and a text."""
    facts = reported.facts
    pairs = [("Model", f"{facts.name}: {facts.nature}")]
    if any(name != "target" for name in reported.target_names):
        pairs.append(("Target", clean(", ".join(reported.target_names[:8]), 160)))
    pairs.append(("Data", f"{plural(facts.n_rows, 'row')}, {_columns(facts)}"))
    names = reported.class_names
    if names is not None:
        shown = ", ".join(clean(label, 40) for label in names[:12])
        more = "" if len(names) <= 12 else f" and {len(names) - 12} more"
        pairs.append(("Classes", shown + more))
    pairs += _kernel_and_ridge(facts)
    if facts.search is not None:
        folds = facts.search.n_splits
        how = f"{folds} folds" if folds < facts.n_rows else "leave-one-out"
        pairs.append(("Chosen by", f"{how}, scored by {clean(_score(facts, facts.search))}"))
    if facts.tried is None:
        pairs.append(("Bias", "not penalised" if facts.bias else "none"))
    if facts.fixed:
        listed = ", ".join(clean(facts.column_names[j], 40) for j in facts.fixed[:8])
        more = "" if len(facts.fixed) <= 8 else f" and {len(facts.fixed) - 8} more"
        pairs.append(("Columns without a penalty", listed + more))
    return tuple(pairs)


def _columns(facts: ModelFacts) -> str:
    n_columns = len(facts.column_names)
    if facts.n_table_columns is None:
        precomputed = isinstance(facts.kernels[0], str)
        return "a kernel matrix" if precomputed else plural(n_columns, "column")
    spread_out = n_columns != facts.n_table_columns
    more = f" ({n_columns} after categories were spread out)" if spread_out else ""
    return plural(facts.n_table_columns, "column") + more


def _score(facts: ModelFacts, search: SearchFacts) -> str:
    if search.scoring is not None:
        return search.scoring if isinstance(search.scoring, str) else "a function"
    return "squared error" if facts.classes is None else "right answers"


def _kernel_and_ridge(facts: ModelFacts) -> list[tuple[str, str]]:
    if facts.tried is not None:
        parts = [
            f"{each.share:.0%} {clean(each.candidate)}"
            for each in facts.tried.attempts
            if each.share > 0
        ]
        return [("Made of", "; ".join(parts) or "the mean")]
    distinct = list(dict.fromkeys(described_kernel(kernel) for kernel in facts.kernels))
    kernel = distinct[0] if len(distinct) == 1 else f"{len(distinct)} widths, each cell its own"
    low, high = float(facts.alphas.min()), float(facts.alphas.max())
    ridge = setting(low) if low == high else f"{setting(low)} to {setting(high)}"
    return [("Kernel", kernel), ("Ridge alpha", ridge)]
