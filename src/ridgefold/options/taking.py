"""Estimators that take option objects, and the objects of an estimator, checked."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, ClassVar, Self, TypeVar

from sklearn.base import BaseEstimator

from ridgefold.errors import InvalidInputError
from ridgefold.options.base import OptionObject
from ridgefold.options.cell_options import CellOptions
from ridgefold.options.compute import Compute
from ridgefold.options.metric_learning import MetricLearning
from ridgefold.options.search import Search

LEARNED = "learned"
"""``metric="learned"`` is ``MetricLearning()``."""
OPTION_CLASSES: Mapping[str, type[OptionObject]] = {
    cls.argument: cls for cls in (Search, MetricLearning, Compute, CellOptions)
}
"""By the arguments of estimators that take them."""
_Options = TypeVar("_Options", bound=OptionObject)


class TakesOptions(BaseEstimator):
    """For estimators some arguments of which are option objects, or None for the defaults."""

    _without_use: ClassVar[Mapping[str, str]] = {}
    """Options that the estimator has no use for, as "compute.device", each with the reason."""

    def set_params(self, **params: Any) -> Self:
        """Set arguments; ``search__method`` and the like reach into option objects.

        Where there is no such object yet, one with the defaults is made first.
        """
        own = self.get_params(deep=False)
        for key in params:
            name, _, inner = key.partition("__")
            cls = OPTION_CLASSES.get(name)
            if not inner or cls is None or name not in own:
                continue
            if params.get(name, own[name]) in (None, LEARNED):
                params = {**params, name: cls()}
        found: Self = super().set_params(**params)
        return found

    def _check_options(self) -> None:
        """Every option object is of its class and holds values that this estimator can use."""
        for name, cls in OPTION_CLASSES.items():
            if hasattr(self, name):
                _options_of(self, name, cls)
        for path, reason in self._without_use.items():
            name, _, inner = path.partition(".")
            value = getattr(_options_of(self, name, OPTION_CLASSES[name]), inner)
            default = signature(OPTION_CLASSES[name]).parameters[inner].default
            if not (value is default or (isinstance(value, type(default)) and value == default)):
                raise InvalidInputError(
                    f"{path}={value!r} has no use in {type(self).__name__}: {reason}"
                )


def search_of(model: Any) -> Search:
    """How a model chooses kernel and ridge."""
    return _options_of(model, "search", Search)


def compute_of(model: Any) -> Compute:
    """How and where a model is computed."""
    return _options_of(model, "compute", Compute)


def cells_of(model: Any) -> CellOptions:
    """What a partitioned model asks of its cells."""
    return _options_of(model, "cells", CellOptions)


def metric_of(model: Any) -> MetricLearning | None:
    """What a model learns about its columns; None if nothing."""
    return None if model.metric is None else _options_of(model, "metric", MetricLearning)


def _options_of(model: Any, name: str, cls: type[_Options]) -> _Options:
    value = getattr(model, name)
    learned = cls is MetricLearning and isinstance(value, str) and value == LEARNED
    if value is None or learned:
        return cls()
    if not isinstance(value, cls):
        known = ("None", f'"{LEARNED}"') if cls is MetricLearning else ("None",)
        example = next(iter(signature(cls).parameters))
        raise InvalidInputError(
            f"{name} must be {', '.join(known)} or an object such as "
            f"ridgefold.{cls.__name__}({example}=...), got {value!r}"
        )
    value.check()
    return value


def flat_arguments(model: Any) -> dict[str, Any]:
    """The arguments of an estimator, those in its option objects by names as "search.method"."""
    flat: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if name not in OPTION_CLASSES:
            flat[name] = value
        elif name == "metric" and value is None:
            flat[name] = None
        else:
            options = _options_of(model, name, OPTION_CLASSES[name])
            inner = options.get_params(deep=False)
            flat.update({f"{name}.{key}": inner[key] for key in inner})
    return flat
