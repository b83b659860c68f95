"""Computed depth of a whole data set written to a folder, and a hood mask proposed for each log.

OUT/<log>/depth/<frame>.npy         metres, float32; +inf is sky
OUT/<log>/confidence/<frame>.png    0..255
OUT/<log>/origin/<frame>.png        0 measured, 1 invented, 2 invented far from any measurement, 3 sky
OUT/depth.csv                       the shares of each frame
OUT/<log>/earlier/                  maps of an earlier time, of frames that have none now
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.content import content_hashes
from adverse.depth.hood import find_hood, hood_preview
from adverse.errors import AdverseError, DataError, StudyError, one_line
from adverse.store.durable import write_file
from adverse.study.depth_cache import DepthMap
from adverse.study.depth_maps import ORIGINS, ComputedDepth, Origin, computed_frames, lacking, prune_cache
from adverse.types import Dataset, Frame

HOOD_FRAMES = 40
"""Frames of a log that are compared to find what does not move."""

Watch = Callable[[int, int], None]


KINDS = {"depth": ".npy", "confidence": ".png", "origin": ".png"}


class WrittenDepth(NamedTuple):
    """How many maps were written, the mean share of each origin, and why frames have none."""

    frames: int
    shares: dict[str, float]
    failed: dict[str, str]


def check_apart(dataset: Dataset, out: Path) -> None:
    """Raise where maps would be written among the files of the data set, over depth that was recorded."""
    folders = {
        source.path.parent
        for log in dataset.logs
        for frame in log.frames
        for source in (frame.image, frame.right, frame.depth_m)
        if source is not None
    }
    own = {above for folder in folders for above in (folder.resolve(), *folder.resolve().parents)}
    for log in dataset.logs:
        target = (out / log.id).resolve()
        if target in own:
            raise StudyError(
                "depth would be written into the data set",
                where=str(target),
                got=f"log {log.id!r} is there, with the depth that it may have recorded",
                wanted="a folder of its own",
                fix="Give another OUT; look at the maps, then move depth/ beside the images if you like.",
            )


def write_depth(dataset: Dataset, out: Path, *, workers: int, watch: Watch) -> WrittenDepth:
    """Compute the depth of all frames and write it; what is in the cache is not computed again.

    Raises the first frame's error where no frame has depth, and leaves all files as they are. Maps of an
    earlier time, of frames that have none now, are set aside: they are not of these files and options.
    """
    every = [frame for log in dataset.logs for frame in log.frames]
    frames = computed_frames(dataset)
    kind = frames[0].depth_m.kind if frames and isinstance(frames[0].depth_m, ComputedDepth) else "stereo"
    rows: list[tuple[str, dict[str, float]]] = []
    failed: dict[str, str] = {}
    first: AdverseError | None = None
    with _pool(workers) as pool:
        list(pool.map(_match_alone, frames))  # what neighbours share, so that no two compute it at once
        results = pool.map(lambda frame: _computed(frame, kind, out), every)
        for done, (frame, result) in enumerate(zip(every, results, strict=True), start=1):
            if isinstance(result, AdverseError):
                first = first or result
                failed[frame.id] = one_line(result)
            else:
                rows.append((frame.id, result))
            watch(done, len(every))
    if first is not None and not rows:
        raise _of_all(first, len(failed))
    for frame in every:
        if frame.id in failed:
            _set_aside(out / frame.log_id, frame.image.path.stem)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("frame", *ORIGINS))
    table.writerows((frame, *(f"{shares[name]:.6f}" for name in ORIGINS)) for frame, shares in rows)
    out.mkdir(parents=True, exist_ok=True)
    write_file(out / "depth.csv", text.getvalue().encode())
    prune_cache(frames, content_hashes(path for frame in frames for path in _paths(frame)))
    means = {name: float(np.mean([shares[name] for _, shares in rows])) if rows else 0.0 for name in ORIGINS}
    return WrittenDepth(len(rows), means, failed)


def propose_hoods(dataset: Dataset, out: Path) -> list[tuple[Path, float]]:
    """Write hood.png and a picture of it for each log; return the masks and the share that each covers.

    A mask that is there already may be drawn by hand: where the new one differs, nothing is written.
    """
    written, files = [], {}
    for log in dataset.logs:
        step = max(len(log.frames) // HOOD_FRAMES, 1)
        images = [np.asarray(frame.image(), np.uint8) for frame in log.frames[::step]]
        hood = find_hood(images, where=f"log {log.id!r}")
        mask = out / log.id / "hood.png"
        if mask.exists() and not _same_mask(mask, hood):
            raise StudyError(
                "there is another hood mask already",
                where=str(mask),
                got="a mask that differs from what stays the same over the log",
                wanted="a folder without one: it may be drawn by hand",
                fix="Give another OUT, or move that file away.",
            )
        files[mask] = _png(hood)
        files[mask.with_name("hood-preview.png")] = _png(hood_preview(images[0], hood)[..., ::-1])
        written.append((mask, float((hood > 0).mean())))
    for file, data in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, data)
    return written


def _same_mask(file: Path, hood: NDArray[np.uint8]) -> bool:
    there = cv2.imread(str(file), cv2.IMREAD_UNCHANGED)
    return there is not None and np.array_equal(there, hood)


def _paths(frame: Frame) -> Iterable[Path]:
    """Return the files that the depth of a frame is made of."""
    source = frame.depth_m
    return [one.path for one in source.sources] if isinstance(source, ComputedDepth) else ()


def _match_alone(frame: Frame) -> None:
    """Compute what a map that is made consistent with its neighbours begins with; errors are told later."""
    source = frame.depth_m
    if isinstance(source, ComputedDepth) and source.neighbours:
        with contextlib.suppress(AdverseError):
            source.alone().map()


def _computed(frame: Frame, kind: Origin, out: Path) -> dict[str, float] | AdverseError:
    """Compute and write the map of one frame; return its shares, or why there is none."""
    try:
        if not isinstance(frame.depth_m, ComputedDepth):
            raise lacking(frame, kind)
        made = frame.depth_m.map()
    except AdverseError as error:
        return error
    _write(out / frame.log_id, frame.image.path.stem, made)
    return dict(made.shares)


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Give threads (matching and compiled loops release the GIL); stopped, no further frame is begun."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _set_aside(folder: Path, name: str) -> None:
    """Move the files of a frame's earlier map out of the way."""
    for kind, suffix in KINDS.items():
        file = folder / kind / f"{name}{suffix}"
        if file.exists():
            aside = folder / "earlier" / kind
            aside.mkdir(parents=True, exist_ok=True)
            file.replace(aside / file.name)


def _of_all(error: AdverseError, frames: int) -> AdverseError:
    """Return an error of the first frame as that of all: none has depth."""
    if frames > 1:
        where = f"{error.where or 'the first frame'}; none of {frames} frames has depth"
        return DataError(error.what, where=where, got=error.got, wanted=error.wanted, fix=error.fix)
    return error


def _write(folder: Path, name: str, made: DepthMap) -> None:
    for kind in KINDS:
        (folder / kind).mkdir(parents=True, exist_ok=True)
    data = io.BytesIO()
    np.save(data, made.depth_m)
    write_file(folder / "depth" / f"{name}.npy", data.getvalue())
    write_file(folder / "confidence" / f"{name}.png", _png(made.confidence))
    write_file(folder / "origin" / f"{name}.png", _png(made.origin))


def _png(image: NDArray[np.uint8]) -> bytes:
    return cv2.imencode(".png", np.ascontiguousarray(image))[1].tobytes()


def first_failures(failed: dict[str, str], most: int = 5) -> Iterable[str]:
    """Say of the first frames without depth why they have none."""
    for frame, reason in list(failed.items())[:most]:
        yield f"{frame}: {reason}"
    if len(failed) > most:
        yield f"and {len(failed) - most} more"
