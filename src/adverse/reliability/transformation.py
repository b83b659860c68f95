"""A transformation: a mutation whose strength is left open, with its other options as given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adverse.errors import StudyError
from adverse.marks import Strength
from adverse.mutations.settings import call_of
from adverse.plugins import Plugin, Registry, bind
from adverse.reliability.strengths import known_strength, strength_of


@dataclass(frozen=True)
class Transformation:
    """A mutation, the options that are fixed, and its strength; None where its options are only drawn."""

    plugin: Plugin
    fixed: Mapping[str, Any]
    strength: Strength | None

    @property
    def name(self) -> str:
        """What the mutation is called."""
        return self.plugin.name

    @property
    def needs(self) -> frozenset[str]:
        """What it needs besides the image."""
        return self.plugin.needs


def read_transformation(
    text: str,
    registry: Registry,
    *,
    where: str = "transformation",
    drawn: Mapping[str, float] | None = None,
) -> Transformation:
    """Read a transformation such as `haze` or `defocus(focus_m=2)`.

    `drawn` are options that are drawn, each with a value it may have; then it need not have a strength.

    >>> from adverse import plugins
    >>> read_transformation("defocus(focus_m=2)", plugins.load()).strength.option
    'kappa'
    """
    drawn = drawn or {}
    name, options = call_of(text, where=where)
    plugin = registry.get("mutation", name, where=where)
    strength = known_strength(plugin) if drawn else strength_of(plugin, registry, where=where)
    if strength is not None and strength.option in options:
        raise StudyError(
            f"{strength.option} is the strength of {name}, which is searched for",
            where=where,
            got=text,
            fix=f"Leave {strength.option} out.",
        )
    left_open = {} if strength is None else {strength.option: strength.value(1)}
    fixed = bind(plugin, {**left_open, **options, **drawn}, where=where)
    for key in (*left_open, *drawn):
        fixed.pop(key, None)
    return Transformation(plugin, fixed, strength)
