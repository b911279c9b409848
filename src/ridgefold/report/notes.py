"""What a careful reader should know, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ridgefold.report.evidence import HeldOutClasses, HeldOutNumbers
from ridgefold.report.subject import Subject
from ridgefold.report.words import clean, count, number, percent, plural

_SLOWER = 5.0
_LONG = 1.0
"""Seconds below which it does not matter how well time was predicted."""


def notes(subject: Subject) -> tuple[str, ...]:
    """Everything that is worth a word of warning."""
    parts = (_no_better, _edges, _folds_differ, _warned, _fallbacks, _times, _not_held_out)
    return tuple(text for part in parts for text in part(subject))


def _no_better(subject: Subject) -> Iterator[str]:
    found = subject.held_out
    if isinstance(found, HeldOutNumbers):
        for name, error, spread in zip(subject.target_names, found.rmse, found.spread, strict=True):
            if error >= spread > 0:
                yield (
                    f"The model of {clean(name, 60)} is no better than predicting the mean: the "
                    "columns may say nothing about it, or their scales may hide it."
                )
    elif isinstance(found, HeldOutClasses):
        counts = np.bincount(found.truth)
        if found.accuracy <= counts.max() / counts.sum():
            yield (
                "The model is right no more often than always naming the largest class. Look at "
                "the share that is recognised of every class, or fit with class_weight=“balanced”."
            )


def _edges(subject: Subject) -> Iterator[str]:
    inner = subject.inner
    if not hasattr(inner, "cv_results_"):
        return
    params = inner.cv_results_["params"]
    for name, words in (("alpha", "ridge"), ("length_scale", "length scale"), ("gamma", "gamma")):
        tried = [p[name] for p in params if isinstance(p.get(name), (int, float))]
        chosen = inner.best_params_.get(name)
        if len(set(tried)) < 3 or not isinstance(chosen, (int, float)):
            continue
        for end, more in ((min(tried), "smaller"), (max(tried), "larger")):
            if chosen == end:
                yield (
                    f"The best {words}, {number(float(chosen))}, is the last that was tried on its "
                    f"side: a {more} one may do better still."
                )


def _folds_differ(subject: Subject) -> Iterator[str]:
    inner = subject.inner
    if (
        not hasattr(inner, "cv_results_")
        or inner.scoring is not None
        or subject.classes is not None
    ):
        return
    names = [name for name in inner.cv_results_ if name.startswith("split")]
    scores = np.asarray([inner.cv_results_[name][inner.best_index_] for name in names])
    if 2 <= len(scores) <= 20 and np.all(np.isfinite(scores)) and np.all(scores < 0):
        errors = np.sqrt(-scores)
        if errors.max() > 2 * errors.min():
            yield (
                f"The error differs between folds, from {number(float(errors.min()))} to "
                f"{number(float(errors.max()))}: rows may come in an order that matters (mix "
                "them), or a few rows may be far from all others."
            )


def _warned(subject: Subject) -> Iterator[str]:
    record = getattr(subject.inner, "run_record_", None)
    for step in () if record is None else record.steps:
        for message in step.warnings:
            yield f"While {clean(step.name)}: {clean(message, 500)}"


def _fallbacks(subject: Subject) -> Iterator[str]:
    record = getattr(subject.inner, "run_record_", None)
    for step in () if record is None else record.steps:
        if step.method != step.plan.method:
            yield (
                f"{clean(step.name)[:1].upper()}{clean(step.name)[1:]}: {clean(step.plan.method)} "
                f"found that these data do not suit it, and {clean(step.method)} took over. The "
                "result is the same, it took longer."
            )


def _times(subject: Subject) -> Iterator[str]:
    record = getattr(subject.inner, "run_record_", None)
    for step in () if record is None else record.steps:
        limit = max(step.plan.seconds, step.plan.seconds_at_most)
        if limit > 0 and step.seconds > max(_SLOWER * limit, _LONG):
            yield (
                f"{clean(step.name)[:1].upper()}{clean(step.name)[1:]} took "
                f"{number(step.seconds / limit, 2)} times as long as predicted: “ridgefold "
                "calibrate” measures this machine, or others were using it."
            )


def _not_held_out(subject: Subject) -> Iterator[str]:
    found: Any = subject.held_out
    inner = subject.inner
    if hasattr(inner, "compression_bound_") and not subject.tested:
        yield (
            "The model was compressed to few training rows after the fit; errors are those of the "
            "model before."
        )
    if found is None or found.rows is None:
        return
    if found.sampled:
        yield (
            f"Errors are those of {count(len(found.rows))} rows, evenly spread over all "
            f"{count(subject.n_rows)}."
        )
    elif len(found.rows) < subject.n_rows:
        missing = subject.n_rows - len(found.rows)
        yield (
            f"{plural(missing, 'row')} of {count(subject.n_rows)} "
            f"({percent(missing / subject.n_rows)}) were never held out, and are in no figure."
        )
    if hasattr(inner, "cv_results_") or hasattr(inner, "partition_sizes_"):
        learned = getattr(inner, "metric_", None) is not None or (
            getattr(inner, "length_scales_", None) is not None
        )
        what = "Kernel, ridge and length scales" if learned else "Kernel and ridge"
        yield (
            f"{what} were chosen on the same rows that the errors are measured on, so new rows "
            "will do a little worse. A test set that took no part shows how much."
        )
