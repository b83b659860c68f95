"""What plug-ins say of themselves beside their signature, in their decorator; built-in ones do the same.

A mutation says the hazards it stands for and its strength, `@mutation(hazards=(Hazard(...),),
strength=Strength(...))`, one that goes by depth also what it comes to at a depth; a level what it needs and
its words, a metric its words and its range, a relation its words and the mutations it is about. Hazards are
in the manner of CV-HAZOP (Zendel et al.), which asks of every place on the way of light (its source, the
medium, objects, the observer, the algorithm) what happens to one of its parameters when a guide word applies:
no light, more of it, less. Which hazard a mutation stands for is our own reading, in our own words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse.errors import PluginError, suggestion

LOCATIONS = ("light source", "medium", "object", "objects", "observer", "algorithm")
"""Those of CV-HAZOP: one object, and several beside each other; the observer is optics and electronics."""
GUIDE_WORDS = {
    "no": "something that should be there is not",
    "more": "there is more of it than intended",
    "less": "there is less of it than intended",
    "as well as": "something else is there too",
    "part of": "only a part of it is there",
    "reverse": "it is the opposite of what was intended",
    "other than": "it is something else",
    "where else": "it is in another place",
    "spatial periodic": "it repeats itself across the scene",
    "spatial aperiodic": "it is irregular across the scene",
    "temporal periodic": "it repeats itself over time",
    "temporal aperiodic": "it is irregular over time",
    "close": "it is too near",
    "remote": "it is too far away",
    "in front of": "it is before something else",
    "behind": "it is hidden by something else",
    "before": "it happens earlier than something else",
    "after": "it happens later than something else",
    "faster": "it is quicker than intended",
    "slower": "it is not as quick as intended",
}


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

    def __post_init__(self) -> None:
        for noun, value, known in (
            ("location", self.location, LOCATIONS),
            ("guide word", self.guide_word, GUIDE_WORDS),
        ):
            if value not in known:
                raise PluginError(
                    f"a hazard has an unknown {noun}",
                    got=repr(value),
                    wanted=", ".join(known),
                    fix=suggestion(value, known),
                )

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


@dataclass(frozen=True)
class Strength:
    """The option that makes a mutation stronger: nothing changes at `none`, and `most` is the end.

    `most` is far beyond what people tolerate. `power` bends the way from one to the other, so that where
    things happen is not in a corner of it. `exact` is False where even `none` changes the image a little, as
    a codec does at its best quality.
    """

    option: str
    none: float
    most: float
    power: float = 1.0
    whole: bool = False
    exact: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.none) and math.isfinite(self.most) and self.none != self.most):
            raise PluginError(
                f"the strength {self.option!r} goes nowhere",
                got=f"from {self.none} to {self.most}",
                wanted="two different finite numbers: where nothing changes, and the end",
            )
        if not 0 < self.power < math.inf:
            raise PluginError(
                f"the strength {self.option!r} has a power it cannot have",
                got=str(self.power),
                wanted="a number above 0",
            )

    def value(self, strength: float) -> float:
        """Return the option's value at a strength of 0 to 1.

        >>> Strength("quality", 100, 1, whole=True).value(0.5), Strength("beta", 0, 4, power=2).value(0.5)
        (50, 1.0)
        """
        value = self.none + (self.most - self.none) * strength**self.power
        return round(value) if self.whole else float(value)


@dataclass(frozen=True)
class SimpleMagnitude:
    """What a mutation by depth comes to at one depth, as an option of the simple mutation that it is there.

    `at(depth_m, **options)` returns that option's value at each depth, for the options of the mutation;
    `highest` is the end of its range, None where it has none.
    """

    option: str
    at: Callable[..., NDArray[np.float64]]
    highest: float | None = None


@dataclass(frozen=True)
class Moves:
    """How a mutation moves what is in the image, undone.

    `pixels(array, **options)` brings an array (rows, columns, ...) of the mutated image back to where things
    are in the clean one; `boxes(boxes, size, **options)` does so for boxes (N,4) of an image of `size` (rows,
    columns).
    """

    pixels: Callable[..., NDArray[Any]]
    boxes: Callable[..., NDArray[np.floating]]


Draw = Literal["shared", "own"]
"""How the two cameras of a stereo pair draw what a mutation draws at random: `shared` for what is of the
world and its light, which both see; `own` for what is of a camera, its sensor and its lens."""


LEVEL_NEEDS = {
    "depth": "depth for every frame",
    "pose": "a pose for every frame",
    "camera": "a camera for every frame",
    "positions": "annotated positions of the true objects",
    "robot": "a robot",
    "motion": "logs of more than one image",
}
"""What a level can need of the data and the study."""
Cost = Literal["alarms", "time"]


@dataclass(frozen=True)
class LevelMark:
    """How a level is named, described and drawn; all that a page needs to know of it.

    Rows of results are called `level/variant`, or by the level alone where it has no `variants`. `hits` comes
    after the number of hits, as in "3 of 5 found"; where each log is a single trial, `per_log` says instead
    how it ended, (well, badly). `safety` and `efficiency` say on the axes of charts what all of them would
    be, as in "safety: stops in time"; empty: nothing more. `exact` levels return Events, so that they can be
    evaluated at every score; `drives` levels have closed-loop playbacks to show.
    """

    title: str
    sentence: str = ""
    variants: tuple[str, ...] = ()
    hits: str = "found"
    per_log: tuple[str, str] | None = None
    cost: Cost = "alarms"
    exact: bool = False
    drives: bool = False
    safety: str = ""
    efficiency: str = ""


Beside = Literal["clean", "before", "weaker"]


@dataclass(frozen=True)
class RelationMark:
    """How a metamorphic relation is named, and what it is about.

    `mutations` are the names of those it is about, () for all of them; with `clean` it is also checked on the
    clean frames by themselves. `beside` is what a violation is shown beside: the clean frame, the frame
    before, or the next weaker setting.
    """

    title: str
    mutations: tuple[str, ...] = ()
    clean: bool = False
    beside: Beside = "clean"


@dataclass(frozen=True)
class MetricMark:
    """How a metric is named, the range that its values keep to, and which end of it is the good one."""

    title: str
    lowest: float = 0.0
    highest: float = 1.0
    lower_is_better: bool = False
    placed: bool = False
    """Whether it reads where objects are: by depth, where the data have it and nobody annotated places."""

    def __post_init__(self) -> None:
        if not self.lowest < self.highest:
            raise PluginError(
                f"the metric {self.title!r} has an empty range",
                got=f"{self.lowest} to {self.highest}",
                wanted="lowest below highest",
            )
