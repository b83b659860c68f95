"""What a request asks to see: names looked up in the run, numbers checked, the rest refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from urllib.parse import urlencode

import numpy as np
from starlette.exceptions import HTTPException

from adverse.pages.view.session import ExploredRun, LoggedFrames

FIRST_SENSITIVITY = 0.01
"""Expected false positives per image at which the page opens."""
MOST_DIGITS = 9
HALF, WHOLE = 50, 100
"""The divider, in percent of the picture's width."""


@dataclass(frozen=True)
class Pick:
    """One view: a SUT at a level, two settings of a frame of a log, at one of the run's sensitivities.

    `k` is the place of the sensitivity among those of the run, `frame` that of the frame in its log, `at`
    where the divider stands.
    """

    sut: str
    level: str
    left: str
    right: str
    log: str
    frame: int
    k: int
    at: int = HALF

    @property
    def sides(self) -> dict[str, str]:
        """The settings that are looked at, by the side of the divider; one if both are the same."""
        return {"both": self.left} if self.left == self.right else {"left": self.left, "right": self.right}

    def query(self, **changes: str | int) -> str:
        """Return the view as the query of an address, with some of it changed."""
        return urlencode(asdict(replace(self, **changes)))  # type: ignore[arg-type]


def picked(run: ExploredRun, asked: Mapping[str, str]) -> Pick:
    """Return the view that is asked for; what is not said is chosen for it.

    Names that the run does not have raise 404, numbers that are none 400.
    """
    log = run.logs[_known("log", asked, run.logs, _with_truth(run))]
    settings = list(run.settings)
    levels = run.levels or [""]
    return Pick(
        sut=_known("sut", asked, run.suts, run.suts[0]),
        level=_known("level", asked, levels, levels[0]),
        left=_known("left", asked, settings, run.baseline),
        right=_known("right", asked, settings, settings[min(1, len(settings) - 1)]),
        log=log.name,
        frame=_number("frame", asked, len(log.rows) - 1, lambda: _first_frame(run, log)),
        k=_number("k", asked, _most(run), lambda: _first_level(run)),
        at=_number("at", asked, WHOLE, lambda: HALF),
    )


def _known(name: str, asked: Mapping[str, str], known: Iterable[str], default: str) -> str:
    if name not in asked:
        return default
    said = asked[name]
    for one in known:
        if said in (one, one.replace("\r\n", "\n").replace("\n", "\r\n")):  # as forms send line breaks
            return one
    raise HTTPException(404, f"The run has no such {name}.")


def _number(name: str, asked: Mapping[str, str], most: int, default: Callable[[], int]) -> int:
    """Return a whole number from 0; one beyond the end is the end, so that a shorter log can be picked."""
    said = asked.get(name, "")
    if not said:
        return default()
    if not (said.isascii() and said.isdigit() and len(said) <= MOST_DIGITS):
        raise HTTPException(400, f"{name} is a whole number from 0 to {most}.")
    return min(int(said), most)


def _most(run: ExploredRun) -> int:
    return len(run.grid(run.suts[0]).levels) - 1 if run.detection else 0


def _first_level(run: ExploredRun) -> int:
    if not run.detection:
        return 0
    levels = run.grid(run.suts[0]).levels
    return int(np.argmin(np.abs(np.log(levels) - np.log(FIRST_SENSITIVITY))))


def _with_truth(run: ExploredRun) -> str:
    """Return the first test log with something to find, or else the first."""
    if run.detection:
        there = set(run.store.frames.log[run.store.truth.frame].tolist())
        for log in run.logs.values():
            if log.number in there:
                return log.name
    return next(iter(run.logs))


def _first_frame(run: ExploredRun, log: LoggedFrames) -> int:
    """Return the frame with the largest true object, or the first."""
    if not run.detection:
        return 0
    truth = run.store.truth
    mine = np.flatnonzero(np.isin(truth.frame, log.rows) & ~truth.ignore)
    if not len(mine):
        return 0
    return int(np.searchsorted(log.rows, truth.frame[mine[np.argmax(truth.area[mine])]]))
