"""The hazards of seeing that a run exercised, as a table of the report."""

from __future__ import annotations

from adverse.mutations.hazards import HazardCoverage
from adverse.report.tables import Cell, Table
from adverse.text import shown

FEW = 2
"""Settings that are named in a cell; the rest are counted, and named when looked at closely."""


def hazard_table(coverage: HazardCoverage) -> Table:
    """Return every hazard that a mutation stands for, and what exercised it."""
    rows, data = [], []
    for row in coverage.rows:
        if row.settings:
            text = ", ".join(shown(name) for name in row.settings[:FEW])
            text += f" and {len(row.settings) - FEW} more" if len(row.settings) > FEW else ""
        else:
            text = f"not exercised; {', '.join(row.mutations)} would"
        place = (Cell(row.location), Cell(row.parameter), Cell(row.guide_word), Cell(row.words))
        rows.append((*place, Cell(text, note=", ".join(row.settings))))
        data.append(
            {
                "location": row.location,
                "parameter": row.parameter,
                "guide_word": row.guide_word,
                "meaning": row.words,
                "exercised": bool(row.settings),
                "settings": "; ".join(row.settings),
                "mutations": "; ".join(row.mutations),
            }
        )
    title = f"{len(coverage.exercised)} of {len(coverage.rows)} hazards were exercised"
    columns = ("location", "parameter", "guide word", "what happens", "exercised by")
    return Table("hazards", title, columns, tuple(rows), tuple(data))
