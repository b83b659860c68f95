"""The study file as a checked value. Unknown keys are errors, with the key that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from adverse.errors import StudyError, suggestion
from adverse.plain_files import read_plain
from adverse.plugins import Positive
from adverse.store.selection import Selection
from adverse.strict_yaml import YamlFile, fields_by_section, read_yaml, tuples, validated
from adverse.study.stages import STEP_LIMIT_S
from adverse.types import LocalizeOn, Localizer, Noise, Task

VisualBackend = Literal["vif", "vifp", "vif2"]
INSTANCE_SEGMENTATION = "instance-segmentation"
OTHERS = "*"
"""In groups: all classes of a SUT that are named nowhere else."""
AUTO = "auto"
"""Stands for a size that a run finds by itself."""
UNTIL_TIMED = 32
"""Frames of a unit where a run is to find how many are best, and has not."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,99}")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _OpenSection(_Section):
    """A section whose further keys are the options of the plug-in it names."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the plug-in."""
        return self.model_extra or {}


def _size(most: int) -> BeforeValidator:
    def checked(size: Any) -> Any:
        if size == AUTO or (type(size) is int and 1 <= size <= most):
            return size
        raise ValueError(f"auto, or a number greater than or equal to 1 and up to {most}")

    return BeforeValidator(checked)


class NegativeRuns(_Section):
    """How long a stretch of a log without targets must be to become a negative log of its own."""

    min_frames: Annotated[int, Field(ge=1)]


class Cut(_Section):
    """How long recordings are cut into logs: by seconds, by frames, or where shots change; how many stay."""

    seconds: Positive | None = None
    frames: Annotated[int, Field(ge=1)] | None = None
    shots: bool = False
    keep: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.seconds is not None) + (self.frames is not None) + self.shots != 1:
            raise ValueError("one of seconds, frames and shots, as in cut: {seconds: 10}")
        return self


class DataSection(_OpenSection):
    """Which data, and how to read it."""

    format: str
    cut: Cut | None = None
    negative_runs: NegativeRuns | None = None
    test_frames: Annotated[int, Field(ge=1)] | None = None


class DepthSection(_Section):
    """Where depth comes from: the data set, its stereo pairs or its laser returns (docs/depth.md)."""

    origin: Literal["given", "stereo", "laser"] = Field(alias="from")
    refine: Literal["smoother", "solver", "none"] = "smoother"
    sky: bool = True
    nearest_m: Positive | None = None
    offset_px: Annotated[float, Field(allow_inf_nan=False)] | None = None
    rig: str | None = None
    hood: str | None = None
    neighbours: Annotated[int, Field(ge=0, le=5)] = 0
    """Frames before and after with which depth from stereo is made consistent."""

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.origin != "stereo" and (self.nearest_m or self.offset_px or self.rig or self.neighbours):
            raise ValueError("nearest_m, offset_px, rig and neighbours only with from: stereo")
        if self.rig and self.neighbours:
            raise ValueError("neighbours only with images that are rectified, without rig")
        if self.rig and self.offset_px:
            raise ValueError("either rig, which knows both principal points, or offset_px")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """The options of the function that computes depth."""
        stereo = {"nearest_m": self.nearest_m, "offset_px": self.offset_px}
        given = {name: value for name, value in stereo.items() if value is not None}
        return {"refine": self.refine, "with_sky": self.sky, **given}


class SutSection(_OpenSection):
    """One system under test."""

    name: str
    adapter: str
    batch: Annotated[int | str, _size(1024)] = 1
    """Images shown at once; `auto`: as many as a trial finds best."""
    gpu: bool = False
    """Whether only workers with a GPU are given its units; a cuda provider says so too."""
    timeout_s: Positive = 60.0
    memory_limit_mb: Annotated[int, Field(ge=64)] | None = None
    class_map: dict[str, str] = {}
    groups: dict[str, list[str] | str] = {}
    files: list[str] = []
    positions: Literal["reported", "localized"] | None = None
    """How detections are placed: `reported` by the SUT, which must; `localized` by depth, whatever it says;
    None: as it reports, by depth where it does not."""
    trained_on: list[str] = []

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        return _valid_name(name)

    def renamed(self, folder: Path) -> dict[str, str]:
        """Return what each class of the SUT is called in the data: by `class_map`, and by `groups`.

        A group is a list of classes, a file with one on each line (found from `folder`), or "*": all others.

        >>> section = SutSection(name="net", adapter="onnx", groups={"car": ["cab", "jeep"], "no car": "*"})
        >>> section.renamed(Path())
        {'cab': 'car', 'jeep': 'car', '*': 'no car'}
        """
        names = dict(self.class_map)
        for group, classes in self.groups.items():
            where = f"SUT {self.name!r}, groups.{group}"
            members = _members(classes, folder, where)
            if not members:
                raise StudyError(
                    f"the group {group!r} has no class",
                    where=where,
                    got=repr(classes),
                    wanted='classes of the SUT, a text file with one on each line, or "*" for all others',
                    fix="Name its classes, or take the group out.",
                )
            for name in members:
                if name in names:
                    raise StudyError(
                        f"the class {name!r} is in two groups",
                        where=where,
                        got=f"also {names[name]!r}",
                        fix="Name it once, under groups: or class_map:.",
                    )
                names[name] = group
        return names


def _members(classes: list[str] | str, folder: Path, where: str) -> list[str]:
    if not isinstance(classes, str):
        return classes
    if classes == OTHERS:
        return [OTHERS]
    try:
        lines = read_plain(folder / classes).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(
            "a list of classes cannot be read",
            where=where,
            got=f"{folder / classes}: {error}",
            wanted='classes, a text file with one on each line, or "*" for all others',
            fix="Correct the name of the file.",
        ) from error
    return [name for line in lines if (name := line.partition("#")[0].strip())]


class SensitivitySection(_Section):
    """The shared grid of expected false positives per image, log-spaced."""

    levels: Annotated[int, Field(ge=2, le=10_000)] = 100
    lowest: Positive = 1e-4
    highest: Positive = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.lowest >= self.highest:
            raise ValueError(f"lowest ({self.lowest:g}) below highest ({self.highest:g})")
        return self


class RobustnessSection(_Section):
    """How confidence intervals are computed."""

    bootstrap: Annotated[int, Field(ge=0, le=100_000)] = 1000
    conditions: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}

    @field_validator("conditions")
    @classmethod
    def _whole(cls, conditions: dict[str, float]) -> dict[str, float]:
        if conditions and abs(sum(conditions.values()) - 1) > 1e-9:
            raise ValueError(f"probabilities that sum to 1, not {sum(conditions.values()):g}")
        return conditions


Finite = Annotated[float, Field(allow_inf_nan=False)]


class OperatingPointSection(_Section):
    """Where recall, precision and F1 are read: at a sensitivity, or from a score on.

    A score is that of all SUTs, or of those it names; the others go by the sensitivity.
    """

    sensitivity: Positive | None = None
    score: Finite | dict[str, Finite] | None = None

    @model_validator(mode="after")
    def _either(self) -> Self:
        if self.sensitivity is not None and isinstance(self.score, float):
            raise ValueError("either a sensitivity or a score for all SUTs, not both")
        return self

    def of(self, sut: str, fpr_max: float) -> tuple[float | None, float | None]:
        """Return the sensitivity and the score of a SUT, one of them None; by default it is `fpr_max`."""
        score = self.score.get(sut) if isinstance(self.score, dict) else self.score
        if score is not None:
            return None, score
        return (fpr_max if self.sensitivity is None else self.sensitivity), None


CLEAN = "clean"
"""In truth: the SUT's own answers to clean frames."""


class TruthSection(_Section):
    """Whose answers to clean frames stand in for annotations, from which score on."""

    origin: str = Field(alias="from")
    score: Finite = 0.5


class FuzzSection(_Section):
    """What a fuzz campaign does with the study's data and SUTs (docs/fuzzing.md)."""

    mutations: Annotated[list[str], Field(min_length=1)] = ["change_color", "add_car", "add_person"]
    scorer: Literal["pixels", "compat", "ap", "recall"] | None = None
    prune_below: Annotated[float, Field(ge=0, le=100)] = 95.0
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    judged_as: dict[str, str] = {}
    quota: Literal["equal"] | dict[str, float] = "equal"
    bins: dict[str, Annotated[float, Field(gt=0, le=100)]] = {
        "moderate": 1.0,
        "significant": 5.0,
        "extreme": 10.0,
    }
    preset: Literal["realistic", "paper"] = "realistic"
    visible_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    remnant_share: Annotated[float, Field(ge=0, le=1)] = 0.25
    donors: DataSection | None = None
    options: dict[str, Any] = {}


class Study(_Section):
    """A whole study, as its file says it."""

    name: str
    data: DataSection
    suts: tuple[SutSection, ...] = ()
    mutations: tuple[Any, ...] = ()
    seed: Annotated[int, Field(ge=0)] = 0
    noise: Noise = "own"
    plugins: tuple[str, ...] = ()
    task: Task = "detection"
    masks: bool = False
    targets: Annotated[tuple[str, ...], Field(min_length=1)] = ("person",)
    levels: tuple[str, ...] = ("image",)
    metrics: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    truth: TruthSection | None = None
    sensitivity: SensitivitySection = SensitivitySection()
    robustness: RobustnessSection = RobustnessSection()
    fpr_max: Positive = 0.1
    operating_point: OperatingPointSection = OperatingPointSection()
    quarantine_budget: Annotated[float, Field(ge=0, le=1)] = 0.01
    depth: DepthSection | None = None
    invalid_depth: Literal["refuse", "far", "nearest"] = "refuse"
    localizer: Localizer = "foreground"
    localize_on: LocalizeOn = "clean"
    robot: dict[str, Any] | None = None
    keep_label_maps: bool = False
    measure: Literal["visual_change"] | dict[Literal["visual_change"], VisualBackend] | None = None
    unit_frames: Annotated[int | str, _size(4096)] = 8
    """Frames of a unit of work; `auto`: as many as a timed sample finds best."""
    mutation_timeout_s: Positive = STEP_LIMIT_S
    requirements: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None
    margins: dict[str, Any] | None = None
    fuzz: FuzzSection = FuzzSection()

    @property
    def visual_change(self) -> VisualBackend | None:
        """The backend by which visual change is measured, if it is."""
        if isinstance(self.measure, dict):
            return self.measure.get("visual_change")
        return "vif" if self.measure else None

    @model_validator(mode="before")
    @classmethod
    def _instance_segmentation(cls, study: Any) -> Any:
        """Take instance segmentation for what it is here: detection with a mask for every box."""
        if isinstance(study, dict) and study.get("task") == INSTANCE_SEGMENTATION:
            return {**study, "task": "detection", "masks": True}
        return study

    @field_validator("truth", mode="before")
    @classmethod
    def _truth(cls, truth: Any) -> Any:
        return {"from": truth} if isinstance(truth, str) else truth

    @field_validator("truth")
    @classmethod
    def _truth_is_of_boxes(cls, truth: TruthSection | None, info: ValidationInfo) -> TruthSection | None:
        task, masks = info.data.get("task", "detection"), info.data.get("masks", False)
        if truth is not None and (task != "detection" or masks):
            raise ValueError("no truth: clean answers stand in for annotated boxes, and the task is another")
        return truth

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        return _valid_name(name)

    @field_validator("masks")
    @classmethod
    def _masks(cls, masks: bool, info: ValidationInfo) -> bool:  # noqa: FBT001 - as pydantic calls it
        if masks and info.data.get("task", "detection") != "detection":
            raise ValueError(f"no masks: they are of detections, and the task is {info.data['task']}")
        return masks

    @field_validator("levels")
    @classmethod
    def _levels(cls, levels: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        task = info.data.get("task", "detection")
        if not levels:
            raise ValueError("at least one level, as in levels: [image]; without the key it is that one")
        if task != "detection" and levels != ("image",):
            raise ValueError(f"no levels: they are for detectors, and the task is {task}")
        return levels

    @field_validator("mutations", mode="before")
    @classmethod
    def _mutations(cls, mutations: Any) -> Any:
        if not mutations:  # the key without a value too
            raise ValueError(
                "at least one mutation, as in mutations: [gaussian_blur(sigma_px=2)]; to run the images "
                "as they are, leave the key mutations out"
            )
        if not isinstance(mutations, list | tuple):
            raise ValueError("a list, as in mutations: [gaussian_blur(sigma_px=2)]")  # noqa: TRY004 - pydantic
        return mutations

    @field_validator("suts")
    @classmethod
    def _suts(cls, suts: tuple[SutSection, ...]) -> tuple[SutSection, ...]:
        names = [sut.name for sut in suts]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two SUTs are called {name!r}; give each its own name")
        return suts

    @field_validator("operating_point")
    @classmethod
    def _operating_point(cls, point: OperatingPointSection, info: ValidationInfo) -> OperatingPointSection:
        known = [sut.name for sut in info.data.get("suts", ())]
        for name in point.score if isinstance(point.score, dict) else ():
            if known and name not in known:
                raise ValueError(
                    f"a score of one of the SUTs; there is no {name!r}. {suggestion(name, known)}"
                )
        return point


class StudyFile:
    """A study together with the file it came from, so that errors can point into it."""

    def __init__(self, source: YamlFile, detectors: Mapping[str, Any] | None = None) -> None:
        self.source = source
        self.detectors = detectors or {}
        self.selection: Selection | None = None  # what of it is run, where a search chooses that
        self.log_by_log = False  # whether no unit holds frames of two logs
        self.unlabelled = False  # whether frames need no truth: answers are only compared with each other
        self.folder = source.path.resolve().parent
        self.study = _validated(source)

    @property
    def plugin_files(self) -> tuple[Path, ...]:
        """The plug-in files, found from the study's folder."""
        return tuple((self.folder / name).resolve() for name in self.study.plugins)

    @property
    def unit_frames(self) -> int:
        """Frames of a unit of work; what stands in for them until a run has found how many are best."""
        return self.study.unit_frames if isinstance(self.study.unit_frames, int) else UNTIL_TIMED

    def where(self, *place: str | int) -> str:
        """Say where something stands in the file."""
        return self.source.where(place)


def read_study(path: Path) -> StudyFile:
    """Read and check a study file."""
    return StudyFile(read_yaml(path))


def study_from(data: Mapping[str, Any], folder: Path) -> StudyFile:
    """Check a study given as plain data; its paths are relative to `folder`."""
    return StudyFile(YamlFile(folder / "study.yaml", dict(data), {}))


def study_with(source: YamlFile, detectors: Mapping[str, Any]) -> StudyFile:
    """Check a study with Python objects as further SUTs, by name; sections of `python` may name them."""
    suts = source.data.get("suts", []) if isinstance(source.data, dict) else None
    if not isinstance(suts, list | tuple):
        return StudyFile(source)  # which says what is wrong with it
    own = [entry for entry in suts if isinstance(entry, dict) and entry.get("adapter") == "python"]
    declared = {entry.get("name") for entry in own}
    added = [{"name": name, "adapter": "python"} for name in detectors if name not in declared]
    return StudyFile(replace(source, data={**source.data, "suts": [*suts, *added]}), detectors)


def to_yaml(study: Study) -> str:
    """Write a study out in full, every default spelt out."""
    return yaml.safe_dump(study.model_dump(mode="json", by_alias=True), sort_keys=False, allow_unicode=True)


def written_study(path: Path) -> Study:
    """Read back the study that `to_yaml` wrote; what it names by relative paths was found from elsewhere."""
    source = read_yaml(path, kind="study", example="docs/study-file.md shows one")
    data = {key: value for key, value in source.data.items() if value != []}
    return validated(Study, source, tuples(data), fields_at=_fields_at, page="docs/study-file.md")


def _valid_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("a name is 1 to 100 letters, digits, spaces, dots, dashes or underscores")
    return name


def _validated(source: YamlFile) -> Study:
    if not isinstance(source.data, dict):
        raise StudyError(
            "a study is a mapping",
            where=str(source.path),
            got=type(source.data).__name__,
            wanted="name:, data:, suts:, mutations: ...",
            fix="Begin with lines such as name: orchard; README.md shows a whole study.",
        )
    return validated(Study, source, tuples(source.data), fields_at=_fields_at, page="docs/study-file.md")


_fields_at = fields_by_section(
    Study,
    {
        "data": DataSection,
        "depth": DepthSection,
        "suts": SutSection,
        "sensitivity": SensitivitySection,
        "robustness": RobustnessSection,
        "operating_point": OperatingPointSection,
        "fuzz": FuzzSection,
        "truth": TruthSection,
    },
)
