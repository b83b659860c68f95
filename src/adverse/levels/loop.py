"""The loop level: what the robot does, by closed-loop playback (001, sections 6.3 and 8.2.3).

Safety is the share of positive logs in which the robot stops no later than if the truth had told it;
efficiency how much of the negative logs' time is not lost to needless braking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.levels.image import positive_logs
from adverse.levels.outcomes import Outcomes
from adverse.levels.places import ROUNDING_M, LogPath
from adverse.levels.sensitivity import first_level
from adverse.robot.playback import Drives, drive
from adverse.robot.profile import Robot
from adverse.study.store.read import Answers, Frames, TruthTable


@dataclass(frozen=True, eq=False)
class Playback:
    """One log ready to be driven: where images were taken, and what is in the way on each."""

    stations: NDArray[np.float64]
    obstacles_m: NDArray[np.float64]
    true_m: NDArray[np.float64]
    too_close_m: NDArray[np.float64]
    end_m: float
    positive: bool

    def sut(self, robot: Robot) -> Drives:
        """Drive by what the SUT said, at every level."""
        return self._drive(self.obstacles_m, robot)

    def truth(self, robot: Robot) -> Drives:
        """Drive by the truth."""
        return self._drive(self.true_m[:, None], robot)

    def _drive(self, obstacles_m: NDArray[np.float64], robot: Robot) -> Drives:
        return drive(self.stations, obstacles_m, self.too_close_m, self.end_m, robot, positive=self.positive)


def loop_outcomes(
    playbacks: Mapping[int, Playback], left_out: Mapping[str, int], frames: Frames, levels: int, robot: Robot
) -> Outcomes:
    """Return the outcomes of the logs that can be played back."""
    groups = len(frames.logs)
    hits = np.zeros((groups, levels), np.int64)
    truths = np.zeros(groups, np.int64)
    cost = np.zeros((groups, levels))
    exposure = np.zeros(groups)
    out = Counter(left_out)
    for log, playback in playbacks.items():
        best = playback.truth(robot)
        if playback.positive and np.isnan(best.stop_m[0]):
            out["the truth never stops"] += 1
            continue
        driven = playback.sut(robot)
        if playback.positive:
            truths[log] = 1
            with np.errstate(invalid="ignore"):
                hits[log] = driven.stop_m <= best.stop_m[0] + robot.stop_tolerance_m + ROUNDING_M
        else:
            exposure[log] = best.time_s[0]
            cost[log] = driven.time_s + robot.stop_cost_s * driven.stops
    return Outcomes(frames.logs, hits, truths, cost, exposure, "time", dict(out))


def playbacks(
    answers: Answers,
    detected_m: NDArray[np.float64],
    truth: TruthTable,
    true_m: NDArray[np.float64],
    too_close_m: NDArray[np.float64],
    frames: Frames,
    paths: Mapping[int, LogPath],
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
    robot: Robot,
) -> tuple[dict[int, Playback], Counter[str]]:
    """Return the logs that can be driven, and how many cannot, by reason.

    Distances are along the path: to the control radius of detections and true objects, and to the safety
    radius of true objects (`too_close_m`).
    """
    frame = np.repeat(answers.frame, np.diff(answers.offsets))
    level = first_level(answers.scores, thresholds)
    positive = positive_logs(truth, frames)
    useful = counted[frame] & np.isfinite(detected_m) & (level < len(thresholds))
    found: dict[int, Playback] = {}
    left_out: Counter[str] = Counter()
    for log in np.unique(frames.log[frames.test]).tolist():
        if log not in paths:
            left_out["no pose"] += 1
            continue
        one = paths[log]
        kept = counted[one.rows]
        rows, stations = one.rows[kept], one.path.stations[kept]
        if not len(rows) or _widest_gap(stations, one.path.recorded_m) > robot.max_gap_m:
            left_out["frames too far apart"] += 1
            continue
        obstacles = np.full((len(rows), len(thresholds)), np.inf)
        mine = useful & (frames.log[frame] == log)
        at = np.searchsorted(rows, frame[mine])
        np.minimum.at(obstacles, (at, level[mine]), stations[at] + detected_m[mine])
        real = (frames.log[truth.frame] == log) & counted[truth.frame] & ~truth.ignore
        where = np.searchsorted(rows, truth.frame[real])
        found[log] = Playback(
            stations,
            np.minimum.accumulate(obstacles, axis=1),
            _nearest(stations, where, true_m[real]),
            _nearest(stations, where, too_close_m[real]),
            one.path.length_m if positive[log] else one.path.recorded_m,
            bool(positive[log]),
        )
    return found, left_out


def _nearest(
    stations: NDArray[np.float64], at: NDArray[np.int64], distance_m: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the nearest place on the path of what each image shows; inf where nothing is in the way."""
    places = np.full(len(stations), np.inf)
    np.fmin.at(places, at, stations[at] + distance_m)
    return places


def _widest_gap(stations: NDArray[np.float64], recorded_m: float) -> float:
    return float(np.max(np.diff(np.concatenate([[0.0], stations, [recorded_m]]))))
