"""The `nrec` format: the NREC Agricultural Person-Detection Dataset, people in orchards seen from vehicles.

root/
  {train,val,test}/collected/
    ImagesPositiveNegative/Image_<camera>_0_<unix time>.png
    AnnotationsPositiveNegative/Image_<camera>_0_<unix time>.xml     as VOC's; source/image names the log

Occlusion is given by class: `person` is clear, `person` marked difficult is partly hidden, `person-part` is
heavily hidden. Which of them count is the benchmark's choice: its 14 subsets, by their published names, and
its three filters of range. An object may have a <point> whose <z> is its depth in metres.
What its recordings hold besides, stereo, track and points, is read by nrec_recording.py where it is named.
Facts: Pezzementi et al., "Comparing Apples and Oranges", arXiv 1707.07169; its evaluation code,
nrecAgPersonEval, and the toolbox that needs, as changed by its authors (bbGt, VOCreadrecxml).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data import subsets
from adverse.data.files import absent, inside
from adverse.data.images import DEFAULT_POLICY, SUFFIXES, ImageFile, ImagePolicy, Size
from adverse.data.layout import by_stem, natural
from adverse.data.nrec_recording import (
    NAME,
    Mount,
    PersonPoints,
    Track,
    paired,
    position_m,
    read_points,
    read_track,
    triangulated_m,
)
from adverse.data.rig import read_camera
from adverse.data.strict_xml import Element, read_xml, wrong
from adverse.data.truth import AnnotatedObject, Truths
from adverse.data.voc import is_difficult, object_name, size_of, voc_box
from adverse.errors import DataError
from adverse.plugins import dataset
from adverse.types import Camera, Dataset, Frame, Log, Split

COLLECTED = "collected"
IMAGES, ANNOTATIONS = "ImagesPositiveNegative", "AnnotationsPositiveNegative"
SPLITS: dict[Split, str] = {"train": "train", "validation": "val", "test": "test"}
PERSON, PART = "person", "person-part"
OTHER = "objects that are neither person nor person-part"
MOST_M = 1000.0
"""Depths beyond this are not in metres."""
NO_LOG = "images without the name of a log"

Subset = Literal[
    "Baseline",
    "Env=Orange",
    "Env=Apple",
    "All",
    "Occ=Clear",
    "Occ=Partial",
    "Occ=Heavy",
    "Scale=Large",
    "Scale=Medium",
    "Scale=Small",
    "Pose=Typical",
    "Pose=Unusual",
    "Motion=Static",
    "Motion=Moving",
    "Range=Near",
    "Range=Medium",
    "Range=Far",
]


class Seen(NamedTuple):
    """What the subsets ask about a person: how hidden, area in pixels, log, place, depth (NaN: not given)."""

    hidden: Literal["clear", "partial", "heavy"]
    area_px: float
    log: str
    place: str
    depth_m: float


def _visible(seen: Seen) -> bool:
    return seen.hidden != "heavy"


def _area(lowest: float, highest: float) -> Callable[[Seen], bool]:
    return lambda seen: _visible(seen) and lowest <= seen.area_px <= highest


def _range(lowest: float, highest: float) -> Callable[[Seen], bool]:
    """Ask about depth, ends left out as in the benchmark; who has none does not count."""
    return lambda seen: _visible(seen) and lowest < seen.depth_m < highest


def _log(pattern: str, *, wanted: bool) -> Callable[[Seen], bool]:
    """Ask about the log's name; a log without one is not asked."""
    return lambda seen: _visible(seen) and (not seen.log or bool(re.search(pattern, seen.log)) == wanted)


def _place(pattern: str) -> Callable[[Seen], bool]:
    return lambda seen: _visible(seen) and (not seen.place or bool(re.search(pattern, seen.place)))


UNUSUAL = "Fall|Lying|SittingLeave"
MOVING = "ovingPerson"
COUNTS: dict[Subset, Callable[[Seen], bool]] = {
    "Baseline": _visible,
    "Env=Orange": _place("DevilsGrove"),
    "Env=Apple": _place("Soergel"),
    "All": lambda _: True,
    "Occ=Clear": lambda seen: seen.hidden == "clear",
    "Occ=Partial": lambda seen: seen.hidden == "partial",
    "Occ=Heavy": lambda seen: seen.hidden == "heavy",
    "Scale=Large": _area(3501, float("inf")),
    "Scale=Medium": _area(1300, 3500),
    "Scale=Small": _area(0, 1299),
    "Pose=Typical": _log(UNUSUAL, wanted=False),
    "Pose=Unusual": _log(UNUSUAL, wanted=True),
    "Motion=Static": _log(MOVING, wanted=False),
    "Motion=Moving": _log(MOVING, wanted=True),
    "Range=Near": _range(0, 10),
    "Range=Medium": _range(10, 20),
    "Range=Far": _range(20, float("inf")),
}
"""Which people count in each subset; the others are ignored. All images stay in."""


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise the folders of at least one split."""
    splits = [kind for kind, name in SPLITS.items() if (path / name / COLLECTED / ANNOTATIONS).is_dir()]
    if not splits:
        return None
    used = [kind for kind in splits if kind != "train"] or splits
    return {"root": str(path), "split": {kind: SPLITS[kind] for kind in used}}


@dataset(looks_like=looks_like)
def nrec(
    root: Path,
    *,
    split: dict[Split, str] | None = None,
    subset: Subset = "Baseline",
    images: str = IMAGES,
    annotations: str = ANNOTATIONS,
    right: str | None = None,
    calibration: Path | None = None,
    track: Path | None = None,
    mount: Mount = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    points: Path | None = None,
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read the NREC Agricultural Person-Detection Dataset.

    `split` names the folders: {validation: val, test: test}; without it `test` alone is read. `subset` says
    which people count; the others are ignored. A log is what source/image names, one for each camera. `right`
    names the folder of the right images, `calibration` the camera.json of the pair, `track` the vehicle's RTK
    positions, `mount` where on it the camera is, `points` the points of people in both images.
    """
    notes: Counter[str] = Counter()
    truths = Truths((PERSON,), notes, located=calibration is not None and track is not None)
    recording = _Recording.read(calibration, track, mount, points, where=f"data of {root}")
    logs: list[Log] = []
    read: list[Path] = []
    seen: set[tuple[str, int]] = set()
    for kind, name, prefix in subsets.named(split or {"test": "test"}):
        collected = inside(root, f"{name}/{COLLECTED}", where=f"data.split.{kind}")
        files = by_stem(_folder(collected, annotations), root, (".xml",))
        pictures = by_stem(_folder(collected, images), root, SUFFIXES)
        taken: dict[str, list[_Taken]] = defaultdict(list)
        for stem in sorted(files, key=natural):
            member = _taken(files[stem], stem, subset, notes)
            taken[member.log or stem].append(member)
        rights: dict[str, Path] = {}
        if right is not None:
            folder = _folder(collected, right)
            times = {member.stem: member.time_s for members in taken.values() for member in members}
            rights = paired(times, by_stem(folder, root, SUFFIXES), folder)
            notes["images without a right one of the same moment"] += len(times) - len(rights)
        seen |= {
            (member.stem, number)
            for members in taken.values()
            for member in members
            for number in member.numbers
        }
        for log_id, members in _by_camera(taken):
            placed = []
            for index, member in enumerate(sorted(members, key=lambda member: member.time_s)):
                path = pictures.get(member.stem, collected / images / f"{member.stem}.png")
                image = ImageFile(path, policy, member.size)
                pose = recording.pose(member.time_s)
                notes["images at whose time the track has no fixes"] += (
                    recording.track is not None and pose is None
                )
                truth, fault = truths.of(recording.located(member, pose), image)
                second = rights.get(member.stem)
                missing = absent(path, "image")
                frame = Frame(
                    id=f"{prefix}{log_id}/{member.stem}",
                    log_id=prefix + log_id,
                    index=index,
                    image=image,
                    truth=truth,
                    image_id=member.stem,
                    time_s=member.time_s,
                    camera=recording.camera,
                    world_from_camera=pose,
                    right=None if second is None else ImageFile(second, policy, member.size),
                    fault=fault if missing is None else str(missing),
                )
                placed.append(frame)
            logs.append(Log(prefix + log_id, tuple(placed), kind))
        notes["image files without an annotation"] += len(pictures.keys() - files.keys())
        read += files.values()
    if not logs:
        raise _not_there(root, "no annotation files")
    notes["points of people that no image of this split has"] += recording.unmatched(seen, points)
    read += [path for path in (calibration, track, points) if path is not None]
    return Dataset(root.resolve().name, (PERSON,), tuple(logs), tuple(read), dict(+notes))


@dataclass(frozen=True)
class _Recording:
    """What is known beside the labelled images: the camera, where the vehicle was, points of people."""

    camera: Camera | None
    track: Track | None
    mount: Mount
    points: Mapping[str, Mapping[int, PersonPoints]]

    @classmethod
    def read(
        cls, calibration: Path | None, track: Path | None, mount: Mount, points: Path | None, *, where: str
    ) -> _Recording:
        if points is not None and (calibration is None or track is None):
            raise DataError(
                "points of people need the calibration and the track to become positions",
                where=where,
                got=f"points without {'calibration' if calibration is None else 'track'}",
                fix="Name the files after calibration: and track:.",
            )
        return cls(
            None if calibration is None else read_camera(calibration),
            None if track is None else read_track(track),
            mount,
            {} if points is None else read_points(points),
        )

    def pose(self, time_s: float) -> NDArray[np.float64] | None:
        return None if self.track is None else self.track.pose(time_s, self.mount)

    def unmatched(self, seen: Collection[tuple[str, int]], points: Path | None) -> int:
        """Return how many points are of nobody; an error if that is all of them."""
        given = [(stem, number) for stem, people in self.points.items() for number in people]
        lost = [each for each in given if each not in seen]
        if given and len(lost) == len(given):
            raise DataError(
                "no point is of a person in the images",
                where=str(points),
                got=f"object {lost[0][1]} of image {lost[0][0]!r}",
                wanted="names of images without their ending, and the number of a person in its file from 1",
                fix="Correct the columns image and object.",
            )
        return len(lost)

    def located(self, member: _Taken, pose: NDArray[np.float64] | None) -> list[AnnotatedObject]:
        """Return the people of an image, those with points placed in the world."""
        known = self.points.get(member.stem, {})
        if self.camera is None or pose is None:
            return member.people
        placed = []
        for number, person, given in zip(member.numbers, member.people, member.depths_m, strict=True):
            two = known.get(number)  # two points of one's own come before that of the file
            depth = given if two is None else triangulated_m(two, self.camera, person.where)
            place = None if math.isnan(depth) else position_m(depth, person.box, self.camera, pose)
            placed.append(replace(person, position_m=place))
        return placed


class _Taken(NamedTuple):
    """An image: what the name and the content of its annotation file say."""

    stem: str
    camera: str
    time_s: float
    log: str
    size: Size | None
    people: list[AnnotatedObject]
    numbers: list[int]
    """Which of the file's objects each of them is, from 1."""
    depths_m: list[float]
    """How far away the file says that each of them is; NaN: it does not."""


def _taken(path: Path, stem: str, subset: Subset, notes: Counter[str]) -> _Taken:
    name = NAME.fullmatch(stem)
    if name is None:
        raise DataError(
            "the name of an annotation file does not follow the format",
            where=str(path),
            got=repr(stem),
            wanted="Image_<camera>_<number>_<unix time>, such as Image_2_0_1371967994.526",
            fix="Restore the original name, or take the file out.",
        )
    top = read_xml(path, "annotation")
    log, place = (_text(top.find("source", tag)).strip("/") for tag in ("image", "database"))
    if not log:
        notes[NO_LOG] += 1
    people = _people(top, log, place, subset, notes)
    seen = [(number, thing) for number, thing in enumerate(top.all("object"), start=1) if _is_person(thing)]
    numbers, depths = [number for number, _ in seen], [_depth_m(thing) for _, thing in seen]
    return _Taken(stem, name["camera"], float(name["time"]), log, size_of(top), people, numbers, depths)


def _depth_m(element: Element) -> float:
    """Return the depth of an object's <point>, NaN where it has none.

    Its x and y are not read: the code that reads them does not say whether they are pixels or metres.
    """
    given = element.find("point", "z")
    if given is None or given.text.lower() == "nan" or given.number() <= 0:  # as the benchmark's filters
        return math.nan
    if given.number() > MOST_M:
        raise wrong(given, repr(given.text), f"metres, up to {MOST_M:g}", "Correct the depth.")
    return given.number()


def _is_person(element: Element) -> bool:
    return object_name(element) in (PERSON, PART)


def _text(element: Element | None) -> str:
    return "" if element is None else element.text


def _by_camera(taken: dict[str, list[_Taken]]) -> list[tuple[str, list[_Taken]]]:
    """Cut each log by camera; its name is kept where one camera took all of it."""
    by_camera: dict[str, list[_Taken]] = defaultdict(list)
    for log, members in taken.items():
        cameras = {image.camera for image in members}
        for image in members:
            by_camera[log if len(cameras) == 1 else f"{log}/camera{image.camera}"].append(image)
    return sorted(by_camera.items(), key=lambda item: natural(item[0]))


def _people(top: Element, log: str, place: str, subset: Subset, notes: Counter[str]) -> list[AnnotatedObject]:
    people = []
    for element in top.all("object"):
        name = object_name(element)
        if not _is_person(element):
            notes[OTHER] += 1
            continue
        x0, y0, x1, y1 = voc_box(element)
        part, hard = name == PART, is_difficult(element)
        seen = Seen(
            hidden="heavy" if part else "partial" if hard else "clear",
            area_px=(x1 - x0 - 1) * (y1 - y0 - 1),  # the benchmark takes xmax - xmin
            log=log,
            place=place,
            depth_m=_depth_m(element),
        )
        people.append(
            AnnotatedObject(
                PERSON,
                (x0, y0, x1, y1),
                element.where,
                ignore=not COUNTS[subset](seen),
                attributes={"occluded": seen.hidden},
            )
        )
    return people


def _folder(collected: Path, name: str) -> Path:
    folder = collected / name
    if not folder.is_dir():
        raise _not_there(collected, f"no folder {name}")
    return folder


def _not_there(place: Path, got: str) -> DataError:
    return DataError(
        "the folder is not laid out as the NREC data set is",
        where=str(place),
        got=got,
        wanted=f"<split>/{COLLECTED}/{ANNOTATIONS} and {IMAGES}",
        fix="Check root and split in the study's data section; images and annotations name other folders.",
    )
