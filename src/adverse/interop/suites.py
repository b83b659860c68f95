"""The tests of a fuzz campaign as a data set of their own: COCO, COCO panoptic or Cityscapes, with recipes.

Failures are taken from the campaign's folder as they were shown; tests that passed are made again from the
data, and must come out as the same pictures. Remnants of hidden objects and groups are marked as crowds,
which COCO's evaluation ignores; in Cityscapes' layout they are groups. `recipes.jsonl` has a line for each
test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse import plugins
from adverse.data.cityscapes_truth import OBJECTS, PIXEL_CLASSES
from adverse.data.images import write_image
from adverse.errors import StoreError, StudyError
from adverse.fuzz.donors import build_resources, donor_data
from adverse.fuzz.folder import CampaignFolder, base_file, failure_file
from adverse.fuzz.objects import visible_shares
from adverse.fuzz.outcome import CampaignOutcome, Row
from adverse.fuzz.regression import why_failed
from adverse.masks import Masks
from adverse.semantic import Recipe, Scene, apply, scene_of
from adverse.study.plan import read_dataset
from adverse.study.spec import StudyFile
from adverse.types import Image

Format = Literal["coco", "coco-panoptic", "cityscapes"]
RECIPES = "recipes.jsonl"


@dataclass(frozen=True, eq=False)
class SuiteTest:
    """One test with its pixels and truth; `ignored` are objects of which only remnants are left.

    `log` numbers the logs of the bases.
    """

    number: int
    log: int
    row: Row
    image: Image
    labels: NDArray[Any]
    instances: NDArray[np.int32]
    ignored: frozenset[int]

    @property
    def file(self) -> str:
        """The name of its image in COCO formats."""
        return f"{self.row['key'][:16]}.png"

    @property
    def stem(self) -> str:
        """The name of its files in Cityscapes' layout, without what they are; a log is a sequence."""
        return f"fuzz_{self.log:06d}_{self.number:06d}"


def suite_tests(
    folder: CampaignFolder, outcome: CampaignOutcome, *, file: StudyFile | None = None
) -> Iterator[SuiteTest]:
    """Yield the failures of a campaign, or with its study all of its tests."""
    share = outcome.campaign.remnant_share
    made = _MadeAgain(outcome, file) if file is not None else None
    number = 0
    logs: dict[str, int] = {}
    for row in outcome.rows:
        if made is None and not row["kept"]:
            continue
        scene, base = _kept(folder, row, outcome) if made is None else made.scenes(row)
        shares = visible_shares(base, scene)
        ignored = frozenset(instance for instance, seen in shares.items() if seen < share)
        number += 1
        log = logs.setdefault(row["log"], len(logs))
        yield SuiteTest(number, log, row, scene.image, scene.labels, scene.instances, ignored)


def write_suite(
    tests: Iterator[SuiteTest], outcome: CampaignOutcome, out: Path, how: Format
) -> tuple[int, list[str]]:
    """Write tests into a new folder; return how many, and what a reader must know about them."""
    if out.exists() and any(out.iterdir()):
        raise StoreError(
            "the folder to write is not empty", where=str(out), fix="Name one that does not exist yet."
        )
    names = outcome.campaign.scene_classes
    writers: dict[Format, type[_Coco | _Cityscapes]] = {
        "coco": _Coco,
        "coco-panoptic": _Panoptic,
        "cityscapes": _Cityscapes,
    }
    writer = writers[how](out, names)
    lines = []
    numbers = {row["picture"]: number for number, row in enumerate(outcome.rows)}
    for test in tests:
        place = writer.add(test)
        at = numbers[test.row["picture"]]
        said = {sut: why_failed(outcome.tests[sut][at]) for sut in outcome.suts}
        line = {name: test.row[name] for name in ("key", "picture", "base", "log")}
        line |= {"file": place, "recipe": json.loads(test.row["recipe"])}
        lines.append(json.dumps(line | {"fails": {sut: why for sut, why in said.items() if why}}))
    if not lines:
        raise StoreError(
            "there is nothing to export",
            got="a campaign without failures",
            fix="Give --study to export all of its tests.",
        )
    writer.end()
    (out / RECIPES).write_text("\n".join(lines) + "\n", "utf-8")
    return len(lines), writer.notes


def _kept(folder: CampaignFolder, row: Row, outcome: CampaignOutcome) -> tuple[Scene, Scene]:
    """Return the scene of a failure and its base as they were kept."""
    classes = outcome.campaign.scene_classes
    scenes = []
    for place in (failure_file(row["key"], ""), base_file(row["base"], "")):
        image, labels, instances = (
            np.asarray(cv2.imread(str(folder.kept_file(f"{place}{name}.png")), cv2.IMREAD_UNCHANGED))
            for name in ("image", "labels", "instances")
        )
        if instances.ndim == 3:  # numbers beyond 16 bits
            instances = instances[..., ::-1].astype(np.int64) @ np.array([1, 256, 65536])
        pixels = np.ascontiguousarray(image[..., ::-1]).astype(np.uint8)
        labelled = labels.astype(np.uint8) if labels.dtype == np.uint8 else labels.astype(np.uint16)
        scenes.append(Scene(row["base"], pixels, labelled, instances.astype(np.int32), classes))
    return scenes[0], scenes[1]


class _MadeAgain:
    """Makes the tests of a campaign again from its data."""

    def __init__(self, outcome: CampaignOutcome, file: StudyFile) -> None:
        registry = plugins.load(file.plugin_files)
        self.dataset = read_dataset(file, registry)
        test_frames = [frame for log in self.dataset.logs if log.split == "test" for frame in log.frames]
        self.frames = {frame.id: frame for frame in test_frames}
        chosen = {test_frames[place].id for place in outcome.campaign.bases if place < len(test_frames)}
        donors = donor_data(file, registry, self.dataset)
        self.resources, _ = build_resources(self.dataset, donors, chosen)
        if self.resources.key != outcome.campaign.resources:
            raise StudyError(
                "the study's data are not those of the campaign",
                where=str(file.source.path),
                got=f"resource set {self.resources.key}",
                wanted=f"resource set {outcome.campaign.resources}",
                fix="Give the study that the campaign was made from, with its data as they were.",
            )
        self._base: Scene | None = None

    def scenes(self, row: Row) -> tuple[Scene, Scene]:
        """Return the scene of a test and its base."""
        if self._base is None or self._base.id != row["base"]:
            self._base = scene_of(self.frames[row["base"]], self.dataset)
        scene = apply(Recipe.from_json(row["recipe"]), self._base, self.resources).scene
        if scene.picture != row["picture"]:
            raise StoreError(
                "a test of the campaign cannot be made again",
                where=row["recipe"],
                got="another picture",
                fix="Use the version of adverse and its libraries that made the campaign.",
            )
        return scene, self._base


class _Coco:
    """Boxes and masks of objects: images/ and annotations.json."""

    def __init__(self, out: Path, names: Mapping[int, str]) -> None:
        self.out, self.names = out, names
        self.images: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.ids = {name: number for number, name in enumerate(sorted(set(names.values())), start=1)}
        self.used: set[str] = set()
        self.notes: list[str] = []
        (out / "images").mkdir(parents=True)

    def add(self, test: SuiteTest) -> str:
        """Write the image of a test, and note its objects."""
        height, width = test.labels.shape
        write_image(self.out / "images" / test.file, test.image)
        facts = {"id": test.number, "file_name": test.file, "width": width, "height": height}
        self.images.append(facts | {"key": test.row["key"], "recipe": json.loads(test.row["recipe"])})
        self.describe(test)
        return f"images/{test.file}"

    def describe(self, test: SuiteTest) -> None:
        """Note the objects of a test; groups of a class that has objects are crowds."""
        for instance in np.unique(test.instances[test.instances > 0]).tolist():
            self._object(test, test.instances == instance, crowd=instance in test.ignored)
        with_objects = np.unique(test.labels[test.instances > 0]).tolist()
        for label in with_objects:
            group = (test.labels == label) & (test.instances == 0)
            if group.any():
                self._object(test, group, crowd=True)

    def _object(self, test: SuiteTest, mask: NDArray[np.bool_], *, crowd: bool) -> None:
        label = int(np.bincount(test.labels[mask]).argmax())
        if label not in self.names:
            return
        masks = Masks.of(mask[None])
        (coded,) = masks.as_coco()
        x0, y0, x1, y1 = masks.boxes[0].tolist()
        self.used.add(self.names[label])
        entry = {
            "id": len(self.annotations) + 1,
            "image_id": test.number,
            "category_id": self.ids[self.names[label]],
            "bbox": [x0, y0, x1 - x0, y1 - y0],
            "area": int(mask.sum()),
            "segmentation": coded,
            "iscrowd": int(crowd),
        }
        self.annotations.append(entry)

    def end(self) -> None:
        """Write what was noted."""
        categories = [{"id": number, "name": name} for name, number in self.ids.items() if name in self.used]
        self._write("annotations.json", categories)

    def _write(self, name: str, categories: Sequence[Mapping[str, Any]]) -> None:
        data = {"images": self.images, "annotations": self.annotations, "categories": categories}
        (self.out / name).write_text(json.dumps(data) + "\n", "utf-8")


class _Panoptic(_Coco):
    """A segment for each pixel: images/, panoptic/ and panoptic.json."""

    def __init__(self, out: Path, names: Mapping[int, str]) -> None:
        super().__init__(out, names)
        (out / "panoptic").mkdir()
        self.things: set[str] = set()

    def describe(self, test: SuiteTest) -> None:
        """Write the segments of a test, and note what they are."""
        segments = np.zeros(test.labels.shape, np.int32)
        info: list[dict[str, Any]] = []
        parts: list[tuple[NDArray[np.bool_], bool]] = [
            (test.instances == instance, instance in test.ignored)
            for instance in np.unique(test.instances[test.instances > 0]).tolist()
        ]
        things = {self.names.get(label) for label in np.unique(test.labels[test.instances > 0]).tolist()}
        self.things |= {name for name in things if name is not None}
        for label in np.unique(test.labels[test.instances == 0]).tolist():
            if label in self.names:
                region = (test.labels == label) & (test.instances == 0)
                parts.append((region, self.names[label] in things))
        for mask, crowd in parts:
            label = int(np.bincount(test.labels[mask]).argmax())
            if label not in self.names:
                continue
            rows, columns = np.nonzero(mask)
            x0, y0, x1, y1 = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
            number = len(info) + 1
            segments[mask] = number
            self.used.add(self.names[label])
            info.append(
                {
                    "id": number,
                    "category_id": self.ids[self.names[label]],
                    "area": int(mask.sum()),
                    "bbox": [int(value) for value in (x0, y0, x1 - x0, y1 - y0)],
                    "iscrowd": int(crowd),
                }
            )
        colours = np.stack([segments >> shift & 255 for shift in (0, 8, 16)], axis=2).astype(np.uint8)
        write_image(self.out / "panoptic" / test.file, colours)
        self.annotations.append({"image_id": test.number, "file_name": test.file, "segments_info": info})

    def end(self) -> None:
        """Write what was noted."""
        categories = [
            {"id": number, "name": name, "isthing": int(name in self.things)}
            for name, number in self.ids.items()
            if name in self.used
        ]
        self._write("panoptic.json", categories)


class _Cityscapes:
    """leftImg8bit and gtFine, in the split val and a city called fuzz."""

    def __init__(self, out: Path, names: Mapping[int, str]) -> None:
        self.out = out
        ids = {name: number for number, name in {**PIXEL_CLASSES, **OBJECTS}.items()}
        self.table = np.zeros(2**16, np.uint8)
        for label, name in names.items():
            self.table[label] = ids.get(name, 0)
        self.unknown = {label: name for label, name in names.items() if name not in ids}
        self.lost: set[str] = set()
        self.notes: list[str] = []
        self.places = {kind: out / kind / "val" / "fuzz" for kind in ("leftImg8bit", "gtFine")}
        for place in self.places.values():
            place.mkdir(parents=True)

    def add(self, test: SuiteTest) -> str:
        """Write the files of a test."""
        labels = self.table[test.labels]
        if self.unknown:
            there = np.unique(test.labels).tolist()
            self.lost |= {self.unknown[label] for label in there if label in self.unknown}
        instances = labels.astype(np.uint16)
        count: dict[int, int] = {}
        for instance in np.unique(test.instances[test.instances > 0]).tolist():
            mask = test.instances == instance
            label = int(np.bincount(labels[mask]).argmax())
            if label in OBJECTS and instance not in test.ignored:
                instances[mask] = label * 1000 + count.get(label, 0)
                count[label] = count.get(label, 0) + 1
        image = self.places["leftImg8bit"] / f"{test.stem}_leftImg8bit.png"
        write_image(image, test.image)
        for kind, array in (("labelIds", labels), ("instanceIds", instances)):
            cv2.imwrite(str(self.places["gtFine"] / f"{test.stem}_gtFine_{kind}.png"), array)
        return image.relative_to(self.out).as_posix()

    def end(self) -> None:
        """Note which classes that are there became void."""
        if self.lost:
            self.notes.append(f"void, as Cityscapes has no such class: {', '.join(sorted(self.lost))}")
