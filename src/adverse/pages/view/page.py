"""What each page of the explorer shows, as plain data: its JSON, and all that its template places."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

import numpy as np

from adverse.pages.view.curves import curve_panels, log_words, sensitivity_words
from adverse.pages.view.driving import drive_panels
from adverse.pages.view.frames import frame_answer, frame_boxes, label_names
from adverse.pages.view.picks import Pick
from adverse.pages.view.pictures import Pictures
from adverse.pages.view.session import ExploredRun
from adverse.report.run_tables import level_tables
from adverse.text import without_paths

UNKNOWN_SIZE = (640, 480)
"""Of a frame that cannot be shown and whose camera is not known."""
LONGEST_TABLE = 200
"""Rows of a table on the page; its twin holds all."""


class Pages:
    """The pages of one run."""

    def __init__(self, run: ExploredRun) -> None:
        self.run = run
        self.pictures = Pictures(run)
        self.scores = None if run.detection else level_tables(run.summary)[0]

    def explore(self, pick: Pick) -> dict[str, Any]:
        """Return the whole page."""
        run = self.run
        page: dict[str, Any] = {
            "study": run.summary.data["study"],
            "task": run.store.task,
            "pick": asdict(pick),
            "choices": {
                "sut": run.suts,
                "level": run.levels,
                "mutation": [{"name": name, "group": group} for name, group in run.settings.items()],
                "log": [{"name": log.name, "frames": len(log.rows)} for log in run.logs.values()],
            },
            "frame": self.frame(pick),
        }
        if self.scores is not None:
            metric = str(run.summary.data["metric"]).replace("_", " ")
            headings = [column.heading for column in self.scores.columns]
            scores = {"metric": metric, "columns": headings, "rows": self.scores.texts()}
            laid_over = any(side["label_picture"] for side in page["frame"]["sides"].values())
            return page | {"scores": scores, "label_names": label_names(run, pick.sut) if laid_over else []}
        grid = run.grid(pick.sut)
        return page | {
            "sensitivity": {
                "levels": grid.levels.tolist(),
                "thresholds": [_finite(value) for value in grid.thresholds.tolist()],
                "resolved": grid.resolved.tolist(),
                "words": sensitivity_words(grid),
            },
            "level_note": run.words_of(pick.level)["sentence"],
            "curves": curve_panels(run, pick),
            "log": {side: log_words(run, pick, setting) for side, setting in pick.sides.items()},
            "drive": self.drive(pick),
        }

    def frame(self, pick: Pick) -> dict[str, Any]:
        """Return one frame under both settings."""
        run = self.run
        rows = run.logs[pick.log].rows
        row = int(rows[pick.frame])
        shown = {side: self._side(pick, side, setting, row) for side, setting in pick.sides.items()}
        return {
            "id": run.store.frames.ids[row],
            "number": pick.frame,
            "count": len(rows),
            "size": self._size(row, shown),
            "sides": shown,
        }

    def drive(self, pick: Pick) -> dict[str, Any]:
        """Return the closed loop of the picked log at the picked sensitivity."""
        if not self.run.detection:
            return {"why": "Closed-loop playback is for detectors only."}
        return drive_panels(self.run, pick)

    def _side(self, pick: Pick, side: str, setting: str, row: int) -> dict[str, Any]:
        run = self.run
        picture = self.pictures.of(row, setting)
        place = {"log": pick.log, "frame": pick.frame, "setting": setting}
        status, reason = run.troubles.get((pick.sut, setting, run.store.frames.ids[row]), ("ok", ""))
        one: dict[str, Any] = {
            "side": side,
            "setting": setting,
            "picture": f"/picture.png?{urlencode(place)}" if picture.png else None,
            "size": (picture.width, picture.height) if picture.png else None,
            "why": picture.why,
            "status": status,
            "reason": without_paths(reason, *self.pictures.roots),
        }
        if run.detection:
            return one | frame_boxes(run, pick, setting, row)
        answer = frame_answer(run, pick.sut, setting, row)
        labels = f"/labels.png?{urlencode({**place, 'sut': pick.sut})}" if answer.pop("labels") else None
        return one | answer | {"label_picture": labels}

    def _size(self, row: int, shown: dict[str, dict[str, Any]]) -> tuple[int, int]:
        """Return the size of the picture or, without one, what the camera or the boxes say it would be."""
        for one in shown.values():
            if one["size"]:
                width, height = one["size"]
                return width, height
        camera = self.run.store.frames.cameras[row]
        if np.isfinite(camera[4:6]).all():
            return int(camera[4]), int(camera[5])
        boxes = [
            box["box"] for one in shown.values() for box in (*one.get("found", ()), *one.get("true", ()))
        ]
        right = max((x + wide for x, _, wide, _ in boxes), default=0.0)
        bottom = max((y + high for _, y, _, high in boxes), default=0.0)
        return max(UNKNOWN_SIZE[0], math.ceil(right)), max(UNKNOWN_SIZE[1], math.ceil(bottom))


def thinned(count: int) -> list[int]:
    """Return the rows that a table shows, evenly spaced if there are too many.

    >>> thinned(3), len(thinned(10_000))
    ([0, 1, 2], 200)
    """
    return list(range(0, count, max(1, math.ceil(count / LONGEST_TABLE))))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
