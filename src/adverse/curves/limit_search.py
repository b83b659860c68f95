"""The strongest step of a condition at which something still holds, found with few evaluations.

Steps go from 0, clean, to the strongest. Stronger is worse, as a rule: then halving finds the limit. The
search looks at the top first, then at a random step near the middle, then halves, guided by the values that
were measured; what is left of its evaluations goes to random steps in the widest gaps. Where it holds at a
stronger step and not at a weaker one, or is better at the stronger one for certain, the response is not
monotone, and every step is evaluated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from adverse.seeds import generator

KEY = "limit search"


@dataclass(frozen=True)
class Evaluation:
    """Whether a rule holds at a step, by how much (negative: it does not), and how sure that is.

    `ends` are those of the interval of that room, the worse first; None where there is none.
    """

    holds: bool
    room: float = 0.0
    ends: tuple[float, float] | None = None

    @property
    def certain(self) -> bool | None:
        """True: it holds for certain; False: it certainly does not; None: it cannot be told."""
        if self.ends is None or self.ends[0] < 0 <= self.ends[1]:
            return None
        return self.ends[0] >= 0


@dataclass(frozen=True)
class SearchResult:
    """The limit of a condition, in steps; None: it does not even hold on clean images.

    `certain_to` is the strongest step evaluated up to which it holds for certain (None: not even clean), and
    `fails_from` the weakest at which it certainly does not (None: at none). `reversals` are steps at which it
    holds although it does not at a weaker one; `swept`: every step was evaluated, as it is not monotone.
    """

    limit: int | None
    certain_to: int | None
    fails_from: int | None
    reversals: tuple[int, ...]
    swept: bool
    evaluations: int


def most_evaluations(steps: int) -> int:
    """Return the most evaluations of a search where the response is monotone: the top, and halving.

    >>> most_evaluations(12)
    5
    """
    return 1 + math.ceil(math.log2(steps)) if steps > 1 else 1


@dataclass
class LimitSearch:
    """The search for one limit: say what was evaluated, ask for the next step.

    What others had evaluated may be added, too (`add(..., asked=False)`); only what this search asked for
    counts against its evaluations.
    """

    steps: int
    seed: int
    name: str
    known: dict[int, Evaluation] = field(default_factory=dict)
    asked: int = 0

    def add(self, step: int, evaluation: Evaluation, *, asked: bool = True) -> None:
        """Take what was found at a step; 0 is clean, which costs nothing."""
        self.asked += asked and step > 0 and step not in self.known
        self.known[step] = evaluation

    def next_steps(self) -> list[int]:
        """Return what to evaluate next: a step, all that are left where nothing is monotone, or nothing."""
        if 0 not in self.known:
            raise ValueError("a search begins with clean images, step 0")
        if not monotone(self.known):
            return [step for step in range(1, self.steps + 1) if step not in self.known]
        step = self._next_step()
        return [] if step is None else [step]

    def _next_step(self) -> int | None:
        if not self.known[0].holds:
            return None
        if self.steps not in self.known:
            return self.steps
        left = most_evaluations(self.steps) - self.asked
        if self.known[self.steps].holds:
            return self._random_unknown() if left > 0 else None
        low, high = self._bracket()
        if high - low > 1:
            return self._inside(low, high, max(left, 1))
        return self._random_unknown() if left > 0 else None

    def result(self) -> SearchResult:
        """Return what is known now; the limit is the step before the first at which it does not hold."""
        back = reversals(self.known)
        failing = [step for step, one in self.known.items() if not one.holds]
        limit = min(failing) - 1 if failing else self.steps
        certain: int | None = None
        for step in sorted(self.known):
            if self.known[step].certain is not True:
                break
            certain = step
        fails = [step for step, one in self.known.items() if one.certain is False]
        swept = not monotone(self.known) and len(self.known) > self.steps
        return SearchResult(
            None if limit < 0 else limit, certain, min(fails, default=None), back, swept, self.asked
        )

    def _bracket(self) -> tuple[int, int]:
        """Return the strongest step that holds and the weakest that does not, where nothing is reversed."""
        return (
            max(step for step, one in self.known.items() if one.holds),
            min(step for step, one in self.known.items() if not one.holds),
        )

    def _inside(self, low: int, high: int, left: int) -> int:
        """Return a step of the bracket from which the rest can always be halved with what is left."""
        widest = 1 << (left - 1)
        first, last = max(low + 1, high - widest), min(high - 1, low + widest)
        if first > last:  # more is left than evaluations are: halve it
            return (low + high) // 2
        if low == 0 and high == self.steps:
            return int(generator(self.seed, KEY, self.name, "middle").integers(first, last + 1))
        above, below = self.known[low].room, self.known[high].room
        part = above / (above - below) if above - below > 0 else 0.5
        return min(max(low + round(part * (high - low)), first), last)

    def _random_unknown(self) -> int | None:
        """Return a random step inside the widest gap between those that are known; None where there is none.

        Of equally wide gaps it is the strongest. Its outermost quarters are left out where it is wide.
        """
        steps = sorted(self.known)
        gaps = [(after - before, before) for before, after in itertools.pairwise(steps)]
        wide, before = max(gaps)
        if wide < 2:
            return None
        margin = max(1, wide // 4)
        drawn = generator(self.seed, KEY, self.name, "check", str(len(self.known)))
        return before + int(drawn.integers(margin, wide - margin + 1))


def reversals(known: Mapping[int, Evaluation]) -> tuple[int, ...]:
    """Return the steps at which it holds although it does not at a weaker one.

    >>> reversals({0: Evaluation(True), 3: Evaluation(False), 5: Evaluation(True)})
    (5,)
    """
    failing = [step for step, one in known.items() if not one.holds]
    first = min(failing, default=math.inf)
    return tuple(sorted(step for step, one in known.items() if one.holds and step > first))


def monotone(known: Mapping[int, Evaluation]) -> bool:
    """Tell whether nothing that is known is better at a stronger step, by holding or by its interval.

    >>> monotone({0: Evaluation(True, 0.2, (0.1, 0.3)), 3: Evaluation(True, 0.5, (0.4, 0.6))})
    False
    """
    highest = math.inf
    for step in sorted(known):
        ends = known[step].ends
        if ends is not None:
            if ends[0] > highest:
                return False
            highest = min(highest, ends[1])
    return not reversals(known)
