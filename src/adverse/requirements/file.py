"""The requirements file: YAML that names a study, or the study's own `requirements:`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from adverse.errors import StudyError, suggestion
from adverse.humans.thresholds import Kind
from adverse.plugins import NonNegative, Positive
from adverse.requirements.decision import IntervalRule, SamplingPlan
from adverse.strict_yaml import Where, YamlFile, read_yaml, validated
from adverse.study.spec import StudyFile, read_study
from adverse.types import Task
from adverse.visual import Backend

MEASURES: dict[Task, dict[str, str]] = {
    "detection": {
        "recall": "share of the targets that are detected",
        "f1": "balance of recall and precision",
        "ap": "COCO AP of the targets",
        "ap50": "COCO AP50 of the targets",
    },
    "segmentation": {
        "mean_iou": "intersection over union, mean over classes",
        "pixel_accuracy": "share of pixels with the right class",
    },
    "classification": {
        "top1": "share of images whose class is right",
        "top5": "share of images whose class is among the best five",
    },
}
"""What correctness is measured by, for each task; the first is the default."""
SIMILARITY: dict[Task, tuple[str, str]] = {
    "detection": ("box_f1", "F1 of the boxes that match between the two answers"),
    "segmentation": ("equal_pixels", "share of pixels that are given the same class"),
    "classification": ("equal_label", "share of images that are given the same class"),
}
"""What prediction is compared by."""
AT_A_SCORE = ("recall", "f1", "box_f1")
"""Measures of detections that count from some score on."""
ALL_ALIKE = ("top1", "top5", "equal_label", "pixel_accuracy", "equal_pixels")
"""Measures of which every image is as much as it has pixels; of all others a few images may hold most."""
PAGE = "docs/requirements.md"
KEY = "requirements"

Number = Annotated[float, Field(allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Distribution(_Section):
    """How an option of a transformation is drawn; exactly one of the three."""

    uniform: tuple[Number, Number] | None = None
    loguniform: tuple[Positive, Positive] | None = None
    choice: Annotated[tuple[Number, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [value for value in (self.uniform, self.loguniform, self.choice) if value is not None]
        if len(given) != 1:
            raise ValueError("one of uniform: [low, high], loguniform: [low, high], choice: [values]")
        if self.choice is None and given[0][0] >= given[0][1]:
            raise ValueError(f"the lower end ({given[0][0]:g}) below the upper one ({given[0][1]:g})")
        return self


class Requirement(_Section):
    """One requirement."""

    transformation: str
    kind: Kind
    threshold: Number | str
    name: str | None = None
    measure: str | None = None
    parameters: dict[str, Distribution] | None = None
    margin: NonNegative | None = None
    battery: str | None = None

    @field_validator("threshold", mode="before")
    @classmethod
    def _threshold(cls, value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number and not isinstance(value, str):
            raise ValueError("published, an estimates file, or a number above 0 and at most 1")
        return value


class Requirements(_Section):
    """All requirements of a file, and how they are checked."""

    require: Annotated[tuple[Requirement, ...], Field(min_length=1)]
    study: str | None = None
    suts: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    frames: Annotated[int, Field(ge=1)] | None = None
    versions: Annotated[int, Field(ge=1, le=100)] = 2
    barely: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    tries: Annotated[int, Field(ge=1, le=1000)] = 24
    backend: Backend | None = None
    sensitivity: Positive | None = None
    score: Number | None = None
    batches: Annotated[int, Field(ge=20, le=100_000)] = 1000
    images: Annotated[int, Field(ge=1)] | None = None
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    margin: NonNegative = 0.02
    rule: IntervalRule = "paired"
    rarest_kind: Annotated[float, Field(gt=0, le=0.5)] = 0.02
    seed: Annotated[int, Field(ge=0)] | None = None
    ranking: bool = False

    @field_validator("score")
    @classmethod
    def _one_threshold(cls, score: float | None, info: ValidationInfo) -> float | None:
        if score is not None and info.data.get("sensitivity") is not None:
            raise ValueError("sensitivity: or score:, not both")
        return score


@dataclass(frozen=True)
class RequirementsFile:
    """Requirements together with the study they are about and the place they were read from."""

    source: YamlFile
    requirements: Requirements
    study: StudyFile

    def where(self, *place: str | int) -> str:
        """Say where something stands in the file."""
        return self.source.where(place)

    @property
    def folder(self) -> Path:
        """The folder that paths in the file are relative to."""
        return self.source.path.resolve().parent

    @property
    def seed(self) -> int:
        """The seed of the batches: the file's own, else the study's."""
        return self.study.study.seed if self.requirements.seed is None else self.requirements.seed

    def names(self) -> list[str]:
        """Return a distinct name for each requirement."""
        names: list[str] = []
        for requirement in self.requirements.require:
            name = requirement.name or f"{requirement.transformation} {requirement.kind}"
            again = 2
            while name in names:
                name, again = (
                    f"{requirement.name or requirement.transformation} {requirement.kind} {again}",
                    again + 1,
                )
            names.append(name)
        return names

    def measure(self, number: int) -> str:
        """Return what a requirement is measured by, or raise where the task has no such measure."""
        requirement, task = self.requirements.require[number], self.study.study.task
        if requirement.kind == "prediction":
            if requirement.measure is not None and requirement.measure != SIMILARITY[task][0]:
                raise self._no_measure(number, [SIMILARITY[task][0]], f"prediction preservation in {task}")
            return SIMILARITY[task][0]
        if requirement.measure is not None and requirement.measure not in MEASURES[task]:
            raise self._no_measure(number, MEASURES[task], task)
        return requirement.measure or next(iter(MEASURES[task]))

    def plan(self, number: int) -> SamplingPlan:
        """Return how a requirement is checked."""
        requirements, margin = self.requirements, self.requirements.require[number].margin
        return SamplingPlan(
            batches=requirements.batches,
            images=requirements.images,
            confidence=requirements.confidence,
            margin=requirements.margin if margin is None else margin,
            seed=self.seed,
            rule=requirements.rule,
            rarest_kind=0.0 if self.measure(number) in ALL_ALIKE else requirements.rarest_kind,
        )

    def _no_measure(self, number: int, measures: Any, of: str) -> StudyError:
        return StudyError(
            f"there is no measure {self.requirements.require[number].measure!r} for {of}",
            where=self.where("require", number, "measure"),
            fix=suggestion(str(self.requirements.require[number].measure), measures),
        )


def read_requirements(path: Path) -> RequirementsFile:
    """Read a requirements file and the study it names, or a study with `requirements:` in it."""
    source = read_yaml(path, kind="requirements", example=f"{PAGE} shows one")
    data = source.data
    if isinstance(data, dict) and KEY in data and "study" not in data:
        return RequirementsFile(_below(source, KEY), _validated(_below(source, KEY)), read_study(path))
    if not isinstance(data, dict) or "require" not in data:
        raise StudyError(
            "there are no requirements in the file",
            where=str(path),
            wanted="a study with requirements:, or a file with study: and require:",
            fix=f"Write some, as {PAGE} shows.",
        )
    requirements = _validated(source)
    if requirements.study is None:
        raise StudyError(
            "the requirements name no study",
            where=str(path),
            wanted="study: the path of a study file",
            fix="Add study: study.yaml; it names the data and the systems.",
        )
    return RequirementsFile(source, requirements, read_study(path.resolve().parent / requirements.study))


def _below(source: YamlFile, key: str) -> YamlFile:
    """Return one section of a file as if it were the whole, its lines kept."""
    lines = {place[1:]: line for place, line in source.lines.items() if place[:1] == (key,)}
    return YamlFile(source.path, source.data[key], lines)


def _validated(source: YamlFile) -> Requirements:
    if not isinstance(source.data, dict):
        raise StudyError(
            "requirements are a mapping",
            where=source.where(()),
            got=type(source.data).__name__,
            wanted="require: and how to check it",
            fix=f"Write them as {PAGE} shows.",
        )
    return validated(
        Requirements, source, _tuples(source.data), fields_at=_fields_at, page=PAGE, kind="requirements"
    )


def _tuples(value: Any) -> Any:
    """Turn YAML lists into the tuples that strict, frozen sections hold."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return value


def _fields_at(place: Where) -> list[str]:
    sections: dict[int, type[BaseModel]] = {0: Requirements, 2: Requirement}
    return list(sections.get(len(place), Distribution).model_fields)
