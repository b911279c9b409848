"""How figures look: few colours, thin lines, no boxes.

Colours are named. A notebook draws their light values; a page replaces them by variables of its
style sheet, which has dark values too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ridgefold.report.formatting import clean, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SURFACE = "#fffffe"
INK = "#1d2530"
MUTED = "#667080"
RULE = "#d9dce1"
ACCENT = "#2a6099"
SIGNAL = "#c0531d"
BAND = "#c9dbec"
SEQUENCE = (
    "#edf2f8",
    "#d9e5f1",
    "#bfd4e8",
    "#a0bfdd",
    "#7da7cf",
    "#5b8ebf",
    "#3f76ab",
    "#2a5f95",
    "#194877",
)
"""From little to much."""
NAMED = {
    SURFACE: "surface",
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    ACCENT: "accent",
    SIGNAL: "signal",
    BAND: "band",
    **{colour: f"step-{i}" for i, colour in enumerate(SEQUENCE)},
}
"""Every colour that a figure uses, and its name in the style sheet."""

FONT = 9.2
"""Points of a letter in a figure `WIDTH` wide."""
WIDTH = 4.6
"""Inches of a figure: at the width of a phone its letters have the size of the text."""
LONGEST_NAME = 26
"""Characters of a name beside an axis: longer ones would leave no room for the data."""
MANY_POINTS = 1500
"""More points are drawn as a density."""


def new_figure(height: float = 3.5, width: float = WIDTH) -> tuple[Figure, Axes]:
    """A figure of its own, which pyplot knows nothing of."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
    FigureCanvasSVG(figure)
    return figure, figure.add_subplot()


def axes_or_new(ax: Any) -> Axes:
    """The axes to draw on: those given, or new ones of pyplot's."""
    if ax is not None:
        axes: Axes = ax
        return axes
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def dress(ax: Axes, *, x: str = "", y: str = "", grid: str | None = "both") -> None:
    """Labels, thin axes and a faint grid behind the data."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(RULE)
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(color=RULE, labelcolor=MUTED, labelsize=FONT, width=0.8, length=3)
    ax.tick_params(which="minor", length=0)
    ax.set_xlabel(x, fontsize=FONT, color=MUTED, parse_math=False)
    ax.set_ylabel(y, fontsize=FONT, color=MUTED, parse_math=False)
    ax.set_facecolor("none")
    if grid:
        ax.grid(visible=True, axis=grid, color=RULE, linewidth=0.5)  # type: ignore[arg-type]
        ax.set_axisbelow(True)


def plain_ticks(ax: Axes, *, x: bool = True, y: bool = True) -> None:
    """Tick labels without mathematical markup, also on logarithmic axes."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    for axis, plain in ((ax.xaxis, x), (ax.yaxis, y)):
        if not plain:
            continue
        if axis.get_scale() == "log":
            low, high = sorted(axis.get_view_interval())
            decades = np.log10(high / low) if low > 0 else 1.0
            subs = (1.0,) if decades > 2.5 else (1.0, 2.0, 5.0)
            axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=7))
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(tick))


def name_ticks(ax: Axes, names: Sequence[str], *, axis: str, rotation: float = 0.0) -> None:
    """Names from the data at the positions 0, 1, …, as they are: `$` is a dollar."""
    shown = [clean(name, LONGEST_NAME) for name in names]
    positions = np.arange(len(shown))
    properties: dict[str, Any] = {"parse_math": False, "fontsize": FONT, "color": INK}
    if axis == "x":
        if rotation:
            properties |= {"rotation": rotation, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(positions, shown, **properties)
    else:
        ax.set_yticks(positions, shown, **properties)


def draw_points(ax: Axes, x: np.ndarray, y: np.ndarray) -> str:
    """Points, or where they are many the density of all of them; how, in words."""
    if len(x) <= MANY_POINTS:
        size = 14 if len(x) <= 300 else 7
        ax.scatter(x, y, s=size, color=ACCENT, alpha=0.55 if len(x) > 300 else 0.75, linewidth=0)
        return f"each of the {len(x):,} rows is a point"
    from matplotlib.colors import ListedColormap, LogNorm

    hexes = ax.hexbin(
        x, y, gridsize=(34, 22), mincnt=1, cmap=ListedColormap(SEQUENCE), linewidths=0
    )
    counts = np.asarray(hexes.get_array())
    hexes.set_norm(LogNorm(1, max(float(counts.max()), 2.0)))
    return (
        f"{len(x):,} rows; the stronger the colour, the more of them (up to {int(counts.max()):,})"
    )


def note(ax: Axes, x: float, y: float, text: str, **more: Any) -> None:
    """A word beside the data."""
    settings: dict[str, Any] = {"fontsize": FONT, "color": MUTED, "parse_math": False, **more}
    ax.annotate(text, (x, y), **settings)
