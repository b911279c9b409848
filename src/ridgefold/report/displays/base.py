"""What all displays share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display:
    """A figure: `plot` draws it and sets `ax_` and `figure_`."""

    ax_: Axes
    figure_: Figure

    def _drawn_on(self, ax: Axes) -> None:
        self.ax_ = ax
        figure = ax.figure
        self.figure_ = figure  # type: ignore[assignment]
