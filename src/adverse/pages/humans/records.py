"""The answers on disk: one line for each thing that happened, flushed before anybody is told that it did.

A last line that a crash left unfinished was never acknowledged and does not count; damage anywhere else is an
error. Erasing a participant writes the file anew without them. Nothing in it tells who somebody is: no
address, no browser, no name, no time of day.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from adverse.errors import DataError, StoreError
from adverse.study.store.durable import append_line, storage_errors, write_file
from adverse.study.store.lines import body_of, checked_line

FILE = "answers.jsonl"
Record = Mapping[str, Any]


class Records:
    """The lines of a study's folder; only who holds the folder's lock may add to them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def read(self) -> list[Record]:
        """Return all that happened, in order."""
        with storage_errors(self.path):
            raw = self.path.read_bytes() if self.path.exists() else b""
        lines = raw.splitlines(keepends=True)
        found = []
        for number, line in enumerate(lines, start=1):
            body = body_of(line)
            if body is not None:
                found.append(json.loads(body))
            elif number < len(lines):
                raise StoreError(
                    "the answers were changed or are damaged",
                    where=f"{self.path}, line {number}",
                    got="a line that does not match its own check",
                    fix="Restore the file from a copy.",
                )
        return found

    def mend(self) -> list[Record]:
        """Return all that happened, having cut off a last line that was never finished."""
        found = self.read()
        whole = b"".join(map(_line, found))
        if self.path.exists() and self.path.stat().st_size != len(whole):
            write_file(self.path, whole)
        return found

    def add(self, record: Record) -> None:
        """Write a line and wait until it is on the disk."""
        append_line(self.path, _line(record))

    def replace(self, records: Iterable[Record]) -> None:
        """Write the file anew."""
        write_file(self.path, b"".join(map(_line, records)))


def _line(record: Record) -> bytes:
    return checked_line(json.dumps(record, sort_keys=True, allow_nan=False))


def without(records: Records, participant: str) -> list[Record]:
    """Return all that happened but for one participant, or raise DataError where there is no such one."""
    found = records.read()
    kept = [record for record in found if record["participant"] != participant]
    if len(kept) == len(found):
        raise DataError(
            "there is no such participant",
            where=str(records.path),
            got=repr(participant[:40]),
            fix="Give the number that their page showed; it stands in the export, too.",
        )
    return kept
