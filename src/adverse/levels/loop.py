"""The loop level: what the robot does, by closed-loop playback (Pezzementi et al. 2021, 6.3 and 8.2.3).

Safety is the share of positive logs in which the robot stops no later than if the truth had told it, or later
by no more than its tolerance: the buffer between control and safety radius (3.1). Efficiency is how much of
the negative logs' time is not lost to needless braking. Beside pass and fail, how late, how near and how fast
it was is measured in every positive log (`STOPS`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.levels.context import ANNOTATED, LOCALIZED, LevelInput, TruePlaces
from adverse.levels.outcomes import AT_0, Outcomes, first_level, positive_logs
from adverse.levels.places import ROUNDING_M, LogPaths, stations_m
from adverse.plugins import level
from adverse.robot.clearance import clearance_m
from adverse.robot.playback import Drives, drive
from adverse.robot.profile import Robot
from adverse.robot.tracker import tracked_m
from adverse.robot.trajectory import Trajectory
from adverse.store.tables import Answers, Frames, TruthTable

STOPS = ("lateness_m", "clearance_m", "speed_at_safety_radius_mps")
"""What is measured in each positive log. How far behind the truth's place of stop the SUT's is (inf: it never
stops). How near it came to anybody (inf: nobody was in sight). How fast it was at most from the border of
somebody's safety radius on; where it brakes, that is the speed at which it crosses it (0: it never did)."""


@level(
    title="what the robot does",
    sentence="This level judges whole logs: whether the robot stops in time, and what it loses.",
    needs=("depth", "pose", "camera", "robot", "motion"),
    variants=(ANNOTATED, LOCALIZED),
    per_log=("stops in time", "does NOT stop in time"),
    cost="time",
    safety="stops in time",
    efficiency="time not lost",
    drives=True,
)
def loop(given: LevelInput) -> dict[str, Outcomes]:
    """Evaluate what the robot does: closed-loop playback of the logs; needs what path needs."""
    if given.robot is None:
        return {}
    obstacles = input_obstacles_m(given)
    outcomes = {}
    for kind, true in given.true_places.items():
        runs, left_out = input_playbacks(given, obstacles, true)
        outcomes[kind] = loop_outcomes(runs, left_out, given.frames, len(given.thresholds), given.robot)
    return outcomes


def input_obstacles_m(given: LevelInput) -> NDArray[np.float64]:
    """Return where on its path each frame's nearest obstacle is, at each threshold; tracked where it is."""
    stations = given.context.stations
    if given.robot is not None and given.robot.coast_frames:
        return tracked_obstacles_m(given, given.robot)
    return obstacles_m(given.answers, given.placed.distance_m, stations, given.thresholds, given.counted)


def input_playbacks(
    given: LevelInput, obstacles: NDArray[np.float64], true: TruePlaces
) -> tuple[Mapping[int, Playback], Mapping[str, int]]:
    """Return the logs that can be driven, against one kind of truth, and how many cannot."""
    if given.robot is None:
        return {}, {}
    return playbacks(
        obstacles,
        given.truth,
        true,
        given.frames,
        given.context.paths,
        given.counted,
        given.robot,
        lost=given.context.lost_frames,
    )


def tracked_obstacles_m(given: LevelInput, robot: Robot) -> NDArray[np.float64]:
    """Return the place on the path of the nearest tracked obstacle of each frame at each level (F,K).

    The tracker sees the frames of a log in order, those that count and are not lost on the way.
    """
    answers, placed, levels = given.answers, given.placed, len(given.thresholds)
    stations = given.context.stations
    frame = np.repeat(answers.frame, np.diff(answers.offsets))
    points = placed.places.points_m
    useful = np.flatnonzero(
        (given.first_levels < levels) & np.isfinite(points).all(axis=1) & ~np.isnan(placed.distance_m)
    )
    order = useful[np.lexsort((*points[useful].T, placed.distance_m[useful], frame[useful]))]
    seen = given.counted & ~given.context.lost_frames
    obstacles = np.full((len(stations), levels), np.inf)
    for path in given.context.paths.found.values():
        rows = path.rows[seen[path.rows]]
        first, last = (np.searchsorted(frame[order], rows, side=side) for side in ("left", "right"))
        mine = np.concatenate([order[a:b] for a, b in zip(first, last, strict=True)] or [order[:0]])
        obstacles[rows] = tracked_m(
            np.concatenate([[0], np.cumsum(last - first)]).astype(np.int64),
            given.first_levels[mine],
            points[mine],
            stations[frame[mine]] + placed.distance_m[mine],
            levels,
            coast_frames=int(robot.coast_frames),
            association_m=robot.association_m,
        )
    return obstacles


@dataclass(frozen=True, eq=False)
class Playback:
    """One log ready to be driven: where images were taken, what is in the way on each, and who is about.

    `people` are the images that show each person, and where on the ground.
    """

    stations: NDArray[np.float64]
    obstacles_m: NDArray[np.float64]
    true_m: NDArray[np.float64]
    too_close_m: NDArray[np.float64]
    path: Trajectory
    people: tuple[NDArray[np.int64], NDArray[np.float64]]
    positive: bool
    arrives: NDArray[np.bool_] | None = None
    """Which images the controller of the SUT's robot ever knows of; None: of all of them at once."""

    @property
    def end_m(self) -> float:
        """Where a run ends at the latest: a negative one with what was driven, a positive one 10 m later."""
        return self.path.length_m if self.positive else self.path.recorded_m

    def sut(self, robot: Robot) -> Drives:
        """Drive by what the SUT said, at every level, with the robot's latency and without what it loses."""
        return self._drive(self.obstacles_m, robot, self.arrives)

    def truth(self, robot: Robot) -> Drives:
        """Drive by the truth, which is known at once: what should have happened."""
        return self._drive(self.true_m[:, None], robot)

    def clearance_m(self, driven: Drives) -> NDArray[np.float64]:
        """Return how near each run came to anybody."""
        reached = np.where(np.isnan(driven.stop_m), self.end_m, driven.stop_m)
        return clearance_m(self.path, self.stations, *self.people, reached)

    def _drive(
        self, obstacles_m: NDArray[np.float64], robot: Robot, arrives: NDArray[np.bool_] | None = None
    ) -> Drives:
        return drive(
            self.stations,
            obstacles_m,
            self.too_close_m,
            self.end_m,
            robot,
            positive=self.positive,
            arrives=arrives,
        )


def loop_outcomes(
    playbacks: Mapping[int, Playback], left_out: Mapping[str, int], frames: Frames, levels: int, robot: Robot
) -> Outcomes:
    """Return the outcomes of the logs that can be played back.

    Beside safety stand that at tolerance 0 (`at_0`) and in how many logs the robot moved inside a safety
    radius (`violations`); `STOPS` are measured.
    """
    shape = (len(frames.logs), levels)
    hits, truths = np.zeros(shape, np.int64), np.zeros(len(frames.logs), np.int64)
    beside = {name: np.zeros(shape, np.int64) for name in (AT_0, "violations")}
    measured = {name: np.full(shape, np.nan) for name in STOPS}
    cost, exposure = np.zeros(shape), np.zeros(len(frames.logs))
    out = Counter(left_out)
    for log, playback in playbacks.items():
        best = playback.truth(robot)
        if playback.positive and np.isnan(best.stop_m[0]):
            out["the truth never stops"] += 1
            continue
        driven = playback.sut(robot)
        if playback.positive:
            truths[log] = 1
            late = np.where(np.isnan(driven.stop_m), np.inf, driven.stop_m - best.stop_m[0])
            hits[log] = late <= robot.tolerance_m + ROUNDING_M
            beside[AT_0][log] = late <= ROUNDING_M
            beside["violations"][log] = driven.violated
            stops = (late, playback.clearance_m(driven), driven.speed_inside_mps)
            for name, values in zip(STOPS, stops, strict=True):
                measured[name][log] = values
        else:
            exposure[log] = best.time_s[0]
            cost[log] = driven.time_s + robot.stop_cost_s * driven.stops
    return Outcomes(frames.logs, hits, truths, cost, exposure, "time", dict(out), beside, measured)


def obstacles_m(
    answers: Answers,
    detected_m: NDArray[np.float64],
    stations: NDArray[np.float64],
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the place on the path of the nearest obstacle of each frame at each level (F,K); inf: none.

    `detected_m` (N,) is how far along the path detections are, `stations` (F,) where frames were taken.
    """
    frame = np.repeat(answers.frame, np.diff(answers.offsets))
    level = first_level(answers.scores, thresholds)
    useful = counted[frame] & np.isfinite(detected_m) & (level < len(thresholds))
    found: NDArray[np.float64] = _nearest_by_level(
        len(stations),
        len(thresholds),
        frame[useful],
        level[useful],
        stations[frame[useful]] + detected_m[useful],
    )
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _nearest_by_level(  # pragma: no cover - compiled
    frames: int, levels: int, frame: Any, level: Any, place: Any
) -> Any:
    nearest = np.full((frames, levels), np.inf)
    for n in range(len(frame)):
        nearest[frame[n], level[n]] = min(nearest[frame[n], level[n]], place[n])
    for f in range(frames):
        for k in range(1, levels):
            nearest[f, k] = min(nearest[f, k], nearest[f, k - 1])
    return nearest


def playbacks(
    obstacles: NDArray[np.float64],
    truth: TruthTable,
    places: TruePlaces,
    frames: Frames,
    paths: LogPaths,
    counted: NDArray[np.bool_],
    robot: Robot,
    *,
    lost: NDArray[np.bool_] | None = None,
) -> tuple[dict[int, Playback], Counter[str]]:
    """Return the logs that can be driven, and how many cannot, by reason.

    `obstacles` (F,K) are places on the path, `places` those of the true objects, `lost` (F,) the frames that
    never reach the controller.
    """
    stations = stations_m(frames, paths)
    real = np.flatnonzero(counted[truth.frame] & ~truth.ignore)
    real = real[np.argsort(truth.frame[real], kind="stable")]
    true = _nearest(stations, truth.frame[real], places.distance_m[real])
    too_close = _nearest(stations, truth.frame[real], places.too_close_m[real])
    of_log = _by_log(frames.log[truth.frame[real]], len(frames.logs))
    positive = positive_logs(truth, frames)
    found: dict[int, Playback] = {}
    left_out: Counter[str] = Counter()
    for log in np.unique(frames.log[frames.test]).tolist():
        if log in paths.refused:
            left_out[paths.refused[log]] += 1
        if log not in paths.found:
            continue
        one = paths.found[log]
        rows = one.rows[counted[one.rows]]
        if not len(rows) or _widest_gap(stations[rows], one.path.recorded_m) > robot.max_gap_m:
            left_out["frames too far apart"] += 1
            continue
        people = real[of_log(log)]
        images = np.searchsorted(rows, truth.frame[people])
        found[log] = Playback(
            stations[rows],
            obstacles[rows],
            true[rows],
            too_close[rows],
            one.path,
            (images, places.places.points_m[people]),
            bool(positive[log]),
            None if robot.at_once else np.ones(len(rows), np.bool_) if lost is None else ~lost[rows],
        )
    return found, left_out


def _by_log(log: NDArray[np.int64], logs: int) -> Callable[[int], NDArray[np.int64]]:
    """Return a function from the number of a log to the things that are of it, in their order."""
    order = np.argsort(log, kind="stable")
    ends = np.searchsorted(log[order], np.arange(logs + 1))
    return lambda number: order[ends[number] : ends[number + 1]]


def _nearest(
    stations: NDArray[np.float64], at: NDArray[np.int64], distance_m: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the nearest place on the path of what each frame shows; inf where nothing is in the way."""
    places = np.full(len(stations), np.inf)
    np.fmin.at(places, at, stations[at] + distance_m)
    return places


def _widest_gap(stations: NDArray[np.float64], recorded_m: float) -> float:
    return float(np.max(np.diff(np.concatenate([[0.0], stations, [recorded_m]]))))
