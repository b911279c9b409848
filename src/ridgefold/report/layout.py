"""What a page is made of: sections with a sentence, figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ridgefold.report.style import new_figure
from ridgefold.report.svg import StyleClasses, inline_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Picture:
    """A figure with what there is to say about it."""

    svg: Markup
    title: str
    caption: str = ""


@dataclass(frozen=True)
class Cell:
    """An entry of a table: what is shown, and what it is sorted by."""

    text: str
    order: float | None = None


@dataclass(frozen=True)
class Table:
    """Columns and rows; numbers stand to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    numbers: frozenset[int] = frozenset()
    """Positions of the columns of numbers."""
    keys: tuple[str, ...] = ()
    """For each row, the part of a figure that it belongs to."""
    sortable: bool = False
    folded: str = ""
    """If not empty, the table is folded away under these words."""


@dataclass(frozen=True)
class Section:
    """One part of the page."""

    key: str
    title: str
    lead: str = ""
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass
class Canvas:
    """Draws figures, and collects the styles of all of them."""

    classes: StyleClasses = field(default_factory=StyleClasses)
    _count: int = 0

    def draw(
        self,
        plot: Callable[[Axes], Any],
        *,
        title: str,
        caption: str | Callable[[], str] = "",
        height: float = 3.4,
        keys: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None,
    ) -> Picture:
        """Let `plot` draw on new axes; captions and keys may depend on what it drew."""
        figure, ax = new_figure(height)
        plot(ax)
        self._count += 1
        texts = keys() if callable(keys) else keys
        svg = inline_svg(figure, self.classes, prefix=f"f{self._count}-", label=title, keys=texts)
        return Picture(svg, title, caption() if callable(caption) else caption)


def text(value: str) -> Cell:
    return Cell(value)


def rows_of(rows: Sequence[Sequence[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(tuple(row) for row in rows)
