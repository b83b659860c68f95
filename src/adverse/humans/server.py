"""The server of a human study: its routes, and one server at a time for each study folder.

The routes are thin; all of the work is done in `experiment`. A participant's page keeps trying when the
server is gone; with the port and the token kept in the folder, it reaches the same address after a restart.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from adverse.errors import AdverseError, LockedError, StoreError
from adverse.humans.experiment import Experiment
from adverse.humans.records import Answer, Participant, Records, State, without
from adverse.humans.study_file import HumanStudyFile
from adverse.serving import Door, assets, form_fields, json_answer, open_door, templates_of
from adverse.store.durable import storage_errors, write_file
from adverse.store.owned_folder import locked
from adverse.text import shown

PACKAGE = "adverse.humans"
KEYS = "1234567890abcdef"
"""One key for each of up to 16 categories."""
MOST_MS = 3_600_000.0
LONG_S = 180 * 24 * 3600
LONGEST_ID = 100
WORKER = re.compile(r"[A-Za-z0-9_.:@-]{1,100}")
"""What an id of a platform may look like."""
ANOTHER_ID = (
    "This id already takes part in another browser, or this browser under another id. "
    "Go on in the browser in which you began, with the link that you had there."
)
NONCE = re.compile(r"[A-Za-z0-9-]{8,64}")
Message = dict[str, Any]
Endpoint = Callable[[Request], Awaitable[Response]]


def routes(experiment: Experiment, door: Door) -> list[BaseRoute]:
    """Return the addresses of a study."""
    pages = _Pages(experiment, f"{door.cookie}_participant", secure=door.encrypted)
    return [
        Route("/", pages.page),
        Route("/join", pages.join, methods=["POST"]),
        Route("/erase", pages.erase, methods=["POST"]),
        Route("/batch.json", pages.from_participant(pages.batch), methods=["POST"]),
        Route("/trial.json", pages.from_participant(pages.trial), methods=["POST"]),
        Route("/answer.json", pages.from_participant(pages.answer), methods=["POST"]),
        Route("/{what}/{trial}.png", pages.picture),
        assets(PACKAGE, ("humans.css", "humans.js")),
    ]


class _Pages:
    def __init__(self, experiment: Experiment, cookie: str, *, secure: bool) -> None:
        self.experiment = experiment
        self.study = experiment.study
        self.cookie = cookie
        self.secure = secure
        self.templates = templates_of(PACKAGE)

    def page(self, request: Request) -> Response:
        """Show the consent, or where the participant stands."""
        person = self.experiment.person(request.cookies.get(self.cookie, ""))
        platform = self.study.platform
        worker = "" if platform is None else request.query_params.get(platform.parameter, "")
        if self.experiment.is_another(person, worker):
            raise HTTPException(409, ANOTHER_ID)
        if person is None:
            return self.rendered("consent.html", worker=worker[:LONGEST_ID])
        return self.rendered(
            "experiment.html",
            code=self.experiment.completion_code(person),
            progress=self.experiment.progress(person),
            keys=list(zip(KEYS, self.study.categories, strict=False)),
            number=person.id,
        )

    async def join(self, request: Request) -> Response:
        """Let somebody in who agreed to the text as it is now."""
        fields = await form_fields(request)
        answer = RedirectResponse("/", status_code=303)
        if fields.get("consent") != self.study.consent.version:
            return answer
        before = request.cookies.get(self.cookie, "")
        worker = fields.get("worker", "") if self.study.platform is not None else ""
        if worker and not WORKER.fullmatch(worker):
            raise HTTPException(400, "The id from the platform cannot be read.")
        secret = await run_in_threadpool(self.experiment.join, before, worker)
        if secret is None:
            raise HTTPException(409, ANOTHER_ID)
        answer.set_cookie(
            self.cookie, secret, max_age=LONG_S, httponly=True, samesite="strict", secure=self.secure
        )
        return answer

    async def erase(self, request: Request) -> Response:
        """Forget whoever asks for it."""
        person = self.experiment.person(request.cookies.get(self.cookie, ""))
        if person is not None:
            await run_in_threadpool(self.experiment.erase, person.id)
        answer = self.rendered("erased.html")
        answer.delete_cookie(self.cookie, httponly=True, samesite="strict", secure=self.secure)
        return answer

    def picture(self, request: Request) -> Response:
        """Send the image or the mask of a trial that was just started."""
        kind, trial = request.path_params["what"], request.path_params["trial"]
        person = self.who(request)
        stimulus = self.experiment.stimulus(person, trial, mask=kind == "mask")
        if stimulus is None or kind not in ("image", "mask"):
            raise HTTPException(404)
        return Response(stimulus.png, media_type="image/png")

    def batch(self, person: Participant, _: Message) -> Response:
        """Give out the next batch."""
        return json_answer(asdict(self.experiment.next_batch(person)))

    def trial(self, person: Participant, message: Message) -> Response:
        """Start the next trial."""
        request = message.get("request")
        if not isinstance(request, str) or not NONCE.fullmatch(request):
            raise HTTPException(400, "A request for a trial needs its own id.")
        next_trial = self.experiment.start(person, request)
        answer: Message = {
            "trial": None,
            "progress": asdict(self.experiment.progress(person)),
            "code": "" if next_trial is not None else self.experiment.completion_code(person),
        }
        if next_trial is not None:
            times = {"fixation_ms": self.study.fixation_ms, "mask_ms": self.study.mask_ms}
            answer |= {"trial": next_trial.id, "exposure_ms": next_trial.exposure_ms, **times}
        return json_answer(answer)

    def answer(self, person: Participant, message: Message) -> Response:
        """Keep an answer; when this is sent, it is on the disk."""
        number = message.get("answer")
        if not isinstance(number, int) or isinstance(number, bool):
            raise HTTPException(400, "An answer is the number of a category.")
        if not 0 <= number < len(self.study.categories):
            raise HTTPException(400, "There is no such category.")
        times = {name: _time(message.get(name)) for name in ("shown_ms", "frame_ms", "response_ms")}
        choice = Answer(self.study.categories[number], **times)
        self.experiment.answer(person, str(message.get("trial")), choice)
        return json_answer({"kept": True})

    def from_participant(self, work: Callable[[Participant, Message], Response]) -> Endpoint:
        """Return an endpoint that takes JSON from a participant."""

        async def endpoint(request: Request) -> Response:
            person = self.who(request)
            body = await request.body()
            try:
                message = json.loads(body or b"{}")
            except (ValueError, RecursionError):
                raise HTTPException(400, "That is not JSON.") from None
            try:
                return await run_in_threadpool(work, person, message if isinstance(message, dict) else {})
            except StoreError as error:  # a full disk is told by the server itself, with 507
                print(f"{request.url.path}: {error}", file=sys.stderr)  # noqa: T201
                raise HTTPException(503, "The answer cannot be saved at the moment.") from error

        return endpoint

    def who(self, request: Request) -> Participant:
        """Return the participant who asks, or refuse."""
        person = self.experiment.person(request.cookies.get(self.cookie, ""))
        if person is None:
            raise HTTPException(403, "Open the first page and agree before you take part.")
        return person

    def rendered(self, name: str, **content: Any) -> HTMLResponse:
        """Return a page of ours."""
        return HTMLResponse(
            self.templates.get_template(name).render(study=self.study, shown=shown, **content)
        )


def _time(value: object) -> float:
    """Return a time that a page measured, or refuse it."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise HTTPException(400, "A time in milliseconds is missing.")
    if not 0 <= value <= MOST_MS:  # no number of 400 digits is made a float before this
        raise HTTPException(400, "A time in milliseconds lies between 0 and an hour.")
    return round(float(value), 3)


DOOR = "door.json"


@contextlib.contextmanager
def lock_study(file: HumanStudyFile) -> Iterator[None]:
    """Hold the study's folder, making it if it is not there."""
    with storage_errors(file.folder):
        file.folder.mkdir(parents=True, exist_ok=True)
        file.folder.chmod(0o700)  # answers are their owner's to read
    try:
        with locked(file.folder):
            yield
    except LockedError as error:
        raise LockedError(
            "the study is being served",
            where=error.where,
            got=error.got,
            fix="Stop that server first (Ctrl-C). Participants can erase their answers on its page.",
        ) from error


def reopen_door(
    file: HumanStudyFile, host: str, port: int, public_url: str = ""
) -> tuple[Door, socket.socket]:
    """Open the door that the study had before; at another port where that one is taken and none was given."""
    previous = _stored_door(file.folder / DOOR)
    token = previous.get("token")
    token = token if isinstance(token, str) else None
    before = previous.get("port")
    try:
        door, bound = open_door(
            host, port or (before if isinstance(before, int) else 0), token=token, public_url=public_url
        )
    except AdverseError:
        if port or not before or public_url:  # a proxy knows one port
            raise
        door, bound = open_door(host, 0, token=token)
    path = file.folder / DOOR
    write_file(path, json.dumps({"port": door.port, "token": door.token}).encode())
    with storage_errors(path):
        path.chmod(0o600)
    return door, bound


def warm_up(experiment: Experiment) -> None:
    """Make one changed image before anybody waits for it; a data set that cannot be read is found here."""
    first = experiment.stimuli.pictures[0].id
    for name in experiment.study.transformations:
        experiment.stimuli.changed(first, name, 0.5)


def read_state(file: HumanStudyFile) -> State:
    """Return what happened in a study, whether or not it is being served."""
    return State(Records(file.folder).read())


def erase(file: HumanStudyFile, participant: str) -> None:
    """Erase a participant from the folder of a study that is not being served."""
    with lock_study(file):
        records = Records(file.folder)
        records.mend()
        records.replace(without(records, participant))


def _stored_door(path: Path) -> dict[str, object]:
    with contextlib.suppress(OSError, ValueError):
        stored = json.loads(path.read_text())
        if isinstance(stored, dict) and path.stat().st_mode & 0o077 == 0:
            return stored
    return {}
