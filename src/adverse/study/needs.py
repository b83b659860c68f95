"""What a study needs of its data: depth, labels, poses and positions for its mutations, levels and task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from adverse.depth import usable
from adverse.errors import AdverseError, StudyError, suggestion
from adverse.marks import LEVEL_NEEDS
from adverse.plugins import Plugin
from adverse.robot.profile import Robot, read_robot
from adverse.seeds import generator
from adverse.study.spec import CLEAN, StudyFile
from adverse.types import Dataset, Frame, Setting, Truth

SAMPLED_DEPTHS = 8
"""Depth maps of test frames that are read while planning, drawn at random."""
ONE_VIEW = frozenset({"labels", "registry"})
"""What a mutation can need that is known of the left image alone."""
LACKING: Mapping[str, Callable[[Frame], bool]] = {
    "depth": lambda frame: frame.depth_m is None,
    "pose": lambda frame: frame.world_from_camera is None,
    "camera": lambda frame: frame.camera is None,
    "positions": lambda frame: len(frame.truth.boxes) > 0 and frame.truth.positions_m is None,
}
"""Whether a frame lacks what a level can need of every frame."""


def truth_source(file: StudyFile) -> tuple[str, float] | None:
    """Return the SUT whose answers to clean frames stand in for annotations, and from which score on."""
    truth = file.study.truth
    if truth is None:
        return None
    names, where = [sut.name for sut in file.study.suts], file.where("truth")
    if truth.origin != CLEAN:
        if truth.origin not in names:
            raise StudyError(
                f"there is no SUT {truth.origin!r} whose answers could be the truth",
                where=where,
                wanted=f"{CLEAN}, or the name of a SUT",
                fix=suggestion(truth.origin, [CLEAN, *names]),
            )
        return truth.origin, truth.score
    if len(names) != 1:
        raise StudyError(
            "truth: clean is a SUT's own answers, and the study has several SUTs",
            where=where,
            got=", ".join(names),
            wanted="one SUT, or the name of the one whose answers all are compared with",
            fix="Name the strongest, as in truth: NAME, or make a study for each.",
        )
    return names[0], truth.score


def _unmet_without_labels(file: StudyFile, levels: Sequence[Plugin]) -> Iterator[AdverseError]:
    """Yield the levels that clean answers cannot be the truth of: these are boxes, and stand nowhere."""
    asking = [level.name for level in levels if level.needs - {"motion"}]
    if file.study.truth is not None and asking:
        yield StudyError(
            f"the level {asking[0]} needs annotations: clean answers are boxes alone",
            where=file.where("levels"),
            got=f"truth: {file.study.truth.origin}",
            fix=f"Drop {', '.join(asking)} from levels:, or truth: from the study.",
        )


def unmet(
    file: StudyFile, dataset: Dataset, settings: Sequence[Setting], levels: Sequence[Plugin]
) -> Iterator[AdverseError]:
    """Yield what the data lack, one error for each lack."""
    yield from _unmet_without_labels(file, levels)
    yield from _unmet_by_settings(file, dataset, settings)
    yield from _unusable_depth(file, dataset, settings)
    yield from _unmet_by_levels(file, dataset, levels)
    yield from _unmet_by_task(file, dataset)
    yield from _unmet_by_groups(file, dataset)
    yield from _unmet_by_mutated_pairs(file, settings, levels)


def _unmet_by_settings(
    file: StudyFile, dataset: Dataset, settings: Iterable[Setting]
) -> Iterator[AdverseError]:
    frames = [frame for log in dataset.logs if log.split == "test" for frame in log.frames]
    for need, noun in (("depth_m", "depth"), ("labels", "labels")):
        asking = sorted({setting.family for setting in settings if need in setting.needs})
        without = [frame for frame in frames if getattr(frame, need) is None]
        if asking and without and len(without) == len(frames):  # else those frames alone are quarantined
            yield StudyError(
                f"{', '.join(asking)} needs {noun}",
                where=f"frame {without[0].id!r}",
                got=f"{len(without)} of {len(frames)} test frames have none",
                fix=f"Add a {noun} folder to the data set or drop the mutation from {file.source.path}.",
            )


def _unusable_depth(file: StudyFile, dataset: Dataset, settings: Iterable[Setting]) -> Iterator[AdverseError]:
    """Yield an error if the depth of no frame that is looked at can be used: the run could only fail."""
    asking = sorted({setting.family for setting in settings if "depth_m" in setting.needs})
    frames = [frame for log in dataset.logs if log.split == "test" for frame in log.frames if frame.depth_m]
    if not asking or not frames or file.study.invalid_depth != "refuse":
        return
    errors = []
    drawn = generator(0, "depth maps read while planning").permutation(len(frames))[:SAMPLED_DEPTHS]
    for frame in (frames[number] for number in drawn):
        if frame.depth_m is None:
            continue
        try:
            usable(frame.depth_m(), "refuse", where=f"depth file {frame.depth_m.path}")
        except AdverseError as error:
            errors.append(error)
        else:
            return  # what is wrong with some frames is said of these frames
    yield StudyError(
        f"{', '.join(asking)}: no depth map can be used: {errors[0].what}",
        where=errors[0].where,
        got=f"{errors[0].got}, and likewise in all {len(errors)} depth maps that were looked at",
        wanted=errors[0].wanted,
        fix=errors[0].fix,
    )


def _unmet_by_mutated_pairs(
    file: StudyFile, settings: Sequence[Setting], levels: Sequence[Plugin]
) -> Iterator[AdverseError]:
    """Yield why depth cannot be computed again from the mutated pair, where the study wants it."""
    study, where = file.study, file.where("localize_on")
    if study.localize_on == "clean":
        return
    if not any("depth" in level.needs for level in levels):
        yield StudyError(
            "localize_on: mutated locates nothing: no level of the study needs to know where detections are",
            where=where,
            got=f"levels: {', '.join(study.levels)}",
            fix="Add located, path or loop to levels:, or drop localize_on:.",
        )
    if study.depth is None or study.depth.origin != "stereo":
        yield StudyError(
            "localize_on: mutated computes depth again from the mutated stereo pair",
            where=where,
            got=f"depth from {'the data set' if study.depth is None else study.depth.origin}",
            wanted="depth: {from: stereo}",
            fix="Add that to the study, or drop localize_on:.",
        )
    for setting in settings:
        if setting.needs & ONE_VIEW:
            yield StudyError(
                f"{setting.id} can only be applied to one image of a pair",
                where=where,
                got=f"it needs {', '.join(sorted(setting.needs & ONE_VIEW))}",
                fix="Drop it from mutations:, or drop localize_on:.",
            )


def missing_truth(task: str, dataset: Dataset, *, fix: str) -> StudyError | None:
    """Return that frames lack what a segmenter or a classifier is judged by; None if none does."""
    needs = {"segmentation": ("labels", "a label map"), "classification": ("category", "a category")}
    if task not in needs:
        return None
    name, noun = needs[task]
    frames = [frame for log in dataset.logs if log.split == "test" for frame in log.frames]
    without = [frame for frame in frames if getattr(frame, name) is None]
    if not without:
        return None
    return StudyError(
        f"{task} needs {noun} for every frame",
        where=f"frame {without[0].id!r}",
        got=f"{len(without)} of {len(frames)} test frames have none",
        fix=fix,
    )


def _unmet_by_task(file: StudyFile, dataset: Dataset) -> Iterator[AdverseError]:
    task = file.study.task
    if file.unlabelled:
        return
    fix = "Add it (docs/data-formats.md), or set another task: in the study."
    if (error := missing_truth(task, dataset, fix=fix)) is not None:
        yield error
    if task == "segmentation" and not dataset.pixel_classes:
        yield StudyError(
            "the data set does not say what its pixel classes are called",
            where=file.where("data"),
            fix="Name them (docs/data-formats.md, label maps), as in pixel_classes: {7: road, 24: person}.",
        )


def _unmet_by_groups(file: StudyFile, dataset: Dataset) -> Iterator[AdverseError]:
    """Groups of classes that the data do not have: their images would count as wrong, or as nothing."""
    segmented = file.study.task == "segmentation"
    there = set(dataset.pixel_classes.values()) if segmented else set(dataset.categories)
    if not there or file.unlabelled:
        return
    for index, sut in enumerate(file.study.suts):
        for group in sut.groups:
            if group not in there:
                yield StudyError(
                    f"groups: of SUT {sut.name!r} has a group that is no class of the data",
                    where=file.where("suts", index, "groups", group),
                    got=repr(group),
                    wanted="a class of the data, and the classes of the SUT that are meant by it",
                    fix=suggestion(group, there),
                )


def _unmet_by_levels(file: StudyFile, dataset: Dataset, levels: Sequence[Plugin]) -> Iterator[AdverseError]:
    frames = [frame for log in dataset.logs if log.split == "test" for frame in log.frames]
    needed = {level.name: _needs(file, level) for level in levels}
    for need, lacking in LACKING.items():
        asking = [name for name, needs in needed.items() if need in needs]
        without = [frame for frame in frames if lacking(frame)] if asking else []
        if without:
            yield StudyError(
                f"the level {asking[0]} needs {LEVEL_NEEDS[need]}",
                where=f"frame {without[0].id!r}",
                got=f"{len(without)} of {len(frames)} test frames have none",
                fix=f"Add it (docs/data-formats.md), or drop {', '.join(asking)} from levels:.",
            )
    try:
        robot_of(file, dataset, levels)
    except StudyError as error:
        yield error


def _needs(file: StudyFile, level: Plugin) -> frozenset[str]:
    """Return what a level needs of the data: where all SUTs place their detections, positions for depth."""
    placed = bool(file.study.suts) and all(sut.positions == "reported" for sut in file.study.suts)
    return level.needs - {"depth"} | {"positions"} if placed and "depth" in level.needs else level.needs


def to_locate(file: StudyFile, dataset: Dataset, levels: Iterable[Plugin], metrics: Iterable[Plugin]) -> bool:
    """Return whether boxes are to be located by depth: for a level, or for a metric that reads places.

    For a metric they are where the data have depth and objects whose place nobody annotated.
    """
    if any("depth" in level.needs for level in levels):
        return True
    if not any(metric.metric is not None and metric.metric.placed for metric in metrics):
        return False
    answered = file.study.truth is not None
    truths = (frame.truth for log in dataset.logs for frame in log.frames if frame.depth_m is not None)
    return any(answered or _placed_nowhere(truth) for truth in truths)


def _placed_nowhere(truth: Truth) -> bool:
    """Return whether nobody annotated where some object is."""
    if truth.positions_m is None:
        return len(truth.boxes) > 0
    return bool(np.isnan(truth.positions_m[~truth.ignore]).any())


def robot_of(file: StudyFile, dataset: Dataset, levels: Iterable[Plugin]) -> Robot | None:
    """Return the robot: what the study says over what the data set says; None when no level needs one."""
    if not any("robot" in level.needs for level in levels):
        return None
    profile = getattr(dataset, "robot", None) or {}
    return read_robot({**profile, **(file.study.robot or {})}, where=file.where("robot"))
