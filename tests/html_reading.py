"""What a browser would see of a page, read by the standard library's parser."""

from __future__ import annotations

from html.parser import HTMLParser


class Read(HTMLParser):
    """What a browser would see: tables as rows of cells, and the elements that could do harm."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.all_tables: list[list[list[str]]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self._rows: list[list[str]] = []
        self._caption = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside.append(tag)
        if tag == "table":
            self._rows, self._caption = [], ""
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass
        if tag == "table":
            self.tables[self._caption] = self._rows
            self.all_tables.append(self._rows)

    def handle_data(self, data: str) -> None:
        if "caption" in self.inside:
            self._caption += data
        elif self.inside and self.inside[-1] in ("td", "th"):
            self._rows[-1][-1] += data.strip()


def read(page: str) -> Read:
    reader = Read()
    reader.feed(page)
    return reader
