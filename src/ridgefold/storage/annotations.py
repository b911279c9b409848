"""A small strict checker: does a value have the type that an annotation states?

Stored records are checked against the annotations of their own dataclasses, and the state and the
arguments of estimators against tables of such annotations, so nothing has to be described twice.
Limits within `Annotated` say which values of a type are allowed: objects with a method `accepts`,
such as those of `records.kinds`.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np

from ridgefold.errors import ModelFileError


def check_fields(
    where: str, values: Mapping[str, Any], required: Mapping[str, Any], optional: Mapping[str, Any]
) -> None:
    """`values` has all required fields, none but those and the optional, each of its type."""
    if not isinstance(values, Mapping):
        raise ModelFileError(f"{where} must be a set of named values, got {_kind(values)}")
    missing = sorted(set(required) - set(values))
    if missing:
        raise ModelFileError(f"{where} lacks {', '.join(missing)}")
    for name, value in values.items():
        if name in required:
            check(f"{where}.{name}", value, required[name])
        elif name in optional:
            check(f"{where}.{name}", value, optional[name])
        else:
            raise ModelFileError(f"{where} has an entry {str(name)[:60]!r} that is not known")


def check_record(where: str, cls: type, values: Mapping[str, Any]) -> None:
    """`values` are fields of the dataclass `cls`; those with a default may be absent."""
    hints = _hints_of(cls)
    required: dict[str, Any] = {}
    optional: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        has_default = (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
        (optional if has_default else required)[field.name] = hints[field.name]
    check_fields(where, values, required, optional)


@functools.cache
def _hints_of(cls: type) -> Mapping[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)


def check(where: str, value: Any, annotation: Any) -> None:
    """Raise a typed error unless `value` is of the type that `annotation` states."""
    if not matches(value, annotation):
        raise ModelFileError(f"{where} must be {_words(annotation)}, got {_kind(value)}")


def matches(value: Any, annotation: Any) -> bool:  # noqa: PLR0911 - one line a kind of type
    """Whether `value` is of the type that `annotation` states, and within its limits."""
    if annotation is Any:
        return True
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        kind, *limits = arguments
        return matches(value, kind) and all(limit.accepts(value) for limit in limits)
    if origin in (typing.Union, types.UnionType):
        return any(matches(value, one) for one in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(matches(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(matches, value, arguments))
    if origin is list:
        return isinstance(value, list) and all(matches(item, arguments[0]) for item in value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            matches(key, arguments[0]) and matches(item, arguments[1])
            for key, item in value.items()
        )
    if annotation is None:
        return value is None
    if annotation is float:
        return type(value) in (int, float)
    if annotation in (
        int,
        bool,
        str,
        np.ndarray,
    ):  # no masked array where there is to be a plain one
        return type(value) is annotation
    return isinstance(value, origin or annotation)


def _kind(value: Any) -> str:
    if isinstance(value, int) and abs(value) > 2**64:
        return "a number of too many digits"
    return repr(value)[:60] if isinstance(value, (str, int, float)) else type(value).__name__


def _words(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return ", ".join([_words(arguments[0]), *map(str, arguments[1:])])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_words, arguments))
    return getattr(annotation, "__name__", str(annotation))
