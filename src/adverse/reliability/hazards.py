"""Which hazards of seeing a mutation stands for, in the manner of CV-HAZOP: where, what, how it goes wrong.

CV-HAZOP (Zendel et al.) looks for hazards by asking of every place on the way of light (its source, the
medium, the object, the observer) what happens to one of its parameters when a guide word applies: no light,
more of it, less. The mapping is ours, in our own words; a plug-in's mutation is not in it: not said.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LOCATIONS = ("light source", "medium", "object", "observer")
GUIDE_WORDS = {
    "no": "something that should be there is not",
    "more": "there is more of it than intended",
    "less": "there is less of it than intended",
    "as well as": "something else is there too",
    "part of": "only a part of it is there",
    "reverse": "it is the opposite of what was intended",
    "other than": "it is something else",
    "where else": "it is in another place",
}
"""Those that a single image can show; there are more, for time."""


@dataclass(frozen=True)
class Hazard:
    """One thing that can go wrong, and what it looks like. It may need an option beyond some value."""

    location: str
    parameter: str
    guide_word: str
    words: str
    option: str | None = None
    above: float = -math.inf
    below: float = math.inf

    @property
    def entry(self) -> tuple[str, str, str]:
        """Location, parameter and guide word: what makes two mutations simulate the same hazard."""
        return self.location, self.parameter, self.guide_word

    def applies(self, options: Mapping[str, Any]) -> bool:
        """Return whether a mutation with these options is this hazard."""
        if self.option is None:
            return True
        value = options.get(self.option)
        return isinstance(value, int | float) and self.above < value < self.below


def _one(location: str, parameter: str, guide_word: str, words: str) -> tuple[Hazard, ...]:
    return (Hazard(location, parameter, guide_word, words),)


_FOCUS = _one("observer", "focus", "other than", "the lens is focused at another distance than the scene's")
_SENSOR_NOISE = _one("observer", "electronic noise", "more", "the sensor adds more noise than it should")
_JPEG = _one("observer", "compression", "more", "the image is compressed harder than intended")
_ICE = _one("observer", "cleanliness of the lens", "as well as", "ice lies on the lens")
_BRIGHT = _one("light source", "intensity", "more", "there is more light than the exposure is made for")
_CONTRAST = _one("medium", "transparency", "less", "scattered light takes contrast from everything")
_FOG = _one("medium", "particles", "more", "mist or fog hangs between the scene and the camera")
_MOTION = _one("observer", "motion", "more", "the camera moves while the shutter is open")
_COLOURS = _one(
    "light source", "spectrum", "other than", "the light has another colour than the system knows"
)

HAZARDS: Mapping[str, tuple[Hazard, ...]] = {
    "identity": (),
    "alpha_blend": _FOG,
    "brightness": (
        Hazard("light source", "intensity", "less", "there is too little light", "scale", below=1),
        Hazard("light source", "intensity", "more", _BRIGHT[0].words, "scale", above=1),
    ),
    "c.brightness": _BRIGHT,
    "c.contrast": _CONTRAST,
    "c.defocus_blur": _FOCUS,
    "c.elastic_transform": _one("medium", "refraction", "other than", "hot or moving air bends the light"),
    "c.fog": _FOG,
    "c.frost": _ICE,
    "c.gaussian_blur": _FOCUS,
    "c.gaussian_noise": _SENSOR_NOISE,
    "c.glass_blur": _one(
        "observer", "glass before the lens", "other than", "the scene is seen through rough glass"
    ),
    "c.impulse_noise": _one("observer", "transmission", "other than", "bits of the image arrive wrong"),
    "c.jpeg_compression": _JPEG,
    "c.motion_blur": _MOTION,
    "c.pixelate": _one("observer", "resolution", "less", "the image has fewer pixels than intended"),
    "c.saturate": (
        Hazard("observer", "colour", "less", "colours are weaker than they are", "severity", below=3),
        Hazard("observer", "colour", "more", "colours are driven too far", "severity", above=2),
    ),
    "c.shot_noise": _one("light source", "intensity", "less", "so little light that single photons count"),
    "c.snow": _one("medium", "particles", "as well as", "snow falls between the scene and the camera"),
    "c.spatter": (
        Hazard(
            "observer", "cleanliness of the lens", "as well as", "drops hang on the lens", "severity", below=4
        ),
        Hazard(
            "observer",
            "cleanliness of the lens",
            "part of",
            "mud hides a part of the view",
            "severity",
            above=3,
        ),
    ),
    "c.speckle_noise": _SENSOR_NOISE,
    "c.zoom_blur": _MOTION,
    "channel_dropout": _one("observer", "channels", "part of", "a channel of the image is lost"),
    "defocus": _FOCUS,
    "gaussian_blur": _FOCUS,
    "haze": _FOG,
    "jpeg": _JPEG,
    "motion_blur": _MOTION,
    "salt_pepper": _one("observer", "pixels", "no", "pixels are dead, or stuck"),
    "signal_noise": _SENSOR_NOISE,
    "t.brightness": _BRIGHT,
    "t.color_jitter": _COLOURS,
    "t.contrast": _CONTRAST,
    "t.defocus_blur": _FOCUS,
    "t.frost": _ICE,
    "t.gaussian_noise": _SENSOR_NOISE,
    "t.jpeg": _JPEG,
    "t.rgb_shift": _COLOURS,
}
"""By mutation. Changing what is in a scene (`adverse fuzz`) is about the object; none of these are."""


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
    """Mutations, of plug-ins, that do not say what hazard they are."""

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
            lines.append(f"Hazards of the {' and the '.join(places)} were not exercised.")
        if words:
            lines.append(f"Guide words that no setting stands for: {', '.join(words)}.")
        if self.not_said:
            lines.append(f"What hazard these stand for is not said: {', '.join(self.not_said)}.")
        return lines


def hazard_coverage(settings: Iterable[str]) -> HazardCoverage:
    """Say which hazards the settings of a run exercise, by their ids.

    >>> found = hazard_coverage(["identity", "brightness(scale=0.5)", "haze(visibility_m=97.8)"])
    >>> [row.entry for row in found.exercised][:1]
    [('light source', 'intensity', 'less')]
    """
    by_entry: dict[tuple[str, str, str], list[str]] = {}
    not_said = []
    for setting in settings:
        for name, options in mutations_of(setting):
            if name not in HAZARDS:
                not_said.append(name)
            for hazard in HAZARDS.get(name, ()):
                if hazard.applies(options):
                    by_entry.setdefault(hazard.entry, []).append(setting)
    rows = []
    for entry, hazards in sorted(_known().items(), key=lambda one: _place(one[0])):
        rows.append(
            HazardRow(
                *entry,
                hazards[0][1].words,
                tuple(dict.fromkeys(by_entry.get(entry, ()))),
                tuple(dict.fromkeys(name for name, _ in hazards)),
            )
        )
    return HazardCoverage(tuple(rows), tuple(sorted(set(not_said))))


def hazard_words(mutation: str) -> str:
    """Return what hazards a mutation stands for, on one line.

    >>> hazard_words("haze"), hazard_words("my_own")
    ('medium / particles / more', 'not said')
    """
    if mutation not in HAZARDS:
        return "not said"
    return "; ".join(" / ".join(hazard.entry) for hazard in HAZARDS[mutation]) or "none"


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


def _known() -> dict[tuple[str, str, str], list[tuple[str, Hazard]]]:
    found: dict[tuple[str, str, str], list[tuple[str, Hazard]]] = {}
    for name, hazards in HAZARDS.items():
        for hazard in hazards:
            found.setdefault(hazard.entry, []).append((name, hazard))
    return found


def _place(entry: tuple[str, str, str]) -> tuple[int, str, int]:
    return LOCATIONS.index(entry[0]), entry[1], list(GUIDE_WORDS).index(entry[2])
