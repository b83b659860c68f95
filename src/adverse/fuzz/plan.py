"""What a campaign is: a study's frames and SUTs, checked for fuzzing, and the hash of all that decides it.

Only frames that the best SUT already masters are changed: one that is too hard un-mutated says nothing about
a mutation. The best SUT is the one with the highest mean score over all frames.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adverse import plugins, semantic
from adverse.content import content_hashes, digest
from adverse.errors import DataError, StudyError, suggestion
from adverse.fuzz.donors import donor_data
from adverse.fuzz.folder import VERSION
from adverse.fuzz.job import Before, FuzzJob
from adverse.fuzz.objects import Sightings
from adverse.fuzz.scoring import ALL, Bins, Score, Scorer
from adverse.plugins import Registry
from adverse.semantic import KINDS, PRESETS, Options, added_class
from adverse.semantic.resource_file import hash_files, resource_key
from adverse.study.batch_trial import refuse_open_batches
from adverse.study.depth_maps import depth_sources
from adverse.study.plan import job_of, read_dataset, sut_tasks
from adverse.study.spec import StudyFile
from adverse.study.units import frames_of
from adverse.suts.build import is_recorded
from adverse.text import counted, shown
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
    shares: Mapping[str, float]
    """How many tests each mutation is to have, relatively."""
    prune_below: float
    seed: int
    key: str
    donors: Dataset | None = None
    """Other data that the objects come from which are put into scenes."""

    @property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """The classes that each mutation can be asked to change."""
        options = self.job.options
        changed = {"change_color": options.recoloured, "remove_object": options.removed}
        return {kind: changed.get(kind, ()) for kind in self.shares}


def plan_campaign(file: StudyFile, *, seed: int | None = None) -> CampaignPlan:
    """Work a study out as a campaign, or say what it lacks."""
    study, section = file.study, file.study.fuzz
    seed = study.seed if seed is None else seed
    refuse_open_batches(file, "fuzz")
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
    dataset = read_dataset(file, registry)
    shares = _shares(file, _mutations(file, dataset))
    bins = _bins(file)
    options = _options(file)
    frames = tuple(frame for log in dataset.logs if log.split == "test" for frame in log.frames)
    list(frames_of(dataset))  # raises where two frames have the same id
    _check_frames(file, frames)
    judged = _judged_as(file, dataset)
    donors = donor_data(file, registry, dataset)
    study_job = job_of(file, judged, (), suts)
    meaning = replace(dataset, logs=(), annotations=())
    inputs = content_hashes(source.path for frame in frames for source in _sources(frame))
    job = FuzzJob(
        study_job,
        meaning,
        frames,
        scorer,
        threshold=section.threshold,
        bins=bins,
        visible_share=section.visible_share,
        remnant_share=section.remnant_share,
        removable=options.removed if "remove_object" in shares else (),
        options=options,
        inputs=inputs,
    )
    parts = [
        VERSION,
        repr((study.task, study.targets, scorer, section.threshold, section.prune_below, seed)),
        repr((list(shares.items()), list(bins.items()), section.visible_share, section.remnant_share)),
        repr([(f.name, _plain(getattr(options, f.name))) for f in fields(options)]),
        repr(sorted(judged.pixel_classes.items())),
        *(f"{task.name} {task.fingerprint} {task.batch} {sorted(task.class_map.items())}" for task in suts),
        *(part for frame in frames for part in _frame_parts(frame, inputs)),
        *([] if donors is None else [resource_key(donors, hash_files(donors))]),
        *_code(),
    ]
    key = digest(*parts)
    return CampaignPlan(file, registry, dataset, job, shares, section.prune_below, seed, key, donors)


def _code() -> list[str]:
    """Return what else decides the pixels of a mutated scene: our code and the libraries it uses."""
    sources = sorted(Path(semantic.__file__).parent.glob("*.py"))
    versions = [f"{name} {plugins.library_version(name)}" for name in LIBRARIES]
    return [*versions, digest(*(source.read_bytes() for source in sources))]


def _scorer(file: StudyFile) -> Scorer:
    task, wanted = file.study.task, file.study.fuzz.scorer
    if task not in SCORERS:
        raise StudyError(
            "only segmenters and detectors can be fuzzed",
            where=file.where("task"),
            got=task,
            wanted="segmentation or detection",
            fix="Set task: in the study.",
        )
    scorers = SCORERS[task]
    if wanted is not None and wanted not in scorers:
        raise StudyError(
            f"{wanted} does not score a {task} study",
            where=file.where("fuzz", "scorer"),
            wanted=" or ".join(scorers),
            fix=f"Set scorer: {scorers[0]}, or leave it out.",
        )
    return wanted or scorers[0]


def _mutations(file: StudyFile, dataset: Dataset) -> tuple[str, ...]:
    named = file.study.fuzz.mutations
    for place, name in enumerate(named):
        if name in named[:place]:
            raise StudyError(
                "a mutation is listed twice",
                where=file.where("fuzz", "mutations", place),
                got=name,
                wanted="each mutation once",
                fix=f"Delete one. To give {name} more tests than others, say so in quota:.",
            )
        if name not in KINDS and added_class(name) not in dataset.pixel_classes.values():
            raise StudyError(
                f"there is no semantic mutation {name!r}",
                where=file.where("fuzz", "mutations"),
                fix=suggestion(name, KINDS),
            )
    return tuple(named)


def _shares(file: StudyFile, mutations: Sequence[str]) -> dict[str, float]:
    quota = file.study.fuzz.quota
    if quota == "equal":
        return dict.fromkeys(mutations, 1.0)
    if set(quota) != set(mutations):
        raise StudyError(
            "a quota is needed for each mutation, and for no other",
            where=file.where("fuzz", "quota"),
            got=", ".join(sorted(quota)) or "none",
            wanted=", ".join(mutations),
            fix="Write quota: equal, or a number for each, for example {change_color: 1, add_car: 2}.",
        )
    for name, share in quota.items():
        if not 0 < share < math.inf:
            raise StudyError(
                "a quota must be a number above 0",
                where=file.where("fuzz", "quota"),
                got=f"{name}: {share:g}",
                fix=f"Leave {name} out of mutations: and quota: if it is to get no tests.",
            )
    return {name: quota[name] for name in mutations}


def _bins(file: StudyFile) -> Bins:
    bins = dict(sorted(file.study.fuzz.bins.items(), key=lambda item: item[1]))
    if not bins or len(set(bins.values())) < len(bins) or {"", ALL} & set(bins):
        raise StudyError(
            "the bins of drops cannot be used",
            where=file.where("fuzz", "bins"),
            got=repr(bins),
            wanted=f"names, none of them {ALL!r}, and the percentage points at which each begins",
            fix="Write for example {moderate: 1, significant: 5, extreme: 10}.",
        )
    return bins


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
        return TypeAdapter(Options).validate_python({**PRESETS[file.study.fuzz.preset], **given})
    except ValidationError as error:
        first = error.errors()[0]
        place = tuple(part for part in first["loc"] if isinstance(part, str | int))
        raise StudyError(
            "a fuzz option has an invalid value",
            where=file.where("fuzz", "options", *place),
            got=repr(first["input"])[:120],
            wanted=first["msg"],
            fix="Change it as docs/fuzzing.md says.",
        ) from None


def _check_frames(file: StudyFile, frames: tuple[Frame, ...]) -> None:
    without = [frame for frame in frames if frame.labels is None or frame.instances is None]
    if without:
        raise StudyError(
            "fuzzing needs pixel labels",
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
    sources = (frame.image, frame.labels, frame.instances, frame.behind, *depth_sources(frame))
    return [source for source in sources if source is not None]


def _frame_parts(frame: Frame, inputs: Mapping[Any, str]) -> list[str]:
    read = [part for source in _sources(frame) for part in (inputs[source.path], source.recipe)]
    return [frame.id, frame.log_id, frame.fault or "", *read]


def _plain(value: Any) -> Any:
    """Return a value whose repr does not depend on the order that things were said in."""
    if isinstance(value, Mapping):
        return sorted(value.items())
    return sorted(value) if isinstance(value, frozenset) else value


Row = Mapping[str, Any]


@dataclass(frozen=True)
class PrunedBases:
    """The places of the frames that are kept, all SUTs' scores on them, and how many were dropped and why.

    Not scored: nothing in them is judged.
    """

    places: tuple[int, ...]
    before: Mapping[str, tuple[Before | None, ...]]
    frames: int
    best: str
    means: Mapping[str, float]
    below: float
    too_hard: int
    not_scored: int
    unusable: Mapping[str, str]
    """Why frames cannot be read, by frame."""
    unanswered: Mapping[str, int] = field(default_factory=dict)
    """How many frames each SUT gave no answer to; they count as 0 in its mean."""

    def words(self) -> list[str]:
        """Return what was kept and dropped, a line each."""
        lines = [f"on clean frames {self.best} scores {self.means[self.best]:.2f} % on average"]
        dropped = f"{self.too_hard} score below {self.below:g} %" if self.too_hard else ""
        unread = f"{len(self.unusable)} cannot be read" if self.unusable else ""
        empty = f"{self.not_scored} have no score" if self.not_scored else ""
        reasons = ", ".join(filter(None, (dropped, empty, unread))) or "none dropped"
        lines.append(f"{len(self.places)} of {self.frames} frames are kept as bases ({reasons})")
        return [*lines, *unanswered_words(self.unanswered)]

    def facts(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return {
            "frames": self.frames,
            "kept": len(self.places),
            "too_hard": self.too_hard,
            "not_scored": self.not_scored,
            "below": self.below,
            "best": self.best,
            "mean_scores": dict(self.means),
            "unusable": dict(self.unusable),
            "unanswered": dict(self.unanswered),
        }


def unanswered_words(unanswered: Mapping[str, int]) -> list[str]:
    """Return which SUTs gave no answer to how many clean frames, a line each.

    >>> unanswered_words({"net": 1})
    ['net gave no answer to 1 clean frame, scored as 0 where the best SUT is chosen']
    """
    return [
        f"{shown(sut)} gave no answer to {counted(frames, 'clean frame')}, "
        "scored as 0 where the best SUT is chosen"
        for sut, frames in unanswered.items()
    ]


def clean_means(rows: Sequence[Row], suts: Sequence[str]) -> tuple[dict[str, float], dict[str, int]]:
    """Return the mean score of each SUT, no answer being a 0, and how many frames it did not answer."""
    means, unanswered = {}, {}
    for name in suts:
        known = [value for row in rows if (value := _percent(row, name)) is not None]
        missing = sum(_is_fault(row, name) for row in rows)
        if known:
            means[name] = sum(known) / (len(known) + missing)
        if missing:
            unanswered[name] = missing
    return means, unanswered


def _is_fault(row: Row, sut: str) -> bool:
    return sut in row["suts"] and row["suts"][sut]["fault"] is not None


def pruned(rows: Sequence[Row], campaign: CampaignPlan) -> PrunedBases:
    """Choose the bases from the rows of all frames, in their order."""
    suts = [task.name for task in campaign.job.suts]
    scores = {name: [_percent(row, name) for row in rows] for name in suts}
    scored = {name: [value for value in values if value is not None] for name, values in scores.items()}
    means, unanswered = clean_means(rows, suts)
    unusable = {row["frame"]: row["unusable"] for row in rows if row["unusable"] is not None}
    if not means:
        raise _nothing(rows, unusable)
    best = max(means, key=lambda name: means[name])
    below = campaign.prune_below
    places = tuple(place for place, value in enumerate(scores[best]) if value is not None and value >= below)
    if not places:
        top = max(scored[best])
        raise DataError(
            "no frame scores high enough to be mutated",
            where=f"SUT {best!r} on {len(rows)} frames",
            got=f"a best score of {top:.2f} %, a mean of {means[best]:.2f} %",
            wanted=f"at least {below:g} % on some",
            fix="Lower prune_below under fuzz: in the study, or use frames that the SUT handles well.",
        )
    before = {
        rows[place]["frame"]: tuple(before_of(rows[place]["suts"].get(name)) for name in suts)
        for place in places
    }
    too_hard = sum(value is not None and value < below for value in scores[best])
    not_scored = len(rows) - len(places) - len(unusable) - too_hard - unanswered.get(best, 0)
    return PrunedBases(
        places, before, len(rows), best, means, below, too_hard, not_scored, unusable, unanswered
    )


def _percent(row: Row, sut: str) -> float | None:
    before = before_of(row["suts"].get(sut))
    return None if before is None else before.score.percent


def before_of(result: Row | None) -> Before | None:
    """Return what a SUT made of a base, as its row has it; None where it failed or nothing is judged."""
    if result is None or result["score"] is None:
        return None
    return Before(
        Score(*result["score"]),
        None if result["compat"] is None else Score(*result["compat"]),
        Sightings.read(result["sightings"]),
        {int(instance): Score(*score) for instance, score in result["without"].items()},
    )


def _nothing(rows: Sequence[Row], unusable: Mapping[str, str]) -> DataError:
    faults = [result["fault"] for row in rows for result in row["suts"].values() if result["fault"]]
    faults = [fault.partition(". Fix: ")[0] for fault in faults]
    first = next(iter([*faults, *unusable.values()]), "no frame has anything that is judged")
    return DataError(
        "no SUT has a score on any frame",
        got=first,
        wanted="at least one frame that can be read and judged",
        fix="Check the SUT's class names (class_map, judged_as) and the data (adverse data check).",
    )
