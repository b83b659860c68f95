"""The answers on disk: one line for each thing that happened, flushed before anybody is told that it did.

A last line that a crash left unfinished was never acknowledged and does not count; damage anywhere else is an
error. Erasing a participant writes the file anew without them. Nothing in it tells who somebody is: no
address, no browser, no name, no time of day.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from adverse.errors import DataError, StoreError
from adverse.study.store.durable import append_line, storage_errors, write_file
from adverse.study.store.lines import checked, read_checked

FILE = "answers.jsonl"
Record = Mapping[str, Any]


class Records:
    """The lines of a study's folder; only who holds the folder's lock may add to them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def read(self) -> list[Record]:
        """Return all that happened, in order."""
        return self._read()[0]

    def mend(self) -> list[Record]:
        """Return all that happened, having cut off a last line that was never finished."""
        found, torn = self._read()
        if torn:
            self.replace(found)
        return found

    def add(self, record: Record) -> None:
        """Write a line and wait until it is on the disk; where that fails, nothing of it stays behind."""
        before = self.path.stat().st_size if self.path.exists() else 0
        try:
            append_line(self.path, _line(record))
        except BaseException:
            with storage_errors(self.path):
                os.truncate(self.path, before)  # else the next line would be added to half of this one
            raise

    def replace(self, records: Iterable[Record]) -> None:
        """Write the file anew."""
        write_file(self.path, b"".join(map(_line, records)))

    def _read(self) -> tuple[list[Record], bool]:
        try:
            with storage_errors(self.path):
                bodies, torn = read_checked(self.path, "file of answers")
        except StoreError as error:
            fix = "Restore the file from a copy."
            raise StoreError(error.what, where=error.where, got=error.got, fix=fix) from error
        return [json.loads(body) for body in bodies], torn


def _line(record: Record) -> bytes:
    return checked(json.dumps(record, sort_keys=True, allow_nan=False))


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
