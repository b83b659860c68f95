"""What finished units rest on besides their keys: the files that were read on the way, and the environment.

Which files a SUT reads by itself is known only when it has run, so they are no part of the key of a cell;
each unit is kept with their hashes instead. A unit that rests on a file which is another one now is not done:
`plan` and `run` both ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from adverse.content import WRITTEN, content_hashes, what_happened
from adverse.mutations.settings import BASELINE
from adverse.store.journal import NamedCell, RunEntry, RunJournal
from adverse.study.environment import environment_id
from adverse.study.job import UnitRecords

MUTATIONS = "mutations"
PLUGINS = "plug-ins"
NAMED = 3
"""Files that are named in one line."""
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
            known = self.files.setdefault(owner, {})
            written = {path for path in hashes if known.get(path, "").startswith(WRITTEN)}
            known.update({path: sha256 for path, sha256 in hashes.items() if path not in written})
        return new

    def knows(self, records: UnitRecords) -> bool:
        """Return whether the environment of a unit is known, and make it so."""
        name = environment_id(records.environment)
        known = name in self.environments
        self.environments[name] = records.environment
        return known

    def other_files(self, files: Owners) -> dict[Path, str]:
        """Return the files that units before this one have read with another content.

        Not those that their readers write themselves: `written_warnings` speaks of them.
        """
        return {
            Path(path): sha256
            for owner, hashes in files.items()
            for path, sha256 in hashes.items()
            for before in [self.files.get(owner, {}).get(path, sha256)]
            if sha256 != before and not before.startswith(WRITTEN) and not sha256.startswith(WRITTEN)
        }

    def as_left(self) -> dict[str, dict[str, str]]:
        """Return the files in one order however the work was cut, those that were written as they are now."""
        paths = {path for some in self.files.values() for path in some if some[path].startswith(WRITTEN)}
        now = content_hashes(map(Path, paths))
        return {
            owner: {path: WRITTEN + now[Path(path)] if path in paths else some[path] for path in sorted(some)}
            for owner, some in sorted(self.files.items())
        }


def written_warnings(files: Owners) -> list[str]:
    """Say which files are read and written by the same code, so that answers may depend on earlier ones."""
    return [
        f"{owner} reads and writes {', '.join(some[:NAMED])}{' and more' if len(some) > NAMED else ''}: its "
        "results may depend on what was in there and on the order of the work"
        for owner, hashes in files.items()
        if (some := sorted(path for path, sha256 in hashes.items() if sha256.startswith(WRITTEN)))
    ]


def forget_changed(journal: RunJournal, left: Owners) -> list[str]:
    """Drop the finished cells that rest on files which are not what they were; say which files, and whose.

    Of files that their readers write themselves, one of the states that they were left in is what they were;
    `left` has those of the end of the last run.
    """
    wanted: dict[tuple[str, str], set[str]] = {}
    for files in (*(entry.files for entry in journal.entries), _written(left)):
        for owner, hashes in files.items():
            for path, sha256 in hashes.items():
                wanted.setdefault((owner, path), set()).add(sha256)
    now = {str(path): sha256 for path, sha256 in content_hashes({Path(path) for _, path in wanted}).items()}
    writes = {place for place, found in wanted.items() if any(sha256.startswith(WRITTEN) for sha256 in found)}
    others = {
        place
        for place in writes
        if now[place[1]] not in {sha256.removeprefix(WRITTEN) for sha256 in wanted[place]}
    }
    changed: dict[tuple[str, str], None] = {}
    entries: list[RunEntry] = []
    for entry in journal.entries:
        touched = {
            owner: [
                path
                for path, sha256 in hashes.items()
                if ((owner, path) in others if (owner, path) in writes else now[path] != sha256)
            ]
            for owner, hashes in entry.files.items()
        }
        changed |= {(owner, path): None for owner, some in touched.items() for path in some}
        entries.append(_without(entry, {owner for owner, some in touched.items() if some}))
    if changed:
        journal.replace([entry for entry in entries if entry.cells or entry.unfinished])
    return [f"{path}, read by {owner}, {what_happened(now[path])}" for owner, path in sorted(changed)]


def _written(files: Owners) -> Owners:
    return {
        owner: {path: sha256 for path, sha256 in hashes.items() if sha256.startswith(WRITTEN)}
        for owner, hashes in files.items()
    }


def environments_in_use(entries: Iterable[RunEntry], basis: Basis) -> dict[str, Mapping[str, str]]:
    """Return the environments that the results of some units come from."""
    names = dict.fromkeys(entry.environment for entry in entries)
    return {name: basis.environments.get(name, {}) for name in names}


def _without(entry: RunEntry, owners: set[str]) -> RunEntry:
    """Return an entry without the cells that rest on the files of some owners."""
    if not owners:
        return entry

    def remaining(cells: Sequence[NamedCell]) -> tuple[NamedCell, ...]:
        return tuple(
            (key, setting, sut)
            for key, setting, sut in cells
            if PLUGINS not in owners
            and sut_owner(sut) not in owners
            and not (MUTATIONS in owners and setting != BASELINE)
        )

    return replace(
        entry,
        cells=remaining(entry.cells),
        unfinished=remaining(entry.unfinished),
        files={owner: hashes for owner, hashes in entry.files.items() if owner not in owners},
    )
