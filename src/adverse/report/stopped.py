"""What a page says of a run that stopped early: first of all that it did, then the logs of every cell."""

from __future__ import annotations

from adverse.analysis.results import Summary
from adverse.report.table import Cell, Column, Table, setting_cell
from adverse.text import shown


def stopped_basis(summary: Summary) -> str | None:
    """Return what the figures of a run that stopped early rest on; None of any other.

    >>> stopped_basis(Summary({"stopped_early": {"words": "stopped early: 2 of 5 looks"}}))
    'Stopped early: 2 of 5 looks.'
    """
    if "stopped_early" not in summary.data:
        return None
    words: str = summary.data["stopped_early"]["words"]
    return f"{words[0].upper()}{words[1:]}."


def looks_table(summary: Summary) -> Table | None:
    """Return how many logs each SUT was shown under each mutation; None where it was all of them."""
    facts = summary.data.get("stopped_early")
    if facts is None:
        return None
    cells = {(cell["sut"], cell["setting"]): cell for cell in facts["cells"]}
    suts, settings = (list(dict.fromkeys(key[part] for key in cells)) for part in (0, 1))
    columns = (Column("mutation", align="left"), *(Column(shown(sut)) for sut in suts))
    rows = tuple(
        (setting_cell(setting), *(_cell(cells.get((sut, setting)), facts) for sut in suts))
        for setting in settings
    )
    return Table("logs used", f"Logs used, of {facts['logs']}", columns, rows, tuple(cells.values()))


def _cell(cell: dict[str, int] | None, facts: dict[str, list[float]]) -> Cell:
    if cell is None:
        return Cell(0, "not run", tone="soft")
    sure = facts["confidences"][cell["look"] - 1]
    return Cell(cell["logs"], details=(f"look {cell['look']}, intervals at {100 * sure:.6g}%",))
