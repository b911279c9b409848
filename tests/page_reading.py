"""Read a page as a browser would: elements, attributes and text."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """What a page holds."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside: dict[str, list[str]] = {"style": [], "script": []}
        self._open: str | None = None
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, data):
        if self._open in self.inside:
            self.inside[self._open].append(data)
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def find(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def sections(self) -> list[str | None]:
        return [attributes["id"] for attributes in self.find("section")]
