"""A recipe: all that decides a mutation, in a form that can be written down, compared and replayed."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from adverse.content import digest
from adverse.errors import MutationError

Number = int | float
ADD = "add_"
"""How the names of mutations begin that add an object of a class: add_car, add_traffic_sign."""


@dataclass(frozen=True)
class Recipe:
    """A mutation, the scene it changes, the entity that goes in (if one does), and its numbers by name.

    Equal recipes make equal bytes. Numbers are kept in the order of their names, so that two recipes that
    say the same have the same key.

    >>> Recipe("add_car", "a", "b#7", (("shadow", 1), ("feather_px", 2.0))).numbers
    (('feather_px', 2.0), ('shadow', 1))
    """

    mutation: str
    base: str
    donor: str | None = None
    numbers: tuple[tuple[str, Number], ...] = ()

    def __post_init__(self) -> None:
        names = [name for name, _ in self.numbers]
        odd = [value for _, value in self.numbers if isinstance(value, bool) or not math.isfinite(value)]
        if len(set(names)) < len(names) or odd:
            raise MutationError(
                "a recipe's numbers are wrong",
                where=f"{self.mutation} on {self.base!r}",
                got=repr(self.numbers),
                wanted="finite numbers, each name once",
            )
        object.__setattr__(self, "numbers", tuple(sorted(self.numbers)))

    @cached_property
    def by_name(self) -> Mapping[str, Number]:
        """The numbers by their names."""
        return dict(self.numbers)

    def key(self) -> str:
        """Return the hash of the recipe: what duplicates are known by."""
        return digest(self.to_json())

    def to_json(self) -> str:
        """Return the recipe as one line of canonical JSON."""
        fields = {
            "base": self.base,
            "donor": self.donor,
            "mutation": self.mutation,
            "numbers": dict(self.numbers),
        }
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    @staticmethod
    def from_json(text: str) -> Recipe:
        """Read a recipe back; what is not one is an error.

        >>> Recipe.from_json(Recipe("mirror", "a").to_json())
        Recipe(mutation='mirror', base='a', donor=None, numbers=())
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            numbers = tuple(fields.pop("numbers").items())
            made = Recipe(**fields, numbers=numbers)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise _unreadable(text, str(error)) from error
        texts = (made.mutation, made.base, made.donor or "")
        if not all(isinstance(name, str) for name in texts):
            raise _unreadable(text, "names that are not text")
        return made


def added_class(kind: str) -> str | None:
    """Return the class that a mutation adds; None if it adds nothing.

    >>> added_class("add_traffic_sign"), added_class("change_color")
    ('traffic sign', None)
    """
    return kind.removeprefix(ADD).replace("_", " ") if kind.startswith(ADD) and kind != ADD else None


@dataclass(frozen=True)
class Rejected:
    """No mutation was found; `reason` is the check that refused most, `counts` how often each did."""

    reason: str
    counts: Mapping[str, int] = field(default_factory=Counter)


def _unreadable(text: str, got: str) -> MutationError:
    return MutationError(
        "a recipe cannot be read",
        got=f"{' '.join(got.split())} in {text[:80]!r}",
        wanted='{"base": .., "donor": .., "mutation": .., "numbers": {..}}',
        fix="Use the recipe as it was written by the run.",
    )
