"""What a fit was asked to do, as text: the same for the same data and settings only.

Data count by shape, type and the SHA-256 of their bytes, row by row; settings by the JSON that
model files would hold of them. Parts have names, so that two fingerprints can be compared in
words.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ridgefold.errors import UnsupportedInputError
from ridgefold.linalg.blocks import row_blocks
from ridgefold.storage import strict_json
from ridgefold.storage.mapped import release
from ridgefold.storage.tree import Packer

_BLOCK_BYTES = float(1 << 24)
_SHOWN = 6
_LONGEST = 60


def of_rows(rows: Any) -> dict[str, Any]:
    """Shape, type and SHA-256 of an array, or of what gives rows by slices or in blocks."""
    digest = hashlib.sha256()
    dtype = np.dtype(rows.dtype).newbyteorder("<")
    for part in rows.blocks() if hasattr(rows, "blocks") else _blocks(rows):
        block = np.ascontiguousarray(part, dtype=dtype)
        digest.update(block.reshape(-1).view(np.uint8).data)
    return {
        "shape": [int(size) for size in rows.shape],
        "dtype": dtype.name,
        "sha256": digest.hexdigest(),
    }


def _blocks(rows: Any) -> Iterator[np.ndarray]:
    width = np.dtype(rows.dtype).itemsize * int(np.prod(rows.shape[1:]))
    for some in row_blocks(len(rows), width, _BLOCK_BYTES):
        yield rows[some]
        release(rows)


def of_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Every setting as canonical JSON, arrays in it by their SHA-256."""
    found = {}
    for name, value in settings.items():
        packer = Packer()
        try:
            document = packer.pack(value, name)
        except UnsupportedInputError:
            # Our own objects, such as partitioners, say all.
            if not type(value).__module__.startswith("ridgefold."):
                raise UnsupportedInputError(
                    f"run_dir cannot be used with {name}={_short(repr(value))}: whether two runs "
                    "do the same cannot be known from it; use one of ridgefold's own objects or "
                    "names"
                ) from None
            with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
                document = repr(value)
        arrays = {key: of_rows(np.atleast_1d(array)) for key, array in packer.arrays.items()}
        text = strict_json.dumps(document).decode()
        found[name] = text + (strict_json.dumps(arrays).decode() if arrays else "")
    return found


def digest_of(asked: Mapping[str, Any]) -> str:
    """One SHA-256 for a whole fingerprint."""
    return hashlib.sha256(strict_json.dumps(asked)).hexdigest()


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """What differs between two fingerprints, in words."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        found = []
        for key in sorted({*there, *here}):
            label = f"{name} {key}".strip() if name not in ("", "settings") else str(key)
            if key in there and key in here:
                found += differences(there[key], here[key], label)
            else:
                found.append(f"{label} was {'' if key in there else 'not '}given")
        return found
    if there == here:
        return []
    if name.endswith("sha256"):
        return [f"the values of {name.removesuffix(' sha256')}"]
    return [f"{name} was {_short(_plain(there))} and is {_short(_plain(here))}"]


def listed(found: list[str]) -> str:
    """The first few differences."""
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else strict_json.dumps(value).decode()


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
