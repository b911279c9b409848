"""Text from data is text on the page, whatever it looks like."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from page_reading import Page
from report_models import HOSTILE, model
from ridgefold import LSSVMRegressor, PartitionedLSSVMRegressor, write_report
from ridgefold.errors import NumericalError
from ridgefold.report.formatting import clean
from ridgefold.report.layout import Canvas
from ridgefold.report.style import new_figure
from ridgefold.report.svg import StyleClasses, inline_svg


@pytest.mark.parametrize("name", ["hostile columns", "hostile classes"])
def test_hostile_names_are_shown_as_they_are_and_make_no_elements(name, tmp_path):
    write_report(model(name), tmp_path / "r.html", target_name=HOSTILE[0], title=" ".join(HOSTILE))
    content = (tmp_path / "r.html").read_text("utf-8")
    page = Page(content)
    for text in HOSTILE:
        assert " ".join(clean(text).split()) in page.text
    assert "<script>alert" not in content
    assert "onerror=alert(1)>" not in content.replace("&gt;", "")
    assert "49" not in page.text.split("{{ 7 * 7 }}")[0][-4:]
    assert not page.find("img")
    assert not page.find("b")
    assert "\x00" not in content
    assert "\u202e" not in content


@pytest.mark.parametrize("text", HOSTILE)
def test_text_in_a_figure_is_text(text):
    figure, ax = new_figure()
    ax.set_xlabel(clean(text))
    ax.text(0.5, 0.5, clean(text))
    svg = inline_svg(figure, StyleClasses(), prefix="f-", label=text, keys={"key": text})
    page = Page(str(svg))
    assert {tag for tag, _ in page.elements} <= {
        "svg", "g", "defs", "path", "use", "text", "tspan", "rect", "clippath", "title",
    }  # fmt: skip
    assert page.find("svg")[0]["aria-label"] == text
    shown = " ".join(clean(text).split())
    assert page.text.count(shown) == 2


def test_dollars_are_no_mathematics():
    figure, ax = new_figure()
    ax.text(0.5, 0.5, r"$\frac{1}{2}$ costs 3$")
    assert r"$\frac{1}{2}$ costs 3$" in str(
        inline_svg(figure, StyleClasses(), prefix="f-", label="")
    )


def test_elements_and_attributes_that_are_not_on_the_list_are_dropped():
    from xml.etree import ElementTree

    from ridgefold.report.svg import _Writer

    root = ElementTree.fromstring(  # noqa: S314 - our own text
        '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script>'
        '<style>*{}</style><foreignObject><p>x</p></foreignObject><a href="javascript:alert(1)">'
        '<text>in a</text></a><g onclick="x" style="fill: url(javascript:x); stroke: #1d2530">'
        '<use href="http://example.org/x"/><path d="M0 0" style="background: url(x)"/></g></svg>'
    )
    parts: list[str] = []
    classes = StyleClasses()
    _Writer(classes, "f-", {}).write(root, parts, "a label")
    assert "".join(parts) == (
        '<svg role="img" aria-label="a label"><g class="s0"><use></use><path d="M0 0"></path></g>'
        "</svg>"
    )
    assert classes.css() == ".s0{stroke:var(--ink)}"


def test_figures_on_one_page_share_their_styles():
    canvas = Canvas()
    for _ in range(2):
        canvas.draw(lambda ax: ax.plot([0, 1], [1, 0], color="#2a6099"), title="a line")
    assert canvas.classes.css().count("var(--accent)") == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\tb\nc", "a b c"),
        ("bell\x07 and \x1b[31mred", "bell� and �[31mred"),
        ("\u202eturned", "�turned"),
        ("half \ud800 pair", "half � pair"),
        ("x" * 50, "x" * 13 + "…" + "x" * 6),
    ],
)
def test_names_are_one_line_without_control_characters(text, shown):
    assert clean(text, 20 if len(text) > 40 else None) == shown


@pytest.mark.filterwarnings("ignore")  # of squares that are infinite
@pytest.mark.parametrize("factor", [1e308, 1e160, 1e-310])
@pytest.mark.parametrize("what", ["y_fit_", "held_out_residuals_", "X_fit_", "length_scales_"])
def test_numbers_at_the_ends_of_their_range_end_in_a_page_or_a_typed_error(what, factor, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = PartitionedLSSVMRegressor(n_partitions=3, metric="learned").fit(X, X[:, 0])
    with np.errstate(all="ignore"):
        values = getattr(model, what)
        scaled = np.clip(values * factor, -1.7e308, 1.7e308)
        scaled = np.where(np.isinf(values), values, scaled)  # columns that are left out stay so
    setattr(model, what, scaled)
    with contextlib.suppress(NumericalError):
        write_report(model, tmp_path / "page.html")


def test_a_map_of_far_rows_is_drawn(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = PartitionedLSSVMRegressor(n_partitions=3).fit(X, X[:, 0])
    model.X_fit_ = 1e200 * X
    write_report(model, tmp_path / "page.html")


def test_intervals_of_one_group_go_by_all_rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = LSSVMRegressor(0.1, intervals="cv+").fit(X, X[:, 0])
    groups = np.zeros_like(model.intervals_.groups)
    model.intervals_ = replace(model.intervals_, groups=groups)
    write_report(model, tmp_path / "page.html")
