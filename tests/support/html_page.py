"""What a page of HTML holds, and texts that would get out of it if they were not escaped."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</style><h1>",
    "\x1b[31mred",
    "\u202eevil",
    "=HYPERLINK(1)",
    "a" * 10_000,
    "\u05e9\u05dc\u05d5\u05dd",
)


class Seen(HTMLParser):
    """What a page holds: its elements, their attributes, its texts, and its tables by id."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.open: list[str] = []
        self._rows: list[list[str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)
        if tag == "table":
            self._rows = self.tables.setdefault(found["id"], [])
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if {"td", "th"}.intersection(self.open):
            self._rows[-1][-1] += data
