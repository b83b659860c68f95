"""Verdicts that commands leave in a run folder, for the report and for the gate.

They lie in verdicts/, one file for each command that judges, beside the results: those are sealed, while a
run can be judged again at any time by other rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from adverse.study.store.durable import write_file
from adverse.study.store.folder import RunFolder
from adverse.verdicts import Verdict, from_json, to_json


def read_verdicts(folder: RunFolder) -> dict[str, list[Verdict]]:
    """Return all verdicts of a run by the name of their file, in the order of names."""
    return {
        path.stem: from_json(path.read_text("utf-8"), where=str(path))
        for path in sorted(folder.verdicts.glob("*.json"))
    }


def write_verdicts(folder: RunFolder, name: str, verdicts: Sequence[Verdict]) -> Path:
    """Write the verdicts of one command, in place of those it left before."""
    folder.verdicts.mkdir(exist_ok=True)
    path = folder.verdicts / f"{name}.json"
    write_file(path, to_json(verdicts).encode())
    return path
