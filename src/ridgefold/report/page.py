"""Sections to one HTML page that needs nothing else, and asks for nothing."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

import ridgefold
from ridgefold.report.headline import asked, headline, tiles
from ridgefold.report.layout import Canvas
from ridgefold.report.notes import notes
from ridgefold.report.reported_model import ReportedModel
from ridgefold.report.sections import SECTIONS

if TYPE_CHECKING:
    from jinja2 import Template


def render(reported: ReportedModel) -> str:
    """The page as text."""
    canvas = Canvas()
    made = (make(reported, canvas) for make in SECTIONS)
    sections = [section for section in made if section is not None]
    style = f"{_resource('page.css')}\n{canvas.classes.css()}\n"
    script = _resource("page.js")
    return _template().render(
        title=reported.title,
        headline=headline(reported),
        tiles=tiles(reported),
        asked=asked(reported),
        sections=sections,
        notes=notes(reported),
        version=ridgefold.__version__,
        # Both are files of ours and names of colours: nothing of the user's is in them.
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy=(
            "default-src 'none'; "
            f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
    )


def _digest(content: str) -> str:
    """The hash by which a policy knows an inline style or script."""
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _resource(name: str) -> str:
    return (files("ridgefold.report") / "templates" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_resource("page.html"))
