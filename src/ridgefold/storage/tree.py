"""Python values as JSON and named arrays, and back, without running anything that a file names.

Numbers, text, None and lists are themselves in JSON. Whatever else there is, is an object with
one entry whose key says what it is: {"array": name}, {"tuple": […]}, {"dict": [[key, value], …]},
{"kernel": {…}}, {"record": {…}}. Kernels and records are made by name from the tables here,
their values checked first; no other name means anything.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from ridgefold import kernels, records
from ridgefold.errors import (
    InvalidInputError,
    ModelFileError,
    RidgefoldError,
    UnsupportedInputError,
)
from ridgefold.kernels import CallableKernel, Kernel
from ridgefold.linalg import namespace_of
from ridgefold.linalg.namespace import is_foreign_array
from ridgefold.storage.annotations import check_record
from ridgefold.storage.container import storable

_DEEPEST = 60
"""Values may be nested this deeply: deeper than any model, and far from the limit of recursion."""
_LEAST_WHOLE, _MOST_WHOLE = -(2**63), 2**64
"""The range of whole numbers that arrays can hold."""
_MOST_COLUMNS = 1 << 24
"""Columns of a sparse matrix, at most: products with it take memory for every column, empty or
not."""
_MOST_PARTS = 200
"""Kernels that one kernel may be put together from. Each is computed for every prediction; a sum
of as many as nesting allows has fewer."""


def _named_classes(module: Any, base: type) -> dict[str, type]:
    exported = (getattr(module, name) for name in module.__all__)
    return {
        cls.__name__: cls
        for cls in exported
        if isinstance(cls, type) and issubclass(cls, base) and dataclasses.is_dataclass(cls)
    }


def _fields(cls: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]


KERNELS: Mapping[str, type[Kernel]] = {
    name: cls for name, cls in _named_classes(kernels, Kernel).items() if cls is not CallableKernel
}
RECORDS: Mapping[str, type] = _named_classes(records, object)


# -- to JSON -------------------------------------------------------------------------------


class Packer:
    """Collects the arrays of the values that it turns into JSON."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def pack(self, value: Any, where: str) -> Any:  # noqa: PLR0911 - one line a kind of value
        """`value` as JSON; its arrays get names that begin with `where`."""
        if value is None or isinstance(value, (bool, np.bool_)):
            return value if value is None else bool(value)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (int, np.integer)):
            return self._whole(int(value), where)
        if isinstance(value, (float, np.floating)):
            number = float(value)
            return number if math.isfinite(number) else {"float": repr(number)}
        if isinstance(value, (list, tuple)):
            items = [self.pack(item, f"{where}/{i}") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Kernel):
            return {"kernel": self._kernel(value, where)}
        if isinstance(value, Mapping):
            return {"dict": [self._pair(key, item, where) for key, item in value.items()]}
        if isinstance(value, np.ma.MaskedArray):
            return {
                "masked": {
                    "values": self.pack(
                        np.asarray(value.filled(_filler(value))), f"{where}/values"
                    ),
                    "mask": self.pack(np.ma.getmaskarray(value), f"{where}/mask"),
                }
            }
        if isinstance(value, np.ndarray) or is_foreign_array(value):
            return self._array(namespace_of(value).to_numpy(value), where)
        if scipy.sparse.issparse(value):
            return {"csr": self._sparse(value, where)}
        if RECORDS.get(type(value).__name__) is type(value):
            fields = {
                name: self.pack(getattr(value, name), f"{where}/{name}")
                for name in _fields(type(value))
            }
            return {"record": {"name": type(value).__name__, "fields": fields}}
        raise UnsupportedInputError(
            f"{where} is {_short(value)}, and a {type(value).__name__} cannot be stored in a "
            "model file"
        )

    def _whole(self, value: int, where: str) -> int:
        if not _LEAST_WHOLE <= value < _MOST_WHOLE:
            raise InvalidInputError(f"{where} is too large to be stored: {value}")
        return value

    def _pair(self, key: Any, value: Any, where: str) -> list[Any]:
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", str(key))[:60]
        return [self.pack(key, where), self.pack(value, f"{where}/{name}")]

    def _kernel(self, kernel: Kernel, where: str) -> dict[str, Any]:
        name = type(kernel).__name__
        if isinstance(kernel, CallableKernel):
            raise UnsupportedInputError(
                f"{where} is a function, {_short(kernel.function)}, and model files hold no code: "
                'use a kernel object or name, or fit with kernel="precomputed"'
            )
        if KERNELS.get(name) is not type(kernel):
            raise UnsupportedInputError(
                f"{where} is {_short(kernel)}, a class of your own, and model files hold no code: "
                "use one of ridgefold.kernels, or keep the model by pickle"
            )
        return {
            "name": name,
            **{
                field: self.pack(getattr(kernel, field), f"{where}/{field}")
                for field in _fields(type(kernel))
            },
        }

    def _array(self, array: np.ndarray, where: str) -> dict[str, Any]:
        if array.dtype.kind in "OU":
            items = [self.pack(item, where) for item in array.ravel().tolist()]
            kind = "objects" if array.dtype.kind == "O" else "texts"
            return {kind: {"shape": list(array.shape), "values": items}}
        if not storable(array.dtype):
            raise UnsupportedInputError(
                f"{where} is an array of {array.dtype}, which model files cannot hold: convert it "
                "to float64, float32, int64 or bool before fitting"
            )
        name, number = where, 2
        while name in self.arrays:
            name, number = f"{where}.{number}", number + 1
        self.arrays[name] = array
        return {"array": name}

    def _sparse(self, matrix: Any, where: str) -> dict[str, Any]:
        rows = matrix.tocsr()
        if rows.shape[1] > _MOST_COLUMNS:
            raise UnsupportedInputError(
                f"{where} has {rows.shape[1]:,} columns, and model files hold sparse rows of at "
                f"most {_MOST_COLUMNS:,}: leave out columns without values, or hash to fewer"
            )
        return {
            "shape": list(rows.shape),
            "matrix": not isinstance(rows, scipy.sparse.sparray),
            **{
                field: self.pack(getattr(rows, field), f"{where}/{field}")
                for field in ("data", "indices", "indptr")
            },
        }


def _filler(values: np.ma.MaskedArray) -> Any:
    return None if values.dtype.kind == "O" else np.zeros((), dtype=values.dtype)


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}…"


# -- from JSON -----------------------------------------------------------------------------


class Unpacker:
    """Makes values from JSON and arrays; each array must be used exactly once."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = dict(arrays)
        self._parts = 0

    def unpack(self, value: Any, where: str, depth: int = 0) -> Any:
        """The value that a piece of JSON stands for."""
        if depth > _DEEPEST:
            raise ModelFileError(f"{where[:60]}… is nested too deeply")
        if isinstance(value, int) and not _LEAST_WHOLE <= value < _MOST_WHOLE:
            raise ModelFileError(f"{where} is a whole number of too many digits")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self.unpack(item, f"{where}/{i}", depth + 1) for i, item in enumerate(value)]
        if not isinstance(value, dict) or len(value) != 1:
            raise ModelFileError(f"{where} must have one entry that says what it is")
        ((kind, content),) = value.items()
        make = _MAKERS.get(kind)
        if make is None:
            raise ModelFileError(f"{where} is a {kind[:40]!r}, which is not known")
        return make(self, content, where, depth + 1)

    def require_all_used(self) -> None:
        if self._arrays:
            raise ModelFileError(f"nothing refers to its array {next(iter(self._arrays))[:80]!r}")

    def _float(self, content: Any, where: str, depth: int) -> float:
        if content not in ("inf", "-inf", "nan"):
            raise ModelFileError(f"{where} must be inf, -inf or nan")
        return float(content)

    def _tuple(self, content: Any, where: str, depth: int) -> tuple[Any, ...]:
        _require(isinstance(content, list), where, "a list of values")
        return tuple(self.unpack(content, where, depth))

    def _dict(self, content: Any, where: str, depth: int) -> dict[Any, Any]:
        pairs = isinstance(content, list) and all(
            isinstance(pair, list) and len(pair) == 2 for pair in content
        )
        _require(pairs, where, "a list of pairs")
        values: dict[Any, Any] = {}
        for name, item in content:
            key = self.unpack(name, where, depth)
            _require(
                isinstance(key, (str, int, float, bool, tuple)), where, "pairs with plain keys"
            )
            try:
                known = key in values
            except TypeError:
                raise ModelFileError(f"{where} has a key that cannot be one") from None
            _require(not known, where, f"without the key {_short(key)} twice")
            values[key] = self.unpack(item, f"{where}/{key}", depth)
        return values

    def _array(self, content: Any, where: str, depth: int) -> np.ndarray:
        _require(
            isinstance(content, str) and content in self._arrays, where, "an array of the file"
        )
        return self._arrays.pop(content)

    def _objects(self, content: Any, where: str, depth: int) -> np.ndarray:
        shape, items = self._shaped(content, where, depth)
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = item
        return array.reshape(shape)

    def _texts(self, content: Any, where: str, depth: int) -> np.ndarray:
        shape, items = self._shaped(content, where, depth)
        _require(all(isinstance(item, str) for item in items), where, "texts")
        longest = max(map(len, items), default=1)
        # Every entry of a text array takes the room of the longest.
        most = max(1000, 20 * sum(map(len, items)))
        _require(longest * len(items) <= most, where, "texts of similar length")
        return np.asarray(items, dtype=f"<U{max(longest, 1)}").reshape(shape)

    def _shaped(self, content: Any, where: str, depth: int) -> tuple[tuple[int, ...], list[Any]]:
        good = (
            isinstance(content, dict)
            and set(content) == {"shape", "values"}
            and isinstance(content["values"], list)
            and isinstance(content["shape"], list)
            and all(type(size) is int and size >= 0 for size in content["shape"])
            and math.prod(content["shape"]) == len(content["values"])
            and len(content["shape"]) <= 8
        )
        _require(good, where, "values and a shape that suits them")
        return tuple(content["shape"]), self.unpack(content["values"], where, depth)

    def _masked(self, content: Any, where: str, depth: int) -> np.ma.MaskedArray:
        _require(isinstance(content, dict) and set(content) == {"values", "mask"}, where, "masked")
        values = self.unpack(content["values"], f"{where}/values", depth)
        mask = self.unpack(content["mask"], f"{where}/mask", depth)
        good = (
            isinstance(values, np.ndarray)
            and isinstance(mask, np.ndarray)
            and mask.dtype == np.bool_
            and mask.shape == values.shape
        )
        _require(good, where, "values and a mask of the same shape")
        return np.ma.MaskedArray(values, mask=mask)

    def _csr(self, content: Any, where: str, depth: int) -> Any:
        fields = ("data", "indices", "indptr")
        good = (
            isinstance(content, dict)
            and set(content) == {"shape", "matrix", *fields}
            and isinstance(content["shape"], list)
            and len(content["shape"]) == 2
            and all(type(size) is int and 0 <= size < 2**62 for size in content["shape"])
            and content["shape"][1] <= _MOST_COLUMNS
            and type(content["matrix"]) is bool
        )
        _require(good, where, "a sparse matrix")
        arrays = [self.unpack(content[field], f"{where}/{field}", depth) for field in fields]
        kinds = ("f", "i", "i")
        _require(
            all(
                isinstance(a, np.ndarray) and a.ndim == 1 and a.dtype.kind == kind
                for a, kind in zip(arrays, kinds, strict=True)
            ),
            where,
            "a sparse matrix of numbers",
        )
        make = scipy.sparse.csr_matrix if content["matrix"] else scipy.sparse.csr_array
        try:
            matrix = make(tuple(arrays), shape=tuple(content["shape"]))
            matrix.check_format(full_check=True)
        except (ValueError, OverflowError) as error:
            raise ModelFileError(f"{where} is no sparse matrix ({error})") from None
        return matrix

    def _kernel(self, content: Any, where: str, depth: int) -> Kernel:
        name = content.get("name") if isinstance(content, dict) else None
        _require(isinstance(name, str) and name in KERNELS, where, "a kernel of ridgefold's")
        cls, before = KERNELS[str(name)], self._parts
        self._parts += 1
        _require(self._parts <= _MOST_PARTS, where, f"a kernel of at most {_MOST_PARTS} parts")
        values = {
            key: self.unpack(item, f"{where}/{key}", depth)
            for key, item in content.items()
            if key != "name"
        }
        if before == 0:
            self._parts = 0  # the next one is another kernel
        names = set(_fields(cls))
        _require(
            set(values) == names, where, f"{name} with {', '.join(sorted(names)) or 'nothing'}"
        )
        try:
            return cls(**values)
        except (RidgefoldError, TypeError, ValueError) as error:
            raise ModelFileError(f"{where} is no {name} kernel ({error})") from None

    def _record(self, content: Any, where: str, depth: int) -> Any:
        good = (
            isinstance(content, dict)
            and set(content) == {"name", "fields"}
            and isinstance(content["name"], str)
            and content["name"] in RECORDS
            and isinstance(content["fields"], dict)
        )
        _require(good, where, "a record of ridgefold's")
        cls = RECORDS[content["name"]]
        fields = {
            name: self.unpack(item, f"{where}/{name}", depth)
            for name, item in content["fields"].items()
        }
        check_record(where, cls, fields)
        return cls(**fields)


def _require(good: bool, where: str, wanted: str) -> None:
    if not good:
        raise ModelFileError(f"{where} must be {wanted}")


_MAKERS: Mapping[str, Callable[[Unpacker, Any, str, int], Any]] = {
    "float": Unpacker._float,
    "tuple": Unpacker._tuple,
    "dict": Unpacker._dict,
    "array": Unpacker._array,
    "objects": Unpacker._objects,
    "texts": Unpacker._texts,
    "masked": Unpacker._masked,
    "csr": Unpacker._csr,
    "kernel": Unpacker._kernel,
    "record": Unpacker._record,
}
