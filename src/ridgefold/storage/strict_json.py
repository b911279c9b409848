"""JSON as its standard has it: no NaN, no key twice, no end in the middle, bounded in size."""

from __future__ import annotations

import json
import math
from typing import Any

from ridgefold.errors import ModelFileError


def dumps(value: Any) -> bytes:
    """Canonical text: sorted keys, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def loads(data: bytes | bytearray, *, most_values: int) -> Any:
    """The value that `data` stands for, or a typed error.

    `most_values` bounds how many objects are made: the separators are counted before any is.
    """
    if sum(data.count(separator) for separator in (b",", b"[", b"{", b":")) > most_values:
        raise ModelFileError(f"its metadata hold more than {most_values} values")
    try:
        text = data.decode("ascii")
        del data
        return json.loads(
            text,
            object_pairs_hook=_without_repeats,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its metadata are not JSON ({error})") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ModelFileError(f"its metadata have the key {twice[:60]!r} twice")
    return values


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ModelFileError(f"its metadata hold the number {text[:60]}, which is too large")
    return value


def _no_constant(name: str) -> None:
    raise ModelFileError(f"its metadata hold {name}, which JSON does not have")
