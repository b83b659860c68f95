"""Do recorded predictions belong to the data of a study? Looked at before any work, file by file.

A wrong image id, a box in another convention or a file of other images makes a wrong number, never an error,
once it is scored. What has no sensible reading is refused; what may be intended is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from adverse.errors import AdverseError, StudyError
from adverse.suts.recorded_mix_up import exchanged, same_rows
from adverse.suts.recorded_rows import Boxes, Floats, ImageId, Needed, RecordedRows, overlaps
from adverse.suts.recorded_shift import shifted
from adverse.types import Frame

Missing = Literal["no-detections", "error"]
Unknown = Literal["error", "ignore"]
Shifted = Literal["error", "accept"]
NAMED = 3
"""Examples that a message names."""
MOST_MISSING = 0.5
"""Share of a file's images that may be without an entry unless the study says that it is meant."""
MEASURED = 64
"""Images of each file whose size is looked at."""
FEWEST_BOXES = 10
"""Boxes from which their geometry tells a convention."""
FEWEST_SMALL = 3
"""Boxes from which being of at most a pixel means that they are fractions of the image."""
OUTSIDE = 0.25
"""Share of the boxes beyond the image that cannot be the overhang of a detector that does not clip."""
OVERHANG, OVERHANG_PX = 0.02, 2.0
"""By so much, of the image's side and in pixels, a box may reach beyond its image."""
NEARLY_ALL = 0.99
REVERSED = 0.05
"""Share of xyxy boxes that end before they begin, from which they are xywh."""
IOU = 0.5


class DeclaredFormat(NamedTuple):
    """What the study says about the files; `boxes` is None where it does not say, and is then COCO's xywh."""

    boxes: Boxes | None
    missing: Missing | None
    unknown_images: Unknown
    shifted_images: Shifted = "error"


@dataclass
class Review:
    """What is wrong with the files of one SUT: one error for each kind, and warnings."""

    errors: list[AdverseError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _met: dict[str, int] = field(default_factory=dict)
    _odd: dict[str, list[str]] = field(default_factory=dict)

    def refuse(self, what: str, *, where: Path, got: str, wanted: str | None = None, fix: str) -> None:
        """Take an error; the same in further files is counted, not repeated."""
        self._met[what] = self._met.get(what, 0) + 1
        if self._met[what] == 1:
            self.errors.append(StudyError(what, where=str(where), got=got, wanted=wanted, fix=fix))

    def warn(self, where: Path, text: str, *, kind: str = "boxes") -> None:
        """Take a warning; one of the same kind in further files is counted, not repeated."""
        self._odd.setdefault(kind, []).append(f"{where.name}: {text}")

    def finish(self) -> Review:
        """Say in each error, and in each warning of a kind, how many further files it is true of."""
        for number, error in enumerate(self.errors):
            got = f"{error.got}{_in_more_files(self._met[error.what])}"
            self.errors[number] = StudyError(
                error.what, where=error.where, got=got, wanted=error.wanted, fix=error.fix
            )
        for lines in self._odd.values():
            self.warnings.append(f"{lines[0]}{_in_more_files(len(lines))}")
        return self


def _in_more_files(count: int) -> str:
    return "" if count == 1 else f"; the same in {count - 1} more file{'s' if count > 2 else ''}"


def review_files(
    files: Iterable[Callable[[], RecordedRows]], needed: Sequence[Needed], declared: DeclaredFormat
) -> Review:
    """Check files one at a time against the frames each must answer for; the first is the baseline's."""
    review = Review()
    missing: list[tuple[str, int, int]] = []
    lowest, highest, repeated = np.inf, -np.inf, 0
    clean: RecordedRows | None = None
    for number, (read, wanted) in enumerate(zip(files, needed, strict=True)):
        try:
            rows = read()
        except AdverseError as error:
            review.refuse(
                "a file of predictions cannot be read",
                where=Path(error.where or ""),
                got=f"{error.what}: {error.got}",
                wanted=error.wanted,
                fix=error.fix or "Write the file anew.",
            )
            continue
        _check_categories(rows, review)
        _check_images(rows, wanted, declared, review)
        absent = _check_coverage(rows, wanted, declared, review)
        if absent:
            missing.append((rows.path.name, absent, sum(map(len, wanted.splits.values()))))
        repeated += _check_repeats(rows, review)
        refused = len(review.errors)
        _check_boxes(rows, wanted, declared, review, with_truth=number == 0)
        if len(review.errors) == refused:  # boxes in another convention fit nowhere
            _check_shift(rows, wanted, declared, review)
        if number == 0:
            clean = rows
        elif clean is not None:
            _compare(clean, rows, wanted, declared, review)
        finite = rows.scores[np.isfinite(rows.scores)]
        lowest, highest = finite.min(initial=lowest), finite.max(initial=highest)
    if missing:
        name, absent, of = max(missing, key=lambda entry: entry[1] / entry[2])
        review.warnings.append(
            f"images without an entry are taken as images without detections: in {len(missing)} "
            f"of {len(needed)} files, at most {absent} of {of} images ({name})"
        )
    if repeated:
        review.warnings.append(f"{repeated} entries are written more than once, and each counts")
    if lowest < 0 or highest > 1:
        review.warnings.append(
            f"scores are not between 0 and 1 ({lowest:.3g} to {highest:.3g}). They are used as they are: "
            "write them from 0 to 1 (per cent divided by 100), and the same way in every file"
        )
    return review.finish()


def _check_shift(rows: RecordedRows, wanted: Needed, declared: DeclaredFormat, review: Review) -> None:
    """Refuse a file whose boxes fit the truth of their neighbours' images and not that of their own."""
    shift = shifted(rows, wanted, declared.boxes or "xywh")
    if shift is None:
        return
    if declared.shifted_images == "accept":  # the study is about late answers, say
        review.warn(rows.path, f"image ids are shifted: {shift.got}", kind="shifted")
        return
    review.refuse(
        "the image ids of predictions are shifted against the truth",
        where=rows.path,
        got=shift.got,
        wanted="boxes of the image that image_id names",
        fix=f"{shift.fix} If it is meant, say shifted_images: accept.",
    )


def _compare(
    clean: RecordedRows, rows: RecordedRows, wanted: Needed, declared: DeclaredFormat, review: Review
) -> None:
    """Warn of a file of mutated images that is that of the images as they are, or is mixed up."""
    if same_rows(clean, rows):
        text = "the predictions are those of the images as they are: were they made on the mutated ones?"
        review.warn(rows.path, text, kind="identical")
    elif (odd := exchanged(clean, rows, wanted, declared.boxes or "xywh")) is not None:
        review.warn(rows.path, odd, kind=odd.partition(":")[0])


def _check_categories(rows: RecordedRows, review: Review) -> None:
    if rows.unknown_categories:
        listed = ", ".join(map(repr, list(rows.unknown_categories)[:NAMED]))
        review.refuse(
            "predictions have category numbers that the study does not explain",
            where=rows.path,
            got=f"category_id {listed} in {sum(rows.unknown_categories.values())} entries",
            fix="Name them all in categories:, or give the COCO file as annotations:. Classes that the "
            "data set does not have are left out.",
        )


def _check_images(rows: RecordedRows, wanted: Needed, declared: DeclaredFormat, review: Review) -> None:
    ids = dict.fromkeys([*rows.images, *rows.spoilt])
    unknown = [image for image in ids if image not in wanted.known]
    if not unknown or (declared.unknown_images == "ignore" and len(unknown) < len(ids)):
        return
    examples = ", ".join(map(repr, unknown[:NAMED]))
    ours = ", ".join(repr(image) for image in sorted(wanted.known, key=str)[:NAMED])
    fix = "Record the predictions for the images of this data set"
    if {str(image) for image in unknown} & {str(image) for image in wanted.known}:
        fix = "Write image_id as the data set does, a number as a number and text as text"
    elif len(unknown) < len(ids):
        fix += ", or, where a file holds more images than the study, say unknown_images: ignore"
    review.refuse(
        "predictions are about images that the data set does not have",
        where=rows.path,
        got=f"{len(unknown)} of {len(ids)} image ids are unknown, such as {examples}",
        wanted=f"ids such as {ours}",
        fix=fix + ".",
    )


def _check_coverage(rows: RecordedRows, wanted: Needed, declared: DeclaredFormat, review: Review) -> int:
    """Return how many images have no entry."""
    present = {*rows.images, *rows.spoilt}
    missing = 0
    for split, frames in wanted.splits.items():
        absent = [frame for frame in frames if frame.image_id not in present and frame.fault is None]
        missing += len(absent)
        share = len(absent) / max(len(frames), 1)
        refused = share > MOST_MISSING if declared.missing is None else bool(absent)
        if absent and refused and declared.missing != "no-detections":
            examples = ", ".join(repr(frame.image_id) for frame in absent[:NAMED])
            fix = "Record them all"
            if declared.missing is None:
                fix += ", or say missing: no-detections if an image without an entry has no detections"
            review.refuse(
                "predictions are missing for images of the study",
                where=rows.path,
                got=f"no entry for {len(absent)} of {len(frames)} {split} images, such as {examples}",
                fix=fix + ".",
            )
    return missing


def _check_repeats(rows: RecordedRows, review: Review) -> int:
    """Return how many entries are there once more; a file that holds all twice is refused."""
    boxes = map(tuple, rows.boxes.tolist())
    distinct = set(zip(rows.images, boxes, rows.scores.tolist(), rows.labels.tolist(), strict=True))
    repeated = len(rows.images) - len(distinct)
    if repeated and repeated * 2 >= len(rows.images):
        review.refuse(
            "a file holds its predictions twice",
            where=rows.path,
            got=f"{repeated} of {len(rows.images)} entries are there before, number for number",
            fix="Write each detection once: a second one counts as a false positive.",
        )
        return 0
    return repeated


def _check_boxes(
    rows: RecordedRows, wanted: Needed, declared: DeclaredFormat, review: Review, *, with_truth: bool
) -> None:
    frames = {frame.image_id: frame for split in wanted.splits.values() for frame in split}
    odd = {int(row) for row in np.argwhere(~np.isfinite(rows.boxes))[:, 0]}  # faults of their images
    used = [row for row, image in enumerate(rows.images) if row not in odd and image in frames]
    boxes, images = rows.boxes[used], [rows.images[row] for row in used]
    if not used:
        return
    if len(boxes) >= FEWEST_SMALL and np.abs(boxes).max() <= 1:
        review.refuse(
            "the boxes of predictions are fractions of the image",
            where=rows.path,
            got=f"no number of {len(boxes)} boxes is above {np.abs(boxes).max():.3g}",
            wanted="pixels",
            fix="Multiply them by the image's width and height.",
        )
        return
    stated = declared.boxes or "xywh"
    other: Boxes = "xyxy" if stated == "xywh" else "xywh"
    evidence = _geometry(boxes, images, frames, stated)
    if evidence is None and with_truth:
        evidence = _hits_evidence(boxes, images, frames, stated, other)
    if evidence is None:
        if stated == "xywh" and (beyond := _beyond(boxes, images, frames)):
            review.warn(rows.path, f"{beyond}: were they made on images of another size?")
        return
    if declared.boxes == "xywh":  # said in so many words, and not impossible
        review.warn(rows.path, f"boxes: xywh may be wrong: {evidence}")
        return
    meaning = {"xywh": "[x, y, width, height]", "xyxy": "[x0, y0, x1, y1]"}
    review.refuse(
        f"the boxes of predictions are not {meaning[stated]}",
        where=rows.path,
        got=evidence,
        wanted=meaning[stated],
        fix=f"If they are {meaning[other]}, say boxes: {other}; else convert them.",
    )


def _geometry(
    boxes: Floats, images: Sequence[ImageId], frames: Mapping[ImageId, Frame], stated: Boxes
) -> str | None:
    """Return why boxes cannot be in the stated convention, from their numbers and the images' sizes."""
    after = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    if stated == "xyxy":
        reversed_ = int((boxes[:, 2:] < boxes[:, :2]).any(axis=1).sum())
        return (
            f"{reversed_} of {len(boxes)} boxes end before they begin"
            if reversed_ > REVERSED * len(boxes)
            else None
        )
    beyond = _beyond(boxes, images, frames)
    if beyond is None or after.mean() < NEARLY_ALL:
        return None
    corners = np.column_stack([np.zeros((len(boxes), 2)), boxes[:, 2:]])
    if _beyond(corners, images, frames, share=1 - NEARLY_ALL):
        return None
    return f"{beyond}, and as [x0, y0, x1, y1] they do not"


def _beyond(
    boxes: Floats, images: Sequence[ImageId], frames: Mapping[ImageId, Frame], share: float = OUTSIDE
) -> str | None:
    """Say how many [x, y, width, height] boxes end outside of their image, if more than a share do."""
    sizes = _sizes(images, frames)
    rows = [row for row, image in enumerate(images) if image in sizes]
    if len(rows) < FEWEST_BOXES:
        return None
    edges = np.array([sizes[images[row]] for row in rows], np.float64)
    slack = OVERHANG_PX + OVERHANG * edges
    beyond = int((boxes[rows, :2] + boxes[rows, 2:] > edges + slack).any(axis=1).sum())
    return f"{beyond} of {len(rows)} boxes reach beyond their image" if beyond > share * len(rows) else None


def _sizes(images: Sequence[ImageId], frames: Mapping[ImageId, Frame]) -> dict[ImageId, tuple[int, int]]:
    """Return width and height of the first images that can be measured."""
    sizes: dict[ImageId, tuple[int, int]] = {}
    for image in list(dict.fromkeys(images))[:MEASURED]:
        measure = getattr(frames[image].image, "measure", None)
        try:
            if measure is not None:
                sizes[image] = measure()
        except AdverseError:  # told when the frame is read
            continue
    return sizes


def _hits_evidence(
    boxes: Floats, images: Sequence[ImageId], frames: Mapping[ImageId, Frame], stated: Boxes, other: Boxes
) -> str | None:
    """Return why boxes are rather something else: far more true objects are hit if they are read so."""
    rows: dict[ImageId, list[int]] = {}
    for row, image in enumerate(images):
        rows.setdefault(image, []).append(row)
    hits = {"xywh": 0, "xyxy": 0}
    total = 0
    for image, mine in rows.items():
        truth = frames[image].truth.boxes[~frames[image].truth.ignore]
        total += len(truth)
        for kind in hits:
            corners = boxes[mine].copy()
            if kind == "xywh":
                corners[:, 2:] += corners[:, :2]
            hits[kind] += _hits(corners, truth)
    gain = hits[other] - hits[stated]
    if gain < max(2, OUTSIDE * total) or hits[other] < 2 * hits[stated]:
        return None
    return f"as {stated} they hit {hits[stated]} of {total} true objects, as {other} {hits[other]}"


def _hits(boxes: Floats, truth: Floats) -> int:
    """Count the true boxes that some box overlaps by at least half."""
    return int((overlaps(boxes, truth) >= IOU).any(axis=0).sum())
