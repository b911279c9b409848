"""Arguments of estimators in model files: which of them, and what each may be.

How and where work is done is for those to say who have it done. So no file says how many processes
or how much memory a prediction takes, where it runs, or what it prints: a loaded model has the
defaults of these arguments, whatever the file holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ridgefold.cells.combine import COMBINERS
from ridgefold.errors import InvalidInputError, ModelFileError
from ridgefold.kernels import Kernel
from ridgefold.options import LEARNED, OPTION_CLASSES, OptionObject
from ridgefold.records.kinds import OneOf, Share
from ridgefold.storage.annotations import check, matches

OF_WORK = frozenset({"compute", "device", "memory_budget", "time_budget"})
"""Arguments that say how work is done: never stored."""


@dataclass(frozen=True)
class Ridges:
    """Finite numbers >= 0: one, or one a target."""

    def accepts(self, value: Any) -> bool:
        return _all_numbers(value, "iuf") and bool(
            np.all(np.isfinite(value)) and np.min(value) >= 0
        )

    def __str__(self) -> str:
        return "finite numbers >= 0"


@dataclass(frozen=True)
class Kernels:
    """The name of a kernel, a kernel, or a list of them."""

    def accepts(self, value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return all(map(self.accepts, value))
        return isinstance(value, (str, Kernel))

    def __str__(self) -> str:
        return "a kernel, its name, or a list of them"


@dataclass(frozen=True)
class ColumnGroups:
    """Lists of numbers of columns."""

    def accepts(self, value: Any) -> bool:
        return isinstance(value, (list, tuple, np.ndarray)) and all(
            (isinstance(group, (list, tuple)) and len(group) == 0)
            or (_all_numbers(group, "iu") and np.ndim(group) == 1 and int(np.min(group)) >= 0)
            for group in value
        )

    def __str__(self) -> str:
        return "lists of numbers of columns"


def _all_numbers(value: Any, kinds: str) -> bool:
    """Whether a number, or a list or array of numbers, has a type of one of these kinds."""
    if not isinstance(value, (int, float, list, tuple, np.ndarray)):
        return False
    try:
        found = np.asarray(value)
    except ValueError:  # lists of different lengths
        return False
    return found.dtype.kind in kinds and found.size > 0


_Scalar = bool | int | float | str | None
_READ: Mapping[str, Any] = {
    "alpha": Annotated[Any, Ridges()],
    "combine": Annotated[str, OneOf(tuple(COMBINERS))],
    "fit_intercept": _Scalar,
    "intervals": str | None,
    "kernel": Annotated[Any, Kernels()],
    "partition": str,
    "probability": _Scalar,
    "scoring": str | None,
    "cells.refine": int | str | None,
    "cells.tolerance": Share,
    "metric.groups": Annotated[Any, ColumnGroups()] | None,
    "metric.scales": _Scalar,
    "search.weighted_scores": _Scalar,
}
"""What a fitted model reads of its arguments. It reads no others: these are for the next fit, which
checks them."""
_READ_BY: Mapping[str, Mapping[str, Any]] = {
    name: {"alpha": Annotated[Any, Ridges()] | None}
    for name in (
        "KernelRidgeCV",
        "LSSVMClassifierCV",
        "LSSVMRegressorCV",
        "PartitionedKernelRidge",
        "PartitionedLSSVMClassifier",
        "PartitionedLSSVMRegressor",
    )
}
"""Where it differs between estimators."""


def _kind_of(estimator: str, name: str) -> Any:
    return _READ_BY.get(estimator, {}).get(name, _READ.get(name, Any))


def storable_argument(estimator: str, name: str, value: Any) -> bool:
    """Whether a file may hold this value of an argument."""
    return matches(value, _kind_of(estimator, name))


def checked_arguments(
    estimator: str, names: list[str], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments from a file that an estimator with arguments of these names may be made with."""
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        if name not in names:
            raise ModelFileError(f"{estimator} has no argument {str(name)[:60]!r}")
        if name in OF_WORK:
            raise ModelFileError(
                f"it sets {name!r}, which says how work is done and is no part of a model"
            )
        if name in OPTION_CLASSES and isinstance(value, Mapping):
            arguments[name] = _checked_options(estimator, name, value)
            continue
        if name in OPTION_CLASSES and not (value is None or (name, value) == ("metric", LEARNED)):
            raise ModelFileError(f"model.parameters.{name} must hold options, got {value!r:.60}")
        check(f"model.parameters.{name}", value, _kind_of(estimator, name))
        arguments[name] = value
    return arguments


def _checked_options(estimator: str, argument: str, values: Mapping[str, Any]) -> OptionObject:
    cls = OPTION_CLASSES[argument]
    known = cls._get_param_names()
    for name, value in values.items():
        if name not in known:
            raise ModelFileError(f"{cls.__name__} has no argument {str(name)[:60]!r}")
        path = f"{argument}.{name}"
        check(f"model.parameters.{path}", value, _kind_of(estimator, path))
    options = cls(**values)
    try:
        options.check()
    except InvalidInputError as error:
        raise ModelFileError(f"model.parameters: {error}") from None
    return options
