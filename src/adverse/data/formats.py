"""Calling the reader of a data format, our own or a plug-in's, and guessing which one a folder needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from adverse.errors import AdverseError, DataError, PluginError, one_line
from adverse.plugins import Plugin
from adverse.types import Dataset

LAST = "folder"
"""The format that reads any folder of images: it is the guess only where there is no other."""


TRUTH = "truth.json"
LOOSE = ("video", "class-folders", "yolo")
"""Formats that a folder somewhere around can look like by chance."""
STRONG = ("cityscapes", "kitti", "mot", "nrec", "nuscenes", "voc")
"""Formats whose folders are like no others."""
STEPS_UP, STEPS_DOWN, MOST_FOLDERS, NAMED = 3, 2, 200, 4


class Guess(NamedTuple):
    """A format that a path looks like, and the options to read it with."""

    format: Plugin
    options: Mapping[str, Any]
    elsewhere: str = ""
    """Where the data set was found, in words, if not at the path itself."""


def read_format(plugin: Plugin, options: Mapping[str, Any], *, where: str) -> Dataset:
    """Call the reader of a format; an error of a plug-in names the plug-in."""
    try:
        dataset = plugin.function(**options)
    except AdverseError:
        raise
    except Exception as error:
        raise PluginError(
            f"the reader of the format {plugin.name!r} failed",
            where=where,
            got=one_line(error),
            fix="Fix the function under @dataset, or the data it reads.",
        ) from error
    if not isinstance(dataset, Dataset):
        raise PluginError(
            f"the reader of the format {plugin.name!r} did not return a Dataset",
            where=where,
            got=type(dataset).__name__,
            fix="Return adverse.types.Dataset from the function under @dataset.",
        )
    return dataset


def guess(path: Path, formats: Iterable[Plugin]) -> Guess:
    """Return the format of a folder or file; one that no format or several formats claim is an error."""
    if not path.exists():
        raise DataError(
            "the data path does not exist",
            where=str(path),
            got="no such file or folder",
            fix="Check the path.",
        )
    known = list(formats)
    claims = _claims(path, known)
    special = [claim for claim in claims if claim.format.name != LAST]
    if not special and path.is_dir() and not (path / TRUTH).is_file():
        special = _nearby(path, known)
    special = special or claims
    if len(special) != 1:
        names = ", ".join(claim.format.name for claim in special)
        raise DataError(
            "the data format cannot be determined",
            where=str(path),
            got=f"a layout that fits {names}" if special else "a layout that fits no format",
            wanted="one of the layouts of docs/data-formats.md",
            fix="Name it with --format (adverse list datasets), or give the data set's own folder.",
        )
    return special[0]


def _claims(path: Path, formats: Iterable[Plugin]) -> list[Guess]:
    return [
        Guess(plugin, options)
        for plugin in formats
        if plugin.looks_like is not None and (options := plugin.looks_like(path)) is not None
    ]


def _nearby(path: Path, formats: list[Plugin]) -> list[Guess]:
    """Return the data set that a folder too high or too low belongs to; none where there is none.

    Below, it may be of any format with a layout of its own; above, only of those that no other folder could
    be taken for. Several below are an error that names them.
    """
    own = [plugin for plugin in formats if plugin.name not in (LAST, *LOOSE)]
    strong = [plugin for plugin in formats if plugin.name in STRONG]
    for parent in list(path.resolve().parents)[:STEPS_UP]:
        found = _claims(parent, strong)
        if len(found) == 1:
            return [found[0]._replace(elsewhere=f"{parent}, above the folder that was given")]
    places: dict[str, Guess] = {}
    level = [path]
    for _ in range(STEPS_DOWN):
        level = sorted(child for folder in level for child in _folders(folder))[:MOST_FOLDERS]
        for folder in level:
            if not any(str(folder).startswith(f"{place}/") for place in places):
                places |= {str(folder): claim for claim in _claims(folder, own)}
    if len(places) > 1:
        raise DataError(
            "several data sets lie below the folder",
            where=str(path),
            got=", ".join(sorted(places)[:NAMED]) + (" ..." if len(places) > NAMED else ""),
            fix="Give one of them.",
        )
    return [claim._replace(elsewhere=f"{place}, below the folder given") for place, claim in places.items()]


def _folders(folder: Path) -> list[Path]:
    try:
        return [child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(".")]
    except OSError:
        return []


def guessed_options(plugin: Plugin, path: Path, given: Iterable[str] = ()) -> Mapping[str, Any]:
    """Return the options that a named format would be read with at a path: at least its root.

    Where several readings fit, the `given` options choose; without any it is an error.
    """
    try:
        options = plugin.looks_like(path) if plugin.looks_like is not None and path.exists() else None
    except DataError:
        if not any(True for _ in given):
            raise
        options = None
    if options is not None:
        return options
    return {"root": str(path)} if "root" in plugin.options else {}
