"""The routes of the explorer: three pages with their JSON twins, two kinds of pictures, and our own files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from adverse.pages.view.frames import label_picture
from adverse.pages.view.page import Pages, thinned
from adverse.pages.view.picks import Pick, picked
from adverse.pages.view.session import ExploredRun
from adverse.serving import assets, json_answer, templates_of
from adverse.text import counted, shown

PACKAGE = "adverse.pages.view"
KEPT = {"Cache-Control": "private, max-age=60"}
"""Pictures are asked for again when a log is scrubbed back and forth."""


def routes(run: ExploredRun) -> list[BaseRoute]:
    """Return the routes that show a run."""
    pages, templates = Pages(run), templates_of(PACKAGE)
    templates.globals |= {"shown": shown, "thinned": thinned, "scores": pages.scores}
    templates.filters |= {
        "named": _named,
        "grouped": _grouped,
        "counted_log": _counted_log,
        "spot_of": _spot_of,
    }
    known: dict[str, Callable[[Pick], dict[str, Any]]] = {
        "explore": pages.explore,
        "frame": pages.frame,
        "drive": pages.drive,
    }
    return [
        Route("/", lambda _: RedirectResponse("/explore", status_code=303)),
        *(route for name, page in known.items() for route in _both(name, page, run, templates)),
        Route("/picture.png", _picture(run, pages)),
        Route("/labels.png", _labels(run)),
        assets(PACKAGE, ["view.css", "view.js"]),
    ]


def _both(
    name: str, page: Callable[[Pick], dict[str, Any]], run: ExploredRun, templates: jinja2.Environment
) -> list[Route]:
    """Return a page and its twin; both show the same data."""
    template = templates.get_template(f"{name}.html")

    def html(request: Request) -> Response:
        pick = picked(run, request.query_params)
        return HTMLResponse(template.render(page=page(pick), pick=pick, detection=run.detection))

    def twin(request: Request) -> Response:
        return json_answer(page(picked(run, request.query_params)))

    return [Route(f"/{name}", html), Route(f"/{name}.json", twin)]


def _picture(run: ExploredRun, pages: Pages) -> Callable[[Request], Response]:
    def picture(request: Request) -> Response:
        row, setting = _frame(run, request)
        found = pages.pictures.of(row, setting)
        if not found.png:
            raise HTTPException(404, "This frame cannot be shown.")
        return Response(found.png, media_type="image/png", headers=KEPT)

    return picture


def _labels(run: ExploredRun) -> Callable[[Request], Response]:
    def labels(request: Request) -> Response:
        row, setting = _frame(run, request)
        sut = picked(run, request.query_params).sut
        found = None if run.detection else label_picture(run, sut, setting, row)
        if found is None:
            raise HTTPException(404, "There is no label map of this frame.")
        return Response(found, media_type="image/png", headers=KEPT)

    return labels


def _frame(run: ExploredRun, request: Request) -> tuple[int, str]:
    """Return the row of the frame and the setting that a picture is asked for."""
    asked = dict(request.query_params)
    pick = picked(run, asked | {"left": asked.get("setting", run.baseline)})
    return int(run.logs[pick.log].rows[pick.frame]), pick.left


def _named(name: str) -> tuple[str, str]:
    """Return a name as the value and the text of an option."""
    return name, shown(name)


def _grouped(setting: dict[str, str]) -> tuple[str, str]:
    return setting["name"], f"{shown(setting['name'])} ({setting['group']})"


def _counted_log(log: dict[str, Any]) -> tuple[str, str]:
    return log["name"], f"{shown(log['name'])}, {counted(log['frames'], 'frame')}"


def _spot_of(spots: list[list[float]] | None, panel: int) -> list[float] | None:
    return None if spots is None else spots[panel]
