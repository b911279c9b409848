"""A small strict checker: does a value have the type that an annotation states?

Stored records are checked against the annotations of their own dataclasses, and the state of
estimators against tables of such annotations, so nothing has to be described twice.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

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
    hints = typing.get_type_hints(cls)
    required: dict[str, Any] = {}
    optional: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        has_default = (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
        (optional if has_default else required)[field.name] = hints[field.name]
    check_fields(where, values, required, optional)


def check(where: str, value: Any, annotation: Any) -> None:
    """Raise a typed error unless `value` is of the type that `annotation` states."""
    if not _matches(value, annotation):
        raise ModelFileError(f"{where} must be {_words(annotation)}, got {_kind(value)}")


def _matches(value: Any, annotation: Any) -> bool:  # noqa: PLR0911 - one line a kind of type
    if annotation is Any:
        return True
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(_matches(value, one) for one in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_matches(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_matches, value, arguments))
    if origin is list:
        return isinstance(value, list) and all(_matches(item, arguments[0]) for item in value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _matches(key, arguments[0]) and _matches(item, arguments[1])
            for key, item in value.items()
        )
    if annotation is None:
        return value is None
    if annotation is float:
        return type(value) in (int, float)
    if annotation in (int, bool, str):
        return type(value) is annotation
    return isinstance(value, origin or annotation)


def _kind(value: Any) -> str:
    return repr(value)[:60] if isinstance(value, (str, int, float)) else type(value).__name__


def _words(annotation: Any) -> str:
    return getattr(annotation, "__name__", str(annotation))
