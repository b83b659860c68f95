"""The strength of a mutation that gives a wanted visual change on an image.

A strength goes from 0, where the image stays as it is, to 1, far beyond what people tolerate. A mutation says
what its strength is (`adverse.marks.Strength`); one that does not has a strength if its signature says so: an
option that changes nothing at 0 and has a largest value. A transformation is a mutation whose strength is
left open, with its other options as given.

Visual change grows with strength, more or less: it is 0 up to the strength that somebody sees, then jumps,
then grows to its end. So a search brackets the wanted change and halves the bracket; what it cannot reach it
reports, with the nearest value. Random mutations draw the same numbers at every strength of a search: the
same noise, amplified; the same colours, further. Some draws only improve an image (more contrast); then the
next one is taken, a few times.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adverse import plugins
from adverse.errors import MutationError, StudyError, suggestion
from adverse.marks import Strength
from adverse.mutations.setting_text import LOG
from adverse.mutations.settings import apply_step, call_of
from adverse.plugins import Plugin, Registry, bind
from adverse.seeds import generator
from adverse.types import Depth, Image
from adverse.visual import Backend, Reference


def strength_of(plugin: Plugin, registry: Registry, *, where: str | None = None) -> Strength:
    """Return the strength of a mutation, or say which mutations have one."""
    strength = plugin.searchable
    if strength is None:
        names = [other.name for other in registry.all("mutation") if other.searchable]
        raise StudyError(
            f"{plugin.name} has no searchable strength",
            where=where,
            wanted="a mutation with an option that makes it gradually stronger",
            fix=suggestion(plugin.name, names),
        )
    return strength


TOLERANCE = 0.01
"""How near a visual change counts as the wanted one: a bin of people's answers (Hu et al. 2022)."""

TRIES = 24
DRAWS = 4
FIRST = 1 / 16
"""The strength that a search begins with; it doubles from there."""

NARROW = 1e-6
"""A bracket of strengths as narrow as this holds a jump."""


@dataclass(frozen=True, eq=False)
class StrengthResult:
    """What a search found: the nearest change, whether it is near enough, and if not, why."""

    mutation: str
    option: str
    value: float
    visual_change: float
    wanted: float
    reached: bool
    reason: str | None
    tries: int
    changed: bool
    """Whether it is more than the image left as it is."""
    draw: int
    """Which draw of the random numbers it is; 0 is the first."""
    image: Image = field(repr=False)


@dataclass(frozen=True, eq=False)
class Coverage:
    """Changes that cover 0 to `up_to`, one for each of equal parts, and the parts that none fell into."""

    up_to: float
    found: tuple[StrengthResult, ...]
    missed: tuple[StrengthResult, ...]
    tries: int
    rejected: int
    """Tries that are not among those found."""


class Searchable:
    """A mutation on one image, its strength left open. What was tried is kept: searches help each other."""

    def __init__(
        self,
        image: Image,
        mutation: str,
        *,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
        key: str = "",
        draw: int = 0,
        depth_m: Depth | None = None,
        labels: Image | None = None,
        backend: Backend = "vif",
        registry: Registry | None = None,
    ) -> None:
        registry = registry or plugins.load()
        self._plugin: Plugin = registry.get("mutation", mutation)
        self.strength: Strength = strength_of(self._plugin, registry)
        if self.strength.option in (options or {}):
            raise StudyError(
                f"{self.strength.option} is the strength of {mutation}, and is what is searched for",
                fix=f"Leave {self.strength.option} out of the options.",
            )
        whole = {**(options or {}), self.strength.option: self.strength.value(1)}
        self._fixed = plugins.bind(self._plugin, whole, where=mutation)
        self._image = image
        self._given: dict[str, Any] = {
            "depth_m": depth_m,
            "labels": labels,
            "registry": registry,
            "details": {},
        }
        self._frame = key
        self._stream = (seed, key, mutation, str(draw))
        self.draw = draw
        self._reference = Reference(image, backend=backend)
        self._strengths, self._changes = [0.0], [0.0]
        self.tries = 0

    @property
    def random(self) -> bool:
        """Whether another draw gives another image."""
        return bool(self._plugin.needs & {"rng", "log_rng"})

    def at(self, strength: float) -> Image:
        """Return the image at a strength of 0 (as it is) to 1, with the same random numbers at all."""
        if strength == 0:
            return self._image.copy()
        options = {**self._fixed, self.strength.option: self.strength.value(strength)}
        given = {**self._given, "rng": generator(*self._stream), "log_rng": generator(*self._stream, LOG)}
        return apply_step(self._image, self._plugin, options, given, frame=self._frame)

    def change(self, strength: float) -> float:
        """Return the visual change at a strength; what was tried before is remembered."""
        place = bisect.bisect_left(self._strengths, strength)
        if place < len(self._strengths) and self._strengths[place] == strength:
            return self._changes[place]
        self.tries += 1
        change = self._reference.visual_change(self.at(strength))
        self._strengths.insert(place, strength)
        self._changes.insert(place, change)
        return change

    def find(
        self, wanted: float, *, within: tuple[float, float] | None = None, tries: int = TRIES
    ) -> StrengthResult:
        """Return the strength whose visual change is the wanted one, or within a range around it.

        Without `within`, it may be off by 0.01.
        """
        _check_wanted(wanted)
        low, high = within or (wanted - TOLERANCE, wanted + TOLERANCE)
        last = self.tries + tries
        reason = None
        while not self._nearest_change(wanted, low, high)[1]:
            if self.tries >= last:
                reason = f"not within {tries} tries"
                break
            strength, reason = self._next(wanted)
            if reason:
                break
            self.change(strength)
        place, reached = self._nearest_change(wanted, low, high)
        strength = self._strengths[place]
        return StrengthResult(
            mutation=self._plugin.name,
            option=self.strength.option,
            value=self.strength.value(strength),
            visual_change=self._changes[place],
            wanted=wanted,
            reached=reached,
            reason=None if reached else reason,
            tries=tries - (last - self.tries),
            changed=strength > 0,
            draw=self.draw,
            image=self.at(strength),
        )

    def _nearest_change(self, wanted: float, low: float, high: float) -> tuple[int, bool]:
        """Return which of those tried came nearest, and whether it lies in the range."""
        gaps = [(not low <= change <= high, abs(change - wanted)) for change in self._changes]
        place = min(range(len(gaps)), key=gaps.__getitem__)
        return place, not gaps[place][0]

    def _next(self, wanted: float) -> tuple[float, str | None]:
        """Return the strength to try next, or why there is none."""
        above = [place for place, change in enumerate(self._changes) if change > wanted]
        if not above:
            strongest = self._strengths[-1]
            if strongest < 1:
                return min(max(2 * strongest, FIRST), 1.0), None
            most, value = max(self._changes), self.strength.value(1)
            return 1.0, f"even {self.strength.option} {value:.4g} changes no more than {most:.3f}"
        first = above[0]
        low, high = self._strengths[first - 1], self._strengths[first]
        below, over = self._changes[first - 1], self._changes[first]
        values = self.strength.value(low), self.strength.value(high)
        jumps = abs(values[1] - values[0]) <= 1 if self.strength.whole else high - low < NARROW
        if jumps:
            where = f"{self.strength.option} {values[0]:.6g} and {values[1]:.6g}"
            return high, f"it jumps from {below:.3f} to {over:.3f} between {where}"
        return (low + high) / 2, None


def find_strength(
    image: Image, mutation: str, wanted: float, *, draws: int = DRAWS, **how: Any
) -> StrengthResult:
    """Return the strength of a mutation that gives a wanted visual change on an image.

    `how` is what `Searchable` takes: other options of the mutation, seed and key of its random numbers,
    depth, the backend of visual change. A random mutation that does not get there may draw again.

    >>> image = np.add.outer(np.arange(80) % 37, np.arange(90) % 23).astype(np.uint8) * 4
    >>> found = find_strength(image, "gaussian_blur", 0.4)
    >>> found.option, found.reached, round(found.visual_change, 1)
    ('sigma_px', True, 0.4)
    """
    results = []
    for searchable in _draws(image, mutation, draws, how):
        results.append(searchable.find(wanted))
        if results[-1].reached:
            break
    return min(results, key=lambda result: abs(result.visual_change - wanted))


def cover(
    image: Image,
    mutation: str,
    up_to: float,
    count: int,
    *,
    draws: int = DRAWS,
    tries: int = TRIES,
    **how: Any,
) -> Coverage:
    """Return `count` changes of an image whose visual changes cover 0 to `up_to` evenly.

    The range is cut into as many equal parts, and one change is searched for near a random place of each. A
    part that is not reached within `tries` tries, or that the visual change jumps over, is left out and said.
    """
    _check_wanted(up_to)
    if count < 1:
        raise StudyError("the number of changes must be at least 1", got=str(count), wanted="1 or more")
    rng = generator(int(how.get("seed", 0)), str(how.get("key", "")), mutation, "cover")
    edges = np.linspace(0, up_to, count + 1)
    near = up_to / count / 4
    aims = rng.uniform(edges[:-1], edges[1:])
    results: dict[int, StrengthResult] = {}
    done = 0
    for searchable in _draws(image, mutation, draws, how):
        for part, aim in enumerate(aims.tolist()):
            if part not in results or not results[part].reached:
                within = max(aim - near, float(edges[part])), min(aim + near, float(edges[part + 1]))
                result = searchable.find(aim, within=within, tries=tries)
                results[part] = min(results.get(part, result), result, key=lambda other: not other.reached)
        done += searchable.tries
        if all(search.reached for search in results.values()):
            break
    reached = tuple(result for result in results.values() if result.reached)
    return Coverage(
        up_to=up_to,
        found=reached,
        missed=tuple(result for result in results.values() if not result.reached),
        tries=done,
        rejected=done - len({(search.draw, search.value) for search in reached if search.changed}),
    )


def _draws(image: Image, mutation: str, draws: int, how: Mapping[str, Any]) -> Iterator[Searchable]:
    """Yield the mutation with its first random numbers, the next, and so on; once, if it draws none."""
    first = Searchable(image, mutation, **how)
    yield first
    if first.random:
        for draw in range(1, draws):
            yield Searchable(image, mutation, draw=draw, **how)


def _check_wanted(wanted: float) -> None:
    if not 0 <= wanted <= 1:
        raise MutationError(
            "a visual change lies between 0 and 1", got=f"{wanted:g}", fix="Give a number from 0 to 1."
        )


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
    strength = plugin.searchable if drawn else strength_of(plugin, registry, where=where)
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
