"""A matplotlib figure as SVG that can stand inside a page: no scripts, no styles of its own.

The SVG that matplotlib writes is read as XML and written anew from a short list of elements and
attributes; whatever else there might be is dropped. Style attributes become classes, so that the
page's policy can forbid inline styles, and the colours of `style` become variables of the page.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup

from ridgefold.notices import without_foreign
from ridgefold.report.style import NAMED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ELEMENTS = {"svg", "g", "defs", "path", "use", "text", "tspan", "rect", "clipPath"}
_ATTRIBUTES = {"d", "x", "y", "width", "height", "transform", "viewBox"}
_KEPT_STYLES = {
    "fill",
    "fill-opacity",
    "fill-rule",
    "stroke",
    "stroke-width",
    "stroke-opacity",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-dasharray",
    "stroke-dashoffset",
    "opacity",
    "font-size",
    "font-weight",
    "text-anchor",
}
_VALUE = re.compile(r"^[#\w.,%+\- ]+$")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_REFERENCE = re.compile(r"^url\(#([\w.:-]+)\)$")


class StyleClasses:
    """Class names for the style attributes of figures, each set of declarations once."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, style: str) -> str | None:
        """The class that stands for a style attribute; None if nothing is left of it."""
        declarations = _declarations(style)
        if not declarations:
            return None
        return self._names.setdefault(declarations, f"s{len(self._names)}")

    def css(self) -> str:
        return "\n".join(f".{name}{{{text}}}" for text, name in self._names.items())


def _declarations(style: str) -> str:
    kept = []
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip().lower(), value.strip().lower()
        if name not in _KEPT_STYLES or not _VALUE.match(value):
            continue
        if value in NAMED:
            value = f"var(--{NAMED[value]})"
        kept.append(f"{name}:{_rounded(value)}")
    return ";".join(kept)


def _rounded(text: str) -> str:
    def shorter(match: re.Match[str]) -> str:
        return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")

    return _LONG_NUMBER.sub(shorter, text)


def inline_svg(
    figure: Figure,
    classes: StyleClasses,
    *,
    prefix: str,
    label: str,
    keys: Mapping[str, str] | None = None,
) -> Markup:
    """The figure as an `svg` element.

    Parameters
    ----------
    figure : matplotlib Figure
    classes : StyleClasses
        Collects the styles of all figures of a page.
    prefix : str
        Makes the identifiers of this figure differ from those of the others.
    label : str
        What the figure shows, for those who do not see it.
    keys : mapping
        For artists with a gid, a word about each: it appears when one points at it.
    """
    root = ElementTree.fromstring(_draw(figure, prefix))  # noqa: S314 - written a line above
    writer = _Writer(classes, prefix, dict(keys or {}))
    writer.find_references(root)
    parts: list[str] = []
    writer.write(root, parts, label)
    return Markup("".join(parts))  # noqa: S704 - every text and attribute is escaped below


def _draw(figure: Figure, salt: str) -> str:
    import matplotlib
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "text.parse_math": False,
    }
    buffer = io.BytesIO()
    # Letters that matplotlib's font lacks are drawn by the browser's. Its settings are those of the
    # process, as the filters are.
    with without_foreign(message="(?s)Glyph .* missing from"), matplotlib.rc_context(settings):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue().decode("utf-8")


class _Writer:
    """Writes what is on the lists, and nothing else."""

    def __init__(self, classes: StyleClasses, prefix: str, keys: dict[str, str]) -> None:
        self._classes, self._prefix, self._keys = classes, prefix, keys
        self._references: dict[str, str] = {}

    def find_references(self, root: ElementTree.Element) -> None:
        """Only identifiers that something refers to are kept, under short names."""
        for element in root.iter():
            for name, value in element.attrib.items():
                reference = _REFERENCE.match(value)
                target = reference[1] if reference else None
                if _local(name) == "href" and value.startswith("#"):
                    target = value[1:]
                if target is not None:
                    known = len(self._references)
                    self._references.setdefault(target, f"{self._prefix}{known}")

    def write(self, element: ElementTree.Element, parts: list[str], label: str = "") -> None:
        tag = _local(element.tag)
        if tag not in _ELEMENTS:
            return
        attributes = self._attributes(element)
        if tag == "svg":
            for size in ("width", "height"):
                attributes.pop(size, None)
            attributes |= {"role": "img", "aria-label": label}
        key = element.get("id", "")
        if tag == "g" and key in self._keys:
            attributes["data-key"] = key
        if tag == "g" and not attributes:
            self._write_inside(element, parts)
            return
        written = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
        parts.append(f"<{tag}{written}>")
        if "data-key" in attributes:
            parts.append(f"<title>{escape(self._keys[key])}</title>")
        self._write_inside(element, parts)
        parts.append(f"</{tag}>")

    def _write_inside(self, element: ElementTree.Element, parts: list[str]) -> None:
        if element.text and _local(element.tag) in ("text", "tspan"):
            parts.append(escape(element.text))
        for child in element:
            self.write(child, parts)

    def _attributes(self, element: ElementTree.Element) -> dict[str, str]:
        kept: dict[str, str] = {}
        for full_name, value in element.attrib.items():
            name = _local(full_name)
            if name in _ATTRIBUTES:
                kept[name] = _rounded(value.strip().replace("\n", ""))
            elif name == "href" and value.startswith("#"):
                kept["href"] = f"#{self._references[value[1:]]}"
            elif name == "clip-path" and (match := _REFERENCE.match(value)):
                kept["clip-path"] = f"url(#{self._references[match[1]]})"
            elif name == "id" and value in self._references:
                kept["id"] = self._references[value]
            elif name == "style" and (style := self._classes.name(value)) is not None:
                kept["class"] = style
        return kept


def _local(name: Any) -> str:
    """A name without its XML namespace; comments have none."""
    return name.rsplit("}", 1)[-1] if isinstance(name, str) else ""
