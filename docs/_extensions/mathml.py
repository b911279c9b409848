"""Formulas as MathML, which browsers show without a script or a font from elsewhere."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError

NOT_UNDERSTOOD = re.compile(r"<m[ion]>(&#x00026;|&amp;|\\\\)")


def mathml(formula: str, display: str = "inline") -> str:
    """The formula, or an error if a part of it would be shown as it is written."""
    converted: str = convert(formula, display=display)
    if NOT_UNDERSTOOD.search(converted):
        raise ExtensionError(f"latex2mathml does not understand all of: {formula}")
    return converted


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(mathml(node.astext(), "block"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
