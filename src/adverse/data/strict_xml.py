"""XML as annotation tools write it: elements and text; every element knows its line.

No document type but a bare name where a format has one, so no entities that grow or reach for other files; no
attributes are looked at. What is not well-formed, too large or nested too deeply is refused with its line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from adverse.data.files import read_bytes
from adverse.errors import DataError

LIMIT_BYTES = 16 * 2**20
MAX_DEPTH = 32


@dataclass(slots=True)
class Element:
    """An element: its tag, its own text, its children, and where it stands."""

    file: Path
    tag: str
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The file and line, for errors."""
        return f"{self.file}, line {self.line}, field {self.tag}"

    def all(self, tag: str) -> Iterator[Element]:
        """Yield the children of a tag."""
        return (child for child in self.children if child.tag == tag)

    def find(self, *path: str) -> Element | None:
        """Return the one element below by its tags, or None; two of them are an error."""
        element: Element = self
        for tag in path:
            matching = list(element.all(tag))
            if len(matching) > 1:
                raise wrong(
                    matching[1], f"<{tag}> twice in <{element.tag}>", "it once", "Remove one of them."
                )
            if not matching:
                return None
            (element,) = matching
        return element

    def get(self, *path: str) -> Element:
        """Return the one element below by its tags, or say that it is missing."""
        element = self.find(*path)
        if element is None:
            raise wrong(self, f"no <{'/'.join(path)}> in it", f"<{'/'.join(path)}>", "Add the element.")
        return element

    def number(self) -> float:
        """Return the text as a finite number."""
        try:
            value = float(self.text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise wrong(self, repr(self.text[:80]), "a finite number", "Correct the number.")
        return value

    def whole(self, least: int = 0) -> int:
        """Return the text as a whole number from `least` on."""
        value = self.number()
        if value % 1 or value < least:
            raise wrong(self, repr(self.text[:80]), f"a whole number from {least} on", "Correct the number.")
        return int(value)

    def flag(self) -> bool:
        """Return the text as yes (1) or no (0)."""
        if self.text not in ("0", "1"):
            raise wrong(self, repr(self.text[:80]), "0 or 1", "Correct the value.")
        return self.text == "1"


def read_xml(path: Path, root: str, *, doctype: str | None = None, limit_bytes: int = LIMIT_BYTES) -> Element:
    """Read an XML file whose outermost element is `root`; `doctype` is the bare document type it may have."""
    data = read_bytes(path, what="annotation", limit=limit_bytes)
    parser = expat.ParserCreate()
    building = _Building(path, parser, doctype)
    parser.StartDoctypeDeclHandler = building.doctype
    parser.StartElementHandler = building.start
    parser.EndElementHandler = building.end
    parser.CharacterDataHandler = building.characters
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # an unknown encoding is one of the latter
        raise _broken(path, building.line, " ".join(str(error).split()), "well-formed XML") from error
    top = building.top
    if top.tag != root:
        raise _broken(path, top.line, f"<{top.tag}> outermost", f"<{root}>")
    return top


def wrong(element: Element, got: str, wanted: str, fix: str) -> DataError:
    """Return the error for an element that says what it must not."""
    return DataError("the annotation file is wrong", where=element.where, got=got, wanted=wanted, fix=fix)


class _Building:
    """The tree as far as it is read."""

    def __init__(self, path: Path, parser: expat.XMLParserType, named: str | None) -> None:
        self.path = path
        self.parser = parser
        self.named = named
        self.top = Element(path, "", 0)
        self.open: list[Element] = []

    @property
    def line(self) -> int:
        return self.parser.CurrentLineNumber

    def doctype(self, *declared: object) -> None:
        if declared == (
            self.named,
            None,
            None,
            0,
        ):  # a name, and neither a file nor a text that declares more
            return
        raise _broken(self.path, self.line, "a <!DOCTYPE>", "plain elements, no document type")

    def start(self, tag: str, _attributes: object) -> None:
        element = Element(self.path, tag, self.line)
        if len(self.open) == MAX_DEPTH:
            raise _broken(
                self.path, self.line, f"elements nested deeper than {MAX_DEPTH}", "a flat annotation"
            )
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.top = element
        self.open.append(element)

    def end(self, _tag: str) -> None:
        element = self.open.pop()
        element.text = element.text.strip()

    def characters(self, text: str) -> None:
        self.open[-1].text += text


def _broken(path: Path, line: int, got: str, wanted: str) -> DataError:
    return DataError(
        "the annotation file is not valid XML",
        where=f"{path}, line {line}",
        got=got,
        wanted=wanted,
        fix="Correct the file at that place, or export it again.",
    )
