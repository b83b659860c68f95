"""The `coco` format: a folder of images and a COCO ground truth file; every image is its own log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from adverse.data import subsets
from adverse.data.coco_file import CocoFile, ImageEntry, Key, category_names, open_arrays, read_coco
from adverse.data.coco_pairs import image_folder
from adverse.data.coco_truth import truth_by_image
from adverse.data.files import absent, inside
from adverse.data.images import DEFAULT_POLICY, SUFFIXES, ImageFile, ImagePolicy, Size
from adverse.errors import AdverseError, DataError, StudyError
from adverse.plugins import dataset
from adverse.types import Dataset, Frame, Log, Split

UNLISTED = "image files not in the annotations"


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise a JSON file of COCO's kind and the folder that holds its images; validation files first."""
    root = path.parent if path.is_file() else path
    files = [path] if path.is_file() else [*root.glob("*.json"), *root.glob("annotations/*.json")]
    named = (file for file in files if file.name != "truth.json" and file.suffix == ".json")
    for file in sorted(named, key=lambda file: ("val" not in file.name, file.name)):
        image = _first_image(file)
        if image is not None:
            base = root.parent if path.is_file() and root.name == "annotations" else root
            folder = image_folder(base, file, str(image["file_name"]))
            if folder is not None:
                sizes = {} if "width" in image and "height" in image else {"missing_sizes": "read"}
                relative = file.relative_to(base).as_posix()
                return {"root": str(base), "annotations": relative, "images": folder, **sizes}
    return None


@dataset(looks_like=looks_like)
def coco(
    root: Path,
    *,
    annotations: str,
    images: str = "images",
    split: dict[Split, str] | None = None,
    missing_sizes: Literal["refuse", "read"] = "refuse",
    instance_masks: bool = False,
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read images with COCO ground truth.

    `annotations` and `images` are relative to root and may hold `{split}`, which `split` fills in; without
    it everything is the test split. A frame's id is its file name without the ending. Where the file tells
    no width and height, `missing_sizes: read` takes them from the images. `instance_masks` reads what is
    drawn of each object; a study of instance segmentation sets it.
    """
    parts = subsets.named(split)
    _check_field(split, annotations, images)
    paths = [root / _filled(annotations, name) for _, name, _ in parts]
    files = [read_coco(path, segmentations=instance_masks) for path in paths]
    categories = category_names(files)
    notes: Counter[str] = Counter()
    logs: list[Log] = []
    used: dict[Path, set[str]] = {}
    for (kind, name, prefix), path, file in zip(parts, paths, files, strict=True):
        folder = _image_folder(root, _filled(images, name))
        sources = _sources(file, folder, path, policy, required=missing_sizes == "refuse")
        used.setdefault(folder, set()).update(str(source.path) for source in sources.values())
        logs += _logs(file, sources, categories, kind, prefix, notes)
    for folder, listed in used.items():
        notes[UNLISTED] += sum(str(path) not in listed for path in _image_files(folder))
    if not logs:
        raise DataError(
            "the data set has no images",
            where=str(paths[0]),
            got="an empty list",
            wanted="at least one entry under images",
            fix="Check the annotations option.",
        )
    return Dataset(root.resolve().name, categories, tuple(logs), tuple(paths), dict(+notes))


def _logs(
    file: CocoFile,
    sources: dict[Key, ImageFile],
    categories: tuple[str, ...],
    kind: Split,
    prefix: str,
    notes: Counter[str],
) -> Iterator[Log]:
    def size_of(image: ImageEntry) -> Size:
        return sources[image.id].measure()

    truths = truth_by_image(file, file.images, categories, size_of, notes)
    names = [_stem(image.file_name) for image in file.images]
    if len(set(names)) < len(names):  # a.jpg and a.png: then every id keeps its ending
        names = [image.file_name for image in file.images]
    for image, name in zip(file.images, names, strict=True):
        source = sources[image.id]
        truth, fault = truths[image.id]
        missing = absent(source.path, "image")
        frame_id = prefix + name
        frame = Frame(
            frame_id, frame_id, 0, source, truth, image.id, fault=fault if missing is None else str(missing)
        )
        yield Log(frame_id, (frame,), kind)


def _sources(
    file: CocoFile, folder: Path, path: Path, policy: ImagePolicy, *, required: bool
) -> dict[Key, ImageFile]:
    sources: dict[Key, ImageFile] = {}
    for at, image in enumerate(file.images):
        if image.size is None and required:
            raise DataError(
                "an image has no width and height",
                where=f"{path}, field images[{at}]",
                got=f"image {image.file_name!r} without",
                wanted="width and height in pixels",
                fix="Add them, or set missing_sizes: read in the study's data section.",
            )
        full = inside(folder, image.file_name, where=f"{path}, field images[{at}].file_name")
        sources[image.id] = ImageFile(full, policy, image.size)
    return sources


def _first_image(file: Path) -> dict[str, Any] | None:
    """Return the first entry of images, if the file is ground truth with boxes."""
    try:
        arrays = open_arrays(file)
        image, annotation = arrays.first("images"), arrays.first("annotations")
        boxes = "categories" in arrays.outline() and (annotation is None or "bbox" in annotation)
        return dict(image) if boxes and "file_name" in image else None
    except (AdverseError, TypeError, ValueError, LookupError):
        return None


def _stem(file_name: str) -> str:
    """Drop the ending of a file name, keeping its folders.

    >>> _stem("a/b.c.png")
    'a/b.c'
    """
    return str(Path(file_name).with_suffix(""))


def _filled(template: str, name: str | None) -> str:
    return template if name is None else template.replace(subsets.FIELD, name)


def _image_folder(root: Path, images: str) -> Path:
    folder = root / images
    if not folder.is_dir():
        raise DataError(
            "the image folder does not exist",
            where=str(folder),
            wanted="a folder",
            fix="Check root and images in the study's data section.",
        )
    return folder


def _image_files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def _check_field(split: dict[Split, str] | None, annotations: str, images: str) -> None:
    unfilled = split is None and subsets.FIELD in images
    if unfilled or (split is not None) != (subsets.FIELD in annotations):
        raise StudyError(
            "split and annotations do not fit together",
            where="data.annotations",
            got=f"annotations: {annotations}, images: {images}, split: {split}",
            wanted="{split} in annotations exactly when split is given",
            fix="Write annotations: instances_{split}.json and split: {validation: val, test: test}.",
        )
