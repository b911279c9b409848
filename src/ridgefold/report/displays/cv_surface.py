"""The error of every pair of kernel and ridge that was tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import ModelFacts, SearchFacts
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import NARROW, clean, number, percent, setting, tick
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import (
    ACCENT,
    FONT,
    INK,
    MUTED,
    RULE,
    SEQUENCE,
    SIGNAL,
    SURFACE,
    axes_or_new,
    dress,
    note,
    plain_ticks,
)
from ridgefold.report.unseen_rows import UnseenNumbers, unseen_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LIMITS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0)
"""Where the steps of the colours end, as shares above the best error."""
_MOST_CURVES = 7
"""Curves that are drawn, the best ones: more cannot be told apart."""
_MOST_FOLDS = 12
"""Folds that are drawn by themselves: lines of more run together."""


class CVSurfaceDisplay(Display):
    """Held-out error over kernel width and ridge: a map, or curves over the ridge.

    Made by :meth:`from_estimator`.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
        Ridge values, rising.
    kernels : sequence of dict
        Parameters of every kernel that was tried; widths rising.
    scores : array of shape (n_kernels, n_alphas)
        Errors, or scores; NaN where a pair was not tried or left the race.
    dropped : bool array of the same shape
        Pairs that left the race because they could not win any more.
    bounds : array of the same shape or None
        What dropped pairs could have reached at best.
    best : (int, int)
        Position of the chosen pair.
    errors : bool
        True if low is good.
    score_name : str
    by_fold : array of shape (n_alphas, n_folds) or None
        Scores of every fold with the chosen kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import CVSurfaceDisplay, KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(120, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(120)
    >>> model = KernelRidgeCV().fit(X, y)
    >>> display = CVSurfaceDisplay.from_estimator(model)
    >>> display.scores.shape == (len(display.kernels), len(display.alphas))
    True
    """

    def __init__(
        self,
        *,
        alphas: np.ndarray,
        kernels: Sequence[Mapping[str, Any]],
        scores: np.ndarray,
        dropped: np.ndarray,
        bounds: np.ndarray | None = None,
        best: tuple[int, int],
        errors: bool,
        score_name: str,
        by_fold: np.ndarray | None = None,
    ) -> None:
        self.alphas = alphas
        self.kernels = list(kernels)
        self.scores = scores
        self.dropped = dropped
        self.bounds = np.full(scores.shape, np.nan) if bounds is None else bounds
        self.best = best
        self.errors = errors
        self.score_name = score_name
        self.by_fold = by_fold
        self.keys: dict[str, str] = {}

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the search of a fitted estimator whose name ends in `CV`."""
        return cls.of(facts_of(estimator)).plot(ax)

    @classmethod
    def of(cls, facts: ModelFacts) -> Self:
        """The display before it is drawn."""
        if facts.search is None:
            raise InvalidInputError(
                f"{facts.name} has searched nothing: use KernelRidgeCV, LSSVMRegressorCV "
                "or LSSVMClassifierCV"
            )
        results = facts.search.results
        params = results["params"]
        alphas = np.unique([float(p["alpha"]) for p in params])
        kernels = _kernels_of(params)
        place = {_key(kernel): k for k, kernel in enumerate(kernels)}
        at = [(place[_key(p)], int(np.searchsorted(alphas, float(p["alpha"])))) for p in params]
        means = np.asarray(results["mean_test_score"], dtype=np.float64)
        possible = np.asarray(results.get("bound_test_score", means), dtype=np.float64)
        readable, errors, name = _reading(facts, facts.search)
        scores = np.full((len(kernels), len(alphas)), np.nan)
        bounds = scores.copy()
        dropped = np.zeros(scores.shape, dtype=bool)
        for (k, j), mean, bound in zip(at, means, possible, strict=True):
            scores[k, j], bounds[k, j] = readable(mean), readable(bound)
            dropped[k, j] = not np.isfinite(mean)
        best = at[facts.search.best_index]
        return cls(
            alphas=alphas,
            kernels=kernels,
            scores=scores,
            dropped=dropped,
            bounds=bounds,
            best=best,
            errors=errors,
            score_name=name,
            by_fold=_by_fold(results, at, best[0], len(alphas), errors=name.startswith("root")),
        )

    @property
    def width_name(self) -> str | None:
        """The one number that the kernels differ by; None if it is not one."""
        names = differing(self.kernels)
        if len(self.kernels) < 2 or len(names) != 1:
            return None
        values = [kernel.get(names[0]) for kernel in self.kernels]
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
        return names[0] if numbers else None

    def shown(self, score: float) -> str:
        """A score as people write it."""
        share = self.score_name.startswith("share")
        return percent(float(score)) if share else number(float(score), 4)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        if self.width_name is not None:
            self._draw_map(ax, self.width_name)
        else:
            self._draw_curves(ax)
        return self

    # -- a map ---------------------------------------------------------------------------

    @property
    def _known(self) -> np.ndarray:
        """Scores, and bounds on those of dropped pairs."""
        return np.where(self.dropped, self.bounds, self.scores)

    def _steps(self) -> tuple[np.ndarray, list[str]]:
        """The step of the colours for every pair (-1 for none), and the names of the steps."""
        known = self._known
        finite = np.isfinite(known)
        best = self.scores[self.best]
        last = len(SEQUENCE) - 1
        if self.errors and best > 0:
            above = np.where(finite, known / best - 1.0, np.inf)
            step = last - np.searchsorted(_LIMITS, np.maximum(above, 0.0), side="left")
            names = [f"{100 * limit:.0f} %" for limit in _LIMITS]
            return np.where(finite, step, -1), ["more", *names[:-1][::-1], "best"]
        low, high = np.nanmin(known), np.nanmax(known)
        share = (known - low) / (high - low if high > low else 1.0)
        share = 1.0 - share if self.errors else share
        step = np.clip(np.nan_to_num(share) * last, 0, last).round().astype(int)
        return np.where(finite, step, -1), []

    def _draw_map(self, ax: Axes, width: str) -> None:
        from matplotlib.patches import Rectangle

        steps, names = self._steps()
        widths = [float(kernel[width]) for kernel in self.kernels]
        for k, j in zip(*np.nonzero(steps >= 0), strict=True):
            key = f"pair-{k}-{j}"
            self.keys[key] = self._about(width, widths[k], int(k), int(j))
            # A dropped pair is at least so far off: it gets less than its whole field.
            side = 0.68 if self.dropped[k, j] else 1.0
            ax.add_patch(
                Rectangle(
                    (j - side / 2, k - side / 2),
                    side,
                    side,
                    facecolor=SEQUENCE[steps[k, j]],
                    edgecolor=SURFACE,
                    linewidth=0.6,
                    gid=key,
                )
            )
        k, j = self.best
        ax.scatter([j], [k], s=70, facecolor="none", edgecolor=SURFACE, linewidth=3.2, zorder=4)
        ax.scatter([j], [k], s=70, facecolor="none", edgecolor=SIGNAL, linewidth=1.8, zorder=5)
        ax.set_xlim(-0.5, len(self.alphas) - 0.5)
        ax.set_ylim(-0.5, len(widths) - 0.5)
        dress(ax, x="ridge alpha", y=_shown_name(width), grid=None)
        for edge in ("left", "bottom"):
            ax.spines[edge].set_visible(False)
        places = _nice_places(self.alphas)
        ax.set_xticks(places, [_tick(self.alphas[p]) for p in places])
        ax.set_yticks(range(len(widths)), [number(w, 2) for w in widths])
        if names:
            self._draw_legend(ax, names)

    def _about(self, width: str, value: float, k: int, j: int) -> str:
        where = f"{_shown_name(width)} {setting(value)}, alpha {setting(self.alphas[j])}"
        if not self.dropped[k, j]:
            return f"{where}: {self.score_name} {self.shown(self.scores[k, j])}"
        side = "at least" if self.errors else "at most"
        return f"{where}: {self.score_name} {side} {self.shown(self.bounds[k, j])}, dropped early"

    def _draw_legend(self, ax: Axes, names: list[str]) -> None:
        """The steps above the map, from far off to best."""
        from matplotlib.patches import Rectangle

        inset = ax.inset_axes((0.0, 1.03, 1.0, 0.11))
        inset.set_axis_off()
        inset.set_xlim(-3.6, len(SEQUENCE))
        inset.set_ylim(0, 2)
        note(inset, -3.6, 1.2, "above the best", va="center")
        for i, colour in enumerate(SEQUENCE):
            inset.add_patch(Rectangle((i, 0.75), 0.94, 0.9, facecolor=colour, linewidth=0))
        for i, name in list(enumerate(names))[::2]:  # more would not be readable
            note(inset, i + 0.47, 0.3, name, ha="center", va="center", fontsize=FONT - 1.2)

    # -- curves --------------------------------------------------------------------------

    def _draw_curves(self, ax: Axes) -> None:
        if self.by_fold is not None and len(self.kernels) == 1:
            for fold in self.by_fold.T[:_MOST_FOLDS]:
                ax.plot(self.alphas, fold, color=RULE, linewidth=0.9)
        curves = self._curves()
        for _, values, chosen in curves[::-1]:
            known = np.isfinite(values)
            ax.plot(
                self.alphas[known],
                values[known],
                color=ACCENT if chosen else MUTED,
                linewidth=1.8 if chosen else 0.9,
                marker="o",
                markersize=2.5 if chosen else 1.5,
                zorder=3 if chosen else 2,
            )
        ax.set_xscale("log")
        finite = np.concatenate([values[np.isfinite(values)] for _, values, _ in curves])
        if self.errors and finite.min() > 0 and finite.max() > 8 * finite.min():
            ax.set_yscale("log")
        k, j = self.best
        ax.scatter(
            [self.alphas[j]], [self.scores[k, j]], s=60, facecolor="none", edgecolor=SIGNAL,
            linewidth=1.8, zorder=5,
        )  # fmt: skip
        if len(curves) > 1:
            _label_ends(ax, self.alphas, curves)
        dress(ax, x="ridge alpha", y=self.score_name)
        plain_ticks(ax)

    def _curves(self) -> list[tuple[str, np.ndarray, bool]]:
        """Name, scores and whether it was chosen: of every family its best at each ridge."""
        groups: dict[str, list[int]] = {}
        by_family = "kernel" in differing(self.kernels)
        for k, kernel in enumerate(self.kernels):
            name = str(kernel.get("kernel")) if by_family else _kernel_label(kernel, self.kernels)
            groups.setdefault(name, []).append(k)
        worst = np.inf if self.errors else -np.inf
        best_of = np.min if self.errors else np.max
        curves = []
        for name, members in groups.items():
            scores = self.scores[members]
            best = best_of(np.where(np.isfinite(scores), scores, worst), axis=0)
            best = np.where(np.isfinite(best), best, np.nan)
            if np.any(np.isfinite(best)):
                curves.append((name, best, self.best[0] in members))
        sign = 1.0 if self.errors else -1.0
        curves.sort(key=lambda curve: (not curve[2], float(np.nanmin(sign * curve[1]))))
        return curves[:_MOST_CURVES]


def _label_ends(
    ax: Axes, alphas: np.ndarray, curves: Sequence[tuple[str, np.ndarray, bool]]
) -> None:
    """A name at the right end of every curve, moved apart where they would overlap."""
    ax.margins(x=0.02)
    ax.autoscale_view()
    to_axes = ax.transData + ax.transAxes.inverted()
    ends = sorted(
        (float(to_axes.transform((alphas[-1], values[np.isfinite(values)][-1]))[1]), name, chosen)
        for name, values, chosen in curves
    )
    gap = 0.075
    heights = [end[0] for end in ends]
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    for i in range(len(heights) - 1, -1, -1):  # none above the axes
        heights[i] = min(heights[i], 1.0 - gap * (len(heights) - 1 - i))
    for height, (_, name, chosen) in zip(heights, ends, strict=True):
        ax.annotate(
            clean(name, 24),
            (1.015, height),
            xycoords="axes fraction",
            va="center",
            fontsize=FONT - 0.5,
            color=INK if chosen else MUTED,
            parse_math=False,
        )


def _key(params: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What makes two kernels the same: all parameters but the ridge."""
    return tuple(sorted((name, repr(v)) for name, v in params.items() if name != "alpha"))


def _kernels_of(params: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The kernels that were tried; those of one family by rising width."""
    by_key: dict[Any, dict[str, Any]] = {}
    for each in params:
        by_key.setdefault(_key(each), {n: v for n, v in each.items() if n != "alpha"})
    kernels = list(by_key.values())
    names = differing(kernels)
    if len(names) == 1 and all(isinstance(each.get(names[0]), (int, float)) for each in kernels):
        kernels.sort(key=lambda kernel: float(kernel[names[0]]))
    return kernels


def differing(kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the parameters that are not the same in all kernels."""
    names = list(dict.fromkeys(name for kernel in kernels for name in kernel))
    return [n for n in names if len({repr(kernel.get(n)) for kernel in kernels}) > 1]


def _shown_name(name: str) -> str:
    return {"scale_factor": "factor on the learned scales"}.get(name, name.replace("_", " "))


def _kernel_label(kernel: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]]) -> str:
    """What sets a kernel apart from the others."""
    settings = []
    for name in differing(kernels):
        value = kernel.get(name)
        if value is not None:
            shown = number(value, 2) if isinstance(value, float) else str(value)
            settings.append(shown if name == "kernel" else f"{_shown_name(name)} {shown}")
    return ", ".join(settings)


def _reading(facts: ModelFacts, search: SearchFacts) -> tuple[Callable[[float], float], bool, str]:
    """How scores are best read: a function of them, whether low is good, and a name."""
    scoring, classify = search.scoring, facts.classes is not None
    if not classify and scoring in (None, "neg_mean_squared_error"):
        if _is_squared_error(facts, search):
            return lambda score: math.sqrt(max(-score, 0.0)), True, "root mean square error"
        return float, False, "score"
    if classify and scoring in (None, "accuracy"):
        return lambda score: 1.0 - score, True, "share of wrong answers"
    if isinstance(scoring, str) and scoring.startswith("neg_"):
        return lambda score: -score, True, scoring.removeprefix("neg_").replace("_", " ")
    return float, False, scoring.replace("_", " ") if isinstance(scoring, str) else "score"


def _is_squared_error(facts: ModelFacts, search: SearchFacts) -> bool:
    """Whether the best score is about the squared error of the held-out rows.

    A model file does not keep a scoring function, so that its scores may seem to be squared errors.
    Rows that several folds test make the two differ a little.
    """
    if search.scoring is not None or search.weighted:
        return True
    unseen = unseen_rows(facts)
    if not isinstance(unseen, UnseenNumbers):
        return True
    error = float(np.mean(unseen.residuals**2))
    return error / 1.5 <= -search.best_score <= 1.5 * error


def _by_fold(
    results: Mapping[str, Any],
    at: Sequence[tuple[int, int]],
    kernel: int,
    n_alphas: int,
    *,
    errors: bool,
) -> np.ndarray | None:
    """Root mean square errors of every fold with one kernel, where scores are such."""
    names = [name for name in results if name.startswith("split") and name.endswith("_test_score")]
    if not errors or not 2 <= len(names) <= _MOST_FOLDS:
        return None
    errors_of_folds = np.full((n_alphas, len(names)), np.nan)
    for i, (k, j) in enumerate(at):
        if k == kernel:
            errors_of_folds[j] = [np.sqrt(max(-float(results[name][i]), 0.0)) for name in names]
    return errors_of_folds


def _nice_places(alphas: np.ndarray) -> list[int]:
    """Positions of whole powers of ten, or some of all, for labels."""
    logs = np.log10(alphas)
    powers_of_ten = [int(i) for i in np.flatnonzero(np.abs(logs - np.round(logs)) < 1e-6)]
    places = powers_of_ten if len(powers_of_ten) >= 2 else list(range(len(alphas)))
    step = max(1, int(np.ceil(len(places) / 6)))
    return places[::-1][::step][::-1]


def _tick(alpha: float) -> str:
    is_power_of_ten = abs(np.log10(alpha) - np.round(np.log10(alpha))) < 1e-6
    return tick(float(f"{alpha:.6g}")) if is_power_of_ten else number(alpha, 2).replace(NARROW, "")
