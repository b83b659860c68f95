"""What the context levels need to know of a run once, and what they need of each answer.

Truth can be had in two ways: places that people annotated, and the Localizer applied to the true boxes, which
fails where it fails for the SUT too. Whatever is there is reported, as `located/annotated` and so on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.levels.located import located_events
from adverse.levels.loop import Playback, loop_outcomes, obstacles_m, playbacks
from adverse.levels.outcomes import Events, Outcomes
from adverse.levels.path import path_events
from adverse.levels.places import (
    LogPaths,
    Places,
    by_depth,
    by_position,
    log_paths,
    path_distances_m,
    stations_m,
)
from adverse.robot.profile import Robot
from adverse.store.read import Answers, Store

ANNOTATED, LOCALIZED = "annotated", "localized"


@dataclass(frozen=True, eq=False)
class Seen:
    """The detections of one SUT under one setting, on the ground and along the path."""

    answers: Answers
    places: Places
    distance_m: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TruePlaces:
    """Where the true objects are, and how far along the path the robot must stop and is too close."""

    places: Places
    distance_m: NDArray[np.float64]
    too_close_m: NDArray[np.float64]


class Context:
    """The context levels that a study asks for, over one run or some of its logs (their numbers)."""

    def __init__(self, store: Store, logs: Collection[int] | None = None) -> None:
        self.store = store
        self.levels = [level for level in store.run.levels if level != "image"]
        self.robot = Robot(**store.run.robot) if store.run.robot else None
        self.paths = log_paths(store.frames, logs) if self.robot else LogPaths({}, {})
        self.stations = stations_m(store.frames, self.paths)
        unknown = np.full(len(store.truth.frame), np.nan, np.float32)
        self.localized_m = (store.truth_depths_m() if self.levels else unknown).astype(np.float64)
        self.truths = {kind: self._truth(places) for kind, places in self._kinds().items()}

    def seen(self, answers: Answers) -> Seen:
        """Place the detections of one SUT under one setting."""
        frame = np.repeat(answers.frame, np.diff(answers.offsets))
        places = by_depth(self.store.frames, frame, answers.boxes, answers.depths_m)
        return Seen(answers, places, self._along(places, self.robot.control_radius_m if self.robot else 0.0))

    def outcomes(
        self, seen: Seen, thresholds: NDArray[np.float32], counted: NDArray[np.bool_]
    ) -> dict[str, Outcomes]:
        """Return the outcomes of every context level that is asked for."""
        events = self.events(seen, thresholds, counted)
        found = {level: one.outcomes(len(thresholds)) for level, one in events.items()}
        obstacles = self.obstacles(seen, thresholds, counted) if "loop" in self.levels else None
        for kind in self.truths:
            if obstacles is not None and self.robot is not None:
                runs, left_out = self.playbacks(obstacles, kind, counted)
                levels = len(thresholds)
                found[f"loop/{kind}"] = loop_outcomes(runs, left_out, self.store.frames, levels, self.robot)
        return found

    def events(
        self, seen: Seen, thresholds: NDArray[np.float32], counted: NDArray[np.bool_]
    ) -> dict[str, Events]:
        """Return the hits and false alarms of the located and path levels, where they are asked for."""
        frames, truth, answers = self.store.frames, self.store.truth, seen.answers
        found: dict[str, Events] = {}
        for kind, true in self.truths.items():
            if "located" in self.levels:
                found[f"located/{kind}"] = located_events(
                    answers, seen.places, truth, true.places, frames, thresholds, counted
                )
            if "path" in self.levels:
                found[f"path/{kind}"] = path_events(
                    answers,
                    seen.distance_m,
                    truth,
                    true.distance_m,
                    frames,
                    thresholds,
                    counted,
                    self.paths,
                )
        return found

    def obstacles(
        self, seen: Seen, thresholds: NDArray[np.float32], counted: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return where on its path each frame's nearest obstacle is, at each threshold."""
        return obstacles_m(seen.answers, seen.distance_m, self.stations, thresholds, counted)

    def playbacks(
        self, obstacles: NDArray[np.float64], kind: str, counted: NDArray[np.bool_]
    ) -> tuple[Mapping[int, Playback], Mapping[str, int]]:
        """Return the logs that can be driven, by the given kind of truth, and how many cannot."""
        if self.robot is None:
            return {}, {}
        true = self.truths[kind]
        return playbacks(
            obstacles,
            self.store.truth,
            true.distance_m,
            true.too_close_m,
            self.store.frames,
            self.paths,
            counted,
            self.robot,
        )

    def _kinds(self) -> dict[str, Places]:
        if not self.levels:
            return {}
        frames, truth = self.store.frames, self.store.truth
        annotated = by_position(frames, truth.frame, truth.positions_m)
        localized = by_depth(frames, truth.frame, truth.boxes, self.localized_m)
        kinds = {ANNOTATED: annotated, LOCALIZED: localized}
        known = {name: places for name, places in kinds.items() if np.isfinite(places.points_m).any()}
        return known or {LOCALIZED: localized}

    def _truth(self, places: Places) -> TruePlaces:
        if self.robot is None:
            nowhere = np.full(len(places.frame), np.nan)
            return TruePlaces(places, nowhere, nowhere)
        return TruePlaces(
            places,
            self._along(places, self.robot.control_radius_m),
            self._along(places, self.robot.safety_radius_m),
        )

    def _along(self, places: Places, radius_m: float) -> NDArray[np.float64]:
        return path_distances_m(self.store.frames, self.paths, places, radius_m)
