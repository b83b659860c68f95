"""Watchers of runs, for tests."""

from __future__ import annotations

from collections import Counter

from adverse.study.engines import Stop


class Quiet:
    """Watches, and can ask for a stop after some units."""

    def __init__(self, stop: Stop | None = None, after: int = 0, *, hard: bool = False) -> None:
        self.stop, self.left, self.hard = stop, after, hard
        self.notes: list[str] = []
        self.answered: list[int] = []
        self.done: list[int] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def under_way(self, answered: int) -> None:
        self.answered.append(answered)

    def begin(self, total: int, done: int) -> None:
        pass

    def advance(self, statuses: Counter[str]) -> None:
        self.done.append(statuses.total())
        self.left -= 1
        if self.stop is not None and self.left == 0:
            self.stop.soft = True
            self.stop.hard = self.hard

    def end(self) -> None:
        pass
