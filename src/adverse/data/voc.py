"""The `voc` format: Pascal VOC's folders, an XML file for each image; every image is its own log.

root/                        a year's folder, such as VOCdevkit/VOC2007
  JPEGImages/000005.jpg
  Annotations/000005.xml     boxes from 1, last pixel included
  ImageSets/Main/test.txt    the images of a split                      (with split)
  SegmentationClass/000005.png   class ids by palette, 255 is void      (optional)
  SegmentationObject/000005.png  a number for each object, likewise     (optional)
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal, NamedTuple

from adverse.data import subsets
from adverse.data.files import absent, inside, read_text
from adverse.data.images import DEFAULT_POLICY, SUFFIXES, ImageFile, ImagePolicy, Size
from adverse.data.layout import by_stem, natural
from adverse.data.maps import InstanceFile, LabelFile, PixelClasses
from adverse.data.strict_xml import Element, read_xml, wrong
from adverse.data.truth import AnnotatedObject, Box, Truths, check_class_map, renamed
from adverse.errors import DataError
from adverse.plugins import dataset
from adverse.types import Dataset, Frame, Log, Split

IMAGES, ANNOTATIONS, SETS, LABELS = "JPEGImages", "Annotations", "ImageSets/Main", "SegmentationClass"
OBJECTS, VOID = "SegmentationObject", 255
PIXEL_CLASSES = dict(
    enumerate(
        (
            "background",
            "aeroplane",
            "bicycle",
            "bird",
            "boat",
            "bottle",
            "bus",
            "car",
            "cat",
            "chair",
            "cow",
            "diningtable",
            "dog",
            "horse",
            "motorbike",
            "person",
            "pottedplant",
            "sheep",
            "sofa",
            "train",
            "tvmonitor",
        )
    )
)
"""What the ids of VOC's label maps mean; 255, void, is not evaluated."""
DIFFICULT = "objects marked difficult"
UNSPECIFIED = "Unspecified"
UNLISTED = "image files without an annotation"


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise a year's folder, or VOCdevkit with one year in it."""
    years = [path, *sorted(child for child in path.glob("VOC*") if child.is_dir())]
    with_both = [year for year in years if (year / ANNOTATIONS).is_dir() and (year / IMAGES).is_dir()]
    return {"root": str(with_both[0])} if len(with_both) == 1 else None


@dataset(looks_like=looks_like)
def voc(
    root: Path,
    *,
    split: dict[Split, str] | None = None,
    class_map: dict[str, str] = {},  # noqa: B006 - never written to
    difficult: Literal["ignore", "count"] = "ignore",
    pixel_classes: PixelClasses | None = None,
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read images with Pascal VOC annotations.

    `split` names the lists in ImageSets/Main; without it everything in Annotations is the test split.
    `class_map` renames classes: {pedestrian: person}. A frame's id is its file name without the ending.
    `pixel_classes` names the ids of label maps where they are not VOC's own.
    """
    files = by_stem(_folder(root, ANNOTATIONS), root, (".xml",))
    images = by_stem(_folder(root, IMAGES), root, SUFFIXES)
    label_maps = by_stem(root / LABELS, root, (".png",))
    object_maps = by_stem(root / OBJECTS, root, (".png",))
    notes: Counter[str] = Counter()
    chosen: list[tuple[Split, str, str]] = []
    lists: list[Path] = []
    for kind, name, prefix in subsets.named(split):
        listed = sorted(files, key=natural)
        if name is not None:
            lists.append(inside(root, f"{SETS}/{name}.txt", where=f"data.split.{kind}"))
            listed = _listed(lists[-1], files)
        chosen += [(kind, prefix, stem) for stem in listed]
    if not chosen:
        raise _empty(root)
    parsed = {stem: _parsed(files[stem], difficult, class_map, notes) for _, _, stem in chosen}
    check_class_map(class_map, {name for annotated in parsed.values() for name in annotated.names})
    categories = tuple(sorted({annotated.label for image in parsed.values() for annotated in image.objects}))
    truths = Truths(categories, notes)
    logs = []
    for kind, prefix, stem in chosen:
        path = images.get(stem, root / IMAGES / f"{stem}.jpg")
        image = ImageFile(path, policy, parsed[stem].size)
        truth, fault = truths.of(parsed[stem].objects, image)
        missing = absent(path, "image")
        mask, objects = label_maps.get(stem), object_maps.get(stem)
        frame = Frame(
            id=prefix + stem,
            log_id=prefix + stem,
            index=0,
            image=image,
            truth=truth,
            image_id=stem,
            labels=LabelFile(mask, image, palette=True) if mask else None,
            fault=fault if missing is None else str(missing),
            instances=InstanceFile(objects, image, void=VOID, palette=True) if objects else None,
        )
        logs.append(Log(frame.id, (frame,), kind))
    notes[UNLISTED] += len(images.keys() - files.keys())
    read = (*lists, *(files[stem] for stem in sorted(parsed)))
    names = (PIXEL_CLASSES if pixel_classes is None else pixel_classes) if label_maps else {}
    return Dataset(root.resolve().name, categories, tuple(logs), read, dict(+notes), pixel_classes=names)


class _Parsed(NamedTuple):
    """What one annotation file says: the image's size, its objects, the names the file uses for them."""

    size: Size | None
    objects: list[AnnotatedObject]
    names: set[str]


def voc_box(element: Element) -> Box:
    """Return the box of an <object>: from counting from 1 with the last pixel included to ours.

    xmin 1 and xmax 10 are the first ten columns: 0 to 10, half-open.
    """
    x0, y0, x1, y1 = (element.get("bndbox", side).number() for side in ("xmin", "ymin", "xmax", "ymax"))
    return x0 - 1, y0 - 1, x1, y1


def is_difficult(element: Element) -> bool:
    """Return whether an <object> is marked difficult; files that do not say mean no."""
    flag = element.find("difficult")
    return flag is not None and flag.flag()


def _attributes(element: Element) -> dict[str, str]:
    """Return whether an <object> is occluded and truncated, and its pose, where the file says."""
    flags = {name: element.find(name) for name in ("occluded", "truncated")}
    words = {name: "yes" if flag.flag() else "no" for name, flag in flags.items() if flag is not None}
    pose = element.find("pose")
    return words | ({} if pose is None or pose.text in ("", UNSPECIFIED) else {"pose": pose.text})


def object_name(element: Element) -> str:
    """Return the class of an <object>."""
    name = element.get("name")
    if not name.text:
        raise wrong(name, "nothing", "a class name", "Write the class of the object.")
    return name.text


def _parsed(path: Path, difficult: str, class_map: dict[str, str], notes: Counter[str]) -> _Parsed:
    top = read_xml(path, "annotation")
    objects, names = [], set()
    for element in top.all("object"):
        hard = is_difficult(element)
        notes[DIFFICULT] += hard
        name = object_name(element)
        names.add(name)
        ignore = hard and difficult == "ignore"
        attributes = _attributes(element)
        objects.append(
            AnnotatedObject(
                renamed(name, class_map), voc_box(element), element.where, ignore, attributes=attributes
            )
        )
    return _Parsed(size_of(top), objects, names)


def size_of(top: Element) -> Size | None:
    """Return the size of the image that was annotated; None where the file does not say."""
    size = top.find("size")
    if size is None:
        return None
    width, height = (size.get(side) for side in ("width", "height"))
    for side in (width, height):
        if side.number() <= 0 or side.number() % 1:
            raise wrong(side, repr(side.text), "a whole number of pixels", "Correct it, or leave size out.")
    return int(width.number()), int(height.number())


def _listed(path: Path, files: dict[str, Path]) -> list[str]:
    """Return the names of a list in ImageSets/Main; what follows a name on its line is for other tasks."""
    flags: dict[str, int] = {}
    for number, line in enumerate(read_text(path, what="image list").splitlines(), start=1):
        name, _, _ = line.strip().partition(" ")
        if not name:
            continue
        if name in flags or name not in files:
            raise DataError(
                "the image list is wrong",
                where=f"{path}, line {number}",
                got=f"{name!r}, already on line {flags[name]}" if name in flags else f"{name!r}",
                wanted=f"the name of a file in {ANNOTATIONS}, without .xml, once",
                fix="Correct the line, or add the annotation file.",
            )
        flags[name] = number
    return list(flags)


def _folder(root: Path, name: str) -> Path:
    folder = root / name
    if not folder.is_dir():
        raise DataError(
            "the folder is not laid out as Pascal VOC is",
            where=str(root),
            got=f"no folder {name}",
            wanted=f"{ANNOTATIONS}, {IMAGES} and, for splits, {SETS}",
            fix="Check root in the study's data section: it is a year's folder, such as VOCdevkit/VOC2007.",
        )
    return folder


def _empty(root: Path) -> DataError:
    return DataError(
        "the data set has no images",
        where=str(root / ANNOTATIONS),
        got="no annotation files, or an empty list",
        wanted="at least one .xml",
        fix="Check root and split in the study's data section.",
    )
