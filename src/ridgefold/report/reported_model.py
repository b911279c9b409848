"""The model that a report is about, with the names that people know it by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import ModelFacts
from ridgefold.estimators.saving import Storable
from ridgefold.report.formatting import clean
from ridgefold.report.unseen_rows import UnseenClasses, UnseenNumbers, unseen_rows
from ridgefold.tables.table_input import read_input


@dataclass(frozen=True)
class ReportedModel:
    """The facts of a fitted model, its predictions of unseen rows, and names to show."""

    facts: ModelFacts
    title: str
    target_names: tuple[str, ...]
    unseen: UnseenNumbers | UnseenClasses | None
    """Predictions of rows that the model did not see, if there are any."""
    X_test: Any = None
    y_test: Any = None

    @property
    def class_names(self) -> tuple[str, ...] | None:
        classes = self.facts.classes
        return None if classes is None else tuple(str(label) for label in classes.tolist())

    @property
    def tested(self) -> bool:
        """True if the unseen rows are a test set."""
        return self.X_test is not None


def facts_of(model: Any, name: str = "estimator") -> ModelFacts:
    """The facts of a fitted model; a typed error if it is something else."""
    if not isinstance(model, Storable):
        raise InvalidInputError(
            f"{name} must be a fitted estimator of ridgefold, got {type(model).__name__}"
            + (": pass the last step of the pipeline" if isinstance(model, Pipeline) else "")
        )
    check_is_fitted(model)
    return model.report_facts()


def reported_model(
    model: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    target_name: Any = None,
    title: str | None = None,
) -> ReportedModel:
    """Check what was given, and gather what a report needs."""
    facts = facts_of(model, "model")
    if isinstance(X_test, (str, PathLike, Mapping)):
        X_test = read_input(X_test).frame.to_native()
    names = _target_names(target_name, facts.n_targets)
    return ReportedModel(
        facts=facts,
        title=clean(title) if title else (names[0] if target_name else facts.name),
        target_names=names,
        unseen=unseen_rows(facts, X_test, y_test),
        X_test=X_test,
        y_test=y_test,
    )


def _target_names(target_name: Any, n_targets: int) -> tuple[str, ...]:
    if target_name is None:
        return ("target",) if n_targets == 1 else tuple(f"target {j}" for j in range(n_targets))
    names = (target_name,) if isinstance(target_name, str) else tuple(target_name)
    if len(names) != n_targets:
        raise InvalidInputError(
            f"target_name must name {n_targets} target{'s' if n_targets > 1 else ''}, got "
            f"{target_name!r}"
        )
    return tuple(clean(name) for name in names)
