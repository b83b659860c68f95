"""Annotations beside a video: COCO with frame numbers, MOT Challenge text, KITTI tracking labels.

`walk.mp4` has its annotations in `walk.json` (COCO) or `walk.txt`: MOT where the first line has commas,
KITTI tracking where it has blanks. COCO and KITTI count frames from 0, MOT from 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from adverse.data.coco_file import Key, category_names, read_coco
from adverse.data.coco_truth import ImageTruth, truth_by_image
from adverse.data.files import read_text
from adverse.data.images import Size
from adverse.data.kitti_files import DONT_CARE, KittiLabel, read_tracking_labels
from adverse.data.mot_file import read_mot
from adverse.data.truth import AnnotatedObject, Measurable, Truths, for_each_class
from adverse.errors import DataError

ENDINGS = (".json", ".txt")
_NUMBER = re.compile(r"(\d+)(?=\D*$)")


@dataclass(frozen=True)
class VideoTruth:
    """What the annotation file of a video says: per frame, for its classes, in their order."""

    path: Path
    classes: tuple[str, ...]
    coco: Mapping[int, tuple[Key, ImageTruth]] | None = None
    objects: Mapping[int, list[AnnotatedObject]] | None = None

    def listed(self, number: int) -> bool:
        """Return whether a frame is annotated: COCO lists those that are, the others annotate all."""
        return self.coco is None or number in self.coco

    def of(self, number: int, image: Measurable, truths: Truths) -> tuple[ImageTruth, Key | None]:
        """Return the truth of a frame, labels by the classes of all videos, and its own id if it has one."""
        if self.coco is None:
            found = (self.objects or {}).get(number, [])
            regions = [region for thing in found if not thing.label for region in _everywhere(thing, truths)]
            return truths.of([*(thing for thing in found if thing.label), *regions], image), None
        key, (truth, fault) = self.coco[number]
        moved = [truths.categories.index(name) for name in self.classes]
        labels = truth.labels.copy()
        for old, new in enumerate(moved):
            labels[truth.labels == old] = new
        return ImageTruth(replace(truth, labels=labels), fault), key


def annotation_file(video: Path, root: Path, pattern: str | None, name: str) -> Path | None:
    """Return the annotations of a video: those beside it, or those that `truth` names."""
    if pattern is not None:
        return root / pattern.replace("{video}", name)
    found = [path for ending in ENDINGS if (path := video.with_suffix(ending)).is_file()]
    if len(found) > 1:
        raise DataError(
            "the video has two files of annotations",
            where=str(video),
            got=" and ".join(path.name for path in found),
            wanted="one",
            fix="Name it in the study's data section (truth:), or move the other away.",
        )
    return found[0] if found else None


def read_video_truth(path: Path, frames: int, size: Size, notes: Counter[str]) -> VideoTruth:
    """Read the annotations of a video of so many frames; a frame that it does not have is an error."""
    known = _coco(path, size, notes) if path.suffix.lower() == ".json" else _text(path)
    last = max((known.coco if known.coco is not None else known.objects or {}).keys(), default=-1)
    if last >= frames:
        raise DataError(
            "the annotations are of more frames than the video has",
            where=str(path),
            got=f"frame {last} (counted from 0)",
            wanted=f"0 to {frames - 1}",
            fix="Give the annotations of this video, at its own frame rate.",
        )
    return known


def _coco(path: Path, size: Size, notes: Counter[str]) -> VideoTruth:
    coco = read_coco(path)
    names = category_names([coco])
    truths = truth_by_image(coco, coco.images, names, lambda image: image.size or size, notes)
    frames: dict[int, tuple[Key, ImageTruth]] = {}
    for at, image in enumerate(coco.images):
        digits = _NUMBER.search(Path(image.file_name).stem)
        if digits is None or int(digits[1]) in frames or image.size not in (None, size):
            raise DataError(
                "an image of the annotations is no frame of the video",
                where=f"{path}, field images[{at}]",
                got=f"{image.file_name!r}" + (f" of {image.size}" if image.size not in (None, size) else ""),
                wanted=f"the frame's number, counted from 0, at the end of file_name, each once; {size}",
                fix="Name images as frame_000123.png, with the size of the video.",
            )
        frames[int(digits[1])] = (image.id, truths[image.id])
    return VideoTruth(path, names, coco=frames)


def _text(path: Path) -> VideoTruth:
    first = next((line for line in read_text(path, what="annotation").splitlines() if line.strip()), "")
    if "," in first:
        objects = read_mot(path)
    else:
        labels = read_tracking_labels(path)
        objects = {frame: [_kitti(row) for row in rows] for frame, rows in labels.items()}
    counts = Counter(thing.label for things in objects.values() for thing in things if thing.label)
    return VideoTruth(path, tuple(sorted(counts)), objects=objects)


def _kitti(row: KittiLabel) -> AnnotatedObject:
    label = "" if row.kind == DONT_CARE else row.kind
    return AnnotatedObject(label, row.box, row.where, attributes=row.attributes, track=row.track)


def _everywhere(region: AnnotatedObject, truths: Truths) -> list[AnnotatedObject]:
    return for_each_class(region, truths.categories)
