"""Which folder holds the images of a COCO file, where several hold files of the same names.

Splits often number their images alike. A folder that is named as another file goes last, one with the file's
own word, `val` of `instances_val.json`, first; then what fits: every listed image, of the listed size, and no
other. What fits equally is not chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from adverse.data.coco_file import open_arrays
from adverse.data.images import DEFAULT_POLICY, SUFFIXES, ImageFile
from adverse.errors import AdverseError, DataError

MEASURED = 20
"""Images whose size is compared with the listed one."""
SAME_WORD = {"valid": "val", "validation": "val", "training": "train", "testing": "test"}


class _Image(msgspec.Struct):
    file_name: str
    width: int | None = None
    height: int | None = None


def image_folder(root: Path, file: Path, first: str) -> str | None:
    """Return the folder below root, at most two deep, with the images of a COCO file, `first` among them.

    None if no folder has it; DataError if several fit equally well.
    """
    found = {
        folder.resolve(): folder
        for pattern in ("*/*", "*", ".")
        for folder in (sorted(root.glob(pattern)) if pattern != "." else [root])
        if (folder / first).is_file()
    }
    folders = sorted(found.values())
    if len(folders) > 1:
        folders = _fitting(folders, root, file)
    names = [folder.relative_to(root).as_posix() for folder in folders]
    if len(names) > 1:
        relative = file.relative_to(root).as_posix()
        raise DataError(
            "several folders fit an annotation file equally well",
            where=str(file),
            got=f"images named as it lists them, such as {first!r}, in {', '.join(names)}",
            wanted="one folder with its images",
            fix="Name it: "
            + " or ".join(f"--format coco -o annotations={relative} -o images={name}" for name in names)
            + "; in a study annotations: and images:.",
        )
    return names[0] if names else None


def _fitting(folders: Sequence[Path], root: Path, file: Path) -> list[Path]:
    """Return the folders that fit best, by what tells them apart first."""
    written = set(re.split(r"[^a-z0-9]+", file.stem.lower()))
    meant = {_word(word) for word in written}
    listed = _listed(file)
    names = {Path(image.file_name) for image in listed}

    def parts(folder: Path) -> list[str]:
        return [part.lower() for part in folder.relative_to(root).parts]

    def of_another(folder: Path) -> bool:
        """A folder belongs to the JSON file of its name, as the masks of a panoptic one do."""
        own = folder.with_name(folder.name + ".json")
        return own.is_file() and own.resolve() != file.resolve()

    tests: list[Callable[[Path], bool]] = [
        lambda folder: not of_another(folder),
        lambda folder: bool(written & set(parts(folder))),
        lambda folder: bool(meant & {_word(part) for part in parts(folder)}),
        lambda folder: all((folder / name).is_file() for name in names),
        lambda folder: _sizes_fit(folder, listed),
        lambda folder: _images_in(folder) == names,
    ]
    left = list(folders)
    for fits in tests:
        left = [folder for folder in left if fits(folder)] or left
        if len(left) == 1:
            break
    return left


def _word(word: str) -> str:
    """Return what a part of a name means for the split: val2017 and validation are val."""
    plain = word.rstrip("0123456789")
    return SAME_WORD.get(plain, plain) or word


def _listed(file: Path) -> list[_Image]:
    try:
        blocks = open_arrays(file).blocks("images", msgspec.json.Decoder(list[_Image]))
        return [
            image
            for _, entries, values in blocks
            for image in (msgspec.convert(values, list[_Image]) if entries is None else entries)
        ]
    except (AdverseError, msgspec.MsgspecError):  # said when the file is read
        return []


def _sizes_fit(folder: Path, listed: Sequence[_Image]) -> bool:
    try:
        return all(
            ImageFile(folder / image.file_name, DEFAULT_POLICY, None).measure() == (image.width, image.height)
            for image in listed[:: max(len(listed) // MEASURED, 1)]
            if image.width is not None and image.height is not None
        )
    except AdverseError:
        return False


def _images_in(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES}
