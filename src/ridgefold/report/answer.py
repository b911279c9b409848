"""The answer in one sentence, the figures that go with it, and what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.planning.words import in_seconds
from ridgefold.report.evidence import HeldOutClasses, HeldOutNumbers
from ridgefold.report.kernel_words import kernel_in_words
from ridgefold.report.subject import Subject
from ridgefold.report.words import clean, count, number, percent, plural, setting

_MODELS = {
    "KernelRidge": "kernel ridge regression",
    "KernelRidgeCV": "kernel ridge regression, kernel and ridge by cross-validation",
    "LSSVMRegressor": "LS-SVM regression",
    "LSSVMRegressorCV": "LS-SVM regression, kernel and ridge by cross-validation",
    "LSSVMClassifier": "LS-SVM classification",
    "LSSVMClassifierCV": "LS-SVM classification, kernel and ridge by cross-validation",
    "PartitionedKernelRidge": "kernel ridge regression in cells",
    "PartitionedLSSVMClassifier": "LS-SVM classification in cells",
}


@dataclass(frozen=True)
class Tile:
    """One figure in large letters."""

    value: str
    label: str


def answer(subject: Subject) -> str:
    """How well the model does, in one sentence."""
    found = subject.held_out
    if isinstance(found, HeldOutClasses):
        return _answer_in_classes(subject, found)
    if isinstance(found, HeldOutNumbers):
        return _answer_in_numbers(subject, found)
    return (
        "How well this model does on rows it has not seen is not known: no row was left out when "
        "it was fitted. A test set, or a model that cross-validates, would show it."
    )


def _unseen(subject: Subject) -> str:
    return "On test rows" if subject.tested else "On rows it had not seen"


def _answer_in_numbers(subject: Subject, found: HeldOutNumbers) -> str:
    if found.truth.shape[1] > 1:
        shares = _explained(found)
        if np.all(np.isnan(shares)):
            return f"{_unseen(subject)}, all true values of every target are the same."
        best, worst = int(np.nanargmax(shares)), int(np.nanargmin(shares))
        return (
            f"{_unseen(subject)}, the model explains {percent(float(np.nanmean(shares)))} of the "
            f"variance of {len(shares)} targets on average: from "
            f"{percent(float(shares[worst]))} of {clean(subject.target_names[worst], 40)} to "
            f"{percent(float(shares[best]))} of {clean(subject.target_names[best], 40)}."
        )
    error, spread = float(found.rmse[0]), float(found.spread[0])
    start = f"{_unseen(subject)}, the model is off by {number(error)} (root mean square)"
    if spread == 0:
        return f"{start}; all true values are the same."
    return f"{start}, {percent(error / spread)} of what predicting the mean is off by."


def _explained(found: HeldOutNumbers) -> np.ndarray:
    """R² of every target; NaN where all true values are the same."""
    varies = found.spread > 0
    return np.where(varies, 1 - (found.rmse / np.where(varies, found.spread, 1.0)) ** 2, np.nan)


def _answer_in_classes(subject: Subject, found: HeldOutClasses) -> str:
    assert subject.classes is not None
    counts = np.bincount(found.truth, minlength=len(subject.classes))
    most = int(np.argmax(counts))
    return (
        f"{_unseen(subject)}, the model names the right class in {percent(found.accuracy)} of the "
        f"cases; always answering “{clean(subject.classes[most], 40)}” would in "
        f"{percent(float(counts[most] / counts.sum()))}."
    )


def tiles(subject: Subject) -> tuple[Tile, ...]:
    """The figures that people ask for first."""
    found = subject.held_out
    shown: list[Tile] = []
    if isinstance(found, HeldOutNumbers) and found.truth.shape[1] == 1:
        error, spread = float(found.rmse[0]), float(found.spread[0])
        shown.append(Tile(number(error), "root mean square error"))
        if spread > 0:
            shown.append(Tile(number(1 - (error / spread) ** 2), "R²"))
        shown.append(Tile(number(float(np.mean(np.abs(found.residuals)))), "mean absolute error"))
        shown.append(Tile(number(spread), "error of the mean"))
    elif isinstance(found, HeldOutNumbers):
        shares = _explained(found)
        if not np.all(np.isnan(shares)):
            shown.append(Tile(percent(float(np.nanmean(shares))), "mean R²"))
        shown.append(Tile(count(len(shares)), "targets"))
    elif isinstance(found, HeldOutClasses):
        assert subject.classes is not None
        k = len(subject.classes)
        hits = np.asarray(
            [
                np.mean(found.predicted[found.truth == c] == c)
                for c in range(k)
                if np.any(found.truth == c)
            ]
        )
        shown.append(Tile(percent(found.accuracy), "right answers"))
        shown.append(Tile(percent(float(hits.mean())), "mean over classes"))
        if found.probabilities is not None:
            truth = found.truth[:, None] == np.arange(k)
            brier = float(np.mean(np.sum((found.probabilities - truth) ** 2, axis=1)))
            shown.append(Tile(number(brier), "Brier score, 0 is best"))
    shown.append(Tile(count(subject.n_rows), "rows to learn from"))
    record = getattr(subject.inner, "run_record_", None)
    if record is not None:
        shown.append(Tile(in_seconds(record.seconds), "to choose and fit"))
    return tuple(shown)


def asked(subject: Subject) -> tuple[tuple[str, str], ...]:
    """What was asked for, and what was found, as pairs of words."""
    inner = subject.inner
    pairs: list[tuple[str, str]] = []
    name = type(inner).__name__
    pairs.append(("Model", f"{name}: {_MODELS.get(name, 'a model of ridgefold')}"))
    if any(names != "target" for names in subject.target_names):
        pairs.append(("Target", clean(", ".join(subject.target_names[:8]), 160)))
    columns = getattr(subject.model, "columns_", None)
    if columns is None:
        given = inner.n_features_in_
        precomputed = isinstance(getattr(inner, "kernel_", None), str)
        rows = "a kernel matrix" if precomputed else plural(int(given), "column")
    else:
        rows = plural(len(columns.names), "column")
        if inner.n_features_in_ != len(columns.names):
            rows += f" ({inner.n_features_in_} after categories were spread out)"
    pairs.append(("Data", f"{plural(subject.n_rows, 'row')}, {rows}"))
    if subject.classes is not None:
        shown = ", ".join(clean(label, 40) for label in subject.classes[:12])
        more = "" if len(subject.classes) <= 12 else f" and {len(subject.classes) - 12} more"
        pairs.append(("Classes", shown + more))
    pairs += _kernel_and_ridge(inner)
    if hasattr(inner, "n_splits_"):
        scored = "squared error" if subject.classes is None else "right answers"
        if inner.scoring is not None:
            scored = inner.scoring if isinstance(inner.scoring, str) else "a function"
        folds = f"{inner.n_splits_} folds" if inner.n_splits_ < subject.n_rows else "leave-one-out"
        pairs.append(("Chosen by", f"{folds}, scored by {clean(scored)}"))
    pairs.append(("Bias", "not penalised" if inner.fit_intercept else "none"))
    return tuple(pairs)


def _kernel_and_ridge(inner: Any) -> list[tuple[str, str]]:
    if hasattr(inner, "kernels_"):
        distinct = list(dict.fromkeys(kernel_in_words(kernel) for kernel in inner.kernels_))
        kernel = distinct[0] if len(distinct) == 1 else f"{len(distinct)} widths, each cell its own"
        alphas = np.ravel(inner.alpha_)
    else:
        kernel = kernel_in_words(inner.kernel_)
        alphas = np.ravel(getattr(inner, "alpha_", inner.get_params().get("alpha"))).astype(float)
    low, high = float(alphas.min()), float(alphas.max())
    ridge = setting(low) if low == high else f"{setting(low)} to {setting(high)}"
    return [("Kernel", kernel), ("Ridge alpha", ridge)]
