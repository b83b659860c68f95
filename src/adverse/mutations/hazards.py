"""Which hazards of seeing the settings of a run exercise, and which they do not.

What a mutation stands for it says itself (`adverse.marks`); one that does not is listed as "not said".
Hazards that more than one mutation stands for are defined here. Import them by name: the words of a hazard
decide no pixel, and so are no part of a mutation's code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adverse.marks import GUIDE_WORDS, LOCATIONS, Hazard
from adverse.plugins import Plugin, Registry


@dataclass(frozen=True)
class HazardRow:
    """A hazard, the settings of a run that exercise it, and the mutations that could."""

    location: str
    parameter: str
    guide_word: str
    words: str
    settings: tuple[str, ...]
    mutations: tuple[str, ...]

    @property
    def entry(self) -> tuple[str, str, str]:
        """Location, parameter and guide word."""
        return self.location, self.parameter, self.guide_word


@dataclass(frozen=True)
class HazardCoverage:
    """What a run exercised, and what it did not."""

    rows: tuple[HazardRow, ...]
    not_said: tuple[str, ...]
    """Mutations that do not say what hazard they are."""

    @property
    def exercised(self) -> tuple[HazardRow, ...]:
        """The hazards that were."""
        return tuple(row for row in self.rows if row.settings)

    def sentences(self) -> list[str]:
        """Return what was not exercised, in plain words."""
        there = self.exercised
        places = [name for name in LOCATIONS if name not in {row.location for row in there}]
        words = [name for name in GUIDE_WORDS if name not in {row.guide_word for row in there}]
        lines = []
        if places:
            lines.append(f"No hazard of these places was exercised: {', '.join(places)}.")
        if words:
            lines.append(f"Guide words that no setting stands for: {', '.join(words)}.")
        if self.not_said:
            lines.append(f"What hazard these stand for is not said: {', '.join(self.not_said)}.")
        return lines


def hazard_coverage(settings: Iterable[str], registry: Registry) -> HazardCoverage:
    """Say which hazards the settings of a run exercise, by their ids.

    >>> from adverse import plugins
    >>> ids = ["identity", "brightness(scale=0.5)", "haze(visibility_m=97.8)"]
    >>> found = hazard_coverage(ids, plugins.load())
    >>> [row.entry for row in found.exercised][:1]
    [('light source', 'intensity', 'less')]
    """
    mutations = registry.all("mutation")
    by_mutation = {plugin.name: plugin.hazards for plugin in mutations if plugin.hazards is not None}
    by_entry: dict[tuple[str, str, str], list[str]] = {}
    not_said = []
    for setting in settings:
        for name, options in mutations_of(setting):
            if name not in by_mutation:
                not_said.append(name)
            for hazard in by_mutation.get(name, ()):
                if hazard.applies(options):
                    by_entry.setdefault(hazard.entry, []).append(setting)
    rows = []
    for entry, hazards in sorted(_by_entry(by_mutation).items(), key=lambda item: _place(item[0])):
        rows.append(
            HazardRow(
                *entry,
                "; ".join(dict.fromkeys(hazard.words for _, hazard in hazards)),
                tuple(dict.fromkeys(by_entry.get(entry, ()))),
                tuple(dict.fromkeys(name for name, _ in hazards)),
            )
        )
    return HazardCoverage(tuple(rows), tuple(sorted(set(not_said))))


def hazard_words(mutation: Plugin) -> str:
    """Return what hazards a mutation stands for, on one line.

    >>> from adverse import plugins
    >>> hazard_words(plugins.load().get("mutation", "haze"))
    'medium / particles / more'
    """
    if mutation.hazards is None:
        return "not said"
    return "; ".join(" / ".join(hazard.entry) for hazard in mutation.hazards) or "none"


def mutations_of(setting: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the mutations of a setting's id with their options, in the order they are applied.

    >>> list(mutations_of("(c.fog(severity=3) + jpeg(quality=20)) @ log"))
    [('c.fog', {'severity': 3}), ('jpeg', {'quality': 20})]
    """
    yield from _calls(ast.parse(setting, mode="eval").body)


def _calls(node: ast.expr) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, ast.BinOp):
        yield from _calls(node.left)
        if isinstance(node.op, ast.Add):
            yield from _calls(node.right)
    elif isinstance(node, ast.Call):
        yield ast.unparse(node.func), {str(word.arg): _value(word.value) for word in node.keywords}
    else:
        yield ast.unparse(node), {}


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _by_entry(
    by_mutation: Mapping[str, tuple[Hazard, ...]],
) -> dict[tuple[str, str, str], list[tuple[str, Hazard]]]:
    entries: dict[tuple[str, str, str], list[tuple[str, Hazard]]] = {}
    for name, hazards in by_mutation.items():
        for hazard in hazards:
            entries.setdefault(hazard.entry, []).append((name, hazard))
    return entries


def _place(entry: tuple[str, str, str]) -> tuple[int, str, int]:
    return LOCATIONS.index(entry[0]), entry[1], list(GUIDE_WORDS).index(entry[2])


TOO_BRIGHT = Hazard("light source", "intensity", "more", "there is more light than the exposure is made for")
COLOURED_LIGHT = Hazard(
    "light source", "spectrum", "other than", "the light has another colour than the system knows"
)
LOW_CONTRAST = Hazard("medium", "transparency", "less", "scattered light takes contrast from everything")
IN_FOG = Hazard("medium", "particles", "more", "mist or fog hangs between the scene and the camera")
OUT_OF_FOCUS = Hazard(
    "observer", "focus", "other than", "the lens is focused at another distance than the scene's"
)
ICE_ON_LENS = Hazard("observer", "cleanliness of the lens", "as well as", "ice lies on the lens")
COMPRESSED = Hazard("observer", "compression", "more", "the image is compressed harder than intended")
CAMERA_MOVES = Hazard("observer", "motion", "more", "the camera moves while the shutter is open")
SENSOR_NOISE = Hazard("observer", "electronic noise", "more", "the sensor adds more noise than it should")
