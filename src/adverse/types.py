"""The value types everything else passes around, and the conventions, said once.

Images are (row, column, channel) RGB uint8. Boxes are (x0, y0, x1, y1) pixels, half-open, float.
Labels are indexes into a list of class names. Depth is in metres, +inf where there is no surface.
The world frame is x forward, y left, z up in metres; the camera frame x right, y down, z forward.
Time is in seconds. Values are frozen, their arrays read-only, and checked once, here, where they enter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adverse.errors import DataError, SutError
from adverse.masks import Masks

Image = NDArray[np.uint8]
Depth = NDArray[np.float32]
Group = Literal["baseline", "mild", "severe"]
Split = Literal["train", "validation", "test"]
LogKind = Literal["positive", "negative"]
Task = Literal["detection", "segmentation", "classification"]
Localizer = Literal["foreground", "box_median"]
"""How the depth of a box is read (`adverse.depth.boxes`)."""

LocalizeOn = Literal["clean", "mutated"]
"""Which stereo pair the depth of a box is computed from: the one recorded, or that which the SUT looks at."""

Noise = Literal["own", "common"]
"""Whether a random mutation draws other numbers at every strength, or the same ones at all of them."""


class Source(Protocol):
    """A file that is read into an array when called; pickles, so that any worker can read it."""

    @property
    def path(self) -> Path:
        """The file whose bytes decide what is read."""

    @property
    def recipe(self) -> str:
        """How bytes become the array: the policy in words; with the bytes it decides the result."""

    def __call__(self) -> NDArray[Any]:
        """Read it, or raise DataError."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera in pixels; `baseline_m` is the distance to the right camera of a stereo pair."""

    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int
    baseline_m: float | None = None
    offset_px: float = 0.0  # principal point of the right camera minus that of the left one

    def __repr__(self) -> str:
        """Say nothing of an offset that is none: keys are made of this."""
        told = (f"{name}={value!r}" for name, value in asdict(self).items() if name != "offset_px" or value)
        return f"Camera({', '.join(told)})"


@dataclass(frozen=True, eq=False)
class Truth:
    """What is really in a frame: N objects; `ignore` marks those that neither count as hit nor as miss.

    `area` is what the data set says an object covers, in pixels (of its mask, where it has one), NaN where it
    does not say. `crowd` marks the ignored ones that are a region of many. Either is None where the format
    knows no such thing. `attributes` is what else is annotated of each object, by name (occluded: largely);
    empty where nothing is. `masks` are the objects' own pixels, where they were read; `void` is then one mask
    of the pixels in which nothing is evaluated, if the format has such.
    """

    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    ignore: NDArray[np.bool_]
    ids: NDArray[np.int64]
    positions_m: NDArray[np.float64] | None = None
    area: NDArray[np.float64] | None = None
    crowd: NDArray[np.bool_] | None = None
    attributes: tuple[Mapping[str, str], ...] = ()
    masks: Masks | None = None
    void: Masks | None = None

    def __post_init__(self) -> None:
        n = len(self.boxes)
        shapes = {
            "boxes": (self.boxes.shape, (n, 4)),
            "labels": (self.labels.shape, (n,)),
            "ignore": (self.ignore.shape, (n,)),
            "ids": (self.ids.shape, (n,)),
        }
        if self.positions_m is not None:
            shapes["positions_m"] = (self.positions_m.shape, (n, 3))
        for name, column in (("area", self.area), ("crowd", self.crowd)):
            if column is not None:
                shapes[name] = (column.shape, (n,))
        if self.attributes:
            shapes["attributes"] = ((len(self.attributes),), (n,))
        if self.masks is not None:
            shapes["masks"] = ((len(self.masks),), (n,))
        for name, (got, wanted) in shapes.items():
            if got != wanted:
                raise DataError(f"truth.{name} has the wrong shape", got=str(got), wanted=str(wanted))
        _freeze(self.boxes, self.labels, self.ignore, self.ids, self.positions_m, self.area, self.crowd)

    @staticmethod
    def none() -> Truth:
        """Return the truth of a frame with nothing in it."""
        return Truth(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class Frame:
    """One image of a log, with what is known about it; arrays are read only when asked for.

    `id` is unique in the data set. `image_id` is the data set's own key (COCO image id), used to look
    up recorded predictions. `labels` gives one pixel class for each pixel, `instances` one number for each
    object that is told apart (0: none), `category` what the whole image shows. `fault` says why
    the frame cannot be used, when that is already known.
    """

    id: str
    log_id: str
    index: int
    image: Source
    truth: Truth
    image_id: int | str
    time_s: float | None = None
    camera: Camera | None = None
    world_from_camera: NDArray[np.float64] | None = None
    right: Source | None = None
    depth_m: Source | None = None
    labels: Source | None = None
    category: int | None = None
    fault: str | None = None
    instances: Source | None = None
    behind: Source | None = None
    """The object (H,W) next behind what is seen, 0: none, where an annotation tells; else -1 all over."""
    right_depth_m: Source | None = None
    """The depth of the right image's pixels, where the study mutates both."""


@dataclass(frozen=True, eq=False)
class Log:
    """An ordered run of frames. Positive: at least one target is in it somewhere; negative: none at all."""

    id: str
    frames: tuple[Frame, ...]
    split: Split = "test"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Logs and what the labels mean. `notes` counts what a reader saw and accepted.

    `robot` holds what the data tell about the robot that took them: control_radius_m, safety_radius_m.
    `pixel_classes` names the ids of label maps; an id without a name is not judged.
    """

    name: str
    categories: tuple[str, ...]
    logs: tuple[Log, ...]
    annotations: tuple[Path, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict)
    robot: Mapping[str, float] | None = None
    pixel_classes: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One mutation with its options; a setting is one or more of them, applied in order."""

    mutation: str
    options: Mapping[str, Any]


class Drift(NamedTuple):
    """How the strength of a mutation changes over a log: by how much, and how fast."""

    spread: float = 0.3
    period_s: float = 4.0


@dataclass(frozen=True)
class Setting:
    """A mutation at one strength: canonical id, severity group, and what it needs besides the image.

    A coherent setting draws the same random numbers for all frames of a log: its key is the log's id, not
    the frame's. One with a `drift` changes its strength over the frames of a log.
    """

    id: str
    steps: tuple[Step, ...]
    group: Group
    needs: frozenset[str]
    coherent: bool = False
    drift: Drift | None = None

    @property
    def family(self) -> str:
        """The mutation's name, or the names of a composition joined by +."""
        return "+".join(step.mutation for step in self.steps)


@dataclass(frozen=True, eq=False)
class Detections:
    """What a detector says about one image: boxes (N,4), scores (N,), labels (N,), and masks if it has any.

    A 3-D detector may say where each object stands: `positions_m` (N,3) in the camera frame, in metres, any
    point above or below where it stands on the ground. `masks` are an array (N, height, width) of the image's
    size, a list of COCO's {size, counts}, or Masks. Rounded to float32 where they enter, as models give them.
    What is not finite or not shaped like a detection raises SutError, so a NaN can never score.

    >>> Detections([[0, 0, 9, 9]], [0.5]).labels
    array([0])
    >>> Detections([[0, 0, 2, 1]], [0.5], masks=np.array([[[1, 1, 0]]])).masks.areas
    array([2.])
    """

    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int64]
    positions_m: NDArray[np.float32] | None
    masks: Masks | None

    def __init__(
        self,
        boxes: ArrayLike,
        scores: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        positions_m: ArrayLike | None = None,
        masks: Any = None,
    ) -> None:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
                score = np.array(scores, dtype=np.float32)
                box = np.array(boxes, dtype=np.float32)
                raw_label = np.zeros(score.shape, np.int64) if labels is None else np.array(labels)
                label = raw_label.astype(np.int64)
        except (TypeError, ValueError, OverflowError) as error:
            raise SutError(
                "detections are not numbers",
                got=str(error),
                wanted="boxes (N, 4), scores (N,), labels (N,)",
                fix="Give plain numbers or numpy arrays.",
            ) from error
        if box.size == 0 and score.size == 0 and raw_label.size == 0:
            box, score, label = box.reshape(0, 4), score.reshape(0), np.zeros(0, np.int64)
            raw_label = label
        n = len(score) if score.ndim == 1 else -1
        if score.ndim != 1 or box.shape != (n, 4) or raw_label.shape != (n,):
            raise SutError(
                "detections have the wrong shape",
                got=f"boxes {box.shape}, scores {score.shape}, labels {raw_label.shape}",
                wanted="boxes (N, 4), scores (N,), labels (N,)",
                fix="Give one row of boxes, one score and one label for each detection.",
            )
        if not (np.isfinite(box).all() and np.isfinite(score).all() and (label == raw_label).all()):
            bad = int((~np.isfinite(box).all(axis=1) | ~np.isfinite(score)).sum())
            raise SutError(
                "detections hold values that are not finite numbers",
                got=f"{bad} of {n} boxes or scores are NaN or infinite, or a label is not whole",
                wanted="finite boxes and scores, whole labels",
                fix="Find out why the system gives them; what is no detection must not be answered.",
            )
        if (box[:, 2:] < box[:, :2]).any():
            row = int(np.flatnonzero((box[:, 2:] < box[:, :2]).any(axis=1))[0])
            raise SutError(
                "a box ends before it begins",
                got=f"box {row} = {[round(float(v), 2) for v in box[row]]}",
                wanted="x0 <= x1 and y0 <= y1",
                fix="Give boxes as (x0, y0, x1, y1), not (x, y, width, height).",
            )
        position = None if positions_m is None else _positions(positions_m, n)
        _freeze(box, score, label, position)
        object.__setattr__(self, "masks", None if masks is None else _masks(masks, n))
        object.__setattr__(self, "boxes", box)
        object.__setattr__(self, "scores", score)
        object.__setattr__(self, "labels", label)
        object.__setattr__(self, "positions_m", position)

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> Detections:
        """Return some of the detections, in the order of `rows`."""
        at = np.asarray(rows, np.int64)
        return Detections(
            self.boxes[at],
            self.scores[at],
            self.labels[at],
            positions_m=None if self.positions_m is None else self.positions_m[at],
            masks=None if self.masks is None else self.masks.take(at.tolist()),
        )

    def __len__(self) -> int:
        return len(self.scores)

    def same(self, other: Detections) -> bool:
        """Tell whether two answers are equal to the bit, order included."""
        return (
            np.array_equal(self.boxes, other.boxes)
            and np.array_equal(self.scores, other.scores)
            and np.array_equal(self.labels, other.labels)
            and _same_positions(self.positions_m, other.positions_m)
            and (other.masks is None if self.masks is None else self.masks.same(other.masks))
        )

    @staticmethod
    def none() -> Detections:
        """Return the answer 'nothing here'."""
        return Detections(np.zeros((0, 4)), np.zeros(0))


@dataclass(frozen=True, eq=False)
class LabelMap:
    """What a segmenter says about one image: one label for each pixel, (H,W), an index into its classes.

    >>> LabelMap([[0, 1], [1, 1]]).labels.dtype
    dtype('uint8')
    """

    labels: NDArray[np.uint8] | NDArray[np.uint16]

    def __init__(self, labels: ArrayLike) -> None:
        try:
            given = np.asarray(labels)
        except (TypeError, ValueError) as error:
            raise _no_label_map(str(error)) from error
        if given.ndim != 2 or not given.size or given.dtype.kind not in "ui":
            raise _no_label_map(f"{given.dtype} of shape {given.shape}")
        if given.min() < 0 or given.max() > np.iinfo(np.uint16).max:
            raise _no_label_map(f"labels from {given.min()} to {given.max()}")
        narrow = np.array(given, np.uint8 if given.max() < 256 else np.uint16, order="C")
        _freeze(narrow)
        object.__setattr__(self, "labels", narrow)

    def same(self, other: LabelMap) -> bool:
        """Tell whether two answers are equal to the bit."""
        return np.array_equal(self.labels, other.labels)


@dataclass(frozen=True, eq=False)
class ClassScores:
    """What a classifier says about one image: a score for each of its classes, (C,), higher is surer.

    >>> ClassScores([0.1, 0.7, 0.2]).best(2)
    array([1, 2])
    """

    scores: NDArray[np.float32]

    def __init__(self, scores: ArrayLike) -> None:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
                given = np.array(scores, dtype=np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise _no_class_scores(str(error)) from error
        if given.ndim != 1 or not given.size:
            raise _no_class_scores(f"shape {given.shape}")
        if not np.isfinite(given).all():
            raise _no_class_scores(f"{int((~np.isfinite(given)).sum())} of {given.size} are NaN or infinite")
        _freeze(given)
        object.__setattr__(self, "scores", given)

    def best(self, count: int) -> NDArray[np.int64]:
        """Return the labels of the highest scores, highest first; of equal scores the lower label."""
        return np.argsort(-self.scores, kind="stable")[:count]

    def same(self, other: ClassScores) -> bool:
        """Tell whether two answers are equal to the bit."""
        return np.array_equal(self.scores, other.scores)


Answer = Detections | LabelMap | ClassScores


class Detector(Protocol):
    """A system under test that looks at images. Label i means `classes[i]`."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels."""

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order."""


class Segmenter(Protocol):
    """A system under test that names every pixel. Label i means `classes[i]`."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels."""

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """Return one answer of the image's size for each image, in order."""


class Classifier(Protocol):
    """A system under test that says what an image shows. Score i is for `classes[i]`."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""

    def classify(self, images: Sequence[Image]) -> list[ClassScores]:
        """Return one answer for each image, in order."""


class Recorded(Protocol):
    """A system under test whose answers are already on file, by frame and setting."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels."""

    def recall(self, image_id: int | str, setting: str) -> Detections:
        """Return what was recorded for a frame under a setting."""


System = Detector | Segmenter | Classifier


def _positions(given: ArrayLike, count: int) -> NDArray[np.float32]:
    """Check the positions that a detector reports: before the camera, one for each detection."""
    wanted = "positions_m (N, 3): x right, y down, z forward of the camera, in metres"
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            position = np.array(given).astype(np.float32, casting="same_kind")  # no text
    except (TypeError, ValueError, OverflowError) as error:
        raise SutError(
            "the positions of detections are not numbers",
            got=str(error),
            wanted=wanted,
            fix="Give plain numbers or a numpy array.",
        ) from error
    if position.size == 0 and count == 0:
        position = position.reshape(0, 3)
    if position.shape != (count, 3):
        raise SutError(
            "the positions of detections have the wrong shape",
            got=f"positions_m {position.shape} for {count} detections",
            wanted=wanted,
            fix="Give one position for each detection, or leave positions_m out.",
        )
    lost = ~np.isfinite(position).all(axis=1) | ~(position[:, 2] > 0)
    if lost.any():
        row = int(np.flatnonzero(lost)[0])
        raise SutError(
            "a detection is placed where the camera cannot see it",
            got=f"position {row} = {[round(float(v), 3) for v in position[row]]}",
            wanted=f"{wanted}; finite, and z above 0",
            fix="Give positions in the frame of the camera, not of the world or the vehicle.",
        )
    return position


def _same_positions(first: NDArray[np.float32] | None, second: NDArray[np.float32] | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)


def _masks(given: Any, count: int) -> Masks:
    try:
        masks = Masks.of(given)
    except (TypeError, ValueError) as error:
        raise SutError(
            "the masks of an answer cannot be read",
            got=str(error),
            wanted="(N, height, width) of bool, or a list of COCO's {size, counts}",
            fix="Give one mask of the image's size for each detection.",
        ) from error
    if len(masks) != count:
        raise SutError(
            "there is not one mask for each detection",
            got=f"{len(masks)} masks for {count} detections",
            fix="Give one mask of the image's size for each detection.",
        )
    return masks


def _no_label_map(got: str) -> SutError:
    return SutError(
        "a label map is not one whole number for each pixel",
        got=got,
        wanted="(height, width) of whole numbers from 0",
        fix="Give the index of its class for each pixel.",
    )


def _no_class_scores(got: str) -> SutError:
    return SutError(
        "class scores are not one finite number for each class",
        got=got,
        wanted="(classes,) of finite numbers",
        fix="Give one score for each class, for each image.",
    )


def _freeze(*arrays: NDArray[Any] | None) -> None:
    for array in arrays:
        if array is not None:
            array.flags.writeable = False
