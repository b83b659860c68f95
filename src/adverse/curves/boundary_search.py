"""The boundary of two conditions together: how strong the first may be at each strength of the second.

Points are pairs of steps from 0, clean. Stronger is worse in either, so the boundary only falls as the second
grows: it is walked along, from the limit of the step before down. That takes about as many points as both
have steps, not their product. Where something holds at a point and not at a weaker one, that is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Point = tuple[int, int]


@dataclass
class BoundarySearch:
    """The search for one boundary: say what was found at a point, ask for the next."""

    steps: Point
    known: dict[Point, bool] = field(default_factory=dict)

    def next_point(self) -> Point | None:
        """Return the point to look at next; None: the boundary is known."""
        return self._walk()[1]

    def limits(self) -> list[int | None]:
        """Return the strongest step of the first that holds at each of the second; None: not even clean."""
        found = self._walk()[0]
        return [*found, *[None] * (self.steps[1] + 1 - len(found))]

    def reversals(self) -> int:
        """Count the points at which it holds although it does not at a weaker one.

        >>> BoundarySearch((2, 2), {(0, 0): True, (1, 1): False, (2, 1): True}).reversals()
        1
        """
        failing = [point for point, holds in self.known.items() if not holds]
        held = [point for point, holds in self.known.items() if holds]
        return sum(any(a <= i and b <= j for a, b in failing) for i, j in held)

    def _walk(self) -> tuple[list[int | None], Point | None]:
        """Return the boundary as far as it is known, and the first point that is wanted on the way."""
        found: list[int | None] = []
        top = self.steps[0]
        for second in range(self.steps[1] + 1):
            low, high = -1, top + 1
            while high - low > 1:
                first = top if high == top + 1 else (low + high) // 2
                holds = self.known.get((first, second))
                if holds is None:
                    return found, (first, second)
                low, high = (first, high) if holds else (low, first)
            if low < 0:
                return found, None
            found.append(low)
            top = low
        return found, None
