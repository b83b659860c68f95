"""The page about the mutations is true: its code runs, and it leaves none out."""

from __future__ import annotations

import re
from pathlib import Path

from adverse import plugins
from adverse.mutations.batteries import BATTERIES

PAGE = (Path(__file__).parents[2] / "docs" / "mutations.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs() -> None:
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "docs/mutations.md", "exec"), {})


def test_every_mutation_and_battery_is_on_the_page() -> None:
    names = [plugin.name for plugin in plugins.load().all("mutation")]
    assert [name for name in [*names, *BATTERIES] if f"`{name}" not in PAGE] == []


def test_every_sheet_of_the_page_is_there() -> None:
    sheets = re.findall(r"\(sheets/(.*?)\)", PAGE)
    assert len(sheets) == 8
    assert all((Path(__file__).parents[2] / "docs" / "sheets" / name).is_file() for name in sheets)


def test_the_sizes_of_the_batteries_are_right() -> None:
    for name, size in re.findall(r"\| `([\w-]+)` \| (\d+) \|", PAGE):
        assert len(BATTERIES[name]) == int(size)
