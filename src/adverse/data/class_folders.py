"""The `class-folders` format: each sub-folder is a class, each image in it shows that class.

root/
  <class>/anything.jpg      with several splits: root/<split folder>/<class>/anything.jpg
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from adverse.data import subsets
from adverse.data.files import inside, read_model
from adverse.data.images import DEFAULT_POLICY, SUFFIXES, ImageFile, ImagePolicy
from adverse.errors import DataError
from adverse.plugins import dataset
from adverse.types import Dataset, Frame, Log, Split, Truth

NAMES_FILE = "class_names.json"


@dataset(name="class-folders")
def class_folders(
    root: Path,
    *,
    split: dict[Split, str] | None = None,
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read images for classifiers: the folder an image lies in says what it shows, as in ImageNet.

    Where a folder's name is not the class's (n01440764), class_names.json in root says what it is:
    {"n01440764": "tench"}. `split` names the folder of each split. Every image is its own log.
    """
    names_file = root / NAMES_FILE
    names = read_model(names_file, "class name", dict[str, str]) if names_file.is_file() else {}
    images = [
        (kind, prefix, folder)
        for kind, name, prefix in subsets.named(split)
        for folder in _class_folders(root if name is None else inside(root, name, where=f"data.split.{kind}"))
    ]
    categories = tuple(sorted({names.get(folder.name, folder.name) for _, _, folder in images}))
    logs = []
    for kind, prefix, folder in images:
        category = categories.index(names.get(folder.name, folder.name))
        for path in _images(folder):
            name = f"{prefix}{folder.name}/{path.relative_to(folder).as_posix()}"
            frame = Frame(name, name, 0, ImageFile(path, policy, None), Truth.none(), name, category=category)
            logs.append(Log(name, (frame,), kind))
    if not logs:
        raise DataError(
            "the data set has no images",
            where=str(root),
            wanted="<class>/*.jpg below it",
            fix="Check root and split in the study's data section; docs/data-formats.md shows the layout.",
        )
    empty = Counter(folder.name for _, _, folder in images if not _images(folder))
    notes = {"class folders without images": len(empty)} if empty else {}
    return Dataset(root.resolve().name, categories, tuple(logs), (names_file,) if names else (), notes)


def _class_folders(base: Path) -> list[Path]:
    if not base.is_dir():
        raise DataError(
            "there is no such folder",
            where=str(base),
            wanted="a folder that holds one folder for each class",
            fix="Check root and split in the study's data section.",
        )
    return sorted(path for path in base.iterdir() if path.is_dir() and not path.name.startswith("."))


def _images(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
