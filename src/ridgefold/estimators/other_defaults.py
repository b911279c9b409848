"""Estimators that differ from another one in the defaults of their arguments alone."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

_Estimator = TypeVar("_Estimator", bound=type)


def with_defaults(**defaults: Any) -> Callable[[_Estimator], _Estimator]:
    """Give a subclass the `__init__` of its parent with these defaults of keyword-only arguments.

    scikit-learn reads an estimator's arguments and their defaults from the signature of `__init__`
    and allows no ``**kwargs`` there, so a subclass that hands arguments on would have to repeat
    them all; the copy is a function like any other, which `help`, `clone` and documentation read.
    """

    def changed(cls: _Estimator) -> _Estimator:
        init = cast(FunctionType, cls.__init__)  # type: ignore[misc]
        known = init.__kwdefaults__ or {}
        if unknown := sorted(set(defaults) - set(known)):
            raise TypeError(f"{cls.__name__} has no keyword-only arguments {unknown}")
        copy = FunctionType(
            init.__code__, init.__globals__, "__init__", init.__defaults__, init.__closure__
        )
        copy.__kwdefaults__ = {**known, **defaults}
        copy.__annotations__ = dict(init.__annotations__)
        copy.__qualname__ = f"{cls.__qualname__}.__init__"
        copy.__module__ = cls.__module__
        cls.__init__ = copy  # type: ignore[misc]
        return cls

    return changed
