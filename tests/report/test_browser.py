"""Pages in a real browser: they open, run nothing of the data's, and ask for nothing."""

from __future__ import annotations

import shutil

import pytest

from report_models import HOSTILE, model
from ridgefold import write_report

pytestmark = pytest.mark.browser
PAGES = [
    "regressor",
    "raced",
    "learned",
    "cells",
    "several targets",
    "three classes",
    "hostile columns",
    "hostile classes",
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path, "these tests need chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All pages, written once."""
    folder = tmp_path_factory.mktemp("pages")
    for name in PAGES:
        hostile = {"target_name": HOSTILE[4], "title": HOSTILE[0]} if "hostile" in name else {}
        write_report(model(name), folder / f"{name}.html", **hostile)
    return folder


class Visit:
    """A page that is open, and all that happened to it."""

    def __init__(self, browser, path, width=1200, scheme="light", **options):
        self.context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, **options
        )
        self.page = self.context.new_page()
        self.requests, self.answered, self.complaints, self.dialogs = [], [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfinished", lambda request: self.answered.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.goto(path.as_uri())

    def _dismiss(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (390, "dark")])
def test_a_page_opens_without_requests_errors_or_overflow(browser, folder, name, width, scheme):
    path = folder / f"{name}.html"
    with Visit(browser, path, width, scheme) as visit:
        visit.page.mouse.wheel(0, 20_000)
        assert visit.page.locator("h1").is_visible()
        assert visit.requests == [path.as_uri()]
        assert visit.complaints == []
        assert visit.dialogs == []
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert visit.page.evaluate(overflow) == 0
        wide = """[...document.querySelectorAll("svg")].filter(
            (svg) => svg.getBoundingClientRect().right > innerWidth).length"""
        assert visit.page.evaluate(wide) == 0


@pytest.mark.parametrize("name", ["hostile columns", "hostile classes"])
def test_hostile_text_is_shown_and_makes_no_elements(browser, folder, name):
    with Visit(browser, folder / f"{name}.html") as visit:
        page = visit.page
        assert page.locator("script").count() == 1
        assert page.locator("img, b, iframe, a, object, embed, form").count() == 0
        assert page.evaluate(
            """[...document.querySelectorAll("*")].every((element) =>
                [...element.attributes].every((each) => !each.name.startsWith("on")))"""
        )
        assert page.locator("h1").inner_text() == HOSTILE[0]
        shown = page.locator("body").inner_text()
        assert "$x^2$ & <b>bold</b>" in shown
        assert "{{ 7 * 7 }}" in shown
        assert visit.dialogs == []


def test_scripts_and_styles_that_are_put_in_do_not_run(browser, folder, tmp_path):
    """The policy stands even if something of the data's should get through."""
    content = (folder / "regressor.html").read_text("utf-8")
    bad = "<script>alert(1)</script><img src=x onerror=alert(2)><p id=p style='color:red'>x</p>"
    path = tmp_path / "changed.html"
    path.write_text(content.replace("<main>", f"<main>{bad}"), "utf-8")
    with Visit(browser, path) as visit:
        visit.page.wait_for_load_state()
        assert visit.dialogs == []
        assert visit.answered == [path.as_uri()]
        assert len(visit.complaints) >= 3
        assert visit.page.locator("#p").evaluate("(p) => getComputedStyle(p).color") != (
            "rgb(255, 0, 0)"
        )


def test_dark_pages_have_light_letters_and_the_button_turns_them(browser, folder):
    brightness = """(element) => getComputedStyle(element).color.match(/\\d+/g)
        .slice(0, 3).reduce((sum, part) => sum + Number(part), 0)"""
    with Visit(browser, folder / "regressor.html", scheme="dark") as visit:
        title, label = visit.page.locator("h1"), visit.page.locator("svg text").first
        fill = "(element) => getComputedStyle(element).fill"
        assert title.evaluate(brightness) > 500
        dark = label.evaluate(fill)
        visit.page.locator("#theme").click()
        assert title.evaluate(brightness) < 250
        assert label.evaluate(fill) != dark


def test_a_click_on_a_heading_sorts_the_table(browser, folder):
    with Visit(browser, folder / "cells.html") as visit:
        table = visit.page.locator("#cells table").first
        errors = (
            "(table) => [...table.tBodies[0].rows].map((row) => Number(row.cells[2].dataset.order))"
        )
        table.locator("th button").nth(2).click()
        rising = table.evaluate(errors)
        assert rising == sorted(rising)
        table.locator("th button").nth(2).click()
        assert table.evaluate(errors) == sorted(rising, reverse=True)
        assert table.locator("th").nth(2).get_attribute("aria-sort") == "descending"


def test_a_row_of_the_table_and_its_cell_on_the_map_light_up_together(browser, folder):
    with Visit(browser, folder / "cells.html") as visit:
        visit.page.locator("#cells tr[data-key=cell-2]").hover()
        assert "on" in visit.page.locator("#cells svg [data-key=cell-2]").get_attribute("class")
        assert visit.page.locator("#cells .readout").inner_text().startswith("cell 2: ")


def test_a_tap_on_the_map_of_errors_reads_a_pair(browser, folder):
    with Visit(browser, folder / "regressor.html", 390, has_touch=True) as visit:
        visit.page.locator("#search svg [data-key]").nth(3).tap()
        assert "alpha" in visit.page.locator("#search .readout").inner_text()
