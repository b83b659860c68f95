"""What a study means: which frames, under which settings, shown to which SUTs, and what of it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse import plugins
from adverse.content import MISSING, content_hashes
from adverse.data.checksums import mismatches
from adverse.data.formats import read_format
from adverse.data.plausibility import by_hash, doubtful_boxes, doubtful_depth, faulty_frames, same_images
from adverse.data.subsets import cut_logs, cut_negative_runs, thinned
from adverse.errors import AdverseError, StudyError, suggestion
from adverse.mutations.settings import BASELINE, expand, parse
from adverse.plugins import Kind, Plugin, Registry
from adverse.plugins.options import relative_to
from adverse.store.cell_keys import PackedCells
from adverse.store.journal import FinishedCells
from adverse.store.run import PIECES
from adverse.study.depth_maps import study_depth
from adverse.study.job import PlannedCell, StudyJob, SutTask, WorkUnit
from adverse.study.moved_back import unmet_by_moves
from adverse.study.needs import to_locate, truth_source, unmet
from adverse.study.scale_check import doubtful_scale
from adverse.study.spec import AUTO, DataSection, StudyFile
from adverse.study.units import cut_into_units, frames_of, sources_of
from adverse.suts.build import is_recorded, missing_recordings, review_recordings
from adverse.suts.fingerprint import described, fingerprint_of
from adverse.suts.python_callable import object_fingerprint
from adverse.suts.recorded_check import Review
from adverse.suts.recorded_rows import Needed
from adverse.suts.score_cuts import declared_cuts
from adverse.types import Dataset, Frame, Setting

LIMITS = ("timeout_s", "memory_limit_mb")
"""Keys of a SUT that are also passed to an adapter with limits of its own."""
INSTANCE_MASKS = "instance_masks"
"""The option of data formats that can read masks of objects."""


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A study planned against its data and a run folder."""

    file: StudyFile
    registry: Registry
    dataset: Dataset
    job: StudyJob
    units: tuple[WorkUnit, ...]
    done: FinishedCells
    inputs: Mapping[Path, str]
    annotations: Mapping[Path, str]
    blocked: tuple[AdverseError, ...]
    warnings: tuple[str, ...] = ()
    """What a reader of the results must know about the SUTs before they are run."""
    again: tuple[str, ...] = ()
    """What changed since the last run in the folder, so that work which was done is to be done again."""
    batch_trials: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What came of looking for the batch size of each SUT for which the study leaves it open."""
    open_batches: frozenset[str] = frozenset()
    """The SUTs whose batch size is still to be found; 1 stands in for it."""
    unit_frames: int | None = None
    """Frames of a unit, where the study leaves that open and they were found."""

    @property
    def to_do(self) -> list[WorkUnit]:
        """The units with the cells that are not done yet."""
        left = []
        for unit in self.units:
            done = self.done.are_among(unit.cells)
            if not done.any():
                left.append(unit)
            elif not done.all():
                left.append(replace(unit, cells=_where(unit.cells, ~done)))
        return left

    @property
    def keys(self) -> list[str]:
        """The keys of all cells."""
        return [cell.key for unit in self.units for cell in unit.cells]

    def frames(self, split: str) -> int:
        """Count the frames of a split."""
        return sum(len(log.frames) for log in self.dataset.logs if log.split == split)

    def pictures(self, units: Iterable[WorkUnit]) -> int:
        """Count the (frame, setting, SUT) triples of some units."""
        return sum(len(unit.frames) * len(unit.cells) for unit in units)


def _where(cells: Sequence[PlannedCell], mask: NDArray[np.bool_]) -> Sequence[PlannedCell]:
    if isinstance(cells, PackedCells):
        return cells.where(mask)
    return tuple(cell for cell, wanted in zip(cells, mask, strict=True) if wanted)


def make_plan(file: StudyFile, done: FinishedCells | None = None) -> StudyPlan:
    """Work a study out: load plug-ins and annotations, hash inputs, cut the work into units."""
    registry = plugins.load(file.plugin_files)
    suts = sut_tasks(file, registry)
    settings = read_settings(file, registry)
    truth_source(file)  # raises where it is none of the SUTs
    conditions_of(file, settings)  # raises where a condition is none of the settings
    levels = levels_of(file, registry)
    metrics = [
        registry.get("metric", name, where=file.where("metrics", number))
        for number, name in enumerate(file.study.metrics)
    ]
    for number, name in enumerate(file.study.relations):
        registry.get("relation", name, where=file.where("relations", number))
    whole = _whole_dataset(file, registry)
    dataset = _wanted_part(file, whole)
    locate = to_locate(file, dataset, levels, metrics)
    job = replace(job_of(file, dataset, settings, suts), locate=locate, code=_code(registry, settings, suts))
    recorded = _review_recordings(file, registry, job, dataset, whole)
    inputs = content_hashes(source.path for frame in frames_of(dataset) for source in sources_of(frame))
    truth = content_hashes(dataset.annotations)
    blocked = [
        *mismatches(inputs | truth),
        *unmet(file, dataset, settings, levels),
        *unmet_by_moves(file, settings, registry),
        *_missing_files(file, registry, job),
        *recorded.errors,
    ]
    cuts = [f"{task.name}: {line}" for task in suts for line in declared_cuts(task.options)]
    units = tuple(cut_into_units(file, registry, dataset, job, inputs))
    doubts = [
        *faulty_frames(frames_of(dataset)),
        *doubtful_boxes(dataset),
        *same_images(dataset.logs, by_hash(inputs, MISSING)),
    ]
    if locate or any("depth_m" in setting.needs for setting in settings):
        doubts += [*doubtful_depth(dataset), *doubtful_scale(dataset)]
    blocked += [StudyError(d.what, where=d.where, got=d.got, fix=d.fix) for d in doubts if d.certain]
    warnings = (
        *_alike(file, whole, dataset),
        *cuts,
        *recorded.warnings,
        *(str(doubt) for doubt in doubts if not doubt.certain),
    )
    return StudyPlan(
        file,
        registry,
        dataset,
        job,
        units,
        done or FinishedCells(),
        inputs,
        truth,
        tuple(blocked),
        warnings,
        open_batches=frozenset(section.name for section in file.study.suts if section.batch == AUTO),
    )


def with_batches(
    plan: StudyPlan, found: Mapping[str, int], trials: Mapping[str, Mapping[str, Any]]
) -> StudyPlan:
    """Return a plan with batch sizes that were open, by SUT, and what came of looking for them."""
    suts = tuple(replace(task, batch=found.get(task.name, task.batch)) for task in plan.job.suts)
    job = replace(plan.job, suts=suts)
    trials, still_open = {**plan.batch_trials, **trials}, plan.open_batches - frozenset(found)
    return recut(replace(plan, job=job, batch_trials=trials, open_batches=still_open))


def recut(plan: StudyPlan) -> StudyPlan:
    """Return a plan with its units as its batch sizes and its size of a unit say."""
    units = cut_into_units(plan.file, plan.registry, plan.dataset, plan.job, plan.inputs, plan.unit_frames)
    return replace(plan, units=tuple(units))


def _code(
    registry: Registry, settings: Iterable[Setting], suts: Iterable[SutTask]
) -> dict[tuple[Kind, str], str]:
    used: set[tuple[Kind, str]] = {("sut", task.adapter) for task in suts}
    used |= {("mutation", step.mutation) for setting in settings for step in setting.steps}
    return {(kind, name): registry.get(kind, name).code for kind, name in sorted(used)}


def job_of(
    file: StudyFile, dataset: Dataset, settings: tuple[Setting, ...], suts: tuple[SutTask, ...] = ()
) -> StudyJob:
    """Return what workers must know of a study."""
    return StudyJob(
        seed=file.study.seed,
        plugin_files=file.plugin_files,
        settings=settings,
        suts=suts,
        categories=dataset.categories,
        targets=file.study.targets,
        invalid_depth=file.study.invalid_depth,
        localizer=file.study.localizer,
        localize_on=file.study.localize_on,
        task=file.study.task,
        masks=file.study.masks,
        pixel_classes=dataset.pixel_classes,
        keep_label_maps=file.study.keep_label_maps,
        visual_change=file.study.visual_change,
        noise=file.study.noise,
        mutation_timeout_s=file.study.mutation_timeout_s,
    )


def levels_of(file: StudyFile, registry: Registry) -> list[Plugin]:
    """Return the levels that a study names."""
    return [
        registry.get("level", name, where=file.where("levels", number))
        for number, name in enumerate(file.study.levels)
    ]


def read_settings(file: StudyFile, registry: Registry) -> tuple[Setting, ...]:
    """Return the settings that a study names, the baseline first."""
    settings = {BASELINE: parse(BASELINE, registry)}
    for index, entry in enumerate(file.study.mutations):
        for setting in expand(entry, registry, where=file.where("mutations", index)):
            settings.setdefault(setting.id, setting)
            if settings[setting.id].group != setting.group:
                raise StudyError(
                    f"{setting.id} is in two groups",
                    where=file.where("mutations", index),
                    got=f"{settings[setting.id].group} and {setting.group}",
                    fix="Name it once, or give the same group both times.",
                )
    return tuple(settings.values())


def read_dataset(file: StudyFile, registry: Registry) -> Dataset:
    """Read the data set that a study names, or the part of it that it selects."""
    return _wanted_part(file, _whole_dataset(file, registry))


def _wanted_part(file: StudyFile, dataset: Dataset) -> Dataset:
    runs, frames = file.study.data.negative_runs, file.study.data.test_frames
    cut = _cut(file, dataset)
    cut = cut_negative_runs(cut, file.study.targets, runs.min_frames) if runs else cut
    return study_depth(file, cut if frames is None else thinned(cut, frames))


def _cut(file: StudyFile, dataset: Dataset) -> Dataset:
    how = file.study.data.cut
    if how is None:
        return dataset
    return cut_logs(dataset, seconds=how.seconds, frames=how.frames, shots=how.shots, keep=how.keep)


def _alike(file: StudyFile, whole: Dataset, dataset: Dataset) -> list[str]:
    """Return what a reader must know of logs that were cut out of few recordings."""
    if file.study.data.cut is None:
        return []
    recordings = sum(log.split == "test" for log in whole.logs)
    logs = sum(log.split == "test" for log in dataset.logs)
    if logs == recordings:
        return []
    of = "one recording" if recordings == 1 else f"{recordings} recordings"
    these = "this recording" if recordings == 1 else "these recordings"
    return [
        (
            f"the {logs} test logs are pieces of {of} {PIECES}: intervals tell how sure a "
            f"figure is for {these}, not for others"
        )
    ]


def read_section(file: StudyFile, registry: Registry, section: DataSection, *place: str) -> Dataset:
    """Read the whole data set of a section that stands at a place of the study file."""
    plugin = registry.get("dataset", section.format, where=file.where(*place, "format"))
    where = file.where(*place)
    options = plugins.bind(
        plugin, section.options, where=where, base=file.folder, also=type(section).model_fields
    )
    return read_format(plugin, options, where=where)


def _whole_dataset(file: StudyFile, registry: Registry) -> Dataset:
    section = file.study.data
    plugin = registry.get("dataset", section.format, where=file.where("data", "format"))
    options = plugins.bind(
        plugin, section.options, where=file.where("data"), base=file.folder, also=type(section).model_fields
    )
    if file.study.masks:
        if INSTANCE_MASKS not in plugin.options:
            able = [one.name for one in registry.all("dataset") if INSTANCE_MASKS in one.options]
            raise StudyError(
                f"the format {section.format!r} has no masks of objects",
                where=file.where("data", "format"),
                wanted=f"one of {', '.join(sorted(able))}",
                fix="Take another format, or task: detection, which needs boxes alone.",
            )
        options = {**options, INSTANCE_MASKS: True}
    dataset = read_format(plugin, options, where=file.where("data"))
    if not any(log.split == "test" for log in dataset.logs):
        raise StudyError(
            "the data set has no test frames",
            where=file.where("data"),
            got=f"splits {sorted({log.split for log in dataset.logs})}",
            fix="Name the test part: split: {test: FOLDER}.",
        )
    for target in file.study.targets if file.study.task == "detection" else ():
        if dataset.categories and target not in dataset.categories:
            raise StudyError(
                f"the data set has no category {target!r}",
                where=file.where("targets"),
                fix=suggestion(target, dataset.categories)
                + " Set targets: in the study, or task: if its SUTs are no detectors.",
            )
    return dataset


def sut_tasks(file: StudyFile, registry: Registry) -> tuple[SutTask, ...]:
    """Return the SUTs of a study as workers must know them; a study without one is an error."""
    if not file.study.suts:
        raise StudyError(
            "the study names no SUT",
            where=file.where("suts"),
            wanted="at least one entry under suts:",
            fix="Add one, such as {name: hog, adapter: opencv-hog}; see: adverse list suts.",
        )
    return tuple(_sut_task(file, registry, index) for index in range(len(file.study.suts)))


def _sut_task(file: StudyFile, registry: Registry, index: int) -> SutTask:
    section = file.study.suts[index]
    plugin = registry.get("sut", section.adapter, where=file.where("suts", index, "adapter"))
    held = file.detectors.get(section.name)
    shared = {name: getattr(section, name) for name in LIMITS if name in plugin.options}
    files = tuple(relative_to(file.folder, Path(name)) for name in section.files)
    if section.files and "files" in plugin.options:
        shared["files"], files = section.files, ()
    options = (
        {"detector": held}
        if held is not None
        else plugins.bind(
            plugin,
            {**section.options, **shared},
            where=file.where("suts", index),
            base=file.folder,
            also=type(section).model_fields,
        )
    )
    try:
        made_of = described(plugin, options, files)
    except AdverseError as error:
        raise error.placed(file.where("suts", index)) from error
    return SutTask(
        name=section.name,
        adapter=section.adapter,
        options=options,
        fingerprint=fingerprint_of(made_of) if held is None else object_fingerprint(held),
        made_of=made_of,
        batch=section.batch if isinstance(section.batch, int) else 1,
        timeout_s=section.timeout_s,
        memory_limit_mb=section.memory_limit_mb,
        class_map=section.renamed(file.folder),
        positions=section.positions,
        files=files,
        gpu=section.gpu or "cuda" in options.get("providers", ()),
        trained_on=_trained_on(section.trained_on, registry, file.where("suts", index, "trained_on")),
    )


def _trained_on(entries: Sequence[str], registry: Registry, where: str) -> tuple[str, ...]:
    """Return the names of the mutations that a SUT was trained with: named, at one strength, or a battery."""
    names: set[str] = set()
    known = {plugin.name for plugin in registry.all("mutation")}
    for entry in entries:
        if entry in known:
            names.add(entry)
        else:
            settings = expand(entry, registry, where=where)
            names |= {step.mutation for setting in settings for step in setting.steps}
    return tuple(sorted(names))


def conditions_of(file: StudyFile, settings: Sequence[Setting]) -> dict[str, float]:
    """Return the probability of each condition by the id of its setting; `baseline` is the un-mutated one."""
    ids = {"baseline": settings[0].id, **{setting.id: setting.id for setting in settings}}
    chances = file.study.robustness.conditions
    for name in chances:
        if name not in ids:
            raise StudyError(
                f"there is no condition {name!r}",
                where=file.where("robustness", "conditions"),
                wanted="baseline, or the id of a mutation of this study",
                fix=suggestion(name, ids),
            )
    return {ids[name]: chance for name, chance in chances.items()}


def _missing_files(file: StudyFile, registry: Registry, job: StudyJob) -> Iterator[AdverseError]:
    for index, task in enumerate(job.suts):
        plugin = registry.get("sut", task.adapter)
        try:
            missing = missing_recordings(plugin, task.options, [setting.id for setting in job.settings])
        except AdverseError as error:
            raise error.placed(file.where("suts", index)) from error
        for path in missing:
            yield StudyError(
                f"SUT {task.name!r} has no predictions for a mutation of the study",
                where=file.where("suts", index),
                wanted=str(path),
                fix="Write that file, or drop the mutation from the study.",
            )


def _review_recordings(
    file: StudyFile, registry: Registry, job: StudyJob, dataset: Dataset, whole: Dataset
) -> Review:
    """Check recorded answers of all SUTs: whether they are about the images of the study.

    They may be about more of the `whole` data set than the part of it that the study uses.
    """
    total = Review()
    recorded = [
        (i, task) for i, task in enumerate(job.suts) if is_recorded(registry.get("sut", task.adapter))
    ]
    if not recorded:
        return total
    everything = [frame for log in whole.logs for frame in log.frames]
    image_ids = frozenset(frame.image_id for frame in everything)
    splits: dict[str, list[Frame]] = {}
    for log in dataset.logs:
        if log.split != "train":
            splits.setdefault(log.split, []).extend(log.frames)
    if (ambiguous := _ambiguous_ids(file, recorded[0][0], splits)) is not None:
        total.errors.append(ambiguous)
        return total
    test = {"test": splits["test"]}
    needed = {
        setting.id: Needed(test if n else splits, image_ids, everything)
        for n, setting in enumerate(job.settings)
    }
    for index, task in recorded:
        plugin = registry.get("sut", task.adapter)
        try:
            review = review_recordings(plugin, task.options, needed)
        except AdverseError as error:
            raise error.placed(file.where("suts", index)) from error
        total.errors += [error.placed(file.where("suts", index)) for error in review.errors]
        total.warnings += [f"{task.name}: {line}" for line in review.warnings]
    return total


def _ambiguous_ids(file: StudyFile, sut: int, splits: Mapping[str, Sequence[Frame]]) -> StudyError | None:
    """Return the error that one image id stands for several images: what was recorded is then of any."""
    counts = Counter(frame.image_id for frames in splits.values() for frame in frames)
    twice = [image for image, count in counts.items() if count > 1]
    if not twice:
        return None
    pair = [frame for frames in splits.values() for frame in frames if frame.image_id == twice[0]]
    return StudyError(
        "image ids of recorded predictions stand for several images",
        where=file.where("suts", sut),
        got=f"{len(twice)} ids, such as {twice[0]!r} for {pair[0].id!r} and {pair[1].id!r}",
        wanted="an id of its own for each image of the validation and test splits",
        fix="Number the images of the splits differently in the annotations and predictions, or leave out "
        "validation: from split:.",
    )
