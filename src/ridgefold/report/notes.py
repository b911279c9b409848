"""What a careful reader should know, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ridgefold.records import StepRecord
from ridgefold.report.formatting import clean, count, number, percent, plural
from ridgefold.report.reported_model import ReportedModel
from ridgefold.report.unseen_rows import UnseenClasses, UnseenNumbers

_SLOWER = 5.0
"""A step that took this many times as long as predicted is worth a note."""
_LONG = 1.0
"""Seconds below which it does not matter how well time was predicted."""


def notes(reported: ReportedModel) -> tuple[str, ...]:
    """Everything that is worth a word of warning."""
    checks = (
        _no_better,
        _outside,
        _edges,
        _folds_differ,
        _warned,
        _fallbacks,
        _times,
        _not_held_out,
    )
    return tuple(text for check in checks for text in check(reported))


def no_better_than_the_mean(name: str) -> str:
    """What to say of a model of this target whose error is not below the target's spread."""
    return (
        f"The model of {clean(name, 60)} is no better than predicting the mean: the columns may "
        "say nothing about it, or their scales may hide it."
    )


def _no_better(reported: ReportedModel) -> Iterator[str]:
    unseen = reported.unseen
    if isinstance(unseen, UnseenNumbers):
        for name, error, spread in zip(
            reported.target_names, unseen.rmse, unseen.spread, strict=True
        ):
            if error >= spread > 0:
                yield no_better_than_the_mean(name)
    elif isinstance(unseen, UnseenClasses):
        counts = np.bincount(unseen.truth)
        if unseen.accuracy <= counts.max() / counts.sum():
            yield (
                "The model is right no more often than always naming the largest class. Look at "
                "the share that is recognised of every class, or fit with class_weight=“balanced”."
            )


def _outside(reported: ReportedModel) -> Iterator[str]:
    if not reported.tested or reported.facts.is_outside is None:
        return
    outside = reported.facts.is_outside(reported.X_test)
    far = int(np.sum(outside))
    if far:
        yield (
            f"{count(far)} of the {count(len(outside))} test rows {'lies' if far == 1 else 'lie'} "
            "outside what the model has seen: a column is far beyond its range, or the row is "
            "unlike all rows of the fit. Predictions there are guesses."
        )


def _edges(reported: ReportedModel) -> Iterator[str]:
    search = reported.facts.search
    if search is None:
        return
    params = search.results["params"]
    for name, shown in (("alpha", "ridge"), ("length_scale", "length scale"), ("gamma", "gamma")):
        tried = [p[name] for p in params if isinstance(p.get(name), (int, float))]
        chosen = search.best_params.get(name)
        if len(set(tried)) < 3 or not isinstance(chosen, (int, float)):
            continue
        for end, more in ((min(tried), "smaller"), (max(tried), "larger")):
            if chosen == end:
                yield (
                    f"The best {shown}, {number(float(chosen))}, is the last that was tried on its "
                    f"side: a {more} one may do better still."
                )


def _folds_differ(reported: ReportedModel) -> Iterator[str]:
    search = reported.facts.search
    if search is None or search.scoring is not None or reported.facts.classes is not None:
        return
    names = [name for name in search.results if name.startswith("split")]
    scores = np.asarray([search.results[name][search.best_index] for name in names])
    if 2 <= len(scores) <= 20 and np.all(np.isfinite(scores)) and np.all(scores < 0):
        errors = np.sqrt(-scores)
        if errors.max() > 2 * errors.min():
            yield (
                f"The error differs between folds, from {number(float(errors.min()))} to "
                f"{number(float(errors.max()))}: rows may come in an order that matters (mix "
                "them), or a few rows may be far from all others."
            )


def _steps(reported: ReportedModel) -> tuple[StepRecord, ...]:
    run = reported.facts.run
    return () if run is None else run.steps


def _warned(reported: ReportedModel) -> Iterator[str]:
    for step in _steps(reported):
        for message in step.warnings:
            yield f"While {clean(step.name)}: {clean(message, 500)}"


def _fallbacks(reported: ReportedModel) -> Iterator[str]:
    for step in _steps(reported):
        if step.method != step.plan.method:
            yield (
                f"{clean(step.name)[:1].upper()}{clean(step.name)[1:]}: {clean(step.plan.method)} "
                f"found that these data do not suit it, and {clean(step.method)} took over. The "
                "result is the same, it took longer."
            )


def _times(reported: ReportedModel) -> Iterator[str]:
    for step in _steps(reported):
        limit = max(step.plan.seconds, step.plan.seconds_at_most)
        if limit > 0 and step.seconds > max(_SLOWER * limit, _LONG):
            yield (
                f"{clean(step.name)[:1].upper()}{clean(step.name)[1:]} took "
                f"{number(step.seconds / limit, 2)} times as long as predicted: “ridgefold "
                "calibrate” measures this machine, or others were using it."
            )


def _not_held_out(reported: ReportedModel) -> Iterator[str]:
    facts, unseen = reported.facts, reported.unseen
    if facts.compressed and not reported.tested:
        yield (
            "The model was compressed to few training rows after the fit; errors are those of the "
            "model before."
        )
    if unseen is None or unseen.rows is None:
        return
    if unseen.sampled:
        yield (
            f"Errors are those of {count(len(unseen.rows))} rows, evenly spread over all "
            f"{count(facts.n_rows)}."
        )
    elif len(unseen.rows) < facts.n_rows:
        missing = facts.n_rows - len(unseen.rows)
        yield (
            f"{plural(missing, 'row')} of {count(facts.n_rows)} "
            f"({percent(missing / facts.n_rows)}) were never held out, and are in no figure."
        )
    if facts.search is not None or facts.cells is not None:
        learned = facts.metric is not None
        what = "Kernel, ridge and length scales" if learned else "Kernel and ridge"
        yield (
            f"{what} were chosen on the same rows that the errors are measured on, so new rows "
            "will do a little worse. A test set that took no part shows how much."
        )
