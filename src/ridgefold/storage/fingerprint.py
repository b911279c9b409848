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
"""Bytes of rows that are hashed at once, after which the pages of a mapped file are let go."""
_SHOWN = 6
"""Differences that an error names; a longer list helps nobody."""
_LONGEST = 60
"""Characters of a value that an error shows."""


def of_rows(rows: Any) -> dict[str, Any]:
    """Shape, type and SHA-256 of an array, or of what gives rows by slices or in blocks."""
    digest = hashlib.sha256()
    dtype = np.dtype(rows.dtype).newbyteorder("<")
    for block in rows.blocks() if hasattr(rows, "blocks") else _blocks(rows):
        contiguous = np.ascontiguousarray(block, dtype=dtype)
        digest.update(contiguous.reshape(-1).view(np.uint8).data)
    return {
        "shape": [int(size) for size in rows.shape],
        "dtype": dtype.name,
        "sha256": digest.hexdigest(),
    }


def _blocks(rows: Any) -> Iterator[np.ndarray]:
    width = np.dtype(rows.dtype).itemsize * int(np.prod(rows.shape[1:]))
    for stretch in row_blocks(len(rows), width, _BLOCK_BYTES):
        yield rows[stretch]
        release(rows)


def of_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Every setting as canonical JSON, arrays in it by their SHA-256."""
    texts = {}
    for name, value in settings.items():
        packer = Packer()
        try:
            document = packer.pack(value, name)
        except UnsupportedInputError:
            # The repr of the library's own objects, such as partitioners, says all of them.
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
        texts[name] = text + (strict_json.dumps(arrays).decode() if arrays else "")
    return texts


def digest_of(asked: Mapping[str, Any]) -> str:
    """One SHA-256 for a whole fingerprint."""
    return hashlib.sha256(strict_json.dumps(asked)).hexdigest()


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """What differs between two fingerprints, in words."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        sentences = []
        for key in sorted({*there, *here}):
            label = f"{name} {key}".strip() if name not in ("", "settings") else str(key)
            if key in there and key in here:
                sentences += differences(there[key], here[key], label)
            else:
                sentences.append(f"{label} was {'' if key in there else 'not '}given")
        return sentences
    if there == here:
        return []
    if name.endswith("sha256"):
        return [f"the values of {name.removesuffix(' sha256')}"]
    return [f"{name} was {_short(_plain(there))} and is {_short(_plain(here))}"]


def listed(sentences: list[str]) -> str:
    """The first few differences, as one text."""
    more = f" and {len(sentences) - _SHOWN} more" if len(sentences) > _SHOWN else ""
    return "; ".join(sentences[:_SHOWN]) + more


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else strict_json.dumps(value).decode()


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
