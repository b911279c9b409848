"""Marginal effects as a table: what `marginal_effects` returns."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError

QUARTILES = (0.25, 0.5, 0.75)
ESTIMANDS = {
    "rows": "the average over these rows",
    "population": "the average over the population that these rows are a sample of",
}
"""What an average estimates: its name as an argument, and in words."""
_NAME_WIDTH = 40


@dataclass(frozen=True)
class MarginalEffects:
    """How predictions change with every column: slopes, and differences where there are none.

    Arrays have one entry an effect; with several targets or classes, a second axis runs over
    these. Prints as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import LSSVMRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    >>> model = LSSVMRegressor(0.01, gamma=0.5).fit(X, 3 * X[:, 0] + X[:, 1] ** 2)
    >>> effects = model.marginal_effects()
    >>> [bool(abs(each - slope) < 0.2) for each, slope in zip(effects.average, (3, 0))]
    [True, True]
    """

    names: tuple[str, ...]
    """The column, of differences with what is compared: "smoker: no → yes"."""
    kinds: tuple[str, ...]
    """"slope" or "difference", for each effect."""
    outputs: tuple[str, ...]
    """What changes: the targets, the decision values, or the probabilities of classes, by name."""
    pointwise: np.ndarray = field(repr=False)
    """The effect at every row, of shape (n_rows, n_effects[, n_outputs])."""
    average: np.ndarray
    quartiles: np.ndarray = field(repr=False)
    """The quartiles of the effects over rows, of shape (3, n_effects[, n_outputs])."""
    standard_error: np.ndarray | None
    """Of the average, for new noise at the same training rows: √Var of an estimate that is linear
    in the targets. It leaves out what the ridge smooths away. None if not asked for, or unknown."""
    posterior_std: np.ndarray | None
    """Of the average, given the targets, for a Gaussian process of the model's own kernel: with
    what the ridge may have smoothed away. NaN for slopes of rough kernels, which have no variance;
    None for probabilities, and where standard errors are."""
    spreads: np.ndarray
    """The standard deviation of every column of a slope over the rows; 1 for differences."""
    estimand: str
    """"rows": the average over the rows given; "population": over what they are a sample of, where
    the variance of the effects over rows, divided by their number, is part of both errors."""
    note: str = ""
    """Why something is missing, if it is."""

    def to_dict(self) -> dict[str, list[Any]]:
        """The table by columns, one row an effect (and output, if there are several)."""
        p, t = len(self.names), len(self.outputs)
        several = t > 1
        table: dict[str, list[Any]] = {}
        if several:
            table["output"] = [name for name in self.outputs for _ in range(p)]
        table["effect"] = list(self.names) * t
        table["kind"] = list(self.kinds) * t
        table["average"] = _by_output(self.average, p, t)
        if self.standard_error is not None:
            table["standard_error"] = _by_output(self.standard_error, p, t)
        if self.posterior_std is not None:
            table["posterior_std"] = _by_output(self.posterior_std, p, t)
        for name, values in zip(("q25", "q50", "q75"), self.quartiles, strict=True):
            table[name] = _by_output(values, p, t)
        return table

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        try:
            pd = importlib.import_module("pandas")
        except ImportError:
            raise InvalidInputError(
                "to_frame needs pandas, which is not installed: pip install pandas, or take "
                "to_dict(), which polars and pyarrow read"
            ) from None
        return pd.DataFrame(self.to_dict())

    def interval(self, coverage: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Ends of a credible interval of every average: average ± z·posterior_std."""
        from scipy.stats import norm

        if self.posterior_std is None:
            raise InvalidInputError(
                f"there are no posterior standard deviations to make intervals of: {self.note}"
            )
        if not 0 < coverage < 1:
            raise InvalidInputError(f"coverage must lie between 0 and 1, got {coverage!r}")
        z = float(norm.ppf(0.5 + coverage / 2))
        return self.average - z * self.posterior_std, self.average + z * self.posterior_std

    def __str__(self) -> str:
        table = self.to_dict()
        titles = {
            "output": "output",
            "effect": "effect",
            "kind": "kind",
            "standard_error": "std. error",
            "posterior_std": "posterior sd",
            "q25": "25%",
            "q50": "50%",
            "q75": "75%",
        }
        columns = [[titles.get(key, key), *map(_shown, table[key])] for key in table]
        widths = [max(map(len, column)) for column in columns]
        lines = []
        for row in zip(*columns, strict=True):
            cells = [
                cell.ljust(width) if key in ("output", "effect", "kind") else cell.rjust(width)
                for cell, width, key in zip(row, widths, table, strict=True)
            ]
            lines.append("  ".join(cells).rstrip())
        n = len(self.pointwise)
        head = f"Marginal effects at {n:,} row{'s' if n != 1 else ''}; estimated is "
        head += ESTIMANDS[self.estimand] + "."
        return "\n".join([head, *lines, *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        from html import escape

        table = self.to_dict()
        head = "".join(f"<th>{escape(key)}</th>" for key in table)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>"
            for row in zip(*table.values(), strict=True)
        )
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(self.note)}</p>"
        )


def _by_output(values: np.ndarray, p: int, t: int) -> list[float]:
    """Numbers of every output, one output after the other."""
    found: list[float] = np.asarray(values).reshape(p, t).T.ravel().tolist()
    return found


def _shown(value: Any) -> str:
    if not isinstance(value, float):
        text = str(value)
        return text if len(text) <= _NAME_WIDTH else f"{text[: _NAME_WIDTH - 1]}…"
    return "–" if np.isnan(value) else f"{value:.4g}"
