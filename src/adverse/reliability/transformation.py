"""A transformation: a mutation whose strength is left open, with its other options as given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adverse.errors import StudyError, suggestion
from adverse.mutations.settings import call_of
from adverse.plugins import Plugin, Registry, bind
from adverse.types import Image


@dataclass(frozen=True)
class Transformation:
    """A mutation, the options that are fixed, and the option that is its strength (0 changes nothing)."""

    plugin: Plugin
    fixed: Mapping[str, Any]
    option: str
    top: float | None
    """The largest strength; None: there is no end to it."""

    @property
    def needs(self) -> frozenset[str]:
        """What it needs besides the image."""
        return self.plugin.needs

    def apply(
        self, image: Image, options: Mapping[str, float], rng: np.random.Generator, given: Mapping[str, Any]
    ) -> Image:
        """Apply it with some more options; `given` is what the engine has for it."""
        known = {"rng": rng, **given}
        needed = {name: known[name] for name in self.plugin.needs}
        changed: Image = self.plugin.function(image, **{**self.fixed, **options}, **needed)
        return changed


def read_transformation(
    text: str, registry: Registry, *, where: str = "transformation", drawn: tuple[str, ...] = ()
) -> Transformation:
    """Read a transformation such as `haze` or `defocus(focus_m=2)`; `drawn` are options that are drawn.

    >>> from adverse import plugins
    >>> read_transformation("defocus(focus_m=2)", plugins.load()).option
    'kappa'
    """
    name, options = call_of(text, where=where)
    plugin = registry.get("mutation", name, where=where)
    strengths = {key: top for key, (zero, top) in _strengths(plugin).items() if zero == 0}
    open_ones = [key for key in strengths if key not in options]
    if not open_ones:
        raise StudyError(
            f"{name} has no strength that could be searched for",
            where=where,
            got=text,
            wanted="a mutation with an option at whose value 0 nothing changes, left open",
            fix=f"{suggestion(name, _searchable(registry))} Leave its strength out, as in haze or t.frost.",
        )
    option = open_ones[0]
    fixed = bind(plugin, {**options, option: 0.0, **dict.fromkeys(drawn, 0.0)}, where=where)
    for key in (option, *drawn):
        fixed.pop(key, None)
    return Transformation(plugin, fixed, option, strengths[option])


def _strengths(plugin: Plugin) -> dict[str, tuple[float, float | None]]:
    """Return the options that have a value at which nothing changes: that value, and the largest there is."""
    found = {}
    for name, option in plugin.options.items():
        schema = option.type.json_schema()
        for part in (schema, *schema.get("anyOf", ())):
            if "unchanged_at" in part:
                found[name] = (float(part["unchanged_at"]), part.get("maximum"))
    return found


def _searchable(registry: Registry) -> list[str]:
    return [
        plugin.name
        for plugin in registry.all("mutation")
        if any(zero == 0 for zero, _ in _strengths(plugin).values())
    ]
