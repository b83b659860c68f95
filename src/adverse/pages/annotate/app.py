"""The routes of the annotation page: one page, its images, matches, and the changes that are posted.

Every answer to a change holds all that has changed since the version that the page knew, so that a page
follows what other windows do. A change is on the disk before it is answered.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from adverse.annotation.changes import Annotation, Change, Edit, StaleError, State
from adverse.annotation.geometry import in_camera_m
from adverse.annotation.session import AnnotatedLog
from adverse.errors import AdverseError
from adverse.pages.annotate.requests import (
    SentAnnotation,
    SentChange,
    SentObject,
    SentTrack,
    SentUndo,
    sent,
)
from adverse.serving import assets, json_answer, templates_of
from adverse.text import shown
from adverse.types import Dataset

PACKAGE = "adverse.pages.annotate"
FILES = ("annotate.css", "annotate.js", "state.js", "stage.js", "graph.js")
KEPT = {"Cache-Control": "private, max-age=3600"}
TRACKED_AT_ONCE = 12
"""Frames that one request carries an object over, so that the page shows how far it is."""
LEAST_BOX_PX = 1.0
FARTHEST_M = 1e4
"""No point that was put by hand is farther away."""
REFUSED = 409


def routes_of(dataset: Dataset, state: State, categories: tuple[str, ...], out: Path) -> list[BaseRoute]:
    """Return the page of a data set and what it asks for."""
    page = _Annotating(dataset, state, categories, out)
    return [
        Route("/", page.start),
        Route("/log.json", page.log),
        Route("/sync.json", page.sync),
        Route("/match.json", page.match),
        Route("/image.png", page.image),
        Route("/change.json", page.change, methods=["POST"]),
        Route("/object.json", page.whole_object, methods=["POST"]),
        Route("/undo.json", page.undo, methods=["POST"]),
        Route("/track.json", page.track, methods=["POST"]),
        assets(PACKAGE, FILES),
    ]


class _Annotating:
    """A data set under annotation."""

    def __init__(self, dataset: Dataset, state: State, categories: tuple[str, ...], out: Path) -> None:
        self.dataset = dataset
        self.state = state
        self.categories = categories
        self.out = out
        self.logs = {log.id: AnnotatedLog(log, state.logs[log.id]) for log in dataset.logs}
        self.templates = templates_of(PACKAGE)
        self._lock = threading.RLock()

    def start(self, request: Request) -> Response:
        """Return the page of a log, by default the first."""
        log = self._log(request.query_params.get("log", next(iter(self.logs))))
        logs = [(name, f"{shown(name)} ({len(one.frames)})") for name, one in self.logs.items()]
        page = self.templates.get_template("annotate.html")
        out = shown(self.out.name)
        name = shown(self.dataset.name)
        return HTMLResponse(
            page.render(name=name, out=out, logs=logs, log=log.log.id, classes=self.categories)
        )

    def log(self, request: Request) -> Response:
        """Return the frames of a log and all its annotations."""
        log = self._log(request.query_params.get("log", ""))
        frames = [
            {
                "id": shown(frame.id),
                "time_s": frame.time_s,
                "right": frame.right is not None,
                "stereo": bool(frame.right and frame.camera and frame.camera.baseline_m),
                "posed": frame.world_from_camera is not None,
                "no_depth": log.no_depth(at),
            }
            for at, frame in enumerate(log.frames)
        ]
        with self._lock:
            return json_answer(
                {"frames": frames, "classes": self.categories, **self._since(log, 0, whole=True)}
            )

    def sync(self, request: Request) -> Response:
        """Return what changed since a version."""
        log = self._log(request.query_params.get("log", ""))
        with self._lock:
            return json_answer(self._since(log, _number(request, "since")))

    def image(self, request: Request) -> Response:
        """Return the left or right image of a frame."""
        log = self._log(request.query_params.get("log", ""))
        at, side = self._frame(log, _number(request, "frame")), request.query_params.get("side", "left")
        if side not in ("left", "right") or (side == "right" and log.frames[at].right is None):
            raise HTTPException(404)
        try:
            pixels = np.ascontiguousarray(log.image(at, side)[..., ::-1])
        except AdverseError as error:
            raise HTTPException(404, error.what) from error
        png = cv2.imencode(".png", pixels, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1].tobytes()
        return Response(png, media_type="image/png", headers=KEPT)

    def match(self, request: Request) -> Response:
        """Return the partner of a point in the right image, its score and depth, or why there is none.

        With `right_x`, return only how well that partner matches.
        """
        log = self._log(request.query_params.get("log", ""))
        at = self._frame(log, _number(request, "frame"))
        point = _float(request, "x"), _float(request, "y")
        try:
            height = _float(request, "height")
            if "right_x" in request.query_params:
                matched, fine = log.score(at, point, _float(request, "right_x"), height)
                return json_answer({"score": matched, "fine": fine})
            found = log.locate(at, point, height)
        except AdverseError as error:
            got, fix = f" ({error.got})" if error.got else "", f". {error.fix}" if error.fix else ""
            return json_answer({"why": f"{error.what}{got}{fix}".removesuffix("."), "usable": False})
        usable = found.depth_m > 0
        return json_answer(
            {
                "point": found.point,
                "right_x": found.right_x,
                "depth_m": found.depth_m if usable and found.right_x is None else None,
                "score": round(found.score, 4),
                "fine": found.fine,
                "why": found.why,
                "usable": usable,
            }
        )

    async def change(self, request: Request) -> Response:
        """Keep a change."""
        body = await sent(request, SentChange)
        log = self._log(body.log)
        edits = tuple(
            Edit(self._frame(log, edit.frame), edit.id, self._checked(log, edit.frame, edit.after))
            for edit in body.edits
        )
        seen = {(edit.frame, edit.id): edit.version for edit in body.edits}
        _check_rows(log, edits)
        change = Change(body.log, body.words, edits, group=body.group)
        return await self._kept(log, body.since, lambda: self.state.make(change, seen))

    async def whole_object(self, request: Request) -> Response:
        """Delete an object in all frames, or give it another id or class."""
        body = await sent(request, SentObject)
        log = self._log(body.log)
        return await self._kept(log, body.since, lambda: self.state.make(self._object_change(log, body)))

    async def undo(self, request: Request) -> Response:
        """Undo or redo."""
        body = await sent(request, SentUndo)
        log = self._log(body.log)
        return await self._kept(
            log, body.since, lambda: self.state.undo(body.log, body.top, again=body.again)
        )

    async def track(self, request: Request) -> Response:
        """Carry an object over the next frames; the answer says where it stopped, and why."""
        body = await sent(request, SentTrack)
        log = self._log(body.log)
        if (body.frame, body.id) not in log.state.annotations:
            raise HTTPException(409, "This object is not in this frame.")
        try:
            seen = dict(log.state.versions)
            made = await to_thread.run_sync(log.track, body.frame, body.id, body.step, TRACKED_AT_ONCE)
        except AdverseError as error:
            raise HTTPException(409, error.what) from error
        stopped = {"tracked": {"frame": made.frame, "why": made.why, "frames": len(made.edits)}}
        if not made.edits:
            with self._lock:
                return json_answer({**self._since(log, body.since), **stopped})
        change = Change(body.log, f"tracked {body.id}", made.edits, group=body.group)
        versions = {edit[:2]: seen.get(edit[:2], 0) for edit in made.edits}
        return await self._kept(log, body.since, lambda: self.state.make(change, versions), stopped)

    async def _kept(
        self, log: AnnotatedLog, since: int, make: Callable[[], int], more: dict[str, Any] | None = None
    ) -> Response:
        """Make a change and return all that is new; where another window was first, say so."""

        def made() -> Response:
            with self._lock:
                try:
                    make()
                except StaleError as error:
                    return json_answer({**self._since(log, since), "error": error.what}, status=REFUSED)
                return json_answer({**self._since(log, since), **(more or {})})

        waiting: Awaitable[Response] = to_thread.run_sync(made)
        return await waiting

    def _object_change(self, log: AnnotatedLog, body: SentObject) -> Change:
        mine = log.state.of_object(body.id)
        if not mine:
            raise HTTPException(409, "There is no such object.")
        gone = [Edit(at, body.id, None) for at in mine]
        if body.to == "delete":
            return Change(body.log, f"deleted {body.id} in all frames", tuple(gone))
        if body.to == "label":
            label = self._label(body.label or "")
            edits = [Edit(at, body.id, replace(what, label=label)) for at, what in mine.items()]
            return Change(body.log, f"{body.id} is a {shown(label)}", tuple(edits))
        if body.new_id is None or body.new_id == body.id:
            raise HTTPException(400, "Give another id.")
        both = mine.keys() & log.state.of_object(body.new_id).keys()
        if both:
            raise HTTPException(409, f"Frame {min(both) + 1} shows object {body.new_id} too: they are two.")
        edits = [Edit(at, body.new_id, what) for at, what in mine.items()]
        return Change(body.log, f"{body.id} is now {body.new_id}", (*gone, *edits))

    def _since(self, log: AnnotatedLog, version: int, *, whole: bool = False) -> dict[str, Any]:
        """Return what changed after a version: annotations, their objects' jumps and unsure places, undo."""
        state = log.state
        keys = [key for key, changed in state.versions.items() if changed > version]
        if whole:
            keys = sorted({*state.annotations, *state.versions})
        touched = {number for _, number in keys}
        return {
            "version": self.state.version,
            "annotations": [self._shown(log, at, number) for at, number in keys],
            "jumps": {number: log.jumps(number) for number in sorted(touched)},
            "unsure": {number: log.unsure(number) for number in sorted(touched)},
            "undo": _top(state.done),
            "redo": _top(state.undone),
        }

    def _shown(self, log: AnnotatedLog, at: int, number: int) -> dict[str, Any]:
        what = log.state.annotations.get((at, number))
        entry = {"frame": at, "id": number, "version": log.state.versions.get((at, number), 0)}
        if what is None:
            return entry | {"value": None}
        depth, world, located = log.depth_m(at, what), log.position_m(at, what), log.known(at, what)
        camera = log.frames[at].camera
        own = in_camera_m(camera, located.point, located.depth_m) if located and camera else None
        derived = {
            "depth_m": depth,
            "world_m": None if world is None else world.tolist(),
            "camera_m": None if own is None else own.tolist(),
        }
        return entry | {"value": what.plain(), "derived": derived}

    def _checked(self, log: AnnotatedLog, at: int, what: SentAnnotation | None) -> Annotation | None:
        """Return an annotation as it may be kept: in the image, of a known class, its point with a depth."""
        if what is None:
            return None
        width, height = self._size(log, at)
        x0, y0, x1, y1 = what.box
        box = max(min(x0, x1), 0.0), max(min(y0, y1), 0.0), min(max(x0, x1), width), min(max(y0, y1), height)
        if box[2] - box[0] < LEAST_BOX_PX or box[3] - box[1] < LEAST_BOX_PX:
            raise HTTPException(400, "A box must be at least a pixel wide and high, inside the image.")
        fields = what.model_dump() | {"label": self._label(what.label)}
        if what.box_by == "hand":
            fields["box"] = box
        row = what.row
        if row is not None and row >= len(log.frames[at].truth.boxes):
            raise HTTPException(400, "That is not a change that this page makes.")
        annotation = Annotation(**fields)
        if what.point is None:
            return annotation.without_point()
        x, y = what.point
        if not (0 <= x < width and 0 <= y < height):
            raise HTTPException(400, "The point is outside the image.")
        if what.right_x is not None and not 0 <= what.right_x <= width:
            raise HTTPException(400, "The partner is outside the right image.")
        located = log.known(at, annotation)
        if located is None:
            raise HTTPException(400, log.no_depth(at) or "This point has no depth.")
        if not 0 < located.depth_m <= FARTHEST_M:
            raise HTTPException(400, "The partner must lie to the left of the point, by enough for a depth.")
        return annotation

    def _label(self, name: str) -> str:
        if name not in self.categories:
            raise HTTPException(400, "There is no such class; name it with --class when you start.")
        return name

    def _size(self, log: AnnotatedLog, at: int) -> tuple[float, float]:
        camera = log.frames[at].camera
        if camera is not None:
            return float(camera.width), float(camera.height)
        height, width = log.view(at).left.shape
        return float(width), float(height)

    def _log(self, name: str) -> AnnotatedLog:
        if name not in self.logs:
            raise HTTPException(404)
        return self.logs[name]

    @staticmethod
    def _frame(log: AnnotatedLog, at: int) -> int:
        if not 0 <= at < len(log.frames):
            raise HTTPException(404)
        return at


def _check_rows(log: AnnotatedLog, edits: Iterable[Edit]) -> None:
    """Refuse two annotations of one frame that are the same object of the data set."""
    made = {(edit.frame, edit.id): edit.after for edit in edits}
    after = {**log.state.annotations, **made}
    for (at, number), what in made.items():
        if (
            what is not None
            and what.row is not None
            and any(
                frame == at and other != number and there is not None and there.row == what.row
                for (frame, other), there in after.items()
            )
        ):
            raise HTTPException(400, "Another annotation of this frame is that object of the data set.")


def _top(stack: Iterable[tuple[int, Change, Any]]) -> dict[str, Any] | None:
    entries = list(stack)[-1:]
    return {"version": entries[0][0], "words": entries[0][1].words} if entries else None


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise HTTPException(404)
    return int(text)


def _float(request: Request, name: str) -> float:
    try:
        value = float(request.query_params.get(name, ""))
    except ValueError:
        raise HTTPException(404) from None
    if not abs(value) < 1e6:
        raise HTTPException(404)
    return value
