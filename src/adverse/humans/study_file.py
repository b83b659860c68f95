"""The file of a human study, checked: what is shown, to whom what is asked, and what they agree to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from adverse.errors import StudyError
from adverse.humans.thresholds import DEFAULT_BACKEND
from adverse.plugins import Registry, load
from adverse.strict_yaml import YamlFile, fields_by_section, read_yaml, tuples, validated
from adverse.study.spec import DataSection
from adverse.visual.strength import strength_of

PAGE = "docs/human-study.md"
MOST_CATEGORIES = 16
Word = Annotated[str, Field(min_length=1, max_length=200)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Consent(_Section):
    """What participants agree to; a new version is asked for again."""

    version: Word
    text: Annotated[str, Field(min_length=1, max_length=20_000)]

    @field_validator("version", mode="before")
    @classmethod
    def _text(cls, version: object) -> object:
        return str(version) if isinstance(version, int | float) else version


class Qualification(_Section):
    """A first batch of originals; who gets fewer than `right` of them right does not go on."""

    items: Annotated[int, Field(ge=0, le=100)] = 10
    right: Annotated[int, Field(ge=0, le=100)] = 8

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.right > self.items:
            raise ValueError("no more right than there are items")
        return self


class Sanity(_Section):
    """Originals, shown for `exposure_ms`, at random places of every batch; who misses one was not looking."""

    items: Annotated[int, Field(ge=0, le=20)] = 2
    exposure_ms: Annotated[int, Field(ge=10, le=10_000)] = 1000


class Contains(_Section):
    """Truth from boxes: an image with a box of one of the classes is of `category`, one without `otherwise`.

    Images whose boxes are all smaller than `smallest`, a share of the image, or marked as to be ignored, are
    not shown: what people should answer there is not clear.
    """

    category: Word
    classes: Annotated[list[Word], Field(min_length=1)]
    otherwise: Word
    smallest: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Platform(_Section):
    """Where crowd workers come from: the parameter of the link that holds their id, and the code they get."""

    parameter: Annotated[str, Field(pattern=r"[A-Za-z][A-Za-z0-9_]{0,39}")]
    completion_code: Word


class HumanStudy(_Section):
    """A whole human study, as its file says it."""

    name: Word
    data: DataSection
    categories: tuple[Word, ...]
    transformations: tuple[str, ...]
    consent: Consent
    question: Annotated[str, Field(min_length=1, max_length=500)] = "What do you see?"
    instructions: Annotated[str, Field(max_length=20_000)] = ""
    truth: dict[str, list[str]] = {}
    contains: Contains | None = None
    exposure_ms: Annotated[int, Field(ge=10, le=10_000)] = 200
    fixation_ms: Annotated[int, Field(ge=200, le=10_000)] = 500
    mask_ms: Annotated[int, Field(ge=0, le=10_000)] = 300
    batch: Annotated[int, Field(ge=4, le=200)] = 20
    batches: Annotated[int, Field(ge=1, le=1000)] = 5
    originals: Annotated[float, Field(gt=0, lt=1)] = 0.5
    judgments: Annotated[int, Field(ge=2, le=100)] | None = None
    platform: Platform | None = None
    qualification: Qualification = Qualification()
    sanity: Sanity = Sanity()
    size_px: Annotated[int, Field(ge=65, le=2000)] = 400
    visual_change: Literal["vif", "vifp", "vif2"] = DEFAULT_BACKEND
    seed: Annotated[int, Field(ge=0)] = 0
    plugins: tuple[str, ...] = ()

    @field_validator("categories")
    @classmethod
    def _choice(cls, categories: tuple[str, ...]) -> tuple[str, ...]:
        if not 2 <= len(categories) <= MOST_CATEGORIES or len(set(categories)) < len(categories):
            raise ValueError(f"2 to {MOST_CATEGORIES} different categories")
        return categories

    @field_validator("transformations")
    @classmethod
    def _something(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not names or len(set(names)) < len(names):
            raise ValueError("at least one transformation, each once")
        return names

    @field_validator("truth")
    @classmethod
    def _known(cls, truth: dict[str, list[str]], info: ValidationInfo) -> dict[str, list[str]]:
        categories = info.data.get("categories", truth)
        if set(truth) - set(categories):
            raise ValueError(f"names of categories only: {', '.join(categories)}")
        classes = [name for names in truth.values() for name in names]
        twice = sorted({name for name in classes if classes.count(name) > 1})
        if twice:
            raise ValueError(f"each class once, in one category: {', '.join(twice)}")
        return truth

    @field_validator("contains")
    @classmethod
    def _two(cls, contains: Contains | None, info: ValidationInfo) -> Contains | None:
        if contains is None:
            return None
        if info.data.get("truth"):
            raise ValueError("truth: or contains:, not both")
        if {contains.category, contains.otherwise} - set(info.data.get("categories", ())):
            raise ValueError("two of the categories: category and otherwise")
        return contains

    @field_validator("sanity")
    @classmethod
    def _few(cls, sanity: Sanity, info: ValidationInfo) -> Sanity:
        if sanity.items > info.data.get("batch", 40) // 2:
            raise ValueError("at most half of a batch")
        return sanity


class HumanStudyFile:
    """A human study with the file it came from and the plug-ins it needs."""

    def __init__(self, source: YamlFile) -> None:
        self.source = source
        self.path = source.path.resolve()
        if not isinstance(source.data, dict):
            raise StudyError(
                "a human study is a mapping",
                where=str(source.path),
                got=type(source.data).__name__,
                wanted="name:, data:, categories:, transformations:, consent: ...",
                fix=f"{PAGE} shows a whole one.",
            )
        self.study = validated(
            HumanStudy, source, tuples(source.data), fields_at=_fields_at, page=PAGE, kind="human study"
        )
        self.registry = self._registry()

    @property
    def folder(self) -> Path:
        """Where the answers are kept: beside the file, by its name."""
        return self.path.parent / f"{self.path.stem}-answers"

    def where(self, *place: str | int) -> str:
        """Say where something stands in the file."""
        return self.source.where(place)

    def _registry(self) -> Registry:
        files = [(self.path.parent / name).resolve() for name in self.study.plugins]
        registry = load(files)
        for number, name in enumerate(self.study.transformations):
            where = self.where("transformations", number)
            plugin = registry.get("mutation", name, where=where)
            strength_of(plugin, registry, where=where)
            lacking = plugin.needs - {"rng", "log_rng", "baseline_m", "time_s"}
            if lacking:
                raise StudyError(
                    f"{name} cannot be shown to people",
                    where=where,
                    got=f"a mutation that needs {', '.join(sorted(lacking))}",
                    wanted="one that needs the image alone",
                    fix="Choose another: adverse list mutations.",
                )
        return registry


def read_human_study(path: Path) -> HumanStudyFile:
    """Read and check the file of a human study."""
    return HumanStudyFile(read_yaml(path))


_fields_at = fields_by_section(
    HumanStudy,
    {
        "data": DataSection,
        "consent": Consent,
        "qualification": Qualification,
        "sanity": Sanity,
        "contains": Contains,
        "platform": Platform,
    },
)
