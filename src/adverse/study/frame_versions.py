"""From a frame to the images that SUTs see: decoded once, mutated once per setting, never written to disk."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.content import digest
from adverse.depth import Policy, usable
from adverse.depth.boxes import BoxPixels, box_pixels
from adverse.errors import AdverseError, DataError, one_line
from adverse.file_access import FileAccess
from adverse.mutations.drift import FRAME_S
from adverse.mutations.settings import BASELINE, Streams, apply_setting, apply_to_right
from adverse.plugins import Registry
from adverse.processes import one_process
from adverse.store.records import DEPTH_QUANTILES
from adverse.study.job import StudyJob
from adverse.study.moved_back import WayBack, moved_by, way_back
from adverse.study.stages import MUTATING, Avoid, Stage
from adverse.types import Depth, Frame, Image, Setting
from adverse.visual import Reference


@dataclass(frozen=True)
class FrameVersion:
    """A frame under one setting: the image, or why there is none.

    `pixels` is the hash of the image before mutation, `notes` what decoding normalised.
    """

    frame: Frame
    setting: Setting
    image: Image | None = None
    refused: str | None = None
    pixels: str | None = None
    notes: str | None = None
    depth_m: Callable[[], Depth] | None = None
    """Gives the depth map that detections are located by, when they are to be."""
    mutated_by_m: BoxPixels | None = None
    """The depth inside the true boxes, where the mutation goes by depth."""
    labels: NDArray[np.uint8] | None = None
    """The true label map, when pixels are evaluated."""
    details: Mapping[str, float] = field(default_factory=dict)
    """What the mutation reports about what it did."""
    mutated: str | None = None
    """The hash of the image after mutation, where code that is not ours did it."""
    mutation_repeats: bool | None = None
    """Whether it came to the same pixels when it was done again, where it was."""
    back: WayBack | None = None
    """How answers are taken back to the clean frame, where the mutation moves what is in the image."""


class FrameVersions:
    """A frame that gives its version under any setting; decoded on first use, once.

    A frame that cannot be decoded is refused for all settings, one that a mutation cannot work on for that
    setting alone. An error of a decoder or a plug-in costs a frame, never the run.
    """

    def __init__(
        self,
        frame: Frame,
        job: StudyJob,
        registry: Registry,
        *,
        avoid: Avoid,
        tell: Callable[[Stage], None],
        access: FileAccess | None = None,
        twice: bool = False,
    ) -> None:
        self.frame = frame
        self.job = job
        self.registry = registry
        self.avoid = avoid
        self.tell = tell
        self.access = access
        self.twice = twice
        self._refused = frame.fault
        self._loaded: _DecodedFrame | None = None
        self._depth_m: Depth | None = None
        self._right: _RightImage | None = None
        self._box_pixels: BoxPixels | None = None
        self._reference: Reference | None = None

    def version(self, setting: Setting) -> FrameVersion:
        """Return the frame under a setting, or why it cannot be had."""
        avoided = self.avoid.reason(self.frame.id, setting.id)
        if avoided is not None:
            return FrameVersion(self.frame, setting, refused=avoided)
        loaded = self._load()
        if loaded is None:
            return FrameVersion(self.frame, setting, refused=self._refused)
        self.tell(Stage(MUTATING, self.frame.id, setting.id, limit_s=self.job.mutation_timeout_s))
        details: dict[str, float] = {}
        draws: list[Streams] = []
        try:
            depth_m = loaded.depth(self.job.invalid_depth) if "depth_m" in setting.needs else None
            labels = loaded.labels() if "labels" in setting.needs else None
            mutate = functools.partial(
                apply_setting,
                loaded.image,
                setting,
                self.registry,
                seed=self.job.seed,
                key=self._key(setting),
                log=self.frame.log_id,
                time_s=moment_s(self.frame),
                depth_m=depth_m,
                labels=labels,
                noise=self.job.noise,
            )
            with one_process(), self.access.noted() if self.access else contextlib.nullcontext():
                image = mutate(details=details, draws=draws)
                foreign = not all(self.registry.get("mutation", step.mutation).ours for step in setting.steps)
                again = mutate() if foreign and self.twice else None
        except Exception as error:  # noqa: BLE001
            return FrameVersion(self.frame, setting, refused=one_line(error), details=details)
        back = way_back(setting, self.registry, (image.shape[0], image.shape[1]))
        seen = image if back is None else back.pixels(image)
        details |= self._visual_change(loaded.image, seen, setting)
        image.flags.writeable = False
        notes = loaded.notes_with_depth if "depth_m" in setting.needs else loaded.notes
        version = FrameVersion(
            self.frame,
            setting,
            image,
            None,
            loaded.pixels,
            notes,
            details=details,
            mutated=_pixel_hash(image) if foreign else None,
            mutation_repeats=None if again is None else bool(np.array_equal(image, again)),
            back=back,
        )
        if self.job.task == "segmentation":
            return version if self.frame.labels is None else self._labelled(version, loaded)
        version = self._located(self._by_depth(version, loaded))
        if self.job.localizes_on_mutated and setting.id != BASELINE and back is None:
            return self._located_on_mutated(version, draws)
        return version

    def _key(self, setting: Setting) -> str:
        return self.frame.log_id if setting.coherent else self.frame.id

    def _visual_change(self, image: Image, changed: Image, setting: Setting) -> dict[str, float]:
        """Return what a person sees of the mutation, if the study asks; nothing where it is not defined."""
        if self.job.visual_change is None or setting.id == BASELINE:
            return {}
        self.tell(Stage("measuring the visual change", self.frame.id, setting.id))
        try:
            if self._reference is None:
                self._reference = Reference(image, backend=self.job.visual_change)
            return self._reference.measure(changed).numbers()
        except AdverseError:  # constant, or too small for the scales
            return {}

    def unseen(self, setting: Setting) -> FrameVersion:
        """Return the version without its image, for SUTs that answer from their records."""
        version = FrameVersion(self.frame, setting, refused=self.frame.fault)
        if moved_by(setting, self.registry):  # its answers can be taken back only in an image of known size
            loaded = self._load()
            if loaded is None:
                return replace(version, refused=self._refused)
            version = replace(version, back=way_back(setting, self.registry, loaded.image.shape[:2]))
        return self._located(version)

    def _labelled(self, version: FrameVersion, loaded: _DecodedFrame) -> FrameVersion:
        """Add the true label map; without it the frame is of no use."""
        self.tell(Stage("reading the labels", self.frame.id))
        try:
            return replace(version, labels=loaded.labels())
        except Exception as error:  # noqa: BLE001
            return replace(version, image=None, refused=one_line(error))

    def _located(self, version: FrameVersion) -> FrameVersion:
        """Add the depth map where detections are to be located; without it the frame is of no use."""
        if not self.job.locate or version.refused is not None or self.frame.depth_m is None:
            return version
        if self._depth_m is None:
            self.tell(Stage("reading the depth", self.frame.id))
            try:
                self._depth_m = self.frame.depth_m()
            except Exception as error:  # noqa: BLE001
                return replace(version, image=None, refused=one_line(error))
        depth_m = self._depth_m
        return replace(version, depth_m=lambda: depth_m)

    def _located_on_mutated(self, version: FrameVersion, draws: Sequence[Streams]) -> FrameVersion:
        """Put the depth of the mutated pair in the place of the clean one; computed once it is needed.

        The right image is mutated at once, so that one that cannot be is refused before any SUT is asked.
        """
        left, clean, source = version.image, version.depth_m, self.frame.depth_m
        if left is None or clean is None or source is None:
            return version
        self.tell(Stage(MUTATING, self.frame.id, version.setting.id, limit_s=self.job.mutation_timeout_s))
        try:
            if self._right is None:
                self._right = _RightImage(self.frame)
            depth_m = self._right.depth() if "depth_m" in version.setting.needs else None
            with one_process(), self.access.noted() if self.access else contextlib.nullcontext():
                right = apply_to_right(
                    self._right.image,
                    version.setting,
                    self.registry,
                    draws,
                    seed=self.job.seed,
                    key=self._key(version.setting),
                    log=self.frame.log_id,
                    time_s=moment_s(self.frame),
                    depth_m=depth_m,
                    baseline_m=self._right.baseline_m,
                    noise=self.job.noise,
                )
        except Exception as error:  # noqa: BLE001
            return replace(version, image=None, refused=f"right image: {one_line(error)}")
        of_pair: Callable[[Image, Image, NDArray[np.bool_]], Depth] = source.of_pair  # type: ignore[attr-defined]
        return replace(version, depth_m=functools.cache(lambda: of_pair(left, right, np.isinf(clean()))))

    def _by_depth(self, version: FrameVersion, loaded: _DecodedFrame) -> FrameVersion:
        """Add the depth inside the true boxes, as the mutation had it, where it goes by depth."""
        if "depth_m" not in version.setting.needs or self.job.task != "detection":
            return version
        depth_m = loaded.depth(self.job.invalid_depth)
        if self._box_pixels is None and depth_m is not None:
            self._box_pixels = box_pixels(depth_m, self.frame.truth.boxes, DEPTH_QUANTILES)
        return replace(version, mutated_by_m=self._box_pixels)

    def _load(self) -> _DecodedFrame | None:
        if self._loaded is None and self._refused is None:
            self.tell(Stage("decoding", self.frame.id))
            try:
                self._loaded = _DecodedFrame(self.frame)
            except Exception as error:  # noqa: BLE001
                self._refused = one_line(error)
        return self._loaded


def moment_s(frame: Frame) -> float:
    """Return when a frame was taken, for what drifts over a log; without times, frames follow evenly."""
    return frame.index * FRAME_S if frame.time_s is None else frame.time_s


def _pixel_hash(image: Image) -> str:
    return digest(str(image.shape), np.ascontiguousarray(image).data)


class _RightImage:
    """The right image of a frame's pair, decoded, and its depth once that is needed."""

    def __init__(self, frame: Frame) -> None:
        if frame.right is None or frame.right_depth_m is None:
            raise DataError("the frame has no stereo pair to mutate", where=f"frame {frame.id!r}")
        self.image: Image = np.asarray(frame.right(), np.uint8)
        self.image.flags.writeable = False
        self._source = frame.right_depth_m
        self.baseline_m: float = self._source.baseline_m  # type: ignore[attr-defined]
        self._depth: Depth | None = None

    def depth(self) -> Depth:
        if self._depth is None:
            self._depth = np.asarray(self._source(), np.float32)
        return self._depth


class _DecodedFrame:
    """A decoded frame, and its depth once that is needed."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        reading: Any = frame.image
        if hasattr(reading, "read_with_notes"):
            decoded = reading.read_with_notes()
            self.image: Image = decoded.image
            self.notes: str | None = ", ".join(decoded.notes) or None
        else:
            self.image, self.notes = reading(), None
        self.image.flags.writeable = False
        self.pixels = _pixel_hash(self.image)
        self.notes_with_depth = self.notes
        self._depth: Depth | None = None
        self._labels: NDArray[np.uint8] | None = None

    def depth(self, policy: Policy) -> Depth | None:
        if self._depth is None and self.frame.depth_m is not None:
            checked = usable(self.frame.depth_m(), policy, where=f"depth file {self.frame.depth_m.path}")
            self._depth = checked.depth_m
            if checked.invalid_share:
                share = f"depth invalid at {checked.invalid_share:.2%} of pixels: {policy}"
                self.notes_with_depth = f"{self.notes}, {share}" if self.notes else share
        return self._depth

    def labels(self) -> NDArray[np.uint8] | None:
        if self._labels is None and self.frame.labels is not None:
            self._labels = self.frame.labels()
        return self._labels
