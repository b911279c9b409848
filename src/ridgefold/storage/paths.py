"""Paths that users give, checked before anything is done with them."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any

from ridgefold.errors import InvalidInputError


def usable_path(path: Any, name: str = "path") -> Path:
    """`path` as an object, if there can be a file of that name; `name` is that of the argument."""
    if not isinstance(path, (str, PathLike)):
        raise InvalidInputError(f"{name} must be a path, got {path!r}")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} must be a text, got bytes: use os.fsdecode({text[:80]!r})")
    try:
        possible = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise InvalidInputError(
            f"{name} holds a character that no file name can have: {text[:80]!r}; leave it out"
        )
    return Path(text)
