"""The model that a report is about, with the names that people know it by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.saving import Storable
from ridgefold.report.displays.base import column_names
from ridgefold.report.evidence import HeldOut, classes_of, held_out_of, inner_of
from ridgefold.report.words import clean


@dataclass(frozen=True)
class Subject:
    """A fitted model, and what is known of how well it does."""

    model: Any
    inner: Any
    """The model of numbers within it."""
    title: str
    target_names: tuple[str, ...]
    column_names: tuple[str, ...]
    classes: tuple[str, ...] | None
    held_out: HeldOut | None
    X_test: Any = None
    y_test: Any = None

    @property
    def n_rows(self) -> int:
        targets = getattr(self.inner, "y_fit_", None)
        return int(self.inner.X_fit_.shape[0]) if targets is None else int(targets.shape[0])

    @property
    def tested(self) -> bool:
        """True if the evidence is a test set."""
        return self.X_test is not None


def subject_of(
    model: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    target_name: Any = None,
    title: str | None = None,
) -> Subject:
    """Check what was given, and gather what is known."""
    if not isinstance(model, Storable):
        raise InvalidInputError(
            f"model must be a fitted estimator of ridgefold, got {type(model).__name__}"
            + (": pass the last step of the pipeline" if hasattr(model, "steps") else "")
        )
    check_is_fitted(model)
    inner = inner_of(model)
    classes = classes_of(model)
    held_out = held_out_of(model, X_test, y_test)
    names = _target_names(target_name, _n_targets(inner, classes))
    return Subject(
        model=model,
        inner=inner,
        title=clean(title) if title else f"{names[0] if target_name else type(inner).__name__}",
        target_names=names,
        column_names=column_names(model),
        classes=None if classes is None else tuple(str(label) for label in classes.tolist()),
        held_out=held_out,
        X_test=X_test,
        y_test=y_test,
    )


def _n_targets(inner: Any, classes: np.ndarray | None) -> int:
    if classes is not None:
        return 1
    if hasattr(inner, "_models"):
        return int(inner._models.intercept.shape[1])
    return int(inner._model.intercept.shape[0])


def _target_names(given: Any, n_targets: int) -> tuple[str, ...]:
    if given is None:
        return ("target",) if n_targets == 1 else tuple(f"target {j}" for j in range(n_targets))
    names = (given,) if isinstance(given, str) else tuple(given)
    if len(names) != n_targets:
        raise InvalidInputError(
            f"target_name must name {n_targets} target{'s' if n_targets > 1 else ''}, got {given!r}"
        )
    return tuple(clean(name) for name in names)
