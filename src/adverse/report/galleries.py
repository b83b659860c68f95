"""The pictures of a report: people who are no longer found, and one frame under every mutation.

Which people and which frame is decided by `analysis.failures`; here they are only drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.failures import (
    NEAR,
    by_visible_change,
    most_telling,
    most_telling_image,
    pixels_moved,
    typical_frame,
)
from adverse.analysis.headline import setting_words
from adverse.analysis.results import Summary
from adverse.analysis.tasks import segmentation_scores
from adverse.benchmarks.task_table import answers_of
from adverse.errors import AdverseError
from adverse.report.label_maps import label_map, laid_over, most_frequent
from adverse.report.pictures import Kind, Looker, Mark, Picture, close_up, outline, picture
from adverse.store.read import Store
from adverse.store.tables import Answers, RankedClasses
from adverse.text import CLEAN, shown
from adverse.types import Image

FAILURES = 12
NOT_DRAWN = "Its answers are not drawn: the study does not set keep_label_maps."
WIDEST_FAILURE, WIDEST_THUMB = 640, 160
EXPLORER_PORT = 8765
"""Where the links of the gallery expect the explorer."""


@dataclass(frozen=True)
class Shot:
    """A frame, and the part of it around the person who is meant, where that person is small in it."""

    words: str
    frame: Picture
    close: Picture | None


@dataclass(frozen=True)
class Failure:
    """A failure of the summary clean and mutated, how much of the change can be seen, and a link.

    `near`: a detection still points at the person, but is too far off.
    """

    row: Mapping[str, Any]
    setting_words: str
    near: bool
    change_words: str
    shots: tuple[Shot, Shot]
    address: str


def failures(summary: Summary, looker: Looker) -> list[Failure]:
    """Return the first of the run's failures that can be shown, with their pictures."""
    rows = summary.data["failures"]
    baseline = looker.store.run.baseline.id
    if all(row["visual_change"] is not None for row in rows):
        order, moved = list(range(len(rows))), {}
    else:  # how far pixels moved takes the place of visual change, so all of them are opened
        moved = {
            number: pixels_moved(*both)
            for number, row in enumerate(rows)
            if (both := _images(looker, row, baseline)) is not None
        }
        drawable = list(moved)
        order = [drawable[n] for n in by_visible_change([rows[n] for n in drawable], list(moved.values()))]
    chosen: list[int] = []
    pictures: dict[int, tuple[Image, Image]] = {}
    for number in order:
        if len(chosen) == FAILURES:
            break
        if (both := _images(looker, rows[number], baseline)) is not None:
            chosen.append(number)
            pictures[number] = both
    answers = _Marks(looker.store)
    drawn = {
        number: _failure(answers, rows[number], baseline, pictures[number], moved.get(number))
        for number in sorted(chosen, key=lambda number: rows[number]["sut"])  # so that each SUT is read once
    }
    return [drawn[number] for number in chosen]


def telling_failure(summary: Summary, looker: Looker) -> Failure | None:
    """Return the failure that needs no explanation with its pictures; None where there is none to show."""
    row = most_telling(summary.data["failures"])
    baseline = looker.store.run.baseline.id
    if row is None or (both := _images(looker, row, baseline)) is None:
        return None
    return _failure(_Marks(looker.store), row, baseline, both, pixels_moved(*both))


class ImageFailure(NamedTuple):
    """An image that a classifier or segmenter loses under a mutation: clean, mutated, and in words."""

    sut: str
    shots: tuple[Shot, Shot]
    lead: str
    words: str


def telling_image(summary: Summary, looker: Looker) -> ImageFailure | None:
    """Return the image whose score falls most, with its pictures; None where there is none to show."""
    store = looker.store
    path = store.result("objects.parquet")
    mild = [setting for setting, group in store.groups.items() if group == "mild"]
    unanswered = {
        (str(trouble["sut"]), setting, str(trouble["frame"]))
        for trouble in summary.data["troubles"]
        if trouble["status"] == "fault"
        for setting in trouble["settings"]
    }
    row = None if path is None else most_telling_image(pq.read_table(path), mild, unanswered=unanswered)
    baseline = store.run.baseline.id
    if row is None or (both := _images(looker, row, baseline)) is None:
        return None
    setting = next(one for one in store.run.settings if one.id == row["setting"])
    under = shown(setting_words(setting))
    if store.task == "segmentation":
        both, drawn = _with_labels(store, row, both)
        lead = f"{shown(row['sut'])} loses a scene:"
        record = store.record(str(row["sut"]), str(row["setting"]), str(row["frame"]))
        answered = record is not None and record["status"] == "ok"
        fallen = f"{row['score'] or 0.0:.2f} under {under}{_lost_class(store, row)}"
        words = (
            f"mean IoU {row['score_before']:.2f} clean, {fallen if answered else f'no answer under {under}'}."
        )
        words += drawn
    else:
        truth = store.categories_shown[store.frames.ids.index(row["frame"])] or ""
        article = "an" if str(truth)[:1].lower() in "aeiou" else "a"
        lead = f"{shown(row['sut'])} loses {article} {shown(truth)}:"
        words = (
            f"right with score {row['score_before']:.2f} clean; under {under} it says {_said(store, row)}."
        )
    before, after = (
        Shot(words, picture(image, widest=WIDEST_FAILURE), None)
        for image, words in zip(both, (CLEAN, f"under {under}"), strict=True)
    )
    return ImageFailure(str(row["sut"]), (before, after), lead, words)


def _with_labels(
    store: Store, row: Mapping[str, Any], both: tuple[Image, Image]
) -> tuple[tuple[Image, Image], str]:
    """Return both images with a segmenter's labels over them, where the run kept these, and a word on it."""
    settings = store.run.baseline.id, str(row["setting"])
    maps = [label_map(store, str(row["sut"]), one, str(row["frame"])) for one in settings]
    if maps[0] is None:
        return both, f" {NOT_DRAWN}"
    bare = most_frequent(maps[0])
    first, second = (
        image if labels is None else laid_over(image, labels, bare=bare)
        for image, labels in zip(both, maps, strict=True)
    )
    return (first, second), " Colours: its answer, but for the class that covers most."


def _lost_class(store: Store, row: Mapping[str, Any]) -> str:
    """Say which class a segmenter loses most of on an image; nothing where it loses none."""
    counts, frame = store.pixel_counts(str(row["sut"])), store.frames.ids.index(row["frame"])
    before, after = (
        segmentation_scores(counts[one], counts[one].frame == frame, store.pixel_classes)[1]
        for one in (store.run.baseline.id, str(row["setting"]))
    )
    falls = {name: (iou or 0.0) - (after[name] or 0.0) for name, iou in before.items()}
    name = max(falls, key=falls.__getitem__, default="")
    if not falls.get(name):
        return ""
    return f"; most lost: {shown(name)}, IoU {before[name] or 0.0:.2f} to {after[name] or 0.0:.2f}"


def _said(store: Store, row: Mapping[str, Any]) -> str:
    """Return the class that a classifier puts first on an image under a setting."""
    answers = answers_of(store, str(row["sut"]))[str(row["setting"])]
    if not isinstance(answers, RankedClasses):
        raise TypeError("only classifiers rank classes")
    place = answers.frame.tolist().index(store.frames.ids.index(row["frame"]))
    best = answers.best[place]
    return shown(best[0]) if best else "nothing"


class MutatedFrame(NamedTuple):
    """A frame under one setting, also as a small picture that stands below an axis."""

    setting: str
    picture: Picture
    thumb: Picture


def mutation_gallery(store: Store, looker: Looker) -> Iterator[MutatedFrame]:
    """Yield one frame, with a person if there is one, under every setting."""
    frame = typical_frame(store)
    for setting in store.groups:
        try:
            image = looker.image(frame, setting)
        except AdverseError:
            continue
        yield MutatedFrame(setting, picture(image), picture(image, widest=WIDEST_THUMB))


def explorer_address(row: Mapping[str, Any], baseline: str) -> str:
    """Return where the explorer shows a failure, before on the left and after on the right."""
    view = {"sut": row["sut"], "left": baseline, "right": row["setting"]}
    where = {"log": row["log"], "frame": row["log_frame"]}
    return f"http://127.0.0.1:{EXPLORER_PORT}/explore?{urlencode({**view, **where})}"


def _images(looker: Looker, row: Mapping[str, Any], baseline: str) -> tuple[Image, Image] | None:
    try:
        return looker.image(row["frame"], baseline), looker.image(row["frame"], row["setting"])
    except AdverseError:
        return None


def _failure(
    marks: _Marks,
    row: Mapping[str, Any],
    baseline: str,
    images: tuple[Image, Image],
    moved: float | None,
) -> Failure:
    change = row["visual_change"]
    words = f"pixels moved by {moved:.1f} of 255 levels" if change is None else f"visual change {change:.2f}"
    setting = next(one for one in marks.store.run.settings if one.id == row["setting"])
    settings = ((baseline, CLEAN), (row["setting"], f"under {shown(setting_words(setting))}"))
    before, after = (
        _shot(image, marks.of(row, name), said) for image, (name, said) in zip(images, settings, strict=True)
    )
    near = row["overlap_after"] >= NEAR
    address = explorer_address(row, baseline)
    return Failure(row, setting_words(setting), near, words, (before, after), address)


def _shot(image: Image, marks: list[Mark], words: str) -> Shot:
    meant = next(mark for mark in marks if mark.kind == "meant")
    region = close_up(meant, image)
    close = None if region is None else picture(image, marks, region=region, widest=WIDEST_FAILURE)
    return Shot(words, picture(image, marks, widest=WIDEST_FAILURE), close)


class _Marks:
    """What is drawn on a frame: truth, detections, and who is meant; each SUT's answers are read once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._answers: dict[str, dict[str, Answers]] = {}
        self._index = {frame: number for number, frame in enumerate(store.frames.ids)}

    def of(self, row: Mapping[str, Any], setting: str) -> list[Mark]:
        """Return truth, the person who is meant, and on top detections from the failure's threshold on."""
        sut, truth = str(row["sut"]), self.store.truth
        if sut not in self._answers:
            self._answers = {sut: self.store.answers(sut, masks=self.store.run.masks)}
        number = self._index[row["frame"]]
        mine = np.flatnonzero(truth.frame == number).tolist()
        size = self.store.mask_sizes[number] if self.store.run.masks else None
        marks = [
            _mark("ignored" if truth.ignore[at] else "truth", truth.boxes[at], truth.masks, at, size)
            for at in mine
        ]
        meant = next(at for at in mine if truth.place[at] == row["object"])
        marks.append(Mark("meant", *truth.boxes[meant].tolist()))
        answers = self._answers[sut][setting]
        threshold = -np.inf if row["threshold"] is None else np.float32(row["threshold"])
        for place in np.flatnonzero(answers.frame == number).tolist():
            marks += [
                _mark("found", answers.boxes[at], answers.masks, at, size)
                for at in range(int(answers.offsets[place]), int(answers.offsets[place + 1]))
                if answers.scores[at] >= threshold
            ]
        return marks


def _mark(
    kind: Kind,
    box: NDArray[np.floating],
    masks: Sequence[bytes] | None,
    at: int,
    size: tuple[int, int] | None,
) -> Mark:
    x0, y0, x1, y1 = box.tolist()
    return Mark(kind, x0, y0, x1, y1, outline(masks[at] if masks else None, size))
