"""Data sets that carry their own hashes: a `SHA256SUMS` file in a folder above the files it lists.

A file that is not what its data set says is damaged or was replaced, however well it decodes; nothing is
run on such data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from adverse.content import MISSING
from adverse.data.files import read_bytes
from adverse.errors import DataError

NAME = "SHA256SUMS"
LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")
"""A line as `sha256sum` writes it."""
LONGEST_BYTES = 256 * 2**20


class Listed(NamedTuple):
    """The hash that a file should have, and the list that says so."""

    sha256: str
    by: Path


def mismatches(hashes: Mapping[Path, str]) -> Iterator[DataError]:
    """Yield an error for each file whose hash is not what the nearest `SHA256SUMS` above it says."""
    for path, wanted in listed(hashes).items():
        if hashes[path] not in (wanted.sha256, MISSING):  # what is missing costs its frame, as elsewhere
            yield _mismatch(path, hashes[path], wanted)


def listed(paths: Iterable[Path]) -> dict[Path, Listed]:
    """Return what the nearest list above each file says of it; nothing of files that none has."""
    lists: dict[Path, dict[Path, str]] = {}
    wanted: dict[Path, Listed] = {}
    for path in paths:
        whole = path.resolve()
        for folder in whole.parents:
            if folder not in lists:
                lists[folder] = _read(folder / NAME)
            if whole in lists[folder]:
                wanted[path] = Listed(lists[folder][whole], folder / NAME)
                break
    return wanted


def _read(path: Path) -> dict[Path, str]:
    """Return the hashes of a list by file; nothing where there is no list."""
    if not path.exists():
        return {}
    hashes = {}
    text = read_bytes(path, what="checksum", limit=LONGEST_BYTES).decode(errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        found = LINE.fullmatch(line)
        if line.strip() and found is None:
            raise DataError(
                "a list of hashes cannot be read",
                where=f"{path}, line {number}",
                got=line[:100],
                wanted="a SHA-256 and a file name, as sha256sum writes them",
                fix=f"Write {NAME} again: sha256sum FILES > {NAME}, or remove it.",
            )
        if found is not None:
            hashes[(path.parent / found[2]).resolve()] = found[1].lower()
    return hashes


def _mismatch(path: Path, sha256: str, wanted: Listed) -> DataError:
    return DataError(
        "a file is not what its data set says",
        where=str(path),
        got=f"sha256 {sha256}",
        wanted=f"sha256 {wanted.sha256}, by {wanted.by}",
        fix=f"Get the file again, or bring {NAME} up to date if the change is meant.",
    )
