"""One view of a run: what a request picks from it.

Whatever a request names is looked up here, among the names that the run's own tables hold; numbers are
checked, the rest is refused. Nothing that a request says ever becomes part of a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from urllib.parse import urlencode

import numpy as np
from starlette.exceptions import HTTPException

from adverse.pages.view.session import ExploredRun, LoggedFrames

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


def picked(run: ExploredRun, query: Mapping[str, str]) -> Pick:
    """Return the view that is asked for; what is not said is chosen for it, first the operating point.

    Names that the run does not have raise 404, numbers that are none 400.
    """
    log = run.logs[named_in_run("log", query, run.logs, run.first_log)]
    settings = list(run.settings)
    levels = run.levels or [""]
    sut = named_in_run("sut", query, run.suts, run.suts[0])
    return Pick(
        sut=sut,
        level=named_in_run("level", query, levels, levels[0]),
        left=named_in_run("left", query, settings, run.baseline),
        right=named_in_run("right", query, settings, settings[min(1, len(settings) - 1)]),
        log=log.name,
        frame=number_in("frame", query, len(log.rows) - 1, lambda: _first_frame(run, log)),
        k=number_in("k", query, _most(run), lambda: run.operating_level(sut) if run.detection else 0),
        at=number_in("at", query, WHOLE, lambda: HALF),
    )


def named_in_run(name: str, query: Mapping[str, str], names: Iterable[str], default: str) -> str:
    """Return the name that is asked for, among those there are; of none the default; else raise 404."""
    if name not in query:
        return default
    value = query[name]
    if isinstance(names, Mapping) and value in names:
        return value
    for option in names:
        as_forms_send_it = option.replace("\r\n", "\n").replace("\n", "\r\n")
        if value in (option, as_forms_send_it):
            return option
    raise HTTPException(404, f"The run has no such {name}.")


def number_in(name: str, query: Mapping[str, str], most: int, default: Callable[[], int]) -> int:
    """Return a whole number from 0; one beyond the end is the end, so that a shorter log can be picked."""
    value = query.get(name, "")
    if not value:
        return default()
    if not (value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS):
        raise HTTPException(400, f"{name} is a whole number from 0 to {most}.")
    return min(int(value), most)


def _most(run: ExploredRun) -> int:
    return len(run.grid(run.suts[0]).levels) - 1 if run.detection else 0


def _first_frame(run: ExploredRun, log: LoggedFrames) -> int:
    """Return the frame with the largest true object, or the first."""
    if not run.detection:
        return 0
    truth = run.store.truth
    mine = np.flatnonzero(np.isin(truth.frame, log.rows) & ~truth.ignore)
    if not len(mine):
        return 0
    return int(np.searchsorted(log.rows, truth.frame[mine[np.argmax(truth.area[mine])]]))
