"""Measured tables in the docs: each lies between two marks, and is written anew by its bench."""

from __future__ import annotations

import datetime as dt
import platform
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def write(page: str, section: str, lines: list[str]) -> None:
    """Replace what lies between the marks of a section."""
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {section} -->\n", f"<!-- end of {section} -->"
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    body = "\n".join(lines)
    path.write_text(f"{before}{begin}\n{body}\n\n{end}{after}", encoding="utf-8")


def machine() -> str:
    """Say where and when something was measured."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    return f"{model}, Python {platform.python_version()}, {dt.date.today().isoformat()}"  # noqa: DTZ011


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return a Markdown table; all columns but the first are numbers."""
    return [
        "| " + " | ".join(head) + " |",
        "|---|" + "---:|" * (len(head) - 1),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
