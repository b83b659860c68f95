"""Depth that a study computes itself, once for each frame: from stereo pairs or from laser returns.

A computed map is a source like any other: workers compute it when they first need it, so that it is
computed in parallel and a run that was interrupted goes on where it was. The files it is made of and how
(`recipe`) are part of the keys of cells. Maps are kept in the user's cache by the content of these files; a
file there that is damaged is computed again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

import adverse.depth
from adverse.content import MISSING, digest, file_sha256
from adverse.data.files import read_bytes, read_model
from adverse.depth.calibration import check_baseline, check_camera
from adverse.depth.dense import DenseDepth
from adverse.depth.rectification import StereoRig, rectifier
from adverse.errors import DataError, StudyError
from adverse.plugins import library_version
from adverse.study.depth_cache import (
    DepthMap,
    Pruned,
    file_of,
    keep_map,
    limit_bytes,
    prune,
    read_map,
    read_shares,
)
from adverse.study.spec import DepthSection, StudyFile
from adverse.types import Camera, Dataset, Depth, Frame, Image, Log, Source

MEASURED, INVENTED, DISTANT, SKY = range(4)
"""Where the depth of a pixel comes from, as kept in the cache and written by `adverse depth`."""
ORIGINS = ("measured", "invented", "distant", "sky")
BANDS = ("invented_top", "invented_middle", "invented_bottom")
"""Which share of each third of the rows is invented, far from any measurement or not."""
LIBRARIES = ("numpy", "opencv-python-headless", "scipy", "numba")
"""Distributions whose version might change a map."""

Origin = Literal["stereo", "laser"]
_NEEDED: Mapping[Origin, tuple[str, str]] = {
    "stereo": (
        "a right image",
        "Add it (right/ in the folder format, with the left image's name; docs/data-formats.md has others)",
    ),
    "laser": (
        "laser returns",
        "Add them as sparse depth (depth/ in the folder format; docs/data-formats.md has others)",
    ),
}
_CALIBRATION = ("a calibration", "Add it (camera.json in the folder format; docs/data-formats.md has others)")


@dataclass(frozen=True)
class NeighbouringDepth:
    """The depth of a neighbouring frame as matched, and where its camera was: a (4,4) matrix by rows."""

    depth: ComputedDepth
    camera_from_neighbour: tuple[float, ...]


@dataclass(frozen=True)
class ComputedDepth:
    """The depth of a frame, computed from its image and one more file; call it for (H,W) metres."""

    kind: Origin
    image: Source
    other: Source
    """The right image of the pair, or the laser returns as sparse depth."""
    camera: Camera | StereoRig | None
    """What a pair was taken with: rectified, or as recorded; None for laser returns."""
    options: tuple[tuple[str, Any], ...]
    hood: Path | None = None
    hood_sha256: str = ""
    neighbours: tuple[NeighbouringDepth, ...] = ()
    """Frames before and after with which the map is made consistent."""
    mirrored: bool = False
    """Whether `image` is the right one of a pair, whose mirror image is the left one of the mirrored pair."""
    recorded: Source | None = None
    """Depth that the data set has itself; the scale of stereo is compared with it, nothing else."""

    @property
    def path(self) -> Path:
        """The file besides the image whose bytes decide the map."""
        return self.other.path

    @property
    def recipe(self) -> str:
        """How the files become depth: options, calibration, our code and the libraries it calls."""
        how = " ".join(f"{name}={value!r}" for name, value in self.options)
        sources = f"{self.image.recipe} | {self.other.recipe}"
        way = "mirrored " if self.mirrored else ""
        recipe = f"computed {way}{self.kind} {how} {self.camera!r} {self.hood_sha256} {code()} | {sources}"
        if self.neighbours:
            around = (f"{one.camera_from_neighbour!r} {one.depth.recipe}" for one in self.neighbours)
            recipe += f" | consistent with {len(self.neighbours)} frames {digest(*around)}"
        return recipe

    @property
    def sources(self) -> tuple[Source, ...]:
        """All files that decide the map: the image, the other file of the frame, those of its neighbours."""
        around = [source for one in self.neighbours for source in one.depth.sources]
        return self.image, self.other, *around

    @property
    def baseline_m(self) -> float:
        """How far apart the cameras of the pair are."""
        if isinstance(self.camera, StereoRig):
            return float(np.linalg.norm(self.camera.translation_m))
        return (self.camera.baseline_m if self.camera else None) or 0.0

    def key(self, sha256: Iterable[str]) -> str:
        """Return what the map is kept by; the hashes are those of all sources."""
        return digest(*sha256, self.recipe)

    def __call__(self) -> Depth:
        """Take the map from the cache, or compute it, or raise DataError."""
        return self.map().depth_m

    def map(self) -> DepthMap:
        """Return the map with all that is known of it. The files are read each time: their bytes decide."""
        hashes = self._hashes()
        file = file_of(self.key(hashes))
        kept = read_map(file)
        if kept is None or not self._fits(kept):
            kept = _as_kept(self._computed())
            if self._hashes() == hashes:  # else it may be of files that were changed meanwhile
                keep_map(file, kept)
        return kept

    def _fits(self, kept: DepthMap) -> bool:
        """Whether a map is of the image's size, where that is known without decoding it."""
        measure = getattr(self.image, "measure", None)
        return measure is None or tuple(measure()) == kept.depth_m.shape[::-1]

    def _hashes(self) -> list[str]:
        around = [_sha256_or_missing(source.path) for source in self.sources[2:]]
        return [_sha256(self.image.path), _sha256(self.other.path), *around]

    def of_pair(self, left: Image, right: Image, sky: NDArray[np.bool_]) -> Depth:
        """Compute depth (H,W) as the map was, but of a mutated pair; the sky (H,W) is that of the clean one.

        A pair that hardly matches is no error: that is what the mutation does.
        """
        return self._of_pair(left, right, sky=sky, doubted=False).depth_m

    def _computed(self) -> DenseDepth:
        if self.camera is None:
            return adverse.depth.from_laser(self.other(), self.image(), where=self._where, **self._options())
        if self.neighbours:
            return self._consistent()
        if self.mirrored:
            pair = (np.ascontiguousarray(source()[:, ::-1]) for source in (self.image, self.other))
            return self._of_pair(*pair).mirrored()
        return self._of_pair(self.image(), self.other())

    def alone(self) -> ComputedDepth:
        """Return the depth of this frame's pair as matched, which its neighbours need too."""
        return replace(self, options=_with(self.options, refine="none"), neighbours=())

    def _consistent(self) -> DenseDepth:
        """Compute the map from those of the pairs, which are kept too; frames that have none do not count."""
        if not isinstance(self.camera, Camera):
            raise DataError("depth over neighbouring frames needs rectified images", where=self._where)
        around = []
        for one in self.neighbours:
            with contextlib.suppress(DataError):
                matched, image = _as_computed(one.depth.map()), one.depth.image()
                pose = np.array(one.camera_from_neighbour).reshape(4, 4)
                around.append(adverse.depth.Neighbour(image, matched, pose))
        given = self._options()
        return adverse.depth.consistent(
            self.image(),
            _as_computed(self.alone().map()),
            around,
            self.camera,
            refine=given["refine"],
            hood=given.get("hood"),
            where=self._where,
        )

    def _of_pair(self, left: Image, right: Image, **more: Any) -> DenseDepth:
        given = {**self._options(), **more, "where": self._where}
        if isinstance(self.camera, StereoRig):
            return adverse.depth.from_recorded_stereo(left, right, self.camera, **given)
        if self.camera is None:
            raise DataError("depth of a pair needs a calibration", where=self._where)
        return adverse.depth.from_stereo(left, right, self.camera, **given)

    @property
    def _where(self) -> str:
        return (
            f"laser scan {self.path}"
            if self.kind == "laser"
            else f"pair of {self.image.path} and {self.path}"
        )

    def _options(self) -> dict[str, Any]:
        hood = {} if self.hood is None else {"hood": _read_hood(self.hood, self.hood_sha256)}
        return {**dict(self.options), **hood}

    def of_right(self) -> ComputedDepth:
        """Return the depth of the right image's own pixels; the hood is that of the left camera alone."""
        camera = self.camera
        if isinstance(camera, StereoRig):
            camera = camera.mirrored()
        elif camera is not None:
            camera = replace(camera, cx=camera.width - 1 - camera.cx)
        return replace(
            self,
            image=self.other,
            other=self.image,
            camera=camera,
            hood=None,
            hood_sha256="",
            neighbours=(),
            mirrored=True,
        )


def study_depth(file: StudyFile, dataset: Dataset) -> Dataset:
    """Return the data set of a study with depth from where the study says."""
    section = file.study.depth
    if section is not None and section.neighbours and file.study.localize_on == "mutated":
        raise StudyError(
            "neighbours and localize_on: mutated do not go together",
            where=file.where("depth"),
            got="depth of mutated pairs is computed one by one",
            fix="Drop neighbours, so that depth of clean and of mutated pairs is computed alike.",
        )
    made = with_depth(dataset, section, folder=file.folder, where=file.where("depth"))
    return with_right_depth(made) if file.study.localize_on == "mutated" else made


def with_right_depth(dataset: Dataset) -> Dataset:
    """Return the data set with the depth of the right images too, where depth comes from stereo."""
    logs = [
        replace(log, frames=tuple(replace(frame, right_depth_m=_right(frame)) for frame in log.frames))
        for log in dataset.logs
    ]
    return replace(dataset, logs=tuple(logs))


def _right(frame: Frame) -> ComputedDepth | None:
    source = frame.depth_m
    stereo = isinstance(source, ComputedDepth) and source.kind == "stereo"
    return source.of_right() if stereo and isinstance(source, ComputedDepth) else None


def with_depth(dataset: Dataset, section: DepthSection | None, *, folder: Path, where: str) -> Dataset:
    """Return the data set with computed depth, as the section `depth` of a study says; else as it is.

    Frames without what it is computed from have no depth; it is an error if that is all of them.
    """
    if section is None or section.origin == "given":
        return dataset
    kind: Origin = section.origin
    limit_bytes()  # raises before anything is computed
    rig = None
    if section.rig is not None:
        file = (folder / Path(section.rig).expanduser()).resolve()
        rig = read_model(file, "stereo calibration", StereoRig)
        try:
            rectifier(rig)
        except DataError as error:
            raise error.placed(str(file)) from error
    options = tuple(sorted(section.options.items()))
    logs, without, count = [], [], 0
    for log in dataset.logs:
        hood, hood_sha256 = _hood_of(log, section.hood, folder, where)
        frames = []
        for frame in log.frames:
            other = frame.right if kind == "stereo" else frame.depth_m
            count += 1
            camera = (rig or frame.camera) if kind == "stereo" else None
            if other is None or (kind == "stereo" and camera is None):
                without.append(frame)
                frames.append(replace(frame, depth_m=None))
                continue
            if isinstance(camera, Camera):
                check_camera(camera, (camera.width, camera.height), f"calibration of frame {frame.id!r}")
                check_baseline(camera, f"calibration of frame {frame.id!r}")
            recorded = frame.depth_m if kind == "stereo" else None
            source = ComputedDepth(
                kind, frame.image, other, camera, options, hood, hood_sha256, recorded=recorded
            )
            frames.append(replace(frame, depth_m=source))
        logs.append(replace(log, frames=_with_neighbours(frames, section.neighbours)))
    if section.neighbours and not any(
        isinstance(frame.depth_m, ComputedDepth) and frame.depth_m.neighbours
        for log in logs
        for frame in log.frames
    ):
        raise StudyError(
            "depth consistent over neighbouring frames needs the poses of the camera",
            where=where,
            got="no two neighbouring frames with stereo pairs have poses",
            fix="Add poses (poses.csv in the folder format), or drop neighbours.",
        )
    if len(without) == count:
        raise lacking(without[0], kind, where=where)
    notes = {**dataset.notes, f"frames without depth from {kind}": len(without)} if without else dataset.notes
    return replace(dataset, logs=tuple(logs), notes=notes)


def lacking(frame: Frame, kind: Origin, where: str = "") -> StudyError:
    """Return the error that a frame, or all frames where it says `where`, lacks what depth is made of."""
    other = frame.right if kind == "stereo" else frame.depth_m
    missing, fix = _NEEDED[kind] if other is None else _CALIBRATION
    return StudyError(
        f"depth from {kind} needs {missing}",
        where=f"{where}, frame {frame.id!r}" if where else f"frame {frame.id!r}",
        got="no frame has it" if where else "none for this frame",
        fix=f"{fix}, or take depth from elsewhere." if where else f"{fix}.",
    )


def _with_neighbours(frames: Sequence[Frame], count: int) -> tuple[Frame, ...]:
    """Return the frames of a log, the depth of each with so many frames before and after that have poses."""
    found = []
    for at, frame in enumerate(frames):
        own, pose = frame.depth_m, frame.world_from_camera
        if not isinstance(own, ComputedDepth) or pose is None:
            found.append(frame)
            continue
        around = [
            NeighbouringDepth(one.depth_m.alone(), tuple((np.linalg.inv(pose) @ there).ravel().tolist()))
            for one in (*frames[max(at - count, 0) : at], *frames[at + 1 : at + 1 + count])
            if isinstance(one.depth_m, ComputedDepth)
            and one.depth_m.camera == own.camera
            and (there := one.world_from_camera) is not None
        ]
        found.append(replace(frame, depth_m=replace(own, neighbours=tuple(around))))
    return tuple(found)


def depth_sources(frame: Frame) -> tuple[Source, ...]:
    """Return the files that the depth of a frame is read or computed from, besides its image."""
    source = frame.depth_m
    if source is None:
        return ()
    return (source, *source.sources[2:]) if isinstance(source, ComputedDepth) else (source,)


def summary(frames: Iterable[Frame], hashes: Mapping[Path, str]) -> dict[str, Any] | None:
    """Return what the manifest says of computed depth: shares of pixels over the maps in the cache."""
    computed = [frame for frame in frames if isinstance(frame.depth_m, ComputedDepth)]
    sources = [frame.depth_m for frame in computed if isinstance(frame.depth_m, ComputedDepth)]
    if not sources:
        return None
    shares, named = [], []
    for frame, source in zip(computed, sources, strict=True):
        kept = read_shares(_kept_as(source, hashes))
        if kept is not None:
            shares.append(kept)
            named.append(frame.id)
    facts: dict[str, Any] = {
        "from": sources[0].kind,
        "options": dict(sources[0].options),
        "frames": len(sources),
    }
    facts["frames_known"] = len(shares)
    for name in (*ORIGINS, *BANDS):
        known = [share[name] for share in shares if name in share]
        if known:
            facts[name] = float(np.mean(known))
    if shares:
        invented = [share["invented"] + share["distant"] for share in shares]
        facts["most_invented"] = float(max(invented))
        facts["most_invented_frame"] = named[invented.index(max(invented))]
    return facts


def prune_cache(frames: Iterable[Frame], hashes: Mapping[Path, str]) -> Pruned:
    """Bound the cache, but keep the maps of some frames, whose files have these hashes."""
    sources = [source for frame in frames for source in (frame.depth_m, frame.right_depth_m)]
    return prune({_kept_as(source, hashes) for source in sources if isinstance(source, ComputedDepth)})


def _kept_as(source: ComputedDepth, hashes: Mapping[Path, str]) -> Path:
    return file_of(source.key(hashes[one.path] for one in source.sources))


@functools.cache
def code() -> str:
    """Return a hash of the code that computes depth and of the libraries it calls."""
    room = Path(adverse.depth.__file__).parent
    versions = [f"{name} {library_version(name)}" for name in LIBRARIES]
    return digest(*(file.read_bytes() for file in sorted(room.glob("*.py"))), *versions, size=8)


def _hood_of(log: Log, name: str | None, folder: Path, where: str) -> tuple[Path | None, str]:
    """Return the hood mask of a log and its hash; `{log}` in its name stands for the log."""
    if name is None:
        return None, ""
    hood = (folder / Path(name.replace("{log}", log.id)).expanduser()).resolve()
    if not hood.is_file():
        fix = "Correct the path after hood:."
        raise StudyError("there is no such hood mask", where=where, got=str(hood), fix=fix)
    return hood, file_sha256(hood)


def _read_hood(path: Path, sha256: str) -> NDArray[np.uint8]:
    data = path.read_bytes() if path.is_file() else b""
    hood = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE) if data else None
    if hood is None or hashlib.sha256(data).hexdigest() != sha256:
        raise DataError(
            "the hood mask is no image, or was changed after the run was planned",
            where=str(path),
            wanted="an 8-bit gray PNG",
            fix="Correct the file and run again.",
        )
    return hood.astype(np.uint8)


def _as_kept(dense: DenseDepth) -> DepthMap:
    sky = dense.sky
    origin = np.where(dense.measured, MEASURED, np.where(dense.distant, DISTANT, INVENTED)).astype(np.uint8)
    origin[sky] = SKY
    counts = np.bincount(origin.ravel(), minlength=len(ORIGINS)) / origin.size
    made_up = np.isin(origin, (INVENTED, DISTANT))
    thirds = [float(third.mean()) if third.size else 0.0 for third in np.array_split(made_up, len(BANDS))]
    shares = dict(zip((*ORIGINS, *BANDS), (*counts.tolist(), *thirds), strict=True))
    confidence = np.rint(dense.confidence * 255).astype(np.uint8)
    return DepthMap(dense.depth_m.astype(np.float32), confidence, origin, shares)


def _as_computed(kept: DepthMap) -> DenseDepth:
    """Return a kept map as it was computed, but for the resolution of its confidence."""
    confidence = kept.confidence.astype(np.float32) / np.float32(255)
    return DenseDepth(kept.depth_m, confidence, kept.origin == MEASURED, kept.origin == DISTANT)


def _with(options: tuple[tuple[str, Any], ...], **more: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted({**dict(options), **more}.items()))


def _sha256_or_missing(path: Path) -> str:
    """Return the hash of a neighbour's file; one that cannot be read only does not count."""
    try:
        return _sha256(path)
    except DataError:
        return MISSING


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_bytes(path, what="depth")).hexdigest()


def computed_frames(dataset: Dataset) -> Sequence[Frame]:
    """Return the frames whose depth is computed, in order."""
    return [frame for log in dataset.logs for frame in log.frames if isinstance(frame.depth_m, ComputedDepth)]
