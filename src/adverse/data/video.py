"""The `video` format: a video, or a folder of them, is data as it is; each video is a log.

root/walk.mp4           MP4, MOV, AVI, MKV or WebM; root may be the file itself
root/walk.json          its annotations: COCO with frame numbers          (optional)
root/walk.txt           or MOT Challenge text, or KITTI tracking labels   (optional)
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from adverse.data import subsets
from adverse.data.files import inside
from adverse.data.images import SUFFIXES as IMAGES
from adverse.data.layout import natural
from adverse.data.truth import Truths
from adverse.data.video_file import SUFFIXES, WANTED, where
from adverse.data.video_frames import Rotation, VideoFrame, reader_of
from adverse.data.video_index import VideoIndex
from adverse.data.video_truth import VideoTruth, annotation_file, read_video_truth
from adverse.errors import DataError, StudyError
from adverse.plugins import Positive, dataset
from adverse.types import Dataset, Frame, Log, Split, Truth

UNEVEN = "gaps between frames more than half longer than usual: variable rate, or frames lost in recording"
GAP = 1.5
TURNED = "videos turned or mirrored, as their header says"
COUNTED = "videos without times for their frames: counted at their rate"
SEVERAL = "videos with several streams of pictures, of which the first is read"
UNLABELLED = "frames of annotated videos without annotation, left out"
NO_TRUTH = "videos without annotations"
LEFT_OUT = "videos without annotations, left out: others have them"


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise a video by its name, and a folder with videos and no images."""
    if path.is_file():
        return {"root": str(path)} if path.suffix.lower() in SUFFIXES else None
    if not path.is_dir():
        return None
    found = [name.suffix.lower() for pattern in ("*", "*/*") for name in path.glob(pattern)]
    return {"root": str(path)} if SUFFIXES.intersection(found) and IMAGES.isdisjoint(found) else None


@dataset(looks_like=looks_like)
def video(
    root: Path,
    *,
    truth: str | None = None,
    split: dict[Split, str] | None = None,
    every: Annotated[int, Field(ge=1)] = 1,
    rate_hz: Positive | None = None,
    rotation: Rotation = "apply",
    max_megapixels: Positive = 100.0,
) -> Dataset:
    """Read videos; `every` takes each n-th frame, `rate_hz` so many in a second of the video.

    Each video is a log; cut: in the data section cuts long ones. `truth` names the annotations, with {video}
    for the name of the video; without it they lie beside it under its name. `split` names the video or folder
    of each split. A frame's id is log/number, counted from 0 over all frames of the file.
    """
    if rate_hz is not None and every != 1:
        raise StudyError(
            "the frames to use are chosen twice",
            where="data",
            got=f"every: {every} and rate_hz: {rate_hz:g}",
            fix="Keep one of them.",
        )
    notes: Counter[str] = Counter()
    places = [(kind, prefix, path, base) for kind, prefix, base in _bases(root, split) for path in base.paths]
    known = [
        _annotated(path, base.folder, truth, rotation, max_megapixels, notes) for _, _, path, base in places
    ]
    if any(known):  # what nobody looked at is not free of objects
        notes[LEFT_OUT] += sum(read is None for read in known)
        places = [place for place, read in zip(places, known, strict=True) if read is not None]
        known = [read for read in known if read is not None]
    categories = tuple(dict.fromkeys(name for read in known if read for name in read.classes))
    truths = Truths(categories, notes)
    logs = []
    for (kind, prefix, path, base), read in zip(places, known, strict=True):
        name = prefix + path.relative_to(base.folder).with_suffix("").as_posix()
        index = reader_of(path, max_megapixels).index
        _count(index, rotation, read, notes)
        chosen = _chosen(index, every, rate_hz)
        frames: list[Frame] = []
        for number in chosen:
            source = VideoFrame(path, number, rotation, max_megapixels)
            frame_id = f"{name}/{number:06d}"
            (told, fault), key = (Truth.none(), None), None
            if read is not None and read.listed(number):
                (told, fault), key = read.of(number, source, truths)
            elif read is not None:
                notes[UNLABELLED] += 1
                continue
            frames.append(
                Frame(
                    id=frame_id,
                    log_id=name,
                    index=len(frames),
                    image=source,
                    truth=told,
                    image_id=frame_id if key is None else key,
                    time_s=float(index.times_s[number]),
                    fault=fault,
                )
            )
        if frames:
            logs.append(Log(name, tuple(frames), kind))
    if not logs:
        raise _no_videos(root, "none of their frames is annotated" if places else "no video")
    twice = [name for name, count in Counter(log.id for log in logs).items() if count > 1]
    if twice:
        raise DataError(
            f"two videos are called {twice[0]!r}",
            where=str(root),
            got="names that differ only in their ending",
            fix="Rename one of them.",
        )
    files = tuple(read.path for read in known if read is not None)
    return Dataset(root.resolve().stem, categories, tuple(logs), files, dict(+notes))


class _Base:
    """Where the videos of a split are: a folder, and the files in it."""

    def __init__(self, folder: Path, paths: list[Path]) -> None:
        self.folder, self.paths = folder, paths


def _bases(root: Path, split: dict[Split, str] | None) -> list[tuple[Split, str, _Base]]:
    bases = []
    for kind, name, prefix in subsets.named(split):
        place = root if name is None else inside(root, name, where=f"data.split.{kind}")
        if not place.exists():
            raise _no_videos(place, "no such file or folder")
        found = _videos(place, place) if place.is_dir() else [place]
        if not found:
            raise _no_videos(place, "no file with the ending of a video")
        bases.append((kind, prefix, _Base(place if place.is_dir() else place.parent, found)))
    return bases


def _videos(folder: Path, root: Path) -> list[Path]:
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
    ]
    for path in found:
        inside(root, path.relative_to(root).as_posix(), where=f"folder {folder}")
    return sorted(found, key=lambda path: natural(path.relative_to(root).as_posix()))


def _annotated(
    path: Path, folder: Path, pattern: str | None, rotation: Rotation, megapixels: float, notes: Counter[str]
) -> VideoTruth | None:
    name = path.relative_to(folder).with_suffix("").as_posix()
    file = annotation_file(path, folder, pattern, name)
    if file is None:
        return None
    index = reader_of(path, megapixels).index
    size = VideoFrame(path, 0, rotation, megapixels).measure()
    return read_video_truth(file, len(index), size, notes)


def _chosen(index: VideoIndex, every: int, rate_hz: float | None) -> list[int]:
    """Return the frames to use: each n-th, or the first at or after each tick of the rate."""
    if rate_hz is None:
        return list(range(0, len(index), every))
    slack_s = 1e-6  # times are rounded to the file's unit
    ticks = np.floor((index.times_s + slack_s) * rate_hz)
    return np.flatnonzero(np.diff(ticks, prepend=-1) > 0).tolist()


def _count(index: VideoIndex, rotation: Rotation, read: VideoTruth | None, notes: Counter[str]) -> None:
    steps = np.diff(index.times_s)
    notes[UNEVEN] += int((steps > GAP * np.median(steps)).sum()) if len(steps) else 0
    notes[TURNED] += bool((index.rotation or index.mirrored) and rotation == "apply")
    notes[COUNTED] += index.counted
    notes[SEVERAL] += index.tracks > 1
    notes[NO_TRUTH] += read is None


def _no_videos(place: Path, got: str) -> DataError:
    return DataError(
        "there is no video",
        where=where(place) if place.is_file() else str(place),
        got=got,
        wanted=WANTED,
        fix="Check root, split and truth in the study's data section.",
    )
