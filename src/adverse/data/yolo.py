"""The `yolo` format: a text file of normalised boxes or polygons for each image, and a data.yaml.

root/
  data.yaml                  names, and where train, val and test are
  images/val/0001.jpg        or val/images/0001.jpg: the last folder called images ...
  labels/val/0001.txt        ... is called labels here; no file: nothing is in the image

A line is `class cx cy width height`, or `class x y x y x y ...` (a polygon, of which the box is taken), in
shares of the image's width and height.

`data.yaml` says what the classes are called and where the images are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from adverse.data import subsets
from adverse.data.files import absent, inside, read_text
from adverse.data.images import DEFAULT_POLICY, SUFFIXES, ImageFile, ImagePolicy
from adverse.data.layout import natural
from adverse.data.truth import AnnotatedObject, Box, Truths, check_class_map, renamed
from adverse.errors import AdverseError, DataError, StudyError, suggestion
from adverse.plugins import dataset
from adverse.types import Dataset, Frame, Log, Split

ENTRIES = ("train", "val", "test")
MAX_DEPTH = 50
"""Levels of nesting in data.yaml; far above any real one."""


def _by_number(value: Any) -> Any:
    return dict(enumerate(value)) if isinstance(value, list) else value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else ([] if value is None else value)


Places = Annotated[list[str], BeforeValidator(_as_list)]


class YoloFile(BaseModel):
    """What we read of the file; it may say more, to others."""

    names: Annotated[dict[int, str], BeforeValidator(_by_number), Field(min_length=1)]
    path: str | None = None
    train: Places = []
    val: Places = []
    test: Places = []
    nc: int | None = None
    kpt_shape: list[int] | None = None

    def entry(self, key: str) -> list[str]:
        """Return the folders or lists of train, val or test."""
        places: list[str] = getattr(self, key)
        return places


def read_yolo_yaml(path: Path) -> YoloFile:
    """Read and check the file; errors name its line or field."""
    content = read_text(path, what="YAML")
    try:
        _refuse_bombs(path, content)
        _refuse_twice(path, yaml.compose(content, yaml.SafeLoader))
        data = yaml.safe_load(content)
        file = YoloFile.model_validate(data, strict=True)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _wrong_yaml(f"{path}, line {line}", error.problem or "no YAML", "valid YAML") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _wrong_yaml(str(path), " ".join(str(error).split())[:120], "valid YAML") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "(top)"
        missing = first["type"] == "missing"
        got = "nothing" if missing else repr(first["input"])[:80]
        raise _wrong_yaml(f"{path}, field {field}", got, str(first["msg"])) from error
    if not any(file.entry(key) for key in ENTRIES):
        raise _wrong_yaml(str(path), "no train, val or test", "where the images are, such as val: images/val")
    if file.nc is not None and file.nc != len(file.names):
        raise _wrong_yaml(f"{path}, field nc", f"{file.nc} for {len(file.names)} names", "as many as names")
    if len(set(file.names.values())) < len(file.names):
        raise _wrong_yaml(f"{path}, field names", "one name twice", "a name of its own for each class")
    return file


def _refuse_bombs(path: Path, content: str) -> None:
    """Refuse values that stand for others, as a few of them can stand for millions, and endless nesting."""
    depth = 0
    for event in yaml.parse(content, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _wrong_yaml(str(path), f"more than {MAX_DEPTH} levels of nesting", "plain values")
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise _wrong_yaml(f"{path}, line {line}", f"the alias *{event.anchor}", "plain values")


def _refuse_twice(path: Path, node: yaml.Node | None) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, _ in node.value:
        if str(key.value) in seen:
            where = f"{path}, line {key.start_mark.line + 1}"
            raise _wrong_yaml(where, f"{key.value} again", "each key once")
        seen.add(str(key.value))


def _wrong_yaml(where: str, got: str, wanted: str) -> DataError:
    return DataError(
        "the YAML file of the data set is wrong",
        where=where,
        got=got,
        wanted=wanted,
        fix="Correct the file; docs/data-formats.md describes it.",
    )


FILE = "data.yaml"
BACKGROUND = "images without a label file"
TWICE = "label lines that stand twice"
UNUSED = "label files without an image"
_SLACK = 0.01  # of the image's size: tools round, and clip a little beyond the border


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise a folder with a YAML file that names classes and a split, or that file itself."""
    files = [path] if path.is_file() else sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
    for file in files:
        if file.suffix in (".yaml", ".yml"):
            try:
                read_yolo_yaml(file)
            except AdverseError:
                continue
            return {"root": str(file.parent), "file": file.name}
    return None


@dataset(looks_like=looks_like)
def yolo(
    root: Path,
    *,
    file: str = FILE,
    split: dict[Split, str] | None = None,
    class_map: dict[str, str] = {},  # noqa: B006 - never written to
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read images with YOLO's label files; every image is its own log.

    `split` names the entries of the YAML file: {validation: val, test: test}; without it all of them are the
    test split. A frame's id is its path below root without the ending. `class_map` renames classes.
    """
    path = inside(root, file, where="data.file")
    declared = read_yolo_yaml(path)
    check_class_map(class_map, declared.names.values())
    reading = _Reading(root, path, declared, policy, Counter())
    chosen: list[tuple[Split, str, Path]] = []
    for kind, name, prefix in subsets.named(split):
        chosen += [(kind, prefix, image) for image in reading.images(kind, name)]
    if not chosen:
        raise DataError(
            "the data set has no images",
            where=str(path),
            got=", ".join(f"{key}: {value}" for key in ENTRIES if (value := getattr(declared, key))),
            wanted="folders with images, or lists of them",
            fix="Check root and split in the study's data section, and the folders in the file.",
        )
    categories = tuple(dict.fromkeys(renamed(name, class_map) for name in declared.names.values()))
    truths = Truths(categories, reading.notes)
    logs = []
    used: list[Path] = []
    for kind, prefix, image_path in chosen:
        image = reading.measured(image_path)
        label_file = reading.label_file(image_path)
        missing = absent(image_path, "image")
        objects: list[AnnotatedObject] = []
        if not label_file.exists():
            reading.notes[BACKGROUND] += 1
        elif missing is None:
            used.append(label_file)
            objects = reading.objects(label_file, image, class_map)
        truth, fault = truths.of(objects, image)
        stem = image_path.relative_to(root).with_suffix("").as_posix()
        frame_id = prefix + stem
        fault = fault if missing is None else str(missing)
        frame = Frame(frame_id, frame_id, 0, image, truth, stem, fault=fault)
        logs.append(Log(frame_id, (frame,), kind))
    folders = {label.parent for label in used}
    beside = {label for folder in folders for label in folder.glob("*.txt")}
    reading.notes[UNUSED] += len(beside - {reading.label_file(image) for _, _, image in chosen})
    return Dataset(root.resolve().name, categories, tuple(logs), (path, *used), dict(+reading.notes))


@dataclass(frozen=True)
class _Reading:
    """What holds for all images of one data set."""

    root: Path
    file: Path
    declared: YoloFile
    policy: ImagePolicy
    notes: Counter[str]

    def images(self, kind: Split, name: str | None) -> list[Path]:
        """Return the images of one entry of the YAML file, or of all of them."""
        if name is not None and (name not in ENTRIES or not self.declared.entry(name)):
            present = [key for key in ENTRIES if self.declared.entry(key)]
            raise StudyError(
                f"{self.file.name} has no {name}",
                where=f"data.split.{kind}",
                got=repr(name),
                fix=suggestion(name, present),
            )
        names = ENTRIES if name is None else (name,)
        places = [(key, place) for key in names for place in self.declared.entry(key)]
        paths = {path for key, place in places for path in self._images_at(key, place)}
        by_label: dict[Path, Path] = {}
        for path in sorted(paths):
            other = by_label.setdefault(self.label_file(path), path)
            if other != path:
                raise DataError(
                    "two images have one label file",
                    where=str(self.label_file(path)),
                    got=f"{other} and {path}",
                    wanted="one image for each label file",
                    fix="Rename or remove one of the images.",
                )
        return sorted(paths, key=lambda path: natural(path.relative_to(self.root).as_posix()))

    def _images_at(self, key: str, place: str) -> Iterator[Path]:
        where = f"{self.file}, field {key}"
        target = self._place(place, where)
        if target.suffix.lower() == ".txt":
            for number, line in enumerate(read_text(target, what="image list").splitlines(), start=1):
                if line.strip():
                    base = target.parent if line.startswith("./") else self.root
                    full = inside(base, line.strip(), where=f"{target}, line {number}")
                    yield self.root / full.relative_to(self.root)
            return
        if not target.is_dir():
            raise DataError(
                "the image folder does not exist",
                where=where,
                got=str(target),
                wanted="a folder below the data set's, or a .txt with a list of images",
                fix="Correct the entry, or root in the study's data section.",
            )
        for path in sorted(target.rglob("*")):
            if path.suffix.lower() in SUFFIXES and not path.name.startswith("."):
                yield inside(self.root, path.relative_to(self.root).as_posix(), where=f"folder {target}")

    def _place(self, place: str, where: str) -> Path:
        """Find a folder or list that the file names: below `path:`, below root, or `../x` as x."""
        inner = self.declared.path or ""
        tried = [f"{inner}/{place}" if inner and not PurePosixPath(inner).is_absolute() else place, place]
        if place.startswith("../"):  # as one exporter writes them, though the folders are not above the file
            tried = [place.removeprefix("../")]
        for relative in tried:
            path = inside(self.root, relative, where=where)
            if path.exists():
                return path
        return inside(self.root, tried[-1], where=where)

    def measured(self, path: Path) -> ImageFile:
        """Return an image with its size, where that can be read."""
        image = ImageFile(path, self.policy)
        try:
            return ImageFile(path, self.policy, image.measure())
        except AdverseError:
            return image

    def label_file(self, image: Path) -> Path:
        """Return where the labels of an image are: its last folder `images` is `labels`."""
        parts = list(image.relative_to(self.root).parts)
        for at in range(len(parts) - 2, -1, -1):
            if parts[at] == "images":
                parts[at] = "labels"
                break
        return self.root.joinpath(*parts).with_suffix(".txt")

    def objects(self, path: Path, image: ImageFile, class_map: dict[str, str]) -> list[AnnotatedObject]:
        """Read a label file; an image that cannot be measured has a fault, whatever its boxes are."""
        width, height = image.size or (1, 1)
        objects = []
        seen: set[tuple[float, ...]] = set()
        for number, line in enumerate(read_text(path, what="label").splitlines(), start=1):
            where = f"{path}, line {number}"
            values = _numbers(line, where)
            if not values:
                continue
            if values in seen:
                self.notes[TWICE] += 1
                continue
            seen.add(values)
            label = self._label(values[0], where)
            x0, y0, x1, y1 = _box(values[1:], where, keypoints=self.declared.kpt_shape is not None)
            box = (x0 * width, y0 * height, x1 * width, y1 * height)
            objects.append(AnnotatedObject(renamed(label, class_map), box, where))
        return objects

    def _label(self, value: float, where: str) -> str:
        if value not in self.declared.names:
            raise _wrong_line(where, f"class {value:g}", f"a number of names in {self.file.name}")
        return self.declared.names[int(value)]


def _numbers(line: str, where: str) -> tuple[float, ...]:
    values = []
    for word in line.split():
        try:
            values.append(float(word))
        except ValueError:
            values.append(math.nan)
        if not math.isfinite(values[-1]):
            raise _wrong_line(where, repr(word[:40]), "finite numbers separated by blanks")
    return tuple(values)


def _box(values: tuple[float, ...], where: str, *, keypoints: bool) -> Box:
    """Return the box of a line in shares of the image.

    >>> _box((0.5, 0.5, 1.0, 0.5), "", keypoints=False)
    (0.0, 0.25, 1.0, 0.75)
    >>> _box((0.1, 0.2, 0.3, 0.2, 0.2, 0.4), "", keypoints=False)
    (0.1, 0.2, 0.3, 0.4)
    """
    if len(values) != 4 and not keypoints and (len(values) < 6 or len(values) % 2):
        got = f"{len(values)} numbers after the class"
        raise _wrong_line(
            where, got, "4 (centre x, centre y, width, height), or the x y of 3 or more corners"
        )
    places = values[:4] if keypoints else values
    if any(not -_SLACK <= value <= 1 + _SLACK for value in places):
        far = next(value for value in places if not -_SLACK <= value <= 1 + _SLACK)
        raise _wrong_line(where, f"{far:g}", "shares of the image's width and height, 0 to 1")
    if len(places) == 4:
        x, y, width, height = places
        return x - width / 2, y - height / 2, x + width / 2, y + height / 2
    return min(places[::2]), min(places[1::2]), max(places[::2]), max(places[1::2])


def _wrong_line(where: str, got: str, wanted: str) -> DataError:
    return DataError(
        "the label file is wrong",
        where=where,
        got=got,
        wanted=wanted,
        fix="Correct the line; docs/data-formats.md describes it.",
    )
