"""The pages of the explorer and their routes: four pages with their JSON twins, pictures, and our own files.

What a page shows is plain data: its JSON, and all that its template places.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import jinja2
import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from adverse.analysis.thresholds import MARKED
from adverse.errors import AdverseError
from adverse.pages.view.curves import comparisons, curve_panels, drive_panels, log_words, sensitivity_words
from adverse.pages.view.frames import Pictures, frame_answer, frame_boxes, label_names, label_picture
from adverse.pages.view.grid import grid_page, walk
from adverse.pages.view.pick import Pick, picked
from adverse.pages.view.selection import Selections
from adverse.pages.view.session import ExploredRun, LoggedFrames
from adverse.pages.view.thumbnails import Thumbnails
from adverse.report.agreement import basis, page_words
from adverse.report.run_tables import level_label, level_tables
from adverse.serving import assets, json_answer, templates_of
from adverse.store.run import Run
from adverse.text import CLEAN, counted, setting_text, shown, without_paths

UNKNOWN_SIZE = (640, 480)
"""Of a frame that cannot be shown and whose camera is not known."""
LONGEST_TABLE = 60
"""Rows of a table on the page; its twin holds all."""
MOST_LISTED = 500
"""Logs to choose from in a list; of more the name is typed."""


class Pages:
    """The pages of one run."""

    def __init__(self, run: ExploredRun) -> None:
        self.run = run
        self.pictures = Pictures(run)
        self.thumbnails = Thumbnails(run)
        self.scores = None if run.detection else level_tables(run.summary)[0]

    @cached_property
    def selections(self) -> Selections:
        """What the frames can be filtered and sorted by."""
        return Selections(self.run)

    def grid(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return a page of the grid."""
        return grid_page(self.run, self.selections, query)

    def explore(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the whole page of a frame."""
        run = self.run
        pick = picked(run, query)
        logs = list(run.logs.values()) if len(run.logs) <= MOST_LISTED else [run.logs[pick.log]]
        page: dict[str, Any] = {
            "study": run.summary.data["study"],
            "task": run.store.task,
            "pick": asdict(pick),
            "choices": {
                "sut": run.suts,
                "level": run.levels,
                "mutation": [{"name": name, "group": group} for name, group in run.settings.items()],
                "log": [{"name": log.name, "frames": len(log.rows)} for log in logs],
            },
            "logs": len(run.logs),
            "selection": walk(run, self.selections, query) if "n" in query else None,
            "frame": self.frame(query),
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
                "words": sensitivity_words(
                    grid, run.operating_level(pick.sut), run.operating_score(pick.sut)
                ),
            },
            "level_note": run.words_of(pick.level)["sentence"],
            "curves": curve_panels(run, pick),
            "comparisons": comparisons(run, pick),
            "marked": MARKED,
            "log": {side: log_words(run, pick, setting) for side, setting in pick.sides.items()},
            "drive": self.drive(query),
        }

    def frame(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return one frame under both settings."""
        run = self.run
        pick = picked(run, query)
        rows = run.logs[pick.log].rows
        row = int(rows[pick.frame])
        shown = {side: self._side(pick, side, setting, row) for side, setting in pick.sides.items()}
        return {
            "id": run.store.frames.ids[row],
            "number": pick.frame,
            "count": len(rows),
            "beside": {"previous": _end(run.beside(pick.log, -1)), "next": _start(run.beside(pick.log, 1))},
            "size": self._size(row, shown),
            "sides": shown,
        }

    def drive(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the closed loop of the picked log at the picked sensitivity."""
        pick = picked(self.run, query)
        if not self.run.detection:
            return {"why": "Closed-loop playback is for detectors only."}
        return drive_panels(self.run, pick)

    def _side(self, pick: Pick, side: str, setting: str, row: int) -> dict[str, Any]:
        run = self.run
        picture = self.pictures.of(row, setting)
        place = {"log": pick.log, "frame": pick.frame, "setting": setting}
        status, reason = run.troubles.get((pick.sut, setting, run.store.frames.ids[row]), ("ok", ""))
        view: dict[str, Any] = {
            "side": side,
            "setting": setting,
            "picture": f"/picture.png?{urlencode(place)}" if picture.png else None,
            "size": (picture.width, picture.height) if picture.png else None,
            "why": picture.why,
            "status": status,
            "reason": without_paths(reason, *self.pictures.roots),
        }
        if run.detection:
            return view | frame_boxes(run, pick, setting, row)
        answer = frame_answer(run, pick.sut, setting, row)
        labels = f"/labels.png?{urlencode({**place, 'sut': pick.sut})}" if answer.pop("labels") else None
        return view | answer | {"label_picture": labels}

    def _size(self, row: int, shown: dict[str, dict[str, Any]]) -> tuple[int, int]:
        """Return the size of the picture or, without one, what the camera or the boxes say it would be."""
        for view in shown.values():
            if view["size"]:
                width, height = view["size"]
                return width, height
        camera = self.run.store.frames.cameras[row]
        if np.isfinite(camera[4:6]).all():
            return int(camera[4]), int(camera[5])
        boxes = [
            box["box"] for view in shown.values() for box in (*view.get("found", ()), *view.get("true", ()))
        ]
        right = max((x + wide for x, _, wide, _ in boxes), default=0.0)
        bottom = max((y + high for _, y, _, high in boxes), default=0.0)
        return max(UNKNOWN_SIZE[0], math.ceil(right)), max(UNKNOWN_SIZE[1], math.ceil(bottom))


def thinned(count: int) -> list[int]:
    """Return the rows that a table shows, evenly spaced if there are too many.

    >>> thinned(3), len(thinned(10_000))
    ([0, 1, 2], 60)
    """
    return list(range(0, count, max(1, math.ceil(count / LONGEST_TABLE))))


def _start(log: LoggedFrames | None) -> dict[str, Any] | None:
    return None if log is None else {"log": log.name, "frame": 0}


def _end(log: LoggedFrames | None) -> dict[str, Any] | None:
    return None if log is None else {"log": log.name, "frame": len(log.rows) - 1}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


PACKAGE = "adverse.pages.view"
KEPT = {"Cache-Control": "private, max-age=60"}
"""Pictures are asked for again when a log is scrubbed back and forth."""


def warm_up(run: ExploredRun) -> None:
    """Load what the first frame needs, and read what all frames do, while the reader opens the address."""
    with contextlib.suppress(AdverseError):
        Pages(run).explore({})


def routes(run: ExploredRun) -> list[BaseRoute]:
    """Return the routes that show a run."""
    pages, templates = Pages(run), templates_of(PACKAGE)
    templates.globals |= {
        "shown": shown,
        "setting_text": setting_text,
        "thinned": thinned,
        "scores": pages.scores,
        "title_of": lambda level: run.words_of(level)["title"],
    }
    templates.filters |= {
        "named": _named,
        "levelled": lambda level: (level, level_label(run.summary, level)),
        "setting": _setting,
        "worded": _worded,
        "in_query": _in_query,
        "grouped": _grouped,
        "counted_log": _counted_log,
        "spot_of": _spot_of,
    }
    pages_by_name: dict[str, Page] = {
        "grid": pages.grid,
        "explore": pages.explore,
        "frame": pages.frame,
        "drive": pages.drive,
    }
    return [
        Route("/", lambda _: RedirectResponse("/explore", status_code=303)),
        *(route for name, page in pages_by_name.items() for route in _both(name, page, run, templates)),
        Route("/picture.png", _picture(run, pages)),
        Route("/thumbnail.jpg", _thumbnail(run, pages)),
        Route("/labels.png", _labels(run)),
        assets(PACKAGE, ["view.css", "view.js", "grid.js"]),
    ]


Page = Callable[[Mapping[str, str]], dict[str, Any]]
"""What makes the data of a page from the query of its address."""


def _both(name: str, page: Page, run: ExploredRun, templates: jinja2.Environment) -> list[Route]:
    """Return a page and its twin; both show the same data."""
    template = templates.get_template(f"{name}.html")

    def html(request: Request) -> Response:
        query = request.query_params
        pick = None if name == "grid" else picked(run, query)
        made = template.render(
            page=page(query), pick=pick, detection=run.detection, basis=_basis(run.store.run)
        )
        return HTMLResponse(made if run.store.run.truth is None else page_words(made))

    def twin(request: Request) -> Response:
        return json_answer(page(request.query_params))

    return [Route(f"/{name}", html), Route(f"/{name}.json", twin)]


def _basis(run: Run) -> str:
    """Return what the figures of a run rest on, where that is not annotated logs recorded as such."""
    alike = run.alike_logs
    parts = (basis(run), None if alike is None else f"{alike[0].upper()}{alike[1:]}.")
    return " ".join(part for part in parts if part is not None)


def _picture(run: ExploredRun, pages: Pages) -> Callable[[Request], Response]:
    def picture(request: Request) -> Response:
        row, setting = _frame(run, request)
        frame = pages.pictures.of(row, setting)
        if not frame.png:
            raise HTTPException(404, "This frame cannot be shown.")
        return Response(frame.png, media_type="image/png", headers=KEPT)

    return picture


def _thumbnail(run: ExploredRun, pages: Pages) -> Callable[[Request], Response]:
    def thumbnail(request: Request) -> Response:
        row, setting = _frame(run, request)
        sut = picked(run, request.query_params).sut
        jpeg = pages.thumbnails.of(pages.selections, sut, setting, row)
        return Response(jpeg, media_type="image/jpeg", headers=KEPT)

    return thumbnail


def _labels(run: ExploredRun) -> Callable[[Request], Response]:
    def labels(request: Request) -> Response:
        row, setting = _frame(run, request)
        sut = picked(run, request.query_params).sut
        png = None if run.detection else label_picture(run, sut, setting, row)
        if png is None:
            raise HTTPException(404, "There is no label map of this frame.")
        return Response(png, media_type="image/png", headers=KEPT)

    return labels


def _frame(run: ExploredRun, request: Request) -> tuple[int, str]:
    """Return the row of the frame and the setting that a picture is asked for."""
    query = dict(request.query_params)
    pick = picked(run, query | {"left": query.get("setting", run.baseline)})
    return int(run.logs[pick.log].rows[pick.frame]), pick.left


def _named(name: str) -> tuple[str, str]:
    """Return a name as the value and the text of an option."""
    return name, shown(name)


def _setting(setting: str) -> tuple[str, str]:
    return setting, setting_text(setting)


def _worded(choice: dict[str, str]) -> tuple[str, str]:
    return choice["name"], choice["words"]


def _in_query(values: Mapping[str, str | int], **changes: str | int) -> str:
    return urlencode({**values, **changes})


def _grouped(setting: dict[str, str]) -> tuple[str, str]:
    words = setting_text(setting["name"])
    return setting["name"], words if words == CLEAN else f"{words} ({setting['group']})"


def _counted_log(log: dict[str, Any]) -> tuple[str, str]:
    return log["name"], f"{shown(log['name'])}, {counted(log['frames'], 'frame')}"


def _spot_of(spots: list[list[float]] | None, panel: int) -> list[float] | None:
    return None if spots is None else spots[panel]
