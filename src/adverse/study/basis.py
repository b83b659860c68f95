"""What finished units rest on besides their keys: the files that were read on the way, and the environment.

Which files a SUT reads by itself is known only when it has run, so they are no part of the key of a cell;
each unit is kept with their hashes instead. A unit that rests on a file which is another one now is not done:
`plan` and `run` both ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from adverse.content import content_hashes, what_happened
from adverse.mutations.settings import BASELINE
from adverse.store.journal import RunEntry, RunJournal
from adverse.study.environment import environment_id
from adverse.study.job import UnitRecords

MUTATIONS = "mutations"
PLUGINS = "plug-ins"
Owners = Mapping[str, Mapping[str, str]]
"""The hash of each file by its path, by whose code has read it."""


def sut_owner(name: str) -> str:
    """Return what a SUT is called among those that read files."""
    return f"SUT {name}"


@dataclass
class Basis:
    """What the finished units of a run rest on, all of them together."""

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    environments: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """What is known of every environment, used or not, by its name in the journal."""

    @classmethod
    def of(cls, entries: Iterable[RunEntry], environments: Mapping[str, Mapping[str, str]]) -> Basis:
        """Collect what some finished units rest on."""
        basis = cls(environments=dict(environments))
        for entry in entries:
            basis.add(entry.files)
        return basis

    def add(self, files: Owners) -> bool:
        """Count the files of one more unit, and return whether there was a new one among them."""
        new = any(path not in self.files.get(owner, {}) for owner, some in files.items() for path in some)
        for owner, hashes in files.items():
            self.files.setdefault(owner, {}).update(hashes)
        return new

    def files_in_order(self) -> dict[str, dict[str, str]]:
        """Return the files the same way however the work was cut or ordered."""
        return {owner: dict(sorted(self.files[owner].items())) for owner in sorted(self.files)}

    def knows(self, records: UnitRecords) -> bool:
        """Return whether the environment of a unit is known, and make it so."""
        name = environment_id(records.environment)
        known = name in self.environments
        self.environments[name] = records.environment
        return known

    def other_files(self, files: Owners) -> dict[Path, str]:
        """Return the files that units before this one have read with another content."""
        return {
            Path(path): sha256
            for owner, hashes in files.items()
            for path, sha256 in hashes.items()
            if self.files.get(owner, {}).get(path, sha256) != sha256
        }


def forget_changed(journal: RunJournal) -> list[str]:
    """Drop the finished cells that rest on files which are not what they were; say which files, and whose."""
    paths = {path for entry in journal.entries for hashes in entry.files.values() for path in hashes}
    now = {str(path): sha256 for path, sha256 in content_hashes(map(Path, paths)).items()}
    changed: dict[tuple[str, str], None] = {}
    entries: list[RunEntry] = []
    for entry in journal.entries:
        touched = {
            owner: [path for path, sha256 in hashes.items() if now[path] != sha256]
            for owner, hashes in entry.files.items()
        }
        changed |= {(owner, path): None for owner, some in touched.items() for path in some}
        entries.append(_without(entry, {owner for owner, some in touched.items() if some}))
    if changed:
        journal.replace([entry for entry in entries if entry.cells])
    return [f"{path}, read by {owner}, {what_happened(now[path])}" for owner, path in sorted(changed)]


def environments_in_use(
    journal: RunJournal, keys: Iterable[str], basis: Basis
) -> dict[str, Mapping[str, str]]:
    """Return the environments that the results of some cells come from."""
    entries, wanted = journal.entry_of_cell(), set(keys)
    names = dict.fromkeys(entry.environment for key, entry in entries.items() if key in wanted)
    return {name: basis.environments.get(name, {}) for name in names}


def _without(entry: RunEntry, owners: set[str]) -> RunEntry:
    """Return an entry without the cells that rest on the files of some owners."""
    if not owners:
        return entry
    return replace(
        entry,
        cells=tuple(
            (key, setting, sut)
            for key, setting, sut in entry.cells
            if PLUGINS not in owners
            and sut_owner(sut) not in owners
            and not (MUTATIONS in owners and setting != BASELINE)
        ),
        files={owner: hashes for owner, hashes in entry.files.items() if owner not in owners},
    )
