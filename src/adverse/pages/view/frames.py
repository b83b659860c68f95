"""One frame of the explorer: its picture, a detector's boxes matched to the ground truth, or other answers.

Pictures are mutated when they are asked for, as PNG, and as few kept as fit a bound. Each is made by the
study's own mutation with the study's seed, so it is to the pixel what the SUTs saw, if the data set is still
what it was; where its pixels have changed since the run, the page says so.

Boxes are matched in the image plane, as the image level does (IoU of at least one half, the highest score
first). That does not depend on the threshold, so a box needs one number: the place of the first sensitivity
at which it counts. The page shows and hides boxes by it and computes nothing.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.analysis.detections import SharedSensitivity
from adverse.analysis.tasks import segmentation_scores
from adverse.errors import AdverseError
from adverse.levels.context import PlacedDetections, TruePlaces
from adverse.levels.match import FALSE, HIT, MatchedDetections
from adverse.levels.outcomes import first_level
from adverse.pages.view.pick import Pick
from adverse.pages.view.session import ExploredRun
from adverse.report.label_maps import LABELS, coloured, label_colours, label_map
from adverse.report.pictures import outline, outline_path
from adverse.text import counted, shown, without_paths

KINDS = {HIT: "hit", FALSE: "false"}
IGNORED = "ignored"
NAMES = {"hit": "hit", "false": "false alarm", IGNORED: "not judged", "true": "ground truth"}
NEVER = "never"


def frame_boxes(run: ExploredRun, pick: Pick, setting: str, frame: int) -> dict[str, Any]:
    """Return the detections (`found`) and true objects (`true`) of a frame, each with its `since`.

    `since` is a place among the sensitivities; as many as there are of them means never. `steps` are the
    counts in words, each with the place from which it holds.
    """
    judged, grid = run.judged(pick.sut, setting, pick.log), run.grid(pick.sut)
    seen = run.seen(pick.sut, setting, pick.log) if run.located else None
    mine = np.flatnonzero(judged.answers.frame[judged.row] == frame)
    since = first_level(judged.answers.scores[mine], grid.thresholds)
    detections = [
        _detection(run, judged, seen, int(at)) | _counts(grid, int(start))
        for at, start in zip(mine, since, strict=True)
        if start < len(grid.levels)
    ]
    places = next(iter(run.context(pick.log).truths.values()), None) if run.located else None
    true = _true(
        run, places, dict(zip(judged.truth[mine].tolist(), since.tolist(), strict=True)), frame, grid
    )
    return {"found": detections, "true": true, "steps": _steps(detections, true, grid)}


def _detection(
    run: ExploredRun, judged: MatchedDetections, seen: PlacedDetections | None, at: int
) -> dict[str, Any]:
    answers = judged.answers
    kind = KINDS.get(int(judged.outcome[at]), IGNORED)
    label, score = run.store.targets[int(answers.labels[at])], float(answers.scores[at])
    box: dict[str, Any] = {"kind": kind, "label": label, "box": _placed(answers.boxes[at]), "score": score}
    box |= _drawn_mask(run, answers.masks, at, int(judged.frame[at]))
    if seen is not None:
        box |= {"range_m": metres(seen.places.range_m[at]), "along_m": metres(seen.distance_m[at])}
    return box | {"score_words": f"{score:.4f}", "words": f"{NAMES[kind]}: {shown(label)}, score {score:.4f}"}


def _counts(grid: SharedSensitivity, since: int) -> dict[str, Any]:
    """Return the place of the first sensitivity at which a box counts, and that in words."""
    words = f"{grid.levels[since]:.3g}" if since < len(grid.levels) else NEVER
    return {"since": since, "since_words": words}


def _true(
    run: ExploredRun, places: TruePlaces | None, hit: dict[int, int], frame: int, grid: SharedSensitivity
) -> list[dict[str, Any]]:
    """Return the true objects; `hit` is the place of the sensitivity from which each is found."""
    truth = run.store.truth
    true = []
    for row in np.flatnonzero(truth.frame == frame).tolist():
        kind = IGNORED if truth.ignore[row] else "true"
        label = run.store.targets[int(truth.labels[row])]
        box: dict[str, Any] = {"kind": kind, "label": label, "box": _placed(truth.boxes[row])}
        box |= _drawn_mask(run, truth.masks, row, frame)
        if places is not None:
            box |= {"range_m": metres(places.places.range_m[row]), "along_m": metres(places.distance_m[row])}
        words = f"{NAMES[kind]}: {shown(label)}"
        true.append(box | _counts(grid, hit.get(row, len(grid.levels))) | {"words": words})
    return true


def _steps(
    detections: list[dict[str, Any]], true: list[dict[str, Any]], grid: SharedSensitivity
) -> list[tuple[int, str]]:
    people = [box["since"] for box in true if box["kind"] == "true"]
    false = [box["since"] for box in detections if box["kind"] == "false"]
    steps = []
    for k in sorted({0, *people, *false} - {len(grid.levels)}):
        hits = sum(start <= k for start in people)
        alarms = sum(start <= k for start in false)
        words = ", ".join(
            (counted(hits, "hit"), counted(len(people) - hits, "miss"), counted(alarms, "false alarm"))
        )
        steps.append((k, words))
    return steps


def _drawn_mask(run: ExploredRun, masks: Sequence[bytes] | None, at: int, frame: int) -> dict[str, str]:
    """Return the outline of an object's mask as an SVG path, in a run with masks."""
    if masks is None:
        return {}
    return {"mask": outline_path(outline(masks[at], run.store.mask_sizes[frame]))}


def _placed(box: NDArray[Any]) -> list[float]:
    """Return a box x0 y0 x1 y1 as x, y, width and height."""
    x0, y0, x1, y1 = (float(value) for value in box)
    return [x0, y0, x1 - x0, y1 - y0]


NOT_KEPT = (
    "The run did not keep the segmenter's label maps, so they cannot be laid over the frame. "
    "Set keep_label_maps: true in the study and run it again."
)
TITLE = "this frame's scores, IoU by class"


def frame_answer(run: ExploredRun, sut: str, setting: str, frame: int) -> dict[str, Any]:
    """Return the answer about one frame as rows of words, and whether there is a label map to lay over it."""
    record = run.store.record(sut, setting, run.store.frames.ids[frame])
    if record is None:
        return {"title": "", "rows": [], "labels": False, "note": "The SUT was not run on this frame."}
    if run.store.task == "classification":
        return _classified(run, record, frame)
    return _segmented(run, sut, setting, frame, record)


def label_picture(run: ExploredRun, sut: str, setting: str, frame: int) -> bytes | None:
    """Return a kept label map in colours as PNG; None if there is none."""
    labels = label_map(run.store, sut, setting, run.store.frames.ids[frame])
    return None if labels is None else bytes(cv2.imencode(".png", coloured(labels)[..., ::-1])[1].tobytes())


def label_names(run: ExploredRun, sut: str) -> list[dict[str, str]]:
    """Return the names of a segmenter's labels, where its options tell them, with their colours."""
    if run.store.task != "segmentation":
        return []
    classes = run.store.run.sut(sut).options.get("classes")
    names = classes if isinstance(classes, list) else []
    colours = ["#" + bytes(colour).hex() for colour in label_colours()]
    return [{"name": str(name), "colour": colours[n % LABELS]} for n, name in enumerate(names)]


def _classified(run: ExploredRun, record: dict[str, Any], frame: int) -> dict[str, Any]:
    truth = run.store.categories_shown[frame] or ""
    best = list(zip(record["ranked"] or [], record["ranked_scores"] or [], strict=True))
    rows = [{"name": name, "value": f"{score:.3f}", "right": name == truth} for name, score in best]
    return {"title": "the best classes", "rows": rows, "labels": False, "note": f"It shows: {truth}"}


def _segmented(
    run: ExploredRun, sut: str, setting: str, frame: int, record: dict[str, Any]
) -> dict[str, Any]:
    counts = run.pixel_counts(sut)[setting]
    scores, per_class = segmentation_scores(counts, counts.frame == frame, run.store.pixel_classes)
    rows = [
        {"name": name.replace("_", " "), "value": f"{value:.3f}", "right": None}
        for name, value in (*scores.items(), *per_class.items())
        if value is not None
    ]
    has_map = record["label_map"] is not None
    return {"title": TITLE, "rows": rows, "labels": has_map, "note": "" if has_map else NOT_KEPT}


def metres(value: Any) -> float | None:
    """Return a distance as JSON can hold it: None where it is not known, or never."""
    return float(value) if np.isfinite(value) else None


MOST_BYTES = 96 * 1024 * 1024
QUICK = 1
"""PNG compression: a page is served over the loopback, where time counts more than size."""
CHANGED = "The data set has changed since the run: this is not the image that the SUT was shown."


@dataclass(frozen=True)
class FramePicture:
    """A frame under a setting as PNG with its size; `why` it cannot be shown, or not be trusted."""

    png: bytes = b""
    width: int = 0
    height: int = 0
    why: str | None = None


class Pictures:
    """Renders frames one at a time, and keeps the latest."""

    def __init__(self, run: ExploredRun, *, most_bytes: int = MOST_BYTES) -> None:
        self.run = run
        self.most_bytes = most_bytes
        self.kept: OrderedDict[tuple[int, str], FramePicture] = OrderedDict()
        self.roots = (run.store.folder.path.resolve(), run.store.run.folder, Path.home())
        self._printed: set[str] = set()
        self._lock = threading.Lock()  # plug-ins need not be safe to run in two threads

    def of(self, frame: int, setting: str) -> FramePicture:
        """Return a frame (a row of the run's frames) under a setting."""
        key = (frame, setting)
        with self._lock:
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key]
            shown = self._render(frame, setting)
            if shown.png:  # what failed may work again once the data are back
                self.kept[key] = shown
            while (
                len(self.kept) > 1
                and sum(len(picture.png) for picture in self.kept.values()) > self.most_bytes
            ):
                self.kept.popitem(last=False)
            return shown

    def _render(self, frame: int, setting: str) -> FramePicture:
        name = self.run.store.frames.ids[frame]
        try:
            version = self.run.looker.version(name, setting)
        except AdverseError as error:
            self._tell(f"no picture: {error}")
            return FramePicture(why=without_paths(str(error), *self.roots))
        image = np.asarray(version.image)
        png = cv2.imencode(".png", image[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, QUICK])[1].tobytes()
        frames = self.run.store.frames
        hashes = self.run.pixel_hashes(frames.logs[frames.log[frame]])
        changed = version.pixels != hashes.get(name, version.pixels)
        return FramePicture(png, int(image.shape[1]), int(image.shape[0]), CHANGED if changed else None)

    def _tell(self, words: str) -> None:
        """Say on the terminal, once, what the page says without paths."""
        if words not in self._printed:
            self._printed.add(words)
            print(words, file=sys.stderr)  # noqa: T201
