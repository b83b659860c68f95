"""Which option of a mutation is its strength, and between which values it can be searched.

A strength goes from 0, where the image stays as it is, to 1, far beyond what people tolerate. A mutation says
what its strength is (`adverse.marks.Strength`); one that does not has a strength if its signature says so: an
option that changes nothing at 0 and has a largest value.
"""

from __future__ import annotations

from adverse.errors import StudyError, suggestion
from adverse.marks import Strength
from adverse.plugins import Plugin, Registry


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
    """Return the strength of a mutation: what it says, or what its signature says, or none."""
    if plugin.strength is not None:
        return plugin.strength
    for name, option in plugin.options.items():
        schema = option.type.json_schema()
        most = schema.get("maximum", 0)
        if schema.get("type") == "number" and schema.get("unchanged_at") == 0 and most > 0:
            return Strength(name, 0, float(most))
    return None
