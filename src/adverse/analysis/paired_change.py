"""One figure before and after a change, and what may be said about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from adverse.curves.interval import Interval

Said = Literal["regression", "not told", "improvement", "unchanged"]
CHANCE = "alone it would count as {}, but among {} comparisons some do by chance"


@dataclass(frozen=True)
class Change:
    """A figure of one SUT before and after; `difference` is after less before, over the same logs.

    `p` is None where there is no interval. `identical`: every log came to the same in both runs.
    """

    before_sut: str
    after_sut: str
    level: str
    """A level of context, or of a score its name."""
    setting: str
    figure: str
    before: float | None = None
    after: float | None = None
    difference: Interval | None = None
    p: float | None = None
    identical: bool = False
    same_sut: bool = False
    robustness_before: float | None = None
    robustness_after: float | None = None
    robustness: Interval | None = None
    outcome: Said = "not told"
    why: str = ""

    @property
    def size(self) -> float:
        """The difference, for sorting: the worst fall first, what is not known last."""
        known = self.difference.value if self.difference else None
        return math.inf if known is None else known

    def judged(self, *, sure: bool, among: int) -> Change:
        """Say what this is, knowing whether it stands among so many comparisons."""
        found = self.difference
        if self.identical:
            return replace(self, outcome="unchanged", why="every log came to the same")
        if found is None or found.value is None:
            return replace(self, outcome="not told", why="insufficient: not defined on these logs")
        if found.low is None or found.high is None:
            return replace(self, outcome="not told", why=f"no interval: {found.why}")
        direction: Said = "regression" if found.value < 0 else "improvement"
        if sure:
            return replace(self, outcome=direction)
        if found.low > 0 or found.high < 0:
            return replace(
                self, outcome="not told", why=CHANCE.format(f"a{'n' * (found.value > 0)} {direction}", among)
            )
        return replace(self, outcome="not told")

    def plain(self) -> dict[str, Any]:
        """Return the change as one flat row."""
        return {
            "outcome": self.outcome,
            "before_sut": self.before_sut,
            "after_sut": self.after_sut,
            "level": self.level,
            "setting": self.setting,
            "figure": self.figure,
            "before": self.before,
            "after": self.after,
            **_ends("difference", self.difference),
            "p": self.p,
            "robustness_before": self.robustness_before,
            "robustness_after": self.robustness_after,
            **_ends("robustness_difference", self.robustness),
            "why": self.why,
        }


def _ends(name: str, found: Interval | None) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high", f"{name}_interval", f"{name}_logs"))
    return {
        name: found.value,
        f"{name}_low": found.low,
        f"{name}_high": found.high,
        f"{name}_interval": found.status,
        f"{name}_logs": found.logs,
    }
