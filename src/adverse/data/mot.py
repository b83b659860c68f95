"""The `mot` format: sequences of the MOT Challenge (MOT15, MOT16, MOT17, MOT20) as they are unpacked.

root/MOT17-02/img1/000001.jpg     images, counted from 1
root/MOT17-02/gt/gt.txt           objects, one on each line          (the train sets have it)
root/MOT17-02/seqinfo.ini         frame rate, length, size           (optional)

`root` is a folder of sequences, such as train, or one sequence. Each sequence is a log.
"""

from __future__ import annotations

import configparser
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adverse.data import subsets
from adverse.data.files import absent, inside, read_text
from adverse.data.images import DEFAULT_POLICY, SUFFIXES, ImageFile, ImagePolicy, Size
from adverse.data.layout import by_stem, natural
from adverse.data.mot_file import CLASSES, NEUTRAL, NEUTRAL_2020, read_mot
from adverse.data.truth import AnnotatedObject, Truths, check_class_map, renamed
from adverse.errors import DataError
from adverse.plugins import Fraction, dataset
from adverse.types import Dataset, Frame, Log, Split, Truth

IMAGES, TRUTH, INFO = "img1", "gt/gt.txt", "seqinfo.ini"
DETECTORS = re.compile(r"-(DPM|FRCNN|SDP)$")
"""MOT17 has every sequence three times, once for each detector whose results lie beside it."""
REPEATED = "sequences that are there for another detector as well, left out"
UNLABELLED = "sequences without gt.txt, left out: others have one"


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise a sequence, or a folder of sequences."""
    if not path.is_dir():
        return None
    return {"root": str(path)} if _sequences(path) else None


@dataset(looks_like=looks_like)
def mot(
    root: Path,
    *,
    split: dict[Split, str] | None = None,
    class_map: dict[str, str] = {},  # noqa: B006 - never written to
    least_visible: Fraction = 0.0,
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read sequences of the MOT Challenge; each is a log.

    `split` names the folder below root of each split. What the challenge does not evaluate is ignored: rows
    with a flag of 0, and classes that are too like a pedestrian. `least_visible` ignores what can be seen to
    a smaller share as well. Of sequences that are there for several detectors one is read.
    """
    check_class_map(class_map, CLASSES.values())
    notes: Counter[str] = Counter()
    chosen: list[tuple[Split, str, _Sequence]] = []
    for kind, name, prefix in subsets.named(split):
        base = root if name is None else inside(root, name, where=f"data.split.{kind}")
        found = _sequences(base) if base.is_dir() else []
        if not found:
            raise _no_sequences(base, "no such folder" if not base.is_dir() else f"no folder with {IMAGES}/")
        once = {DETECTORS.sub("", folder.name): folder for folder in reversed(found)}
        notes[REPEATED] += len(found) - len(once)
        kept = [folder for folder in found if folder in once.values()]
        chosen += [(kind, prefix, _read(folder, base, least_visible)) for folder in kept]
    labelled = [entry for entry in chosen if entry[2].objects is not None]
    notes[UNLABELLED] += len(chosen) - len(labelled) if labelled else 0
    notes["no labels"] += not labelled
    names = {thing.label for *_, seen in labelled for rows in (seen.objects or {}).values() for thing in rows}
    ordered = [renamed(name, class_map) for name in CLASSES.values() if name in names]
    categories = tuple(dict.fromkeys(ordered))
    truths = Truths(categories, notes)
    logs = [
        Log(prefix + sequence.name, _frames(sequence, prefix, class_map, truths, policy), kind)
        for kind, prefix, sequence in labelled or chosen
    ]
    files = tuple(path for *_, sequence in labelled or chosen for path in sequence.files)
    return Dataset(root.resolve().name, categories, tuple(logs), files, dict(+notes))


@dataclass(frozen=True)
class _Sequence:
    """A sequence: its images by number, counted from 1, what is annotated, and what seqinfo.ini says."""

    name: str
    folder: Path
    images: dict[int, Path]
    length: int
    objects: dict[int, list[AnnotatedObject]] | None
    rate_hz: float | None
    size: Size | None
    suffix: str
    files: tuple[Path, ...]


def _sequences(root: Path) -> list[Path]:
    """Return the folders of sequences: root itself, or those in it."""
    found = [root] if _is_sequence(root) else [path for path in root.iterdir() if _is_sequence(path)]
    return sorted(found, key=lambda path: natural(path.name))


def _is_sequence(path: Path) -> bool:
    beside = (INFO, TRUTH, "det/det.txt")
    return (path / IMAGES).is_dir() and any((path / name).is_file() for name in beside)


def _read(folder: Path, root: Path, least_visible: float) -> _Sequence:
    known = _info(folder / INFO) if (folder / INFO).is_file() else _Info({}, folder / INFO)
    place = folder / known.text("imdir", IMAGES)
    images: dict[int, Path] = {}
    for stem, path in by_stem(place, root, SUFFIXES).items():
        if not stem.isdecimal() or int(stem) < 1:
            raise DataError(
                "a file's name is not a frame number",
                where=str(path),
                got=repr(stem),
                wanted="a number from 1 on, such as 000001",
                fix="Rename the file, or take it out of the folder.",
            )
        images[int(stem)] = path
    length = known.whole("seqlength") or max(images, default=0)
    width, height = known.whole("imwidth"), known.whole("imheight")
    truth = folder / TRUTH
    objects = None
    if truth.is_file():
        neutral = NEUTRAL_2020 if folder.name.startswith("MOT20") else NEUTRAL
        objects = read_mot(truth, neutral=neutral, least_visible=least_visible)
        if max(objects, default=-1) >= length:
            raise DataError(
                "the annotations are of more frames than the sequence has",
                where=str(truth),
                got=f"frame {max(objects) + 1}",
                wanted=f"1 to {length}",
                fix="Give the annotations of this sequence, or its missing images.",
            )
    return _Sequence(
        folder.name,
        place,
        images,
        length,
        objects,
        known.number("framerate"),
        (width, height) if width and height else None,
        known.text("imext", ".jpg"),
        tuple(path for path in (truth, folder / INFO) if path.is_file()),
    )


def _frames(
    sequence: _Sequence, prefix: str, class_map: dict[str, str], truths: Truths, policy: ImagePolicy
) -> tuple[Frame, ...]:
    frames = []
    for index in range(sequence.length):
        stem = f"{index + 1:06}"
        path = sequence.images.get(index + 1, sequence.folder / f"{stem}{sequence.suffix}")
        image = ImageFile(path, policy, sequence.size)
        truth, fault = Truth.none(), None
        if sequence.objects is not None:
            truth, fault = truths.of(_named(sequence.objects.get(index, []), class_map), image)
        missing = absent(path, "image")
        frames.append(
            Frame(
                id=f"{prefix}{sequence.name}/{stem}",
                log_id=prefix + sequence.name,
                index=index,
                image=image,
                truth=truth,
                image_id=f"{sequence.name}/{stem}",
                time_s=index / sequence.rate_hz if sequence.rate_hz else None,
                fault=fault if missing is None else str(missing),
            )
        )
    return tuple(frames)


def _named(objects: Sequence[AnnotatedObject], class_map: dict[str, str]) -> list[AnnotatedObject]:
    return [replace(thing, label=renamed(thing.label, class_map)) for thing in objects]


class _Info:
    """What a seqinfo.ini says; a value that it cannot have is an error that names it."""

    def __init__(self, values: dict[str, str], path: Path) -> None:
        self.values, self.path = values, path

    def text(self, name: str, default: str) -> str:
        value = self.values.get(name, default)
        if not value or "/" in value or value in (".", ".."):
            raise self._wrong(name, "a name, without folders")
        return value

    def number(self, name: str) -> float | None:
        if name not in self.values:
            return None
        try:
            value = float(self.values[name])
        except ValueError:
            value = 0.0
        if not 0 < value < MOST:
            raise self._wrong(name, f"a number above 0, below {MOST:g}")
        return value

    def whole(self, name: str) -> int | None:
        value = self.number(name)
        if value is not None and value % 1:
            raise self._wrong(name, "a whole number")
        return None if value is None else int(value)

    def _wrong(self, name: str, wanted: str) -> DataError:
        return DataError(
            "the sequence's information is wrong",
            where=f"{self.path}, {name}",
            got=repr(self.values[name][:40]),
            wanted=wanted,
            fix="Correct the value; docs/data-formats.md describes the file.",
        )


MOST = 1e6
"""Frames a second, frames, or pixels, that no sequence has."""


def _info(path: Path) -> _Info:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    try:
        parser.read_string(read_text(path, what="sequence"))
        values = dict(parser["Sequence"])
    except (configparser.Error, KeyError) as error:
        raise DataError(
            "the sequence's information cannot be read",
            where=str(path),
            got=" ".join(str(error).split())[:80],
            wanted="[Sequence], and below it lines such as frameRate=30",
            fix="Correct the file, or take it away: then frames have no times.",
        ) from error
    return _Info(values, path)


def _no_sequences(root: Path, got: str) -> DataError:
    return DataError(
        "there is no sequence of the MOT Challenge",
        where=str(root),
        got=got,
        wanted=f"folders that hold {IMAGES}/ and {TRUTH} or {INFO}",
        fix="Check root and split in the study's data section.",
    )
