"""What arrays and kernels in a stored state may be, beside their type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ridgefold.errors import ModelFileError, RidgefoldError
from ridgefold.kernels import Kernel
from ridgefold.linalg import namespace_of
from ridgefold.records import LearnedMetric
from ridgefold.storage.annotations import matches


@dataclass(frozen=True)
class Floats:
    """Floating-point numbers in so many dimensions."""

    ndim: tuple[int, ...]
    least: float = -np.inf
    unknown: bool = False
    """Whether NaN may stand where there is no value."""
    infinite: bool = False

    def accepts(self, value: Any) -> bool:
        if value.dtype not in (np.float32, np.float64) or value.ndim not in self.ndim:
            return False
        known = value[~np.isnan(value)] if self.unknown else value
        return bool(np.all(known >= self.least) and (self.infinite or np.all(np.isfinite(known))))

    def __str__(self) -> str:
        least = "" if self.least == -np.inf else f" >= {self.least:g}"
        return f"numbers{least} in {' or '.join(map(str, self.ndim))} dimensions"


@dataclass(frozen=True)
class Labels:
    """Two or more different numbers or texts."""

    def accepts(self, value: Any) -> bool:
        if value.ndim != 1 or len(value) < 2 or value.dtype.kind not in "OUbiuf":
            return False
        labels = value.tolist()
        return all(isinstance(label, (str, int, float)) for label in labels) and len(
            set(labels)
        ) == len(labels)

    def __str__(self) -> str:
        return "of two or more different numbers or texts"


HeldOut = Annotated[np.ndarray, Floats((1, 2), unknown=True)]
Classes = Annotated[np.ndarray, Labels()]


def require_kernel(kernel: Any, rows: Any, where: str) -> None:
    """The kernel is one of these rows: a typed error if it cannot be computed on them."""
    if not isinstance(kernel, Kernel):
        raise ModelFileError(f"{where} must be a kernel, got {type(kernel).__name__}")
    try:
        with np.errstate(all="ignore"):
            kernel.check(namespace_of(rows), rows)
    except RidgefoldError as error:
        raise ModelFileError(f"{where} cannot be computed on the rows ({error})") from None


def require_metric(metric: LearnedMetric, n_columns: int) -> None:
    """What was learned is about so many columns."""
    relevance = Annotated[np.ndarray, Floats((1,), least=0.0)]
    scales = Annotated[np.ndarray, Floats((1,), least=_SMALLEST, infinite=True)]
    good = (
        isinstance(metric.kernel, Kernel)
        and _one_a_column(metric.relevance, relevance, n_columns)
        and _one_a_column(metric.length_scales, scales, n_columns)
        and float(np.sum(metric.relevance)) <= _ALL
        and (metric.transforms is None or len(metric.transforms) == n_columns)
    )
    if not good:
        raise ModelFileError(f"model.state.metric is not about the {n_columns} columns of the rows")


_ALL = 1.001
"""Shares add up to one, but for rounding in single precision."""
_SMALLEST = float(np.nextafter(0.0, 1.0))


def _one_a_column(values: np.ndarray, kind: Any, n_columns: int) -> bool:
    return matches(values, kind) and len(values) == n_columns


def require_results(search: Mapping[str, Any]) -> None:
    """The table of a search: columns of one length, the chosen pair one of its rows."""
    results, n_splits = search["results"], search["n_splits"]
    wrong = ModelFileError("model.state.search.results must be columns of one length")
    lengths = set()
    for name, column in results.items():
        if column.ndim != 1:
            raise wrong
        lengths.add(len(column))
        if name.startswith("param_"):
            if not isinstance(column, np.ma.MaskedArray):
                raise ModelFileError(
                    "model.state.search.results must have masked columns of parameters"
                )
            if not all(_is_parameter(value) for value in column.compressed().tolist()):
                raise ModelFileError(f"model.state.search.results has no parameters in {name!r}")
        elif isinstance(column, np.ma.MaskedArray) or column.dtype.kind not in "fi":
            raise ModelFileError(f"model.state.search.results has no numbers in {name!r}")
    alphas = results.get("param_alpha")
    good = (
        len(lengths) == 1
        and 0 <= search["best_index"] < max(lengths)
        and "mean_test_score" in results
        and alphas is not None
        and alphas.dtype.kind in "fi"
        and not np.any(np.ma.getmaskarray(alphas))
        and bool(np.all(np.isfinite(alphas.data)))
    )
    if not good:
        raise wrong
    if {f"split{k}_test_score" for k in range(min(n_splits, len(results) + 1))} != {
        name for name in results if name.startswith("split")
    }:
        raise ModelFileError("model.state.search.results must have one column of scores a fold")


def _is_parameter(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_parameter, value))
    return value is None or isinstance(value, (bool, int, float, str, Kernel))
