"""What a worker is about to do, said before it does it.

A process that dies or hangs cannot say why. What it said last tells which SUT, frame or mutation to
suspect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LOAD_LIMIT_S = 900.0
"""Longest time that loading a SUT may take."""
STEP_LIMIT_S = 300.0
"""Longest time that decoding or mutating one frame may take."""


@dataclass(frozen=True)
class Stage:
    """One step; `sut` is the index of the SUT in whose hands the process is, if it is in one's."""

    text: str
    frame: str | None = None
    setting: str | None = None
    sut: int | None = None
    limit_s: float | None = STEP_LIMIT_S

    def __str__(self) -> str:
        parts = [
            self.text,
            f"frame {self.frame!r}" if self.frame else "",
            f"under {self.setting}" if self.setting else "",
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class Avoid:
    """Steps that killed a worker and are not tried again.

    `steps` did so several times: (frame id, setting id or None for all). `attempts` are batches, by SUT and
    their first frame and setting, that took a worker down: to ask so was a failed attempt, for this reason.
    """

    steps: frozenset[tuple[str, str | None]] = frozenset()
    attempts: Mapping[tuple[int, str, str], str] = field(default_factory=dict)

    def covers(self, frame: str, setting: str) -> bool:
        """Tell whether a frame under a setting is to be left alone."""
        return (frame, None) in self.steps or (frame, setting) in self.steps


NOTHING_TO_AVOID = Avoid()
