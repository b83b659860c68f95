"""Folders that are ours: the mark that says so, and deleting in them what we wrote and nothing else.

The mark is the first file written into a new folder. Without it a folder is somebody's, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from adverse.errors import StoreError
from adverse.study.store.durable import storage_errors, write_file

MARK = ".adverse"
PARTIAL = re.compile(r"\..+\.\d+\.partial")
"""What a write that was cut short leaves behind (`durable.write_file`)."""


def claim(folder: Path, kind: str, *, besides: str | None = None) -> None:
    """Make a folder ours, or raise where it holds something else; nothing else is written into it first.

    `besides` is the one thing that an unmarked folder may hold.
    """
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"the {kind} is a file", where=str(folder), fix="Give another folder (--out).")
    if is_marked(folder, kind):
        return
    if folder.is_dir() and any(path.name != besides for path in folder.iterdir()):
        raise StoreError(
            f"the folder holds something that is not a {kind}",
            where=str(folder),
            got=f"other files, and no {MARK} file as adverse writes it",
            fix="Give an empty or a new folder (--out).",
        )
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / MARK, _content(kind))


def is_marked(folder: Path, kind: str) -> bool:
    """Tell whether we made a folder, for this kind of content."""
    path = folder / MARK
    try:
        return not path.is_symlink() and path.read_bytes() == _content(kind)
    except OSError:
        return False


def delete_ours(folder: Path, kind: str, files: Mapping[str, str]) -> None:
    """Delete the files we wrote: by sub-folder (`.`: the folder itself), those whose whole name matches.

    Other files stay, and so do folders that still hold some. Nothing is followed: where one of the folders
    is a symbolic link, nothing at all is deleted.
    """
    if not is_marked(folder, kind):
        raise StoreError(
            f"the folder is not marked as a {kind} of ours, so nothing in it is deleted",
            where=str(folder),
            got=f"no {MARK} file as adverse writes it",
            fix="Give an empty or a new folder (--out).",
        )
    for place in (folder, *(folder / name for name in files)):
        if place.is_symlink():
            raise StoreError(
                "nothing is deleted through a symbolic link",
                where=str(place),
                got=f"a link to {place.resolve()}",
                fix="Name the folder itself with --out, or another one.",
            )
    with storage_errors(folder):
        for name, pattern in files.items():
            place = folder / name
            for path in sorted(place.iterdir()) if place.is_dir() else ():
                known = re.fullmatch(pattern, path.name) or PARTIAL.fullmatch(path.name)
                if known and path.is_file() and not path.is_symlink():
                    path.unlink()
        for name in sorted(files, key=len, reverse=True):
            place = folder / name
            if place != folder and place.is_dir() and not any(place.iterdir()):
                place.rmdir()


def _content(kind: str) -> bytes:
    return (
        f"This folder is a {kind} of adverse, 5d1c0f6e-7b0b-4c39-9f0a-3e6f1f5c2a84. While this file is here, "
        "--fresh deletes what adverse wrote into the folder.\n"
    ).encode()
