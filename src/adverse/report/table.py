"""A table, written once: as HTML, in the terminal, as Markdown, CSV and JSON.

A cell holds its value; its column says how values are written. All text is spelt out here, so that no name
can act on a page, a terminal or a spreadsheet, whoever made the table.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from adverse.text import cell as csv_cell
from adverse.text import setting_text, shown

Row = Mapping[str, Any]
Tone = Literal["", "strong", "soft", "good", "doubt", "bad"]
STYLES: dict[Tone, str] = {"strong": "bold", "soft": "dim", "good": "green", "doubt": "yellow", "bad": "red"}
"""How the terminal shows a tone; a page has a class of the same name."""
SHADES = 10
HARDLY_LESS, HALF = 0.9, 0.5
"""Shares of the baseline above which the terminal uses no colour, and below which red."""
NARROWEST = 8
"""Letters that a line of a heading has room for, however narrow the cells below it are."""
LONG_WORD = 12
"""Letters of a heading's word from which on it is also broken after an underscore."""
MARKDOWN = "\\|`*_[]#!~"


@dataclass(frozen=True)
class Column:
    """A heading, and how the cells below it are written."""

    heading: str
    format: str = ""
    """Format of its numbers, such as .3f; empty: as they are."""
    align: Literal["left", "right"] = "right"
    no_wrap: bool = False
    brief: str = ""
    """The heading in a terminal, where the whole one is too long for it."""
    drawn: bool = False
    """Its cells hold drawings, which only pages show."""

    def text(self, cell: Cell) -> str:
        """Return a cell as people read it.

        >>> Column("area", ".2f").text(Cell(0.125)), Column("area").text(Cell(None))
        ('0.12', '-')
        """
        if cell.text is not None:
            text = shown(cell.text, longest=None)
        elif cell.value is None:
            text = "-"
        elif self.format and isinstance(cell.value, int | float):
            text = format(cell.value, self.format)
        else:
            text = shown(cell.value)
        return text + cell.marks


@dataclass(frozen=True)
class Cell:
    """A value, and what is said about it."""

    value: object = None
    text: str | None = None
    """What is read, where the column's format does not say it."""
    details: tuple[str, ...] = ()
    """What stands below it in small print, such as its interval."""
    note: str = ""
    """What is shown when it is looked at closely."""
    share: float | None = None
    """The share of the baseline that is left, as a colour; nan: undefined."""
    marks: str = ""
    tone: Tone = ""
    drawing: str = ""
    """An SVG of our own."""


def setting_cell(setting: object, *, tone: Tone = "") -> Cell:
    """Return a setting as people read it; machines get its id."""
    return Cell(setting, setting_text(setting), tone=tone)


@dataclass(frozen=True)
class Table:
    """Columns and rows for people, and the records behind them for machines."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    records: tuple[Row, ...] | None = None
    """What CSV and JSON hold; None: the values of the cells."""
    groups: Mapping[int, str] = field(default_factory=dict)
    """Words that head a part of the table, by the row they stand before; empty words only part it."""
    caption: str = ""

    @property
    def headings(self) -> list[str]:
        """The headings as people read them."""
        return [shown(column.heading) for column in self.columns]

    def texts(self) -> list[list[str]]:
        """Return the cells as people read them."""
        return [[column.text(cell) for column, cell in self._cells(row)] for row in self.rows]

    def data(self) -> list[Row]:
        """Return the records for machines."""
        if self.records is not None:
            return list(self.records)
        return [
            {column.heading: cell.value for column, cell in self._cells(row) if not column.drawn}
            for row in self.rows
        ]

    def csv(self) -> str:
        """Return the records as CSV."""
        records = self.data()
        names = list(dict.fromkeys(name for record in records for name in record))
        sink = io.StringIO()
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow([csv_cell(name) for name in names])
        writer.writerows([csv_cell(record.get(name)) for name in names] for record in records)
        return sink.getvalue()

    def json(self) -> str:
        """Return the records as JSON, a line each."""
        lines = ",\n".join(json.dumps(record) for record in self.data())
        return f"[\n{lines}\n]" if lines else "[]"

    def html(self, kind: str = "", *, titled: bool = True) -> str:
        """Return a table element, of a class if `kind` is given."""
        parts = [f'<table class="{kind}">' if kind else "<table>"]
        if titled:
            note = f"<br><small>{_html(self.caption)}</small>" if self.caption else ""
            parts.append(f"<caption>{_html(self.title)}{note}</caption>")
        heads = (_html_heading(column) for column in self.columns)
        parts.append(f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>")
        for number, row in enumerate(self.rows):
            if self.groups.get(number):
                head = f'<th scope="rowgroup" colspan="{len(self.columns)}">{_html(self.groups[number])}</th>'
                parts.append(f'<tr class="group">{head}</tr>')
            first, *rest = self._cells(row)
            cells = "".join(_html_cell(column, cell) for column, cell in rest)
            parts.append(f'<tr><th scope="row">{escape(first[0].text(first[1]))}</th>{cells}</tr>')
        return "\n".join([*parts, "</tbody></table>"])

    def terminal(self, *, details: bool = False, shares: bool = False) -> RichTable:
        """Return a table for a terminal, with details below the values and shares beside them if wanted."""
        table = _TerminalTable(
            title=Text(shown(self.title, longest=None), style="table.title") if self.title else None,
            title_justify="left",
            caption=Text(self.caption) if self.caption else None,
            caption_justify="left",
        )
        for column in self.columns:
            if not column.drawn:
                heading = Text(shown(column.brief or column.heading))
                table.add_column(heading, justify=column.align, overflow="fold", no_wrap=column.no_wrap)
        for number, row in enumerate(self.rows):
            if number in self.groups:
                table.add_section()
                if self.groups[number]:
                    table.add_row(Text(shown(self.groups[number]), style="italic dim"))
            table.add_row(
                *(
                    _terminal_cell(column, cell, details=details, shares=shares)
                    for column, cell in self._cells(row)
                    if not column.drawn
                )
            )
        return table

    def markdown(self) -> str:
        """Return a Markdown table; details stand in brackets behind the values."""
        columns = [column for column in self.columns if not column.drawn]
        lines = [
            [markdown_text(column.heading) for column in columns],
            ["---:" if column.align == "right" else "---" for column in columns],
        ]
        for row in self.rows:
            cells = [(column, cell) for column, cell in self._cells(row) if not column.drawn]
            lines.append([_markdown_cell(column, cell) for column, cell in cells])
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def only(self, *headings: str) -> Table:
        """Return these columns, in this order; CSV and JSON stay whole."""
        places = [self._place(heading) for heading in headings]
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        columns = tuple(self.columns[place] for place in places)
        return replace(self, columns=columns, rows=rows, records=tuple(self.data()))

    def where(self, heading: str, value: object) -> Table:
        """Return the rows with this value in a column; CSV and JSON stay whole."""
        place = self._place(heading)
        kept = [number for number, row in enumerate(self.rows) if row[place].value == value]
        groups = {kept.index(number): words for number, words in self.groups.items() if number in kept}
        rows = tuple(self.rows[number] for number in kept)
        return replace(self, rows=rows, groups=groups, records=tuple(self.data()))

    def stacked(self, heading: str, *headings: str) -> Table:
        """Return the table with some columns in one: what the others say becomes details of the first."""
        places = [self._place(name) for name in headings]
        first, others = places[0], places[1:]
        stays = [place for place in range(len(self.columns)) if place not in others]
        columns = tuple(
            replace(self.columns[place], heading=heading) if place == first else self.columns[place]
            for place in stays
        )
        rows = tuple(
            tuple(self._stack(row, first, others) if place == first else row[place] for place in stays)
            for row in self.rows
        )
        return replace(self, columns=columns, rows=rows, records=tuple(self.data()))

    def without_details(self, heading: str) -> Table:
        """Return the table with nothing below the values of a column."""
        place = self._place(heading)
        rows = tuple((*row[:place], replace(row[place], details=()), *row[place + 1 :]) for row in self.rows)
        return replace(self, rows=rows)

    def abreast(self, count: int) -> Iterator[Table]:
        """Yield narrower tables: the first column with `count` of the others each."""
        for start in range(1, max(len(self.columns), 2), count):
            yield replace(
                self,
                columns=(self.columns[0], *self.columns[start : start + count]),
                rows=tuple((row[0], *row[start : start + count]) for row in self.rows),
                records=tuple(self.data()),
            )

    def first(self, count: int, *, more: str) -> Table:
        """Return the first rows; if there are others, the caption counts them and says where they are."""
        left = len(self.rows) - count
        if left <= 0:
            return self
        caption = f"and {left} more: {more}"
        return replace(self, rows=self.rows[:count], caption=caption, records=tuple(self.data()))

    def _cells(self, row: Sequence[Cell]) -> Iterator[tuple[Column, Cell]]:
        return zip(self.columns, row, strict=True)

    def _place(self, heading: str) -> int:
        return [column.heading for column in self.columns].index(heading)

    def _stack(self, row: Sequence[Cell], first: int, others: Sequence[int]) -> Cell:
        below = [
            text
            for place in others
            for text in (self.columns[place].text(row[place]), *row[place].details)
            if text
        ]
        return replace(row[first], details=(*row[first].details, *below))


class _TerminalTable(RichTable):
    """Where the terminal is too narrow, headings are broken after a hyphen or the like, not within a word."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wanted = console.measure(self, options=options.update_width(10 * options.max_width)).maximum
        if wanted > options.max_width:
            for column in self.columns:
                cells = (console.measure(cell).maximum for cell in list(column.cells)[1:])
                column.header = Text(broken_heading(str(column.header), max(cells, default=1)))
            if (
                console.measure(self, options=options.update_width(10 * options.max_width)).maximum
                > options.max_width
            ):
                self.padding = 0  # a word is not broken for the sake of space around it
        yield from super().__rich_console__(console, options)


def broken_heading(text: str, width: int) -> str:
    """Return a heading in lines that fit a width, or are as short as its words allow.

    >>> broken_heading("mobilenet-ssd-voc", 5).splitlines()
    ['mobilenet-', 'ssd-voc']
    """
    words = re.findall(r"[^-/ ]*[-/ ]?", text)
    parts = [
        part for word in words for part in (re.findall("[^_]*_?", word) if len(word) > LONG_WORD else [word])
    ]
    width = max(width, NARROWEST, *(len(part.rstrip()) for part in parts))
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def columns(*headings: str, format: str = "", left: int = 1) -> tuple[Column, ...]:  # noqa: A002
    """Return columns of one format, the first `left` of them with text that starts at the left."""
    return tuple(
        Column(heading, "" if number < left else format, "left" if number < left else "right")
        for number, heading in enumerate(headings)
    )


def shade_of(share: float) -> int:
    """Return the shade of a share of the baseline, from 0 (nothing left) to 9 (all of it).

    >>> shade_of(0.0), shade_of(0.55), shade_of(1.3)
    (0, 5, 9)
    """
    return max(0, min(SHADES - 1, int(share * SHADES)))


def _html(text: str) -> str:
    return escape(shown(text, longest=None))


def _html_heading(column: Column) -> str:
    if not column.heading:
        return "<td></td>"
    left = ' class="left"' if column.align == "left" else ""
    return f'<th scope="col"{left}>{escape(shown(column.heading))}</th>'


def _html_cell(column: Column, cell: Cell) -> str:
    if column.drawn:
        return f'<td class="drawn">{cell.drawing}</td>'
    shade = cell.share is not None and not math.isnan(cell.share) and f"s{shade_of(cell.share)}"
    classes = " ".join(name for name in (column.align == "left" and "left", cell.tone, shade) if name)
    kind = f' class="{classes}"' if classes else ""
    note = f' title="{_html(cell.note)}"' if cell.note else ""
    small = "".join(f"<small>{_html(text)}</small>" for text in cell.details if text)
    return f"<td{kind}{note}>{escape(column.text(cell))}{small}</td>"


def _terminal_cell(column: Column, cell: Cell, *, details: bool, shares: bool) -> Text:
    text, style = column.text(cell), STYLES.get(cell.tone, "")
    if shares and cell.share is not None:
        known = not math.isnan(cell.share)
        text = text.removesuffix(cell.marks) + (f" {cell.share:4.0%}" if known else "    -") + cell.marks
        if known and cell.share <= HARDLY_LESS:
            style = "red" if cell.share < HALF else "yellow"
    words = Text(text, style=style)
    for detail in cell.details if details else ():
        words.append(f"\n{shown(detail, longest=None)}" if detail else "", style="not bold")
    return words


def _markdown_cell(column: Column, cell: Cell) -> str:
    text = markdown_text(column.text(cell))
    text = f"**{text}**" if cell.tone in ("good", "doubt", "bad") else text
    details = "; ".join(markdown_text(detail) for detail in cell.details if detail)
    return f"{text} ({details})" if details else text


def markdown_text(text: str) -> str:
    r"""Return text that stays inside its Markdown cell and means nothing there.

    >>> print(markdown_text("a|b <script> [x](y)"))
    a\|b &lt;script&gt; \[x\](y)
    """
    return "".join(
        f"\\{char}" if char in MARKDOWN else char for char in escape(shown(text, longest=None), quote=False)
    )
