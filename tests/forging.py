"""Model files that a forger would write: a whole file's contents changed by rules, signed anew.

A change takes a place in the tree of the document, or an array, and puts something there that no
fit would write: another type, a number beyond any size, an emptied or lengthened list, another
name, a part of another model. Every digest is then computed again, so that nothing but the
contents tells that the file was not written by `save`.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from ridgefold import (
    CellOptions,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    MetricLearning,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
    RidgefoldClassifier,
    RidgefoldRegressor,
    Search,
)
from ridgefold.kernels import (
    RBF,
    AdditiveChi2,
    Categorical,
    Chi2,
    Columns,
    Constant,
    Cosine,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Sobolev,
    Warped,
)
from ridgefold.records import Quantile, SignedLog, Standardise
from ridgefold.storage import strict_json
from ridgefold.storage.container import DOCUMENT

_RNG = np.random.default_rng(11)
X = _RNG.uniform(0.0, 2.0, size=(40, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * _RNG.standard_normal(40)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [1.0, 2.5])]
X_NEW = _RNG.uniform(0.0, 2.0, size=(4, 3))
SPARSE = scipy.sparse.csr_array(np.where(X > 1.0, X, 0.0))
TABLE = pd.DataFrame(
    {"size": X[:, 0], "colour": np.where(X[:, 1] > 1, "red", "blue"), "age": X[:, 2]}
)
_ALPHAS = [1e-3, 1e-1, 1.0]
_PAIRED = (
    2.0 * Columns(RBF((1.0, 2.0)), [0, 1]) * Columns(Categorical(0.5), [2])
    + Warped(Matern(2.0, nu=2.5), (Standardise(0.5, 2.0), SignedLog(), Quantile((0, 2), (0, 1))))
    + Polynomial(2) * Constant(0.1)
    + RationalQuadratic(1.0, shape=2.0)
)


def _holes() -> pd.DataFrame:
    table = TABLE.copy()
    table.loc[3, "size"] = np.nan
    table.loc[5, "colour"] = None
    return table


def _wide() -> Any:
    """Sparse rows of so many columns that monomials of them cannot be counted one by one."""
    return scipy.sparse.random_array((12, 1 << 21), density=1e-5, rng=np.random.default_rng(5))


FITTED: dict[str, Callable[[], Any]] = {
    "ridge": lambda: KernelRidge(0.1, kernel="rbf", gamma=0.5, intervals="cv+").fit(X, Y),
    "ridge of two targets": lambda: KernelRidge([0.1, 0.2], kernel="laplacian").fit(
        X, np.column_stack([Y, -Y])
    ),
    "primal": lambda: KernelRidge(0.1, kernel="polynomial", degree=2, fit_intercept=True).fit(X, Y),
    "sparse": lambda: KernelRidge(0.1, kernel=Polynomial(2) + Linear()).fit(SPARSE, Y),
    "wide": lambda: KernelRidge(0.1, kernel=Polynomial(3)).fit(
        scipy.sparse.csr_array(_wide()), Y[:12]
    ),
    "composite": lambda: KernelRidge(0.1, kernel=_PAIRED).fit(X, Y),
    "domain": lambda: KernelRidge(0.1, kernel=Sobolev() + Chi2(0.5) * Cosine()).fit(X, Y),
    "indefinite": lambda: KernelRidge(100.0, kernel=Sigmoid(0.1) + AdditiveChi2()).fit(X, Y),
    "precomputed": lambda: KernelRidge(0.1, kernel="precomputed").fit(RBF(1.0)(X), Y),
    "compressed": lambda: KernelRidge(0.1, kernel=Laplacian(1.0)).fit(X, Y).compress(8),
    "jackknife": lambda: LSSVMRegressor(0.1, intervals="jackknife+").fit(X, Y),
    "classes": lambda: LSSVMClassifier(0.1, probability=True).fit(X, LABELS),
    "two classes": lambda: LSSVMClassifier(0.1).fit(X, Y > 1.5),
    "search": lambda: KernelRidgeCV(_ALPHAS, cv=4).fit(X, Y),
    "search by target": lambda: LSSVMRegressorCV(
        _ALPHAS, cv=4, kernel=["rbf", "laplacian"], search=Search(alpha_per_target=True)
    ).fit(X, np.column_stack([Y, -Y])),
    "learned": lambda: LSSVMRegressorCV(
        [0.1, 1.0], cv=4, metric=MetricLearning(transforms="auto", rows=30)
    ).fit(X, Y),
    "searched classes": lambda: LSSVMClassifierCV(_ALPHAS, cv=4, probability=True).fit(X, LABELS),
    "cells": lambda: PartitionedLSSVMRegressor(
        n_partitions=4, intervals="jackknife+", random_state=3
    ).fit(X, Y, np.linspace(0.5, 2.0, 40)),
    "routed cells": lambda: PartitionedLSSVMRegressor("hyperplanes", 3, "route").fit(X, Y),
    "centres": lambda: PartitionedLSSVMRegressor("kmeans", 3, metric="learned").fit(X, Y),
    "average": lambda: PartitionedLSSVMRegressor("random", 3, "average").fit(X, Y),
    "refined": lambda: PartitionedLSSVMRegressor(
        n_partitions=3, alpha=0.1, cells=CellOptions(refine="exact")
    ).fit(X, Y),
    "classes in cells": lambda: PartitionedLSSVMClassifier(n_partitions=3, probability=True).fit(
        X, LABELS
    ),
    "table": lambda: RidgefoldRegressor(
        model=LSSVMRegressorCV([0.1, 1.0], cv=4, metric=MetricLearning(rows=30, groups=["colour"]))
    ).fit(TABLE, Y),
    "table with holes": lambda: RidgefoldClassifier(
        model=LSSVMClassifier(0.1, probability=True)
    ).fit(_holes(), LABELS),
    "table in cells": lambda: RidgefoldRegressor(
        model=PartitionedLSSVMRegressor(n_partitions=3)
    ).fit(TABLE, Y),
}
"""One small model of every kind that a file can hold."""


def new_rows(name: str) -> Any:
    """What a model of that name is asked to predict."""
    if name.startswith("table"):
        return TABLE[:4]
    if name == "wide":
        return scipy.sparse.csr_array(_wide())[:2]
    if name == "precomputed":
        return RBF(1.0)(X_NEW, X)
    return SPARSE[:4] if name == "sparse" else X_NEW


# -- contents --------------------------------------------------------------------------------


@dataclass
class Contents:
    """What a file holds: the document, and arrays by name."""

    document: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def copy(self) -> Contents:
        return Contents(
            copy.deepcopy(self.document), {name: a.copy() for name, a in self.arrays.items()}
        )


_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}


def contents_of(data: bytes) -> Contents:
    """Take a file apart."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__")
    arrays = {}
    for name, entry in header.items():
        start, stop = (8 + length + offset for offset in entry["data_offsets"])
        found = np.frombuffer(data[start:stop], dtype=_DTYPES[entry["dtype"]])
        arrays[name] = found.reshape(entry["shape"]).copy()
    document = json.loads(arrays.pop(DOCUMENT).tobytes())
    document.pop("arrays")
    return Contents(document, arrays)


def signed(contents: Contents, kind: str = "ridgefold-model") -> bytes:
    """A file with these contents in which every digest is right."""
    arrays = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in contents.arrays.items()}
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    text = strict_json.dumps(
        {
            **contents.document,
            "arrays": {
                name: {
                    "dtype": _NAMES[arrays[name].dtype],
                    "shape": list(arrays[name].shape),
                    "sha256": hashlib.sha256(arrays[name].tobytes()).hexdigest(),
                }
                for name in order
            },
        }
    )
    header: dict[str, Any] = {
        "__metadata__": {
            "format": kind,
            "version": "1",
            "sha256": hashlib.sha256(text).hexdigest(),
        }
    }
    position, pieces = 0, []
    for name in order:
        piece = arrays[name].tobytes()
        header[name] = {
            "dtype": _NAMES[arrays[name].dtype],
            "shape": list(arrays[name].shape),
            "data_offsets": [position, position + len(piece)],
        }
        position += len(piece)
        pieces.append(piece)
    header[DOCUMENT] = {
        "dtype": "U8",
        "shape": [len(text)],
        "data_offsets": [position, position + len(text)],
    }
    head = strict_json.dumps(header)
    head += b" " * (-len(head) % 8)
    return b"".join([len(head).to_bytes(8, "little"), head, *pieces, text])


@cache
def original(name: str) -> Contents:
    """What `save` writes of a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        FITTED[name]().save(path, notes={"target": "y", "data": "d.csv"})
        return contents_of(path.read_bytes())


# -- changes ---------------------------------------------------------------------------------

_NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 7, 60, 2**20, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 10**30),
    *(10**400, 0.0, 0.5, -0.5, 1e-320, 1e-160, 1e16, 1e160, 1e308, -1e308),
    *({"float": text} for text in ("nan", "inf", "-inf", "0x10")),
]
_TEXTS: list[Any] = [
    *("", "\0", "a\0b", "x" * 50_000, "rbf", "cv+", "average", "route", "random", "auto", "exact"),
    *("cholesky", "primal", "precomputed", "tcp://127.0.0.1:1", "cuda", "processes", "é\u202e𝔘"),
]
_OTHERS: list[Any] = [
    *(None, True, False, [], {"tuple": []}, {"dict": []}, {}, [[]], [None], {"tuple": [1, "a"]}),
    *({"dict": [["a", 1]]}, {"objects": {"shape": [0], "values": []}}),
    {"kernel": {"name": "RBF", "length_scale": 1.0}},
    {"kernel": {"name": "Polynomial", "degree": 2**20, "gamma": 1.0, "coef0": 1.0}},
    {"texts": {"shape": [2], "values": ["a", "b"]}},
]


def _options(**values: Any) -> dict[str, Any]:
    """An option object as files hold it."""
    return {"dict": [[name, value] for name, value in values.items()]}


_STEERING = {
    "compute": [
        _options(n_jobs=64),
        _options(executor="tcp://127.0.0.1:1"),
        _options(run_dir="/tmp/forged"),  # noqa: S108 - must never be written to
        _options(device="cuda", verbose=1),
        "cuda",
        None,
    ],
    "search": [_options(method="refit"), _options(method=3), _options(executor="dask"), "a", 3],
    "metric": [_options(scales=True), _options(groups=[[0, -1]]), _options(rows="a"), "scales", 3],
    "cells": [
        _options(refine=3),
        _options(refine="exact"),
        _options(refine="a"),
        _options(tolerance="a"),
        _options(tolerance={"float": "nan"}),
        _options(tolerance=10**30),
        3,
    ],
    "device": ["cuda", "cpu", 3],
    "memory_budget": ["1B", "1e30GB", -1, 1e300, [], "a"],
    "time_budget": [1e-9, -1, "a"],
    "kernel": ["rbf", "auto", 3, [], {"kernel": {"name": "Linear"}}],
    "degree": [2**20, -1, 1e300],
    "partition": ["random", "tree", "kmeans", "a", 3, []],
    "combine": ["average", "route", 3],
    "intervals": ["cv+", "jackknife+", "auto", 3, []],
    "fit_intercept": ["a", 3, [], None],
    "probability": [True, False, "a"],
    "model": [None, "a", 3],
    "scoring": ["r2", 3, []],
    "alpha": ["a", [], -1.0, {"float": "nan"}, 10**30, {"tuple": []}, None],
}
_TAGS = ["tuple", "dict", "array", "objects", "texts", "masked", "csr", "kernel", "record", "float"]
_ARRAY_FILLS = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 1e-308, 1e155, 2.0**53]
_ESTIMATORS = sorted({type(each).__name__ for each in ()} | {
    "KernelRidge", "KernelRidgeCV", "LSSVMClassifier", "LSSVMClassifierCV", "LSSVMRegressor",
    "LSSVMRegressorCV", "PartitionedKernelRidge", "PartitionedLSSVMClassifier",
    "PartitionedLSSVMRegressor", "RidgefoldClassifier", "RidgefoldRegressor",
    "object",
})  # fmt: skip
_KERNELS = [
    "RBF",
    "Matern",
    "Linear",
    "Polynomial",
    "Sum",
    "Scaled",
    "Columns",
    "Rotated",
    "Warped",
    "Chi2",
]
_RECORDS = ["FittedModel", "Intervals", "Plan", "Cells", "LocalModels", "Grid", "Standardise"]

Place = tuple[Any, Any]
"""A container of the tree, and the key or position in it."""


def _places(value: Any) -> Iterator[Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, (dict, list)):
            yield from _places(item)


@contextlib.contextmanager
def nested_deeply() -> Iterator[None]:
    """A context in which values are written that are nested more deeply than a reader may go."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class Forger:
    """Changes contents as a seed says."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.changes: list[str] = []
        """What was done, in words."""

    def forged(self, name: str) -> bytes:
        """A changed file of the model of that name."""
        with nested_deeply():
            return signed(self.changed(original(name).copy()))

    def changed(self, contents: Contents) -> Contents:
        """The same contents, changed in one place or a few."""
        for _ in range(1 + int(self.rng.integers(0, 4) == 0) * int(self.rng.integers(1, 3))):
            rules = (
                [self._alike] * 14 + [self._replaced] * 3 + [self._list] * 2 + [self._array] * 8
                + [self._tag, self._renamed, self._swapped, self._nested, self._spliced]
                + [self._steering] * 2 + [self._arrays_exchanged]
            )  # fmt: skip
            rule = rules[int(self.rng.integers(len(rules)))]
            rule(contents)
        return contents

    def _one(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def _said(self, what: str, place: Any, value: Any = "") -> None:
        self.changes.append(f"{what} {str(place)[:60]} {str(value)[:80]}")

    def _place(self, contents: Contents, kind: type | tuple[type, ...] = object) -> Place | None:
        found = [p for p in _places(contents.document["model"]) if isinstance(p[0][p[1]], kind)]
        return self._one(found) if found else None

    def _replaced(self, contents: Contents) -> None:
        """A leaf, now and then a branch, becomes something else."""
        leaves = (int, float, str, bool, type(None))
        place = self._place(contents, leaves if self.rng.integers(5) else object)
        if place is None:
            return
        into, key = place
        pool = self._one([_NUMBERS, _NUMBERS, _TEXTS, _OTHERS])
        value = copy.deepcopy(self._one(pool))
        self._said("replaced", (key, into[key]), value)
        into[key] = value

    def _alike(self, contents: Contents) -> None:
        """A number or text becomes another one, a truth its contrary."""
        place = self._place(contents, (int, float, str))
        if place is None:
            return
        into, key = place
        value = into[key]
        if isinstance(value, bool):
            new = not value
        elif isinstance(value, str):
            others = [i[k] for i, k in _places(contents.document["model"]) if isinstance(i[k], str)]
            new = self._one(others if self.rng.integers(2) else _TEXTS)
        else:
            wanted = type(value) if self.rng.integers(4) else (int, float)
            new = self._one([n for n in _NUMBERS if isinstance(n, wanted)])
        self._said("replaced", (key, value), new)
        into[key] = new

    def _list(self, contents: Contents) -> None:
        place = self._place(contents, list)
        if place is None:
            return
        into, key = place
        items = into[key]
        how = self._one(["emptied", "doubled", "lengthened", "shortened", "mixed"])
        self._said(how, key, items)
        if how == "emptied":
            into[key] = []
        elif how == "doubled":
            into[key] = items + copy.deepcopy(items)
        elif how == "lengthened" and items and len(json.dumps(items)) < 3000:
            into[key] = items + [copy.deepcopy(self._one(items)) for _ in range(100)]
        elif how == "shortened" and items:
            del items[int(self.rng.integers(len(items)))]
        else:
            into[key] = [items[i] for i in self.rng.permutation(len(items))]

    def _tag(self, contents: Contents) -> None:
        """What a value is said to be."""
        tagged = [
            (into, key)
            for into, key in _places(contents.document["model"])
            if isinstance(into, dict) and len(into) == 1 and key in _TAGS
        ]
        if not tagged:
            return
        into, key = self._one(tagged)
        tag = self._one(_TAGS)
        self._said("tagged", key, tag)
        into[tag] = into.pop(key)

    def _renamed(self, contents: Contents) -> None:
        """A class is called by the name of another."""
        named = [p for p in _places(contents.document["model"]) if p[1] == "name"]
        if named and self.rng.integers(4):
            into, key = self._one(named)
            into[key] = self._one(_KERNELS if self.rng.integers(2) else _RECORDS)
            self._said("renamed", key, into[key])
            return
        for into, _ in list(_places(contents.document["model"])):
            if isinstance(into, list) and len(into) == 2 and into[0] == "estimator":
                into[1] = self._one(_ESTIMATORS)
                self._said("renamed", "estimator", into[1])

    def _swapped(self, contents: Contents) -> None:
        """Two parts of the tree, or a part and a copy of another."""
        first, second = self._place(contents), self._place(contents)
        if first is None or second is None:
            return
        (a, i), (b, j) = first, second
        self._said("swapped", i, j)
        one, other = copy.deepcopy(a[i]), copy.deepcopy(b[j])
        a[i] = other
        if self.rng.integers(2):
            b[j] = one

    def _nested(self, contents: Contents) -> None:
        place = self._place(contents)
        if place is None:
            return
        into, key = place
        depth = int(self._one([1, 3, 30, 58, 200, 900]))
        how = self._one(["list", "tuple", "kernel", "sum", "product"])
        value = into[key]
        for _ in range(depth):
            if how == "list":
                value = [value]
            elif how == "tuple":
                value = {"tuple": [value]}
            elif how == "kernel":
                value = {"kernel": {"name": "Scaled", "factor": 2.0, "kernel": value}}
            else:
                other = {"kernel": {"name": "Polynomial", "degree": 9, "gamma": 1.0, "coef0": 1.0}}
                name = how.capitalize()
                value = {"kernel": {"name": name, "left": value, "right": other}}
        self._said("nested", (key, how), depth)
        into[key] = value

    def _spliced(self, contents: Contents) -> None:
        """A part of another model, with its arrays."""
        other = original(self._one(list(FITTED)))
        place = self._place(contents, dict)
        found = self._place(other, dict)
        if place is None or found is None:
            return
        part = copy.deepcopy(found[0][found[1]])
        holder = [part]
        for into, key in list(_places(holder)):
            if key == "array" and isinstance(into, dict) and isinstance(into[key], str):
                name = into[key]
                if name in other.arrays:
                    into[key] = f"{name}~"
                    contents.arrays[f"{name}~"] = other.arrays[name].copy()
        into, key = place
        self._said("spliced", (key, into[key]), part)
        into[key] = part
        _drop_unused(contents)

    def _steering(self, contents: Contents) -> None:
        """An argument that says how to work."""
        name = self._one(list(_STEERING))
        value = copy.deepcopy(self._one(_STEERING[name]))
        for into, key in list(_places(contents.document["model"])):
            pair = into[key] if isinstance(into, list) else None
            if isinstance(pair, list) and len(pair) == 2 and pair[0] == "parameters":
                pairs = pair[1]["dict"] if isinstance(pair[1], dict) and "dict" in pair[1] else []
                pairs[:] = [p for p in pairs if not (isinstance(p, list) and p[:1] == [name])]
                pairs.append([name, value])
        self._said("argument", name, value)

    def _array(self, contents: Contents) -> None:  # noqa: PLR0912 - one branch a way
        if not contents.arrays:
            return
        name = self._one(list(contents.arrays))
        array = contents.arrays[name]
        how = self._one(
            [
                "shape",
                "type",
                "fill",
                "one",
                "one",
                "one",
                "mixed",
                "scaled",
                "scaled",
                "fewer",
                "more",
                "empty",
                "mixed",
                "scaled",
            ]
        )
        self._said("array", (how, name))
        if how == "shape":
            shapes = [array.T, array.reshape(-1), array[None], array[..., None]]
            array = self._one(shapes)
        elif how == "type":
            with np.errstate(all="ignore"):
                array = array.astype(self._one(["<f8", "<f4", "<i8", "<i4", "u1", "?"]))
        elif how in ("fill", "one") and array.size:
            with np.errstate(all="ignore"):
                value = np.asarray(self._one(_ARRAY_FILLS)).astype(array.dtype)
            if array.dtype.kind == "i":
                value = np.asarray(self._one([0, -1, 1, 2**31 - 1, -(2**31), 5]), array.dtype)
                if array.itemsize == 8 and self.rng.integers(2):
                    value = np.asarray(self._one([2**53, 2**62, -(2**63)]))
            if how == "fill":
                array[...] = value
            else:
                array.reshape(-1)[int(self.rng.integers(array.size))] = value
        elif how == "fewer" and array.ndim:
            array = array[: max(0, len(array) - int(self.rng.integers(1, 4)))]
        elif how == "more" and array.ndim:
            array = np.concatenate([array, array])
        elif how == "empty" and array.ndim:
            array = array[:0]
        elif how == "mixed" and array.size:
            flat = array.reshape(-1)
            array = flat[self.rng.permutation(flat.size)].reshape(array.shape)
        elif how == "scaled" and array.dtype.kind == "f":
            with np.errstate(all="ignore"):
                array = array * np.asarray(self._one([-1.0, 1e-200, 1e200, 1e-12, 1e12]))
                array = array.astype(contents.arrays[name].dtype)
        contents.arrays[name] = array

    def _arrays_exchanged(self, contents: Contents) -> None:
        names = list(contents.arrays)
        if not names:
            return
        a, b = self._one(names), self._one(names)
        self._said("exchanged", a, b)
        contents.arrays[a], contents.arrays[b] = contents.arrays[b], contents.arrays[a]


def _drop_unused(contents: Contents) -> None:
    """Leave out arrays that nothing refers to any longer: their loss is no forgery."""
    used = {
        into[key]
        for into, key in _places(contents.document["model"])
        if key == "array" and isinstance(into[key], str)
    }
    for name in [name for name in contents.arrays if name not in used]:
        del contents.arrays[name]
