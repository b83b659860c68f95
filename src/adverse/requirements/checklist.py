"""The checklist of hazards of seeing: every place, parameter and guide word, and what stands for it.

A list of what mutations do says nothing about what none of them does. So all combinations are listed, in the
manner of CV-HAZOP (Zendel et al. 2015, 2017): its locations and guide words, its parameters and some more,
and those that plug-ins name. An entry that means nothing for a system may be marked as not applicable, with
the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from adverse.errors import StudyError, suggestion
from adverse.marks import GUIDE_WORDS, LOCATIONS
from adverse.mutations.hazards import hazard_coverage
from adverse.plugins import Registry
from adverse.strict_yaml import Where, YamlFile, read_yaml, tuples, validated

PARAMETERS: dict[str, tuple[str, ...]] = {
    "light source": (
        "number",
        "position",
        "size",
        "direction",
        "intensity",
        "spectrum",
        "pattern",
        "wave properties",
    ),
    "medium": (
        "transparency",
        "spectrum",
        "texture",
        "refraction",
        "particles",
        "turbulence",
        "wave properties",
    ),
    "object": (
        "position",
        "size",
        "orientation",
        "shape",
        "complexity",
        "level of detail",
        "texture",
        "spectrum",
        "reflectance",
        "transparency",
        "contrast to the background",
        "motion",
        "wave properties",
    ),
    "objects": (
        "number",
        "positions",
        "occlusion",
        "shadowing",
        "reflectance",
        "transparency",
        "wave properties",
    ),
    "observer": (
        "number",
        "position",
        "orientation",
        "motion",
        "field of view",
        "focus",
        "aperture",
        "number of lenses",
        "lens geometry",
        "point spread function",
        "transparency",
        "spectrum",
        "wave properties",
        "glass before the lens",
        "cleanliness of the lens",
        "exposure",
        "resolution",
        "spectral efficiency",
        "quantization",
        "quality",
        "channels",
        "colour",
        "pixels",
        "electronic noise",
        "compression",
        "transmission",
    ),
    "algorithm": (
        "parameters",
        "history",
        "models",
        "calibration",
        "real-time performance",
        "runtime environment",
    ),
}
"""Those of CV-HAZOP's generic model, by our names, and some that it holds within another: what stands on the
lens, what a channel or the compression does."""
WORDS_OF_TIME = ("temporal periodic", "temporal aperiodic", "before", "after", "faster", "slower")
"""Guide words that no change of a single image can stand for."""
PAGE = "docs/reliability.md"
Status = Literal["exercised", "available", "no mutation", "not applicable"]


class NotApplicable(BaseModel):
    """What is marked as not applicable: one entry, all guide words of a parameter, or a whole place."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    location: str
    parameter: str | None = None
    guide_word: str | None = None
    reason: Annotated[str, Field(min_length=3, max_length=500)]

    def holds(self, entry: tuple[str, str, str]) -> bool:
        """Tell whether an entry is meant."""
        wanted = (self.location, self.parameter, self.guide_word)
        return all(mine in (None, theirs) for mine, theirs in zip(wanted, entry, strict=True))


class Marks(BaseModel):
    """A file of marks."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    not_applicable: tuple[NotApplicable, ...]


@dataclass(frozen=True)
class ChecklistEntry:
    """One combination: what stands for it, what exercises it, or why it does not matter."""

    location: str
    parameter: str
    guide_word: str
    status: Status
    mutations: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    reason: str = ""


def checklist(
    registry: Registry, settings: Iterable[str] = (), marks: Sequence[NotApplicable] = ()
) -> list[ChecklistEntry]:
    """Return every entry, in the order of places, parameters and guide words.

    >>> from adverse import plugins
    >>> entries = checklist(plugins.load())
    >>> [entry.status for entry in entries if entry.parameter == "focus"][-2:]
    ['no mutation', 'no mutation']
    """
    declared = {row.entry: row for row in hazard_coverage(settings, registry).rows}
    parameters = {
        place: tuple(dict.fromkeys((*names, *(entry[1] for entry in declared if entry[0] == place))))
        for place, names in PARAMETERS.items()
    }
    _refuse_unknown(marks, parameters)
    entries = []
    for place in LOCATIONS:
        for parameter in parameters[place]:
            for word in GUIDE_WORDS:
                row = declared.get((place, parameter, word))
                mutations, exercising = (row.mutations, row.settings) if row else ((), ())
                mark = next((mark for mark in marks if mark.holds((place, parameter, word))), None)
                status: Status = "exercised" if exercising else "available" if mutations else "no mutation"
                if mark is not None and not exercising:  # what is exercised cannot be beside the point
                    status = "not applicable"
                reason = mark.reason if mark is not None and not exercising else ""
                entries.append(ChecklistEntry(place, parameter, word, status, mutations, exercising, reason))
    return entries


def read_marks(path: Path) -> tuple[NotApplicable, ...]:
    """Read a file of marks: `not_applicable:`, a list of {location, parameter, guide_word, reason}."""
    source = read_yaml(path, kind="marks", example=f"{PAGE} shows one")
    if not isinstance(source.data, dict):
        raise StudyError(
            "the marks are a mapping",
            where=str(path),
            got=type(source.data).__name__,
            wanted="not_applicable: and a list",
            fix=f"Write them as {PAGE} shows.",
        )
    return _validated(source).not_applicable


def _validated(source: YamlFile) -> Marks:
    def fields_at(place: Where) -> list[str]:
        return list((NotApplicable if place else Marks).model_fields)

    return validated(Marks, source, tuples(source.data), fields_at=fields_at, page=PAGE, kind="marks")


def _refuse_unknown(marks: Sequence[NotApplicable], parameters: dict[str, tuple[str, ...]]) -> None:
    """Refuse a mark that means no entry: it would be taken for said, and say nothing."""
    for number, mark in enumerate(marks):
        known: list[tuple[str, str | None, Iterable[str]]] = [("location", mark.location, LOCATIONS)]
        if mark.location in parameters:
            known.append(("parameter", mark.parameter, parameters[mark.location]))
        known.append(("guide_word", mark.guide_word, GUIDE_WORDS))
        for noun, value, names in known:
            if value is not None and value not in names:
                raise StudyError(
                    f"a mark names an unknown {noun.replace('_', ' ')}",
                    where=f"not_applicable.{number}.{noun}",
                    got=repr(value),
                    fix=suggestion(value, list(names)),
                )
