"""How the work of a study is cut into units, and the keys of their cells.

The smallest piece that is run, stored and reused is a *cell*: one run of frames under one setting by one
SUT. Its key is a hash of everything that decides its result, so changing a SUT changes that SUT's cells
alone. A *unit* is the cells of the same frames that are still to do, so that each frame is decoded once.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from adverse.content import digest
from adverse.errors import StudyError
from adverse.mutations.settings import BASELINE
from adverse.plugins import Registry
from adverse.store.cell_keys import WIDTH, PackedCells
from adverse.study.depth_maps import depth_sources
from adverse.study.frame_versions import moment_s
from adverse.study.job import PlannedCell, StudyJob, SutTask, WorkUnit
from adverse.study.spec import StudyFile
from adverse.types import Dataset, Frame, Log, Setting, Source, Truth

KEY_VERSION = "cell-5"
REPEAT_ONE_IN, LEAST_REPEATED = 64, 20
"""About one frame in so many, and at least so many, are shown to each SUT twice without a mutation, to notice
answers that change by themselves."""


def cut_into_units(
    file: StudyFile,
    registry: Registry,
    dataset: Dataset,
    job: StudyJob,
    inputs: Mapping[Path, str],
    unit_frames: int | None = None,
) -> Iterator[WorkUnit]:
    """Yield the units of a study, validation first; `inputs` are the hashes of the files."""
    code = {
        setting.id: [registry.get("mutation", step.mutation).code for step in setting.steps]
        for setting in job.settings
    }
    repeated = _repeated([frame.id for frame in frames_of(dataset)])
    answers = [b"".join(map(_part, _answer_parts(job, task))) for task in job.suts]
    with_truth = job.locate or any("depth_m" in setting.needs for setting in job.settings)
    no_truth = Truth.none()
    for split, logs, pairs in _parts(file, dataset, job):
        numbers = tuple((s, k) for s, mine in pairs.items() for k in mine)
        for frames in _chunks(logs, unit_frames or file.unit_frames, apart=file.log_by_log):
            plain = digest(*(part for frame in frames for part in frame_parts(frame, inputs, deep=False)))
            deep = digest(*(part for frame in frames for part in frame_parts(frame, inputs, deep=True)))
            keys = []
            for s, mine in pairs.items():
                setting = job.settings[s]
                pixels = _pixel_parts(job, setting, frames, plain, deep)
                draws = [str(job.seed)] if setting.needs & {"rng", "log_rng"} or setting.drift else []
                if setting.drift is not None or "time_s" in setting.needs:
                    draws += [f"{moment_s(frame)!r}" for frame in frames]
                draws += [f"{job.noise} noise"] if draws and job.noise != "own" else []
                parts = [KEY_VERSION, *pixels, setting.id, *code[setting.id], *draws]
                shown = hashlib.blake2b(b"".join(map(_part, parts)), digest_size=WIDTH)
                for k in mine:
                    key = shown.copy()
                    key.update(answers[k])
                    keys.append(key.digest())
            twice = repeated & {frame.id for frame in frames}
            name = digest(split, *(frame.id for frame in frames), size=8)
            bare = frames  # truth is of no use to workers where no depth is read
            if not with_truth:
                bare = tuple(replace(frame, truth=no_truth) for frame in frames)
            read = {source.path: inputs[source.path] for frame in frames for source in sources_of(frame)}
            cells = PackedCells(b"".join(keys), numbers, PlannedCell)
            yield WorkUnit(name, bare, cells, frozenset(twice), read)


def _part(part: str) -> bytes:
    """Return a part of a key with its length before it, as `content.digest` hashes it."""
    data = part.encode()
    return len(data).to_bytes(8, "little") + data


def _answer_parts(job: StudyJob, task: SutTask) -> list[str]:
    """Return what decides the answers of a SUT besides the images that it is shown."""
    labels = [*job.categories, "|", *(f"{a}={b}" for a, b in sorted(task.class_map.items()))]
    answer = [job.task, task.name, task.fingerprint, str(task.batch), *labels]
    if task.positions is not None:
        answer.append(f"positions {task.positions}")
    return answer + (["masks"] if job.masks else [])


Pairs = Mapping[int, Sequence[int]]
"""The SUTs, by number, that are run under each setting, by number."""


def _parts(file: StudyFile, dataset: Dataset, job: StudyJob) -> Iterator[tuple[str, list[Log], Pairs]]:
    """Yield the logs that are run alike, and under which settings by which SUTs: by split, or by batch."""
    every = range(len(job.suts))
    validation, test = ([log for log in dataset.logs if log.split == one] for one in ("validation", "test"))
    yield "validation", validation, {0: every}
    if file.selection is None:
        yield "test", test, dict.fromkeys(range(len(job.settings)), every)
        return
    settings = {setting.id: number for number, setting in enumerate(job.settings)}
    suts = {task.name: number for number, task in enumerate(job.suts)}
    for batch in file.selection.batches:
        wanted, pairs = set(batch.frames), dict[int, list[int]]()
        for setting, sut in batch.cells:
            pairs.setdefault(settings[setting], []).append(suts[sut])
        logs = [replace(log, frames=tuple(one for one in log.frames if one.id in wanted)) for log in test]
        yield "test", [log for log in logs if log.frames], dict(sorted(pairs.items()))


def _pixel_parts(
    job: StudyJob, setting: Setting, frames: Sequence[Frame], plain: str, deep: str
) -> list[str]:
    """Return what decides the images of a unit under a setting and what is read off their maps.

    `plain` stands for the images, `deep` for their depth and labels too.
    """
    pixels = [deep, job.invalid_depth] if setting.needs & {"depth_m", "labels"} else [plain]
    if job.task == "segmentation":
        names = (f"{number}={name}" for number, name in sorted(job.pixel_classes.items()))
        pixels += [deep, *names, str(job.keep_label_maps)]
    if job.locate:
        pixels += [deep, job.localizer, *job.targets]
    if job.localizes_on_mutated and setting.id != BASELINE:
        pixels.append("localized on the mutated pair")
    # the depth of the true boxes is kept
    if (job.locate and setting.id == BASELINE) or "depth_m" in setting.needs:
        pixels += [digest(frame.truth.boxes.tobytes()) for frame in frames]
    return pixels


def _repeated(frames: Sequence[str]) -> frozenset[str]:
    """Return the frames to ask about twice, from all over the data set."""
    drawn = {frame for frame in frames if int(digest(frame), 16) % REPEAT_ONE_IN == 0}
    step = max(len(frames) / LEAST_REPEATED, 1.0)
    return frozenset(drawn | {frames[int(k * step)] for k in range(min(LEAST_REPEATED, len(frames)))})


def _chunks(logs: Iterable[Log], size: int, *, apart: bool) -> Iterator[tuple[Frame, ...]]:
    """Cut logs into runs of at most `size` frames; short logs (single images) share one, if not `apart`."""
    waiting: list[Frame] = []
    for log in logs:
        if waiting and (apart or len(waiting) + len(log.frames) > size):
            yield tuple(waiting)
            waiting = []
        if len(log.frames) < size:
            waiting += log.frames
            continue
        for start in range(0, len(log.frames), size):
            yield log.frames[start : start + size]
    if waiting:
        yield tuple(waiting)


def frame_parts(frame: Frame, inputs: Mapping[Path, str], *, deep: bool) -> list[str]:
    """Return what decides a frame's pixels; `deep` adds its depth and labels."""
    sources = sources_of(frame) if deep else [frame.image]
    parts = [part for source in sources for part in (inputs[source.path], source.recipe)]
    return [frame.id, frame.log_id, frame.fault or "", *parts]


def sources_of(frame: Frame) -> list[Source]:
    """Return the files that a frame is read from."""
    labels = () if frame.labels is None else (frame.labels,)
    return [frame.image, *depth_sources(frame), *labels]


def frames_of(dataset: Dataset) -> Iterator[Frame]:
    """Yield the frames of a data set but those for training, making sure that each id stands once."""
    counts: Counter[str] = Counter()
    for log in dataset.logs:
        if log.split != "train":
            for frame in log.frames:
                counts[frame.id] += 1
                if counts[frame.id] > 1:
                    raise StudyError(
                        "two frames have the same id",
                        where=f"frame {frame.id!r}",
                        fix="Rename one of the files.",
                    )
                yield frame
