"""Mutated copies of a data set on disk, with annotations, for those who need files.

One folder for each setting: the images under their frame ids, and `annotations.json` in COCO's form. Or one
folder, `mixed`, with each frame once, clean, under a setting drawn for it or stylized, to train on; `mix.csv`
tells which. Maps of labels and instances go with the images. What is there already and was made from the same
bytes by the same code is not made again.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import math
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from adverse import plugins
from adverse.content import PlannedFiles, content_hashes, digest
from adverse.data.images import Pixels, image_bytes
from adverse.data.layout import INSTANCES, LABELS
from adverse.data.maps import NAMES_FILE
from adverse.errors import DataError, StudyError, one_line
from adverse.mutations.settings import BASELINE, parse, refuse_moving
from adverse.processes import ONE_THREAD, SAFE_PATH
from adverse.seeds import generator
from adverse.store.durable import append_line, storage_errors, write_file
from adverse.store.owned_folder import claim
from adverse.study.frame_versions import FrameVersions
from adverse.study.job import StudyJob
from adverse.study.plan import job_of, read_dataset, read_settings
from adverse.study.run import RunWatcher
from adverse.study.spec import StudyFile
from adverse.study.stages import NOTHING_TO_AVOID, Stage
from adverse.study.units import frame_parts, frames_of, sources_of
from adverse.stylize import Stylization, Stylizer
from adverse.types import Dataset, Frame, Setting, Truth

JOURNAL = ".exported"
MIXED, STYLIZED_ALL, MIX_FILE = "mixed", "stylized", "mix.csv"
STYLIZED = -1
"""Stands for a style where other files have the number of a setting."""
KIND = "folder of mutated images"
TASKS_AHEAD = 4
"""Frames handed out for each worker, so that memory does not grow with the data set."""


@dataclass(frozen=True)
class Task:
    """One frame and the files to make of it: (setting, path below the target folder, key).

    `inputs` holds the hash of each file that the frame is read from.
    """

    frame: Frame
    files: tuple[tuple[int, str, str], ...]
    inputs: Mapping[Path, str]


@dataclass(frozen=True)
class Exported:
    """How many files there are, how many of them were made now, and which frames were refused why."""

    files: int
    made: int
    refused: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Mix:
    """How many frames stay clean for how many that are mutated or stylized: shares, whatever their sum."""

    clean: float
    mutated: float
    stylized: float = 0.0

    @property
    def folder(self) -> str:
        """The name of the folder: what all frames are, if they are the same."""
        return MIXED if self.clean or self.mutated else STYLIZED_ALL

    def setting(self, frame: str, job: StudyJob) -> int:
        """Return which setting of a job a frame gets, or STYLIZED; the first is the un-mutated one.

        It depends on the seed and the frame alone, so that a data set that grows keeps what it has.
        """
        rng = generator(job.seed, frame, "mix")
        drawn = rng.random() * (self.clean + self.mutated + self.stylized)
        if drawn < self.clean:
            return 0
        if drawn >= self.clean + self.mutated:
            return STYLIZED
        return 1 + int(rng.integers(len(job.settings) - 1))


def read_mix(text: str) -> Mix:
    """Read shares as they are written, `clean=1,mutated=2,stylized=1`; one that is not named is 0.

    >>> read_mix("clean=1,mutated=2")
    Mix(clean=1.0, mutated=2.0, stylized=0.0)
    """
    shares = dict.fromkeys(("clean", "mutated", "stylized"), 0.0)
    said: set[str] = set()
    try:
        for part in text.split(","):
            name, _, share = (word.strip() for word in part.partition("="))
            if name not in shares:
                raise ValueError(f"{name!r} is no share")
            if name in said:
                raise ValueError(f"{name} stands there twice")
            said.add(name)
            shares[name] = float(share)
        changed = shares["mutated"] + shares["stylized"]
        if not all(0 <= share < math.inf for share in shares.values()) or changed == 0:
            raise ValueError("shares are numbers from 0 up, and that of mutated or stylized is above 0")
    except ValueError as error:
        raise StudyError(
            "the mix cannot be read",
            where="--mix",
            got=f"{text!r}: {error}",
            wanted="clean=1,mutated=1,stylized=1: as many clean images as mutated ones and stylized ones",
        ) from error
    return Mix(**shares)


def export(
    dataset: Dataset,
    job: StudyJob,
    target: Path,
    *,
    suffix: str,
    workers: int,
    watch: RunWatcher,
    mix: Mix | None = None,
    stylize: Stylization | None = None,
) -> Exported:
    """Write every frame of a data set under every setting of a job below `target`; or each once, mixed.

    A mix with a stylized share needs `stylize`.
    """
    _check_styles(mix, stylize)
    claim(target, KIND)
    if mix is not None:
        job = replace(job, settings=(parse(BASELINE, plugins.load(job.plugin_files)), *job.settings))
    tasks = list(_tasks(dataset, job, suffix, mix, stylize))
    done = _done(target)
    waiting = []
    for task in tasks:
        left = tuple(file for file in task.files if done.get(file[1]) != file[2])
        if left:
            waiting.append(replace(task, files=left))
    total = sum(len(task.files) for task in tasks)
    watch.begin(total, total - sum(len(task.files) for task in waiting))
    made = 0
    refused: list[tuple[str, str]] = []
    try:
        for task, answers in _made(waiting, job, target, workers, stylize):
            lines = []
            for (_, name, key), reason in zip(task.files, answers, strict=True):
                if reason is None:
                    lines.append(json.dumps({"file": name, "key": key}) + "\n")
                else:
                    refused.append((task.frame.id, reason))
            if lines:
                append_line(target / JOURNAL, "".join(lines).encode())
            made += len(lines)
            watch.advance(Counter(ok=len(lines), quarantined=len(answers) - len(lines)))
    finally:
        watch.end()
    bad = {(frame, reason) for frame, reason in refused}
    left_out = {frame for frame, _ in bad}
    if mix is None:
        _write_annotations(dataset, map(folder_name, job.settings), target, suffix, left_out)
    else:
        _write_annotations(dataset, [mix.folder], target, suffix, left_out)
        rows = [(task.frame.id, _what(task, job, stylize)) for task in tasks]
        _write_mix(target / mix.folder / MIX_FILE, [row for row in rows if row[0] not in left_out])
    return Exported(total - len(refused), made, tuple(sorted(bad)))


def _check_styles(mix: Mix | None, stylize: Stylization | None) -> None:
    """Raise an error at once where every worker would."""
    if mix is not None and mix.stylized and stylize is None:
        raise ValueError("a stylized share needs a stylization")
    if stylize is not None:
        Stylizer(stylize)


def _what(task: Task, job: StudyJob, stylize: Stylization | None) -> str:
    """Return what was made of a frame: the id of its setting, or its style."""
    setting = task.files[0][0]
    if setting == STYLIZED and stylize is not None:
        return f"style:{stylize.style(job.seed, task.frame.id).name}"
    return job.settings[setting].id


def stylizing_job(dataset: Dataset, seed: int, plugin_files: tuple[Path, ...] = ()) -> StudyJob:
    """Return the job of stylizing a data set as it is."""
    return StudyJob(seed, plugin_files, (), (), dataset.categories, (), "refuse")


def export_job(file: StudyFile, *, may_be_empty: bool = False) -> tuple[Dataset, StudyJob]:
    """Return the data set and the settings of a study; the un-mutated images are not among them."""
    registry = plugins.load(file.plugin_files)
    dataset = read_dataset(file, registry)
    settings = read_settings(file, registry)[1:]
    refuse_moving(settings, registry)  # annotations are written beside the images
    job = job_of(file, dataset, settings)
    if not job.settings and not may_be_empty:
        raise StudyError(
            "there is no mutation to apply", fix="Name a --mutation, or mutations: in the study."
        )
    return dataset, job


def folder_name(setting: Setting) -> str:
    """Return the folder of a setting: its id, which every file system takes."""
    return setting.id.replace("/", "_")


def _tasks(
    dataset: Dataset, job: StudyJob, suffix: str, mix: Mix | None, stylize: Stylization | None
) -> Iterator[Task]:
    registry = plugins.load(job.plugin_files)
    frames = list(frames_of(dataset))
    hashes = content_hashes(source.path for frame in frames for source in sources_of(frame))
    code = [
        digest(setting.id, *(registry.get("mutation", step.mutation).code for step in setting.steps))
        for setting in job.settings
    ]
    for frame in frames:
        content = digest(*frame_parts(frame, hashes, deep=True), str(job.seed), job.invalid_depth)
        chosen = range(len(job.settings)) if mix is None else [mix.setting(frame.id, job)]
        files = tuple(
            (
                index,
                f"{mix.folder if mix else folder_name(job.settings[index])}/{frame.id}{suffix}",
                digest(content, _style_key(stylize, job, frame) if index == STYLIZED else code[index]),
            )
            for index in chosen
        )
        yield Task(frame, files, {source.path: hashes[source.path] for source in sources_of(frame)})


def _style_key(stylize: Stylization | None, job: StudyJob, frame: Frame) -> str:
    """Return what the style of a frame is known by: the network, its strength, and the style itself."""
    return "" if stylize is None else digest(stylize.key, stylize.style(job.seed, frame.id).content)


def _done(target: Path) -> dict[str, str]:
    """Return the key of each file that is finished; a line cut short by a crash does not count."""
    journal = target / JOURNAL
    keys: dict[str, str] = {}
    for line in journal.read_text().splitlines() if journal.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if (target / entry["file"]).is_file():
            keys[entry["file"]] = entry["key"]
    return keys


def _made(
    tasks: Sequence[Task], job: StudyJob, target: Path, workers: int, stylize: Stylization | None
) -> Iterator[tuple[Task, list[str | None]]]:
    if workers <= 1:
        maker = _Maker(job, target, stylize)
        for task in tasks:
            yield task, maker.make(task)
        return
    context = multiprocessing.get_context("spawn")
    with (
        _environment(dict.fromkeys((*ONE_THREAD, SAFE_PATH), "1")),
        ProcessPoolExecutor(workers, context, _prepare_worker, (job, target, stylize)) as pool,
    ):
        left = iter(tasks)
        running = {pool.submit(_make, task): task for task in itertools.islice(left, TASKS_AHEAD * workers)}
        while running:
            finished = next(as_completed(running))
            task = running.pop(finished)
            for following in left:
                running[pool.submit(_make, following)] = following
                break
            yield task, finished.result()


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change the environment for the processes that are started inside the block."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Maker:
    def __init__(self, job: StudyJob, target: Path, stylize: Stylization | None) -> None:
        self.job = job
        self.target = target
        self.registry = plugins.load(job.plugin_files)
        self.clean = parse(BASELINE, self.registry)
        self.stylizer = None if stylize is None else Stylizer(stylize)

    def make(self, task: Task) -> list[str | None]:
        """Make the files of a task; return for each why it could not be made, or None."""
        planned = PlannedFiles(task.inputs).of(task.frame)
        frame = FrameVersions(planned, self.job, self.registry, avoid=NOTHING_TO_AVOID, tell=_ignore)
        reasons: list[str | None] = []
        for index, name, _ in task.files:
            version = frame.version(self.clean if index == STYLIZED else self.job.settings[index])
            image, reason = version.image, version.refused
            try:
                if image is not None:
                    if index == STYLIZED and self.stylizer is not None:
                        image = self.stylizer(image, self.job.seed, task.frame.id)
                    self._write_maps(planned, self.target / name)
                    self._write(self.target / name, image)
            except DataError as error:  # a style or a map that cannot be read
                reason = one_line(error)
            reasons.append(reason)
        return reasons

    def _write(self, path: Path, image: Pixels) -> None:
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, image_bytes(image, path), flush=False)

    def _write_maps(self, frame: Frame, path: Path) -> None:
        """Write the true maps of a frame beside its image, where the `folder` format looks for them."""
        if frame.labels is not None:
            self._write(path.parent / LABELS / f"{path.stem}.png", frame.labels())
        if frame.instances is not None:
            objects = frame.instances()
            if objects.max(initial=0) > np.iinfo(np.uint16).max:  # they are told apart by any numbers
                objects = np.unique(np.append(objects, 0), return_inverse=True)[1][:-1].reshape(objects.shape)
            self._write(path.parent / INSTANCES / f"{path.stem}.png", objects.astype(np.uint16))


def _write_mix(path: Path, rows: Sequence[tuple[str, str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("frame", "mutation"), *rows])
    write_file(path, text.getvalue().encode())


def _write_annotations(
    dataset: Dataset, folders: Iterable[str], target: Path, suffix: str, refused: set[str]
) -> None:
    frames = [frame for frame in frames_of(dataset) if frame.id not in refused]
    data = json.dumps(coco_truth(frames, dataset.categories, suffix)).encode()
    names = json.dumps({str(number): name for number, name in dataset.pixel_classes.items()}).encode()
    for folder in folders:
        if (target / folder).is_dir():
            write_file(target / folder / "annotations.json", data)
            if dataset.pixel_classes:
                write_file(target / folder / NAMES_FILE, names)


def coco_truth(frames: Sequence[Frame], categories: Sequence[str], suffix: str) -> Mapping[str, Any]:
    """Return the truth of some frames in COCO's form; file names are frame ids."""
    numbers = {frame.id: number for number, frame in enumerate(frames, start=1)}
    keyed = all(isinstance(frame.image_id, int) for frame in frames)
    ids = {frame.id: frame.image_id if keyed else numbers[frame.id] for frame in frames}
    known = [int(number) for frame in frames for number in frame.truth.ids]
    tracks = len(set(known)) < len(known)  # numbers of people, not of annotations
    annotations = [
        {
            **({"track_id": int(frame.truth.ids[row])} if tracks else {"id": int(frame.truth.ids[row])}),
            "image_id": ids[frame.id],
            "category_id": int(frame.truth.labels[row]) + 1,
            "bbox": [float(x0), float(y0), float(x1 - x0), float(y1 - y0)],
            "area": _area(frame.truth, row),
            "iscrowd": int(frame.truth.ignore[row]),
            **_segmentation(frame.truth, row),
        }
        for frame in frames
        for row, (x0, y0, x1, y1) in enumerate(frame.truth.boxes)
    ]
    if tracks:
        annotations = [{"id": number, **entry} for number, entry in enumerate(annotations, start=1)]
    return {
        "images": [{"id": ids[frame.id], "file_name": f"{frame.id}{suffix}"} for frame in frames],
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for number, name in enumerate(categories, start=1)],
    }


def _segmentation(truth: Truth, row: int) -> dict[str, Any]:
    """Return the mask of an object, where masks were read."""
    return {} if truth.masks is None else {"segmentation": truth.masks.take([row]).as_coco()[0]}


def _area(truth: Truth, row: int) -> float:
    """Return the annotated area or, where there is none, that of the box."""
    if truth.area is not None and not math.isnan(truth.area[row]):
        return float(truth.area[row])
    x0, y0, x1, y1 = truth.boxes[row].tolist()
    return float((x1 - x0) * (y1 - y0))


def _ignore(_stage: Stage) -> None:
    pass


_maker: _Maker | None = None


def _prepare_worker(job: StudyJob, target: Path, stylize: Stylization | None) -> None:
    global _maker  # noqa: PLW0603 - a pool gives its workers no other place to keep what they load
    _maker = _Maker(job, target, stylize)


def _make(task: Task) -> list[str | None]:
    if _maker is None:
        raise RuntimeError("internal error: the worker was not initialised")
    return _maker.make(task)
