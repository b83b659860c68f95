"""Which files of a folder belong to which log: the layout of the `folder` format, without reading them.

A log is a folder with images directly in it or in its `images/`. Beside them may be `depth/`, `right/`,
`labels/`, `instances/` (files named as the images), `poses.csv` and `camera.json`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from adverse.data import depth, maps
from adverse.data.files import inside
from adverse.data.images import SUFFIXES
from adverse.errors import DataError
from adverse.remote_files import scan

IMAGES, DEPTH, RIGHT, LABELS, INSTANCES = "images", "depth", "right", "labels", "instances"
RESERVED = frozenset({IMAGES, DEPTH, RIGHT, LABELS, INSTANCES})
"""Names of folders that belong to the log above them and are never logs themselves."""
MASKS = ("hood.png", "hood-preview.png")
"""Images beside those of a log that show the vehicle's own hood (docs/depth.md); they are no frames."""
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class LogFolder:
    """A folder that is a log, and its images in natural order of their names."""

    root: Path
    folder: Path
    images: tuple[Path, ...]


def log_folders(base: Path, root: Path, listed: Iterable[Path] = ()) -> list[LogFolder]:
    """Find the logs at and below `base`, a folder of `root`; `listed` images count even if missing."""
    images_by_folder: dict[Path, set[Path]] = {}
    for folder in _folders(base, root):
        images = {*files_in(folder, root, SUFFIXES), *files_in(folder / IMAGES, root, SUFFIXES)}
        images -= {folder / name for name in MASKS}
        if images:
            images_by_folder[folder] = images
    for path in (path for path in listed if path.is_relative_to(base)):
        folder = path.parent.parent if path.parent.name == IMAGES and path.parent != base else path.parent
        images_by_folder.setdefault(folder, set()).add(path)
    logs = []
    for folder in sorted(images_by_folder, key=lambda folder: natural(folder.relative_to(base).as_posix())):
        images = images_by_folder[folder]
        _check_names(folder, images)
        logs.append(LogFolder(root, folder, tuple(sorted(images, key=lambda path: natural(path.name)))))
    return logs


def companions(log: LogFolder, kind: str, notes: Counter[str]) -> Mapping[str, Path]:
    """Return the depth, right, label or instance files of a log by image name; count those without one."""
    suffixes = {DEPTH: depth.SUFFIXES, LABELS: maps.SUFFIXES, INSTANCES: maps.SUFFIXES}.get(kind, SUFFIXES)
    folder = log.folder / kind
    stems = {path.stem for path in log.images}
    by_image: dict[str, Path] = {}
    for path in files_in(folder, log.root, suffixes):
        if path.stem in by_image:
            raise _ambiguous(f"two {kind} files belong to one image", by_image[path.stem], path)
        by_image[path.stem] = path
    notes[f"{kind} files without an image"] += len(by_image.keys() - stems)
    if folder.is_dir():
        notes[f"frames without {kind}"] += len(stems - by_image.keys())
    return by_image


def natural(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return a sort key that puts frame2 before frame10.

    >>> sorted(["frame10", "frame2"], key=natural)
    ['frame2', 'frame10']
    """
    parts = (part for part in _DIGITS.split(name) if part)
    return tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts), name


def by_stem(folder: Path, root: Path, suffixes: Iterable[str]) -> dict[str, Path]:
    """Return the files of a folder with these endings by their name without it; each name once."""
    files: dict[str, Path] = {}
    for path in files_in(folder, root, suffixes):
        if path.stem in files:
            raise _ambiguous("two files belong to one frame", files[path.stem], path)
        files[path.stem] = path
    return files


def _folders(folder: Path, root: Path) -> Iterator[Path]:
    yield folder
    for child in sorted(folder.iterdir()):
        if child.is_dir() and child.name not in RESERVED and not child.name.startswith("."):
            if child.is_symlink():
                inside(root, child.relative_to(root).as_posix(), where=f"folder {folder}")
                continue  # it leads to a folder that is visited under its own name
            yield from _folders(child, root)


def files_in(folder: Path, root: Path, suffixes: Iterable[str]) -> Iterator[Path]:
    """Yield the files of a folder with these endings, each inside `root`; none if there is no folder."""
    if not folder.is_dir():
        return
    endings = frozenset(suffixes)
    if folder != root:
        inside(root, folder.relative_to(root).as_posix(), where=f"folder {folder.parent}")
    for name, is_link in scan(folder):
        path = folder / name
        if path.suffix.lower() in endings and not name.startswith("."):
            if is_link or not name.isascii():  # a plain name in a folder that is inside is inside
                inside(root, path.relative_to(root).as_posix(), where=f"folder {folder}")
            yield path


def _check_names(folder: Path, images: Iterable[Path]) -> None:
    by_stem: dict[str, Path] = {}
    for path in sorted(images):
        if path.stem in by_stem:
            raise _ambiguous(
                f"two images of the log {folder.name!r} have the same name", by_stem[path.stem], path
            )
        by_stem[path.stem] = path
    if len({path.parent for path in by_stem.values()}) > 1:
        first, *_, last = sorted(by_stem.values())
        raise _ambiguous(f"the log {folder.name!r} has images both beside and in images/", first, last)


def _ambiguous(what: str, first: Path, second: Path) -> DataError:
    return DataError(
        what,
        where=str(second.parent),
        got=f"{first} and {second}",
        wanted="one file for each frame, all in one place",
        fix="Rename, move or remove one of them.",
    )
