"""Which versions of the frames a requirement is checked on, as settings of a study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse import marks, visual
from adverse.content import digest
from adverse.errors import StudyError
from adverse.humans.thresholds import Threshold, threshold
from adverse.mutations.settings import expand
from adverse.plugins import Registry
from adverse.requirements.file import Requirement, RequirementsFile
from adverse.requirements.sampling import value_within
from adverse.visual.strength import Transformation, read_transformation, strength_of

PLUGIN = Path(__file__).with_name("up_to.py")
SEARCH = (
    *sorted(Path(visual.__file__).parent.glob("*.py")),
    Path(marks.__file__),
    Path(__file__).with_name("sampling.py"),
)
"""The code that decides, with the mutation's own, which strength a visual change is given by."""

SEVERITIES = range(1, 6)
BATTERIES = {
    "haze": "c.fog",
    "gaussian_blur": "c.gaussian_blur",
    "defocus": "c.defocus_blur",
    "t.contrast": "c.contrast",
    "t.defocus_blur": "c.defocus_blur",
    "t.brightness": "c.brightness",
    "t.frost": "c.frost",
    "t.jpeg": "c.jpeg_compression",
    "t.gaussian_noise": "c.gaussian_noise",
}
"""The corruption of the severity 1 to 5 battery that is the nearest to a transformation."""


@dataclass(frozen=True)
class Versions:
    """The settings of one requirement, by id: within the range, barely changed, and of the battery."""

    threshold: Threshold
    within: tuple[str, ...]
    barely: tuple[str, ...]
    battery: tuple[str, ...]


def versions_of(file: RequirementsFile, number: int, registry: Registry) -> Versions:
    """Work out the settings of one requirement."""
    requirements, requirement = file.requirements, file.requirements.require[number]
    where = file.where("require", number)
    distributions = {
        name: value.model_dump(exclude_none=True)
        for name, value in sorted((requirement.parameters or {}).items())
    }
    drawn = {name: value_within(distribution) for name, distribution in distributions.items()}
    transformation = read_transformation(
        requirement.transformation, registry, where=f"{where}.transformation", drawn=drawn
    )
    lacking = transformation.needs - {"depth_m", "rng", "log_rng", "baseline_m", "time_s"}
    if lacking:
        raise StudyError(
            f"{transformation.name} cannot be a transformation",
            where=f"{where}.transformation",
            got=f"it needs {', '.join(sorted(lacking))}",
            wanted="a mutation of the image, or of the image and its depth",
            fix="Name another requirement.",
        )
    if requirement.kind == "prediction":
        strength_of(
            transformation.plugin, registry, where=f"{where}.transformation"
        )  # for the barely changed
    limit = threshold(
        requirement.threshold,
        transformation.name,
        requirement.kind,
        backend=requirements.backend,
        where=f"{where}.threshold",
        base=file.folder,
    )
    highest = limit.tolerated_to

    def setting(low: float, high: float, **options: Any) -> str:
        entry = _entry(file, requirement, transformation, low, high, {"backend": limit.backend, **options})
        return expand(entry, registry, where=where)[0].id

    if requirement.parameters:
        words = json.dumps(distributions, sort_keys=True)
        within = [setting(0.0, highest, parameters=words, version=v) for v in range(requirements.versions)]
    else:
        share = highest / requirements.versions
        within = [setting(v * share, (v + 1) * share) for v in range(requirements.versions)]
    barely = (
        [setting(0.0, requirements.barely * highest, beyond=highest)]
        if requirement.kind == "prediction"
        else []
    )
    return Versions(limit, tuple(within), tuple(barely), _battery(file, number, transformation, registry))


def _entry(
    file: RequirementsFile,
    requirement: Requirement,
    transformation: Transformation,
    low: float,
    high: float,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    code = digest(transformation.plugin.code, *(path.read_bytes() for path in SEARCH), size=4)
    options = {
        "transformation": requirement.transformation,
        "lowest": round(low, 6),
        "highest": round(high, 6),
        "tries": file.requirements.tries,
        "made_by": code,
        **more,
    }
    name = "up_to_with_depth" if "depth_m" in transformation.needs else "up_to"
    return {name: options, "group": "mild"}


def _battery(
    file: RequirementsFile, number: int, transformation: Transformation, registry: Registry
) -> tuple[str, ...]:
    requirement = file.requirements.require[number]
    name = requirement.battery or BATTERIES.get(transformation.name)
    if not file.requirements.ranking or name is None:
        return ()
    where = file.where("require", number, "battery")
    return tuple(expand({name: {"severity": s}}, registry, where=where)[0].id for s in SEVERITIES)
