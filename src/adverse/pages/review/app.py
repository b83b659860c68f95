"""The pages of a review: who you are, one failure after the other, and what all reviewers say.

Plain forms and links; the script only lets keys press them. A vote is on the disk before the next failure is
shown.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from adverse.errors import StoreError
from adverse.fuzz.outcome import Case, read_outcome
from adverse.fuzz.verify import open_campaign
from adverse.fuzz.votes import (
    LONGEST_NAME,
    SAYS,
    Vote,
    Votes,
    failing,
    false_positives,
    review_order,
    verdict,
)
from adverse.report.fuzz import reviewed_table
from adverse.report.fuzz_pictures import VIEWS, FailurePictures
from adverse.serving import assets, form_fields, json_answer, templates_of
from adverse.text import shown

FILES = ("review.css", "review.js")
REVIEW = "/review"


def routes_of(path: Path) -> list[BaseRoute]:
    """Return the pages for a finished campaign; one without failures is an error."""
    page = _Review(path)
    return [
        Route("/", page.start),
        Route(REVIEW, page.one),
        Route("/vote", page.vote, methods=["POST"]),
        Route("/results", page.results),
        Route("/results.json", page.results_json),
        Route("/picture/{key}/{sut:int}/{view}.png", page.picture),
        assets("adverse.pages.review", FILES),
    ]


class _Review:
    """A campaign under review."""

    def __init__(self, path: Path) -> None:
        self.folder = open_campaign(path)
        self.outcome = read_outcome(self.folder)
        self.order = review_order(self.outcome)
        if not self.order:
            raise StoreError(
                "there is nothing to review",
                where=str(path),
                got="a campaign without failures",
                fix="Run more tests, or other mutations.",
            )
        self.votes = Votes(self.folder.votes)
        self.pictures = FailurePictures(self.folder)
        self.templates = templates_of("adverse.pages.review")
        self.place = {key: at for at, key in enumerate(self.order)}
        self._lock = threading.Lock()

    def start(self, _: Request) -> Response:
        """Ask who reviews, and show how far everybody is."""
        latest = self.votes.latest()
        done: dict[str, int] = {}
        for votes in latest.values():
            for reviewer in votes:
                done[reviewer] = done.get(reviewer, 0) + 1
        people = [(name, count, _to(reviewer=name)) for name, count in sorted(done.items())]
        return self._page("start.html", people=people, total=len(self.order), longest=LONGEST_NAME)

    def one(self, request: Request) -> Response:
        """Show one failure: the one asked for, else the first without a vote of this reviewer."""
        reviewer = _name(request.query_params.get("reviewer", ""))
        mine = {key: votes[reviewer] for key, votes in self.votes.latest().items() if reviewer in votes}
        at = _at(request.query_params.get("at"), len(self.order))
        if at is None:
            at = next((n for n, key in enumerate(self.order) if key not in mine), None)
        if at is None:
            return self._page("done.html", reviewer=reviewer, total=len(self.order), again=_to(reviewer, 0))
        key = self.order[at]
        suts = failing(self.outcome, key)
        test = suts[0][1]
        return self._page(
            "one.html",
            reviewer=reviewer,
            at=at,
            total=len(self.order),
            done=len(mine),
            key=key,
            said=mine.get(key),
            says=SAYS,
            test=test,
            falls=[(shown(sut), _said(seen)) for sut, seen in suts],
            views=VIEWS,
            pictures=[
                [f"/picture/{key}/{self.outcome.suts.index(sut)}/{view}.png" for view in VIEWS]
                for sut, _ in suts
            ],
            legend=self.pictures.legend([(key, sut) for sut, _ in suts]),
            before=_to(reviewer, at - 1) if at else None,
            after=_to(reviewer, at + 1) if at + 1 < len(self.order) else None,
        )

    async def vote(self, request: Request) -> Response:
        """Keep a vote, and go on to the next failure."""
        fields = await form_fields(request)
        key, says = fields.get("key", ""), fields.get("says", "")
        reviewer = _name(fields.get("reviewer", ""))
        if key not in self.place or says not in SAYS:
            raise HTTPException(400, "That is not a vote.")
        with self._lock:
            self.votes.add(Vote(reviewer, key, next(word for word in SAYS if word == says)))
        after = self.place[key] + 1
        voted = self.votes.latest()
        fresh = after < len(self.order) and reviewer not in voted.get(self.order[after], {})
        return RedirectResponse(_to(reviewer, after if fresh else None), status_code=303)

    def results(self, _: Request) -> Response:
        """Show what all reviewers say."""
        latest = self.votes.latest()
        reviewers = len({name for votes in latest.values() for name in votes})
        disputed = sum(len(set(votes.values())) > 1 for votes in latest.values())
        return self._page(
            "results.html",
            table=reviewed_table(self.folder, self.outcome),
            reviewers=reviewers,
            disputed=disputed,
            reviewed=sum(verdict(votes) is not None for votes in latest.values()),
            total=len(self.order),
        )

    def results_json(self, _: Request) -> Response:
        """Return the same as plain data."""
        return json_answer([row.record() for row in false_positives(self.outcome, self.votes)])

    def picture(self, request: Request) -> Response:
        """Return one picture of one failure."""
        params: Mapping[str, Any] = request.path_params
        key, sut, view = params["key"], params["sut"], params["view"]
        if key not in self.place or view not in VIEWS or sut >= len(self.outcome.suts):
            raise HTTPException(404)
        name = self.outcome.suts[sut]
        base = failing(self.outcome, key)[0][1].base
        data = self.pictures.png(key, base, name, view)
        return Response(data, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})

    def _page(self, template: str, **content: Any) -> Response:
        page = self.templates.get_template(template)
        study = shown(self.outcome.campaign.study)
        return HTMLResponse(page.render(study=study, shown=shown, **content))


def _said(test: Case) -> str:
    """Return what a SUT got wrong."""
    fell = [f"{test.drop:.2f} points lower ({test.bin})"] if test.bin else []
    return "; ".join([*fell, *(verdict.words for verdict in test.verdicts)])


def _to(reviewer: str, at: int | None = None) -> str:
    return f"{REVIEW}?{urlencode({'reviewer': reviewer} | ({} if at is None else {'at': at}))}"


def _name(given: str) -> str:
    name = " ".join(given.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise HTTPException(400, f"Give a name of 1 to {LONGEST_NAME} characters.")
    return name


def _at(given: str | None, total: int) -> int | None:
    if given is None:
        return None
    if not given.isascii() or not given.isdecimal() or len(given) > 9 or int(given) >= total:
        raise HTTPException(404)
    return int(given)
