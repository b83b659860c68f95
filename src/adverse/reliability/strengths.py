"""Which option of a mutation is its strength, and between which values it can be searched: one table.

A strength goes from 0, where the image stays as it is, to 1, far beyond what people tolerate. A mutation that
is not in the table has a strength if its signature says so: an option that changes nothing at 0 and has a
largest value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adverse.errors import StudyError, suggestion
from adverse.plugins import Plugin, Registry


@dataclass(frozen=True)
class Strength:
    """An option that makes a mutation stronger: nothing changes at `none`, and `most` is the end.

    `power` bends the way from one to the other, so that where things happen is not in a corner of it.
    """

    option: str
    none: float
    most: float
    power: float = 1.0
    whole: bool = False

    def value(self, strength: float) -> float:
        """Return the option's value at a strength of 0 to 1.

        >>> Strength("quality", 100, 1, whole=True).value(0.5), Strength("beta", 0, 4, power=2).value(0.5)
        (50, 1.0)
        """
        value = self.none + (self.most - self.none) * strength**self.power
        return round(value) if self.whole else float(value)


TRANSFORMATIONS = (
    *("rgb_shift", "contrast", "defocus_blur", "frost"),
    *("brightness", "gaussian_noise", "color_jitter", "jpeg"),
)
STRENGTHS: Mapping[str, Strength] = {
    **{f"t.{name}": Strength("strength", 0, 1) for name in TRANSFORMATIONS},
    "alpha_blend": Strength("alpha", 0, 1),
    "brightness": Strength("scale", 1, 0),
    "defocus": Strength("kappa", 0, 100, power=2),
    "gaussian_blur": Strength("sigma_px", 0, 40, power=2),
    "haze": Strength("beta", 0, 3.912, power=4),
    "jpeg": Strength("quality", 100, 1, whole=True),
    "motion_blur": Strength("length_px", 0, 100, power=2),
    "salt_pepper": Strength("fraction", 0, 1, power=2),
    "signal_noise": Strength("sigma_w", 0, 255, power=2),
}
"""Haze ends at a visibility of one metre; brightness is searched towards the dark."""


def strength_of(plugin: Plugin, registry: Registry, *, where: str | None = None) -> Strength:
    """Return the strength of a mutation, or say which mutations have one."""
    found = known_strength(plugin)
    if found is None:
        names = [other.name for other in registry.all("mutation") if known_strength(other)]
        raise StudyError(
            f"{plugin.name} has no strength that could be searched for",
            where=where,
            wanted="a mutation with an option that makes it stronger little by little",
            fix=suggestion(plugin.name, names),
        )
    return found


def known_strength(plugin: Plugin) -> Strength | None:
    """Return the strength of a mutation: from the table, or from its signature, or none."""
    if plugin.name in STRENGTHS:
        return STRENGTHS[plugin.name]
    for name, option in plugin.options.items():
        schema = option.type.json_schema()
        if schema.get("type") == "number" and schema.get("unchanged_at") == 0 and "maximum" in schema:
            return Strength(name, 0, float(schema["maximum"]))
    return None
