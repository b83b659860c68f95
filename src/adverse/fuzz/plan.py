"""What a campaign is: a study's frames and SUTs, checked for fuzzing, and the hash of all that decides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adverse import plugins, semantic
from adverse.content import digest
from adverse.errors import StudyError, suggestion
from adverse.fuzz.folder import VERSION
from adverse.fuzz.job import FuzzJob
from adverse.fuzz.scoring import Scorer
from adverse.plugins import Registry
from adverse.semantic import KINDS, Options
from adverse.store.owned_folder import FileHashes
from adverse.study.plan import frames_of, job_of, read_dataset, sut_tasks
from adverse.study.spec import StudyFile
from adverse.suts.build import is_recorded
from adverse.types import Dataset, Frame, Source

LIBRARIES = ("numpy", "opencv-python-headless")
OTHERS = "*"
"""In judged_as: all classes of the data set that are not named."""
SCORERS: Mapping[str, tuple[Scorer, ...]] = {
    "segmentation": ("pixels", "compat"),
    "detection": ("ap", "recall"),
}


@dataclass(frozen=True)
class CampaignPlan:
    """A study worked out as a campaign.

    `key` is the hash of all that decides what it finds but the number of tests: a longer campaign begins with
    the same tests.
    """

    file: StudyFile
    registry: Registry
    dataset: Dataset
    job: FuzzJob
    mutations: tuple[str, ...]
    prune_below: float
    seed: int
    key: str

    @property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """The classes that each mutation can be asked to change."""
        options = self.job.options
        changed = {"change_color": options.recoloured, "remove_object": options.removed}
        return {kind: changed.get(kind, ()) for kind in self.mutations}


def plan_campaign(
    file: StudyFile, *, seed: int | None = None, hashes: FileHashes | None = None
) -> CampaignPlan:
    """Work a study out as a campaign, or say what it lacks."""
    study, section = file.study, file.study.fuzz
    seed = study.seed if seed is None else seed
    scorer = _scorer(file)
    registry = plugins.load(file.plugin_files)
    suts = sut_tasks(file, registry)
    for index, task in enumerate(suts):
        if is_recorded(registry.get("sut", task.adapter)):
            raise StudyError(
                "a SUT that answers from a record cannot be fuzzed",
                where=file.where("suts", index),
                got=f"adapter {task.adapter!r}",
                wanted="a SUT that looks at images: they are made while the campaign runs",
                fix="Name the model itself, for example with adapter: onnx.",
            )
    mutations = _mutations(file)
    options = _options(file)
    dataset = read_dataset(file, registry)
    frames = tuple(frame for log in dataset.logs if log.split == "test" for frame in log.frames)
    list(frames_of(dataset))  # raises where two frames have the same id
    _check_frames(file, frames)
    judged = _judged_as(file, dataset)
    study_job = job_of(file, judged, (), suts)
    meaning = replace(dataset, logs=(), annotations=())
    inputs = (hashes or FileHashes()).of(source.path for frame in frames for source in _sources(frame))
    job = FuzzJob(study_job, meaning, frames, scorer, section.threshold, options, inputs)
    parts = [
        VERSION,
        repr((study.task, study.targets, scorer, section.threshold, section.prune_below, mutations, seed)),
        repr([(f.name, _plain(getattr(options, f.name))) for f in fields(options)]),
        repr(sorted(judged.pixel_classes.items())),
        *(f"{task.name} {task.fingerprint} {task.batch} {sorted(task.class_map.items())}" for task in suts),
        *(part for frame in frames for part in _frame_parts(frame, inputs)),
        *_code(),
    ]
    return CampaignPlan(file, registry, dataset, job, mutations, section.prune_below, seed, digest(*parts))


def _code() -> list[str]:
    """Return what else decides the pixels of a mutated scene: our code and the libraries it uses."""
    sources = sorted(Path(semantic.__file__).parent.glob("*.py"))
    versions = [f"{name} {plugins.library_version(name)}" for name in LIBRARIES]
    return [*versions, digest(*(source.read_bytes() for source in sources))]


def _scorer(file: StudyFile) -> Scorer:
    task, asked = file.study.task, file.study.fuzz.scorer
    if task not in SCORERS:
        raise StudyError(
            "only segmenters and detectors can be fuzzed",
            where=file.where("task"),
            got=task,
            wanted="segmentation or detection",
            fix="Set task: in the study.",
        )
    scorers = SCORERS[task]
    if asked is not None and asked not in scorers:
        raise StudyError(
            f"{asked} does not score a {task} study",
            where=file.where("fuzz", "scorer"),
            wanted=" or ".join(scorers),
            fix=f"Set scorer: {scorers[0]}, or leave it out.",
        )
    return asked or scorers[0]


def _mutations(file: StudyFile) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(file.study.fuzz.mutations))
    for name in named:
        if name not in KINDS:
            raise StudyError(
                f"there is no semantic mutation {name!r}",
                where=file.where("fuzz", "mutations"),
                fix=suggestion(name, KINDS),
            )
    return named


def _options(file: StudyFile) -> Options:
    given = file.study.fuzz.options
    names = [f.name for f in fields(Options)]
    for name in given:
        if name not in names:
            raise StudyError(
                f"there is no fuzz option {name!r}",
                where=file.where("fuzz", "options", name),
                fix=suggestion(name, names),
            )
    try:
        return TypeAdapter(Options).validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = tuple(part for part in first["loc"] if isinstance(part, str | int))
        raise StudyError(
            "a fuzz option has a value it cannot take",
            where=file.where("fuzz", "options", *place),
            got=repr(first["input"])[:120],
            wanted=first["msg"],
            fix="Change it as docs/fuzzing.md says.",
        ) from None


def _check_frames(file: StudyFile, frames: tuple[Frame, ...]) -> None:
    without = [frame for frame in frames if frame.labels is None or frame.instances is None]
    if without:
        raise StudyError(
            "fuzzing needs to know what every pixel is",
            where=f"frame {without[0].id!r}",
            got=f"{len(without)} of {len(frames)} test frames have no label map or no instance map",
            wanted="both for each image: Cityscapes, COCO panoptic, folder with labels/ and instances/",
            fix="Add them (docs/data-formats.md), or name another data set in "
            f"{file.where('data')}; street-world has all that is needed.",
        )


def _judged_as(file: StudyFile, dataset: Dataset) -> Dataset:
    """Return the data set with its pixel classes under the names that SUTs are judged by."""
    judged_as = file.study.fuzz.judged_as
    classes = set(dataset.pixel_classes.values())
    for name in judged_as:
        if name != OTHERS and name not in classes:
            raise StudyError(
                f"judged_as names a pixel class that the data set does not have: {name!r}",
                where=file.where("fuzz", "judged_as"),
                fix=suggestion(name, classes),
            )
    renamed = {
        number: judged_as.get(name, judged_as.get(OTHERS, name))
        for number, name in dataset.pixel_classes.items()
    }
    return replace(dataset, pixel_classes=renamed)


def _sources(frame: Frame) -> list[Source]:
    sources = (frame.image, frame.labels, frame.instances, frame.depth_m)
    return [source for source in sources if source is not None]


def _frame_parts(frame: Frame, inputs: Mapping[Any, str]) -> list[str]:
    read = [part for source in _sources(frame) for part in (inputs[source.path], source.recipe)]
    return [frame.id, frame.log_id, frame.fault or "", *read]


def _plain(value: Any) -> Any:
    """Return a value whose repr does not depend on the order that things were said in."""
    if isinstance(value, Mapping):
        return sorted(value.items())
    return sorted(value) if isinstance(value, frozenset) else value
