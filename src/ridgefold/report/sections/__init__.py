"""The sections of a page, one file each; one that has nothing to show gives None."""

from __future__ import annotations

from collections.abc import Callable

from ridgefold.report.layout import Canvas, Section
from ridgefold.report.reported_model import ReportedModel
from ridgefold.report.sections.cells import cells
from ridgefold.report.sections.classes import classes
from ridgefold.report.sections.computed import computed
from ridgefold.report.sections.coverage import coverage
from ridgefold.report.sections.effects import effects
from ridgefold.report.sections.held_out import held_out
from ridgefold.report.sections.importance import importance
from ridgefold.report.sections.length_scales import length_scales
from ridgefold.report.sections.search import search
from ridgefold.report.sections.spectrum import spectrum
from ridgefold.report.sections.tried import tried

SECTIONS: tuple[Callable[[ReportedModel, Canvas], Section | None], ...] = (
    held_out,
    classes,
    coverage,
    tried,
    importance,
    search,
    effects,
    length_scales,
    cells,
    spectrum,
    computed,
)
"""In the order of the page."""

__all__ = ["SECTIONS"]
