"""Conditions: mutations with one option that makes them stronger, along which limits and margins are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from adverse.analysis.headline import option_words
from adverse.errors import StudyError
from adverse.mutations.settings import expand
from adverse.plugins import Registry
from adverse.types import Setting

STEPS = 12
WAYS = {"visibility_m": -1.0, "severity": 1.0}
"""Options that are not the strength a mutation is searched by, and which way makes them stronger."""


class ConditionsSection(Protocol):
    """A section of a study that names conditions, and how many steps those have that are named alone."""

    @property
    def conditions(self) -> list[Any]: ...  # noqa: D102
    @property
    def steps(self) -> int: ...  # noqa: D102


@dataclass(frozen=True)
class Condition:
    """A mutation with one option that makes it stronger: its settings, weakest first."""

    name: str
    option: str
    values: tuple[float, ...]
    settings: tuple[Setting, ...]

    def words(self, step: int | None) -> str:
        """Return a step as people read it.

        >>> Condition("haze", "visibility_m", (400.0, 200.0), ()).words(2)
        'visibility 200 m'
        """
        if step is None:
            return "not even clean"
        return (
            "clean"
            if step == 0
            else f"{_option(self.option)} {self.values[step - 1]:.4g}{_unit(self.option)}"
        )


def conditions_of(
    section: ConditionsSection, mutations: Sequence[Setting], registry: Registry, *, where: str
) -> list[Condition]:
    """Return the conditions of a section; without any, the mutations of the study that have a strength."""
    entries = section.conditions or _with_strength(mutations, registry, where=where)
    found = [
        _condition(entry, section.steps, registry, f"{where}.conditions.{n}")
        for n, entry in enumerate(entries)
    ]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise StudyError(f"two conditions are called {name}", where=where, fix="Name it once.")
    return found


def _with_strength(mutations: Sequence[Setting], registry: Registry, *, where: str) -> list[str]:
    single = dict.fromkeys(setting.steps[0].mutation for setting in mutations if len(setting.steps) == 1)
    names = [name for name in single if registry.get("mutation", name).searchable is not None]
    if not names:
        raise StudyError(
            "no mutation of the study has a strength to search",
            where=where,
            fix="Name some, such as conditions: [gaussian_blur, {haze: {visibility_m: [400, 200, 100]}}].",
        )
    return names


def _condition(entry: Any, steps: int, registry: Registry, where: str) -> Condition:
    if isinstance(entry, str):
        plugin = registry.get("mutation", entry, where=where)
        strength = plugin.searchable
        if strength is None:
            raise StudyError(
                f"{entry} says no strength of its own",
                where=where,
                wanted="its settings, weakest first",
                fix=f"Write {{{entry}: {{OPTION: [weakest, ..., strongest]}}}}.",
            )
        values = list(dict.fromkeys(_round(strength.value(step / steps)) for step in range(1, steps + 1)))
        entry = {entry: {strength.option: values}}
    settings = expand(entry, registry, where=where)
    option = _swept_option(settings)
    if option is None:
        raise StudyError(
            "a condition is one option of one mutation, in several strengths",
            where=where,
            got=str(entry)[:200],
            wanted="two settings at least, weakest first",
            fix="Write {haze: {visibility_m: [400, 200, 100, 50]}}, for example.",
        )
    values = [float(setting.steps[0].options[option]) for setting in settings]
    if values not in (sorted(values), sorted(values, reverse=True)):
        raise StudyError(
            "the strengths of a condition do not go one way",
            where=where,
            got=", ".join(f"{value:g}" for value in values),
            wanted="weakest first, each stronger than the one before",
            fix="Order them.",
        )
    _refuse_strongest_first(settings[0].steps[0].mutation, option, values, registry, where)
    fixed = {name: value for name, value in settings[0].steps[0].options.items() if name != option}
    words = ", ".join(f"{name}={value}" for name, value in fixed.items() if value is not None)
    name = settings[0].family + (
        f" ({words})" if isinstance(entry, Mapping) and len(_given(entry)) > 1 else ""
    )
    return Condition(name, option, tuple(values), tuple(settings))


def _refuse_strongest_first(
    mutation: str, option: str, values: Sequence[float], registry: Registry, where: str
) -> None:
    """Raise where the first strength is the strongest, as far as it is known which that is.

    A search from the wrong end would find nothing that holds, or everybody lost at once.
    """
    strength = registry.get("mutation", mutation).searchable
    if strength is not None and strength.option == option:
        nothing = float(strength.value(0.0))
        stronger = abs(values[-1] - nothing) > abs(values[0] - nothing)
    elif option in WAYS:
        stronger = (values[-1] - values[0]) * WAYS[option] > 0
    else:
        return
    if not stronger:
        raise StudyError(
            f"the strengths of {mutation} begin with the strongest",
            where=where,
            got=", ".join(f"{value:g}" for value in values),
            wanted="weakest first",
            fix=f"Write {option}: [{', '.join(f'{value:g}' for value in reversed(values))}].",
        )


def _given(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    options = next((value for key, value in entry.items() if key not in ("group", "coherent")), None)
    return options if isinstance(options, Mapping) else {}


def _swept_option(settings: Sequence[Setting]) -> str | None:
    """Return the only option that differs between settings of one mutation; None if it is not so."""
    if len(settings) < 2 or any(len(setting.steps) != 1 for setting in settings):
        return None
    if len({setting.steps[0].mutation for setting in settings}) != 1:
        return None
    first = settings[0].steps[0].options
    options = {
        name
        for setting in settings
        for name, value in setting.steps[0].options.items()
        if value != first.get(name)
    }
    numbers = [setting.steps[0].options.get(name) for setting in settings for name in options]
    return (
        options.pop() if len(options) == 1 and all(isinstance(one, int | float) for one in numbers) else None
    )


def _round(value: float) -> float:
    """Return a strength with four digits, so that it can be read and written."""
    return value if isinstance(value, int) else float(f"{value:.4g}")


def _option(option: str) -> str:
    return option_words(option).partition(" (")[0].partition(",")[0]


def _unit(option: str) -> str:
    words = option_words(option)
    return f" {words.rpartition(', ')[2]}" if ", " in words else ""


def swept_conditions(mutations: Sequence[Setting], registry: Registry) -> list[Condition]:
    """Return the mutations of a run that it has in several strengths, and that say which is weaker."""
    strengths = {plugin.name: plugin.searchable for plugin in registry.all("mutation")}
    families: dict[str, list[Setting]] = {}
    for setting in mutations:
        families.setdefault(setting.family, []).append(setting)
    found = []
    for family, settings in families.items():
        option = _swept_option(settings)
        name = settings[0].steps[0].mutation
        strength = strengths.get(name)
        if option is None or strength is None or strength.option != option:
            continue
        values = {float(one.steps[0].options[option]): one for one in settings}
        order = sorted(values, reverse=strength.value(1.0) < strength.value(0.0))
        found.append(Condition(family, option, tuple(order), tuple(values[value] for value in order)))
    return found


def is_strength(condition: Condition, setting: Setting) -> bool:
    """Tell whether a setting is a strength of a condition: the same mutation and other options."""
    first, step = condition.settings[0].steps[0], setting.steps[0]
    rest, others = (
        {name: value for name, value in one.options.items() if name != condition.option}
        for one in (first, step)
    )
    number = isinstance(step.options.get(condition.option), int | float)
    return len(setting.steps) == 1 and number and (first.mutation, rest) == (step.mutation, others)
