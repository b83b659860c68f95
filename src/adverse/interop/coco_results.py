"""A finished run in COCO's formats: the truth once, and one list of results for each SUT and setting.

    OUT/annotations.json          images, annotations and categories of the test frames
    OUT/SUT/SETTING.json          [{"image_id", "category_id", "bbox": [x, y, width, height], "score"}, ...]
    OUT/index.json                the files, with the images that a SUT failed on or that could not be used;
                                  their sha256, and the state of the run that they are of

Images that could not be used under any setting are left out of the truth. The `predictions` adapter reads
results back: path: OUT/SUT/{mutation}.json, annotations: OUT/annotations.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from adverse.content import file_sha256
from adverse.data.images import SUFFIXES
from adverse.errors import AdverseError, StoreError, StudyError, suggestion
from adverse.store.durable import storage_errors, write_file
from adverse.store.finished_run import finished
from adverse.store.owned_folder import MARK, claim, delete_ours
from adverse.store.read import Store
from adverse.store.seal_list import digest_of
from adverse.store.seals import changed, hash_inside
from adverse.store.verify import Verification, added
from adverse.text import setting_id

ANNOTATIONS, INDEX = "annotations.json", "index.json"
KIND = "folder of COCO results"


class Ids(NamedTuple):
    """The numbers of images, by frame, and of categories, by name, in the order of the run."""

    images: Mapping[str, int]
    categories: Mapping[str, int]


class Written(NamedTuple):
    """One file of results."""

    sut: str
    setting: str
    file: str
    detections: int
    faults: list[int]
    quarantined: list[int]


def export_coco(
    run: Path, out: Path, *, suts: Sequence[str] = (), settings: Sequence[str] = ()
) -> list[Written]:
    """Write the test frames of a run below `out`: some SUTs and settings, or all of them."""
    store = finished(run)
    _check(store, run)
    chosen = (
        _chosen("SUT", suts, store.suts),
        _chosen("setting", [setting_id(name, store.groups) for name in settings], list(store.groups)),
    )
    frames = pq.read_table(store.folder.frames).to_pylist()
    test = [frame for frame in frames if frame["split"] == "test"]
    ids = Ids(image_ids(test), _category_ids(store))
    _start_over(out)
    written = [_write_results(store, sut, setting, ids, out) for sut in chosen[0] for setting in chosen[1]]
    unusable = set.intersection(*(set(results.quarantined) for results in written))
    usable = Ids(
        {frame: number for frame, number in ids.images.items() if number not in unusable}, ids.categories
    )
    truth = _truth(test, store.truth_rows.to_pylist(), usable)
    paths = pq.read_table(store.folder.inputs, columns=["path"])["path"].to_pylist()
    files = file_names([frame["frame"] for frame in test], paths)
    if store.run.truth is not None:
        truth["info"] = {"description": f"no ground truth: {store.run.truth.name}"}
    for image in truth["images"]:
        image["file_name"] = files[image["file_name"]]
    _write(out / ANNOTATIONS, truth)
    parts = [ANNOTATIONS, *(results.file for results in written)]
    index = {
        "run": store.run.name,
        "state": store.state,
        "results": [results._asdict() for results in written],
        "files": {file: file_sha256(out / file) for file in parts},
    }
    _write(out / INDEX, index | {"digest": digest_of(index)})
    return written


def verify_export(out: Path) -> Verification:
    """Check that an export is as it was written, and name the run's state that it is of."""
    again = "Have it made again: adverse export RUN OUT."
    path = out / INDEX
    try:
        raw = path.read_bytes()
        index = json.loads(raw)
        body = {key: value for key, value in index.items() if key != "digest"}
        files = {out / str(file): str(sha256) for file, sha256 in index["files"].items()}
        if index["digest"] != digest_of(body) or raw != json.dumps(index).encode() or path.is_symlink():
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Verification(1, (StoreError("the list of files was changed", where=str(path), fix=again),))
    hashes = {file: hash_inside(out, file) for file in files}
    problems: list[AdverseError] = [
        changed(file, hashes[file], sha256, again) for file, sha256 in files.items() if hashes[file] != sha256
    ]
    known = {*files, path, out / MARK}
    problems += added((out,), known)
    return Verification(len(files) + 1, tuple(problems), (f"an export of state {index['state']}",))


def _start_over(out: Path) -> None:
    """Make the folder ours, and delete the files of an earlier export: they are of another run, or state."""
    claim(out, KIND)
    try:
        before = [Path(results["file"]) for results in json.loads((out / INDEX).read_bytes())["results"]]
    except (OSError, ValueError, KeyError, TypeError):
        before = []
    names: dict[str, list[str]] = {".": [ANNOTATIONS, INDEX]}
    for path in before:
        if len(path.parts) == len(("SUT", "SETTING.json")) and path.parts[0] != "..":
            names.setdefault(path.parts[0], []).append(path.name)
    delete_ours(out, KIND, {place: "|".join(map(re.escape, files)) for place, files in names.items()})


def image_ids(frames: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return a number for each frame: the data set's own if all have one, else 1, 2, 3...

    >>> image_ids([{"frame": "a", "image_id": "71"}, {"frame": "b", "image_id": "7"}])
    {'a': 71, 'b': 7}
    >>> image_ids([{"frame": "a", "image_id": "left"}, {"frame": "b", "image_id": "7"}])
    {'a': 1, 'b': 2}
    """
    own = [frame["image_id"] for frame in frames]
    if all(text.isascii() and text.isdigit() and str(int(text)) == text for text in own) and len(
        set(own)
    ) == len(own):
        return {frame["frame"]: int(frame["image_id"]) for frame in frames}
    return {frame["frame"]: number for number, frame in enumerate(frames, start=1)}


def file_names(frames: Iterable[str], paths: Iterable[str]) -> dict[str, str]:
    """Return the name of each frame's image in its data set: its id, as a path with its extension.

    `paths` are the files that the run read. A frame keeps its id where none of them, or more than one, can be
    its image.

    >>> file_names(["a/1", "2"], ["/d/a/images/1.png", "/d/a/right/1.png", "/d/2.jpg", "/d/2.npy"])
    {'a/1': 'a/images/1.png', '2': '2.jpg'}
    """
    frames = list(frames)
    depths = {len(Path(frame).parts) for frame in frames}
    beside: dict[str, set[str]] = {}
    inside: dict[str, set[str]] = {}
    for path in map(Path, paths):
        if path.suffix.lower() not in SUFFIXES:
            continue
        parts = path.parts
        for depth in depths:
            beside.setdefault("/".join((*parts[-depth:-1], path.stem)), set()).add("/".join(parts[-depth:]))
            if parts[-2] == "images":
                short = "/".join((*parts[-depth - 1 : -2], path.stem))
                inside.setdefault(short, set()).add("/".join(parts[-depth - 1 :]))
    return {frame: _only(beside.get(frame)) or _only(inside.get(frame)) or frame for frame in frames}


def _only(names: set[str] | None) -> str | None:
    return next(iter(names)) if names is not None and len(names) == 1 else None


def _write_results(store: Store, sut: str, setting: str, ids: Ids, out: Path) -> Written:
    rows = [row for row in store.detections(sut, setting).to_pylist() if row["frame"] in ids.images]
    entries = [entry for row in rows for entry in _entries(row, ids)]
    file = f"{sut.replace('/', '_')}/{setting.replace('/', '_')}.json"
    if sut in (".", ".."):
        raise StudyError("a SUT cannot have this name", where=str(store.folder.manifest), got=repr(sut))
    _write(out / file, entries)
    failed = {
        status: sorted(ids.images[row["frame"]] for row in rows if row["status"] == status)
        for status in ("fault", "quarantined")
    }
    return Written(sut, setting, file, len(entries), failed["fault"], failed["quarantined"])


def _entries(row: Mapping[str, Any], ids: Ids) -> Iterable[dict[str, Any]]:
    positions = row["positions_m"] or [None] * len(row["scores"])
    masks = row.get("masks") or [None] * len(row["scores"])
    columns = (row["boxes"], row["scores"], row["labels"], positions, masks)
    for (x0, y0, x1, y1), score, label, position, mask in zip(*columns, strict=True):
        entry = {
            "image_id": ids.images[row["frame"]],
            "category_id": ids.categories[label],
            "bbox": [x0, y0, x1 - x0, y1 - y0],
            "score": score,
            **_segmentation(mask, row.get("mask_size")),
        }
        yield entry if position is None else {**entry, "position_m": position}


def _segmentation(counts: bytes | None, size: Sequence[int] | None) -> dict[str, Any]:
    """Return the mask of an object, in a run with masks."""
    if counts is None:
        return {}
    return {"segmentation": {"size": list(size or ()), "counts": counts.decode()}}


def _truth(
    frames: Sequence[Mapping[str, Any]], truth: Sequence[Mapping[str, Any]], ids: Ids
) -> dict[str, Any]:
    inside = [row for row in truth if row["frame"] in ids.images]
    sizes = {frame["frame"]: frame.get("mask_size") for frame in frames}
    return {
        "images": [_image(frame, ids) for frame in frames if frame["frame"] in ids.images],
        "annotations": [
            _annotation(number, row, ids, sizes[row["frame"]]) for number, row in enumerate(inside, start=1)
        ],
        "categories": [{"id": number, "name": name} for name, number in ids.categories.items()],
    }


def _image(frame: Mapping[str, Any], ids: Ids) -> dict[str, Any]:
    image = {"id": ids.images[frame["frame"]], "file_name": frame["frame"]}
    if frame["camera"] is not None:
        image |= {"width": int(frame["camera"][4]), "height": int(frame["camera"][5])}
    elif frame.get("mask_size") is not None:
        image |= {"width": frame["mask_size"][1], "height": frame["mask_size"][0]}
    return image


def _annotation(
    number: int, row: Mapping[str, Any], ids: Ids, mask_size: Sequence[int] | None
) -> dict[str, Any]:
    """Return a true object; annotations count from 1, since 0 means 'no match' to pycocotools."""
    x0, y0, x1, y1 = row["box"]
    return {
        "id": number,
        "image_id": ids.images[row["frame"]],
        "category_id": ids.categories[row["label"]],
        "bbox": [x0, y0, x1 - x0, y1 - y0],
        "area": (x1 - x0) * (y1 - y0) if row.get("mask") is None else row["area"],
        "iscrowd": int(row["ignore"]),
        **_segmentation(row.get("mask"), mask_size),
    }


def _category_ids(store: Store) -> dict[str, int]:
    """Number the classes: those of the data set or, where it has none, all that a SUT answered."""
    names = dict.fromkeys([*store.run.data.categories, *store.targets])
    if not store.run.data.categories:
        answers = (store.detections(sut, setting) for sut in store.suts for setting in store.groups)
        found = {label for table in answers for row in table["labels"].to_pylist() for label in row or ()}
        names |= dict.fromkeys(sorted(found))
    return {name: number for number, name in enumerate(names, start=1)}


def _check(store: Store, run: Path) -> None:
    if store.task != "detection":
        raise StudyError(
            "COCO results hold boxes, and this run has none",
            where=str(run),
            got=f"a run of task {store.task}",
            wanted="a run of detectors",
            fix="Read its results/ and detections/*.parquet instead.",
        )


def _chosen(noun: str, wanted: Sequence[str], available: Sequence[str]) -> Sequence[str]:
    for name in wanted:
        if name not in available:
            raise StudyError(f"the run has no {noun} {name!r}", fix=suggestion(name, available))
    return wanted or available


def _write(path: Path, content: Any) -> None:
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(content).encode(), flush=False)
