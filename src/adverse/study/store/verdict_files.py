"""Verdicts that commands leave in a run folder, for its report.

They lie in verdicts/, one file for each command that judges, sealed with the state of the run that it judged.
The gate does not read them: it works them out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from adverse.study.store.read import Store
from adverse.study.store.seals import broken_seal, read_seals
from adverse.verdicts import Verdict, from_json, to_json


def read_verdicts(store: Store) -> dict[str, list[Verdict]]:
    """Return all verdicts on a run by the name of their file, in the order of names; each must be sealed."""
    seals = read_seals(store.folder)
    found = {}
    for path in sorted(store.folder.verdicts.glob("*.json")):
        name = f"{path.parent.name}/{path.name}"
        broken = broken_seal(store.folder, name, seals.get(name), store.state)
        if broken is not None:
            raise broken
        found[path.stem] = from_json(path.read_text("utf-8"), where=str(path))
    return found


def write_verdicts(store: Store, name: str, verdicts: Sequence[Verdict]) -> Path:
    """Write the verdicts of one command, in place of those it left before."""
    (path,) = store.write({f"verdicts/{name}.json": to_json(verdicts).encode()})
    return path
