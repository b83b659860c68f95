"""One careful HTTP client: every exchange ends in bounded time with a bounded answer, or in a SutError.

No redirects, no compressed answers, no proxies of the environment unless requested. Where the model was not
asked (no connection, or a gateway that has nobody to ask) the request is sent again a few times, and is an
InfrastructureError in the end, at once where the server lets nobody in. So is no answer in time, since from
here a server that is busy looks like a model that hangs, unless `late_is_fault`. What the server answers is
the system's, and so is an answer that it breaks off: from its first byte on, somebody was asked. A connection
that is closed before any byte came says nothing of the kind. httpx is imported when a client is made.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from adverse.errors import InfrastructureError, LateError, OutOfMemoryError, SutError, one_line
from adverse.suts.ask import AGAIN, NO_MEMORY
from adverse.suts.http_deadline import Deadline

BACKOFF_S = 0.25
"""Wait before the first repetition; doubled for each further one."""
SHOWN_BYTES = 300
NOBODY_THERE = frozenset({429, 502, 503, 504})
"""Status codes that say that the request did not reach the model: too many requests, or no server."""
NOT_LET_IN = frozenset({401, 403, 404, 405, 407, 408, 410})
"""Status codes that say the same, but not that another try soon would help: a token that ran out, a model
taken away. Other 4xx are about what was sent, the image."""


class HttpReply(NamedTuple):
    """A complete answer of status 2xx; header names are in small letters."""

    headers: Mapping[str, str]
    body: bytes


class SentRequests(NamedTuple):
    """What became of the requests that were sent for some images.

    `reached` counts those that reached the model, whatever it made of them; `outages` says why others had to
    be sent again.
    """

    reached: int
    outages: list[str]


class HttpClient:
    """Talks to one server. Each exchange, repetitions and waits included, has `timeout_s`."""

    def __init__(
        self,
        base: str,
        *,
        timeout_s: float,
        retries: int,
        max_bytes: int,
        use_environment: bool,
        token: str | None = None,
        late_is_fault: bool = False,
    ) -> None:
        import httpx  # noqa: PLC0415 - only needed once a client is made

        self._httpx = httpx
        try:
            self._base = httpx.URL(base.rstrip("/"))
        except httpx.InvalidURL as error:
            raise _no_url(base, str(error)) from error
        if self._base.scheme not in ("http", "https") or not self._base.host or self._base.query:
            raise _no_url(base, repr(base))
        self._timeout_s = timeout_s
        self._retries = retries
        self._max_bytes = max_bytes
        self._late_is_fault = late_is_fault
        self._reached = 0
        self._outages: list[str] = []
        self._deadline = Deadline(httpx)
        headers = {"accept-encoding": "identity"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        self._client = httpx.Client(trust_env=use_environment, follow_redirects=False, headers=headers)

    def get(self, path: str) -> HttpReply:
        """Fetch something below the base address."""
        return self._exchange("GET", path, b"", {})

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> HttpReply:
        """Send something to an address below the base."""
        return self._exchange("POST", path, body, headers)

    def take_requests(self) -> SentRequests:
        """Return what became of the requests since this was last called."""
        taken = SentRequests(self._reached, self._outages)
        self._reached, self._outages = 0, []
        return taken

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._client.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # it may not have been made, and at exit httpx may be gone
            self.close()

    def _exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> HttpReply:
        end = time.monotonic() + self._timeout_s
        for attempt in range(self._retries + 1):
            try:
                reply = self._once(method, path, body, headers, end)
            except InfrastructureError as error:
                self._outages.append(f"{error.what}: {error.got}")
                raise
            except SutError:
                self._reached += 1
                raise
            except _PassingError as passing:
                self._outages.append(f"{passing.what}: {passing.got}")
                wait = BACKOFF_S * 2**attempt
                if attempt == self._retries or time.monotonic() + wait >= end:
                    tries = f"{attempt + 1} tries" if attempt else "1 try"
                    raise InfrastructureError(
                        passing.what, where=f"{method} {self._base}{path}", got=passing.got, fix=passing.fix
                    ).placed(tries) from passing.__cause__
                time.sleep(wait)
            else:
                self._reached += 1
                return reply
        raise AssertionError  # the loop always returns or raises

    def _once(self, method: str, path: str, body: bytes, headers: Mapping[str, str], end: float) -> HttpReply:
        left = self._deadline.begin(end)
        url = self._base.copy_with(raw_path=self._base.raw_path.rstrip(b"/") + path.encode())
        where = f"{method} {self._base}{path}"
        try:
            with self._client.stream(
                method,
                url,
                content=body,
                headers=dict(headers),
                timeout=self._httpx.Timeout(left),
                extensions={"trace": self._deadline.trace},
            ) as response:
                content = self._read(response, end, where)
        except self._httpx.ReadTimeout as error:
            raise self._slow(where) from error
        except self._httpx.TransportError as error:
            if self._deadline.answer_begun:
                raise _broken_off(where, one_line(error)) from None  # its cause would make it the network's
            fix = f"Start the server, or check url:. {AGAIN}"
            raise _PassingError("the server cannot be reached", one_line(error), fix) from error
        status = response.status_code
        if 200 <= status < 300:
            return HttpReply(dict(response.headers), content)
        got = f"status {status} {response.reason_phrase}: {_shown(content)}"
        if status in NOBODY_THERE:
            fix = f"See the server's log, and let it get ready. {AGAIN}"
            raise _PassingError("the server cannot take the request", got, fix)
        if status >= 500 and NO_MEMORY.search(got):
            fix = f"Free memory on the server. {AGAIN}"
            raise OutOfMemoryError("the server ran out of memory", where=where, got=got, fix=fix)
        if status >= 500:
            raise SutError(
                "the server failed on the request",
                where=where,
                got=got,
                fix="See the server's log.",
            )
        if 300 <= status < 400:
            raise InfrastructureError(
                "the server redirects to another address; redirects are not followed",
                where=where,
                got=f"status {status}, location {response.headers.get('location', 'not said')}",
                fix="If that address is right, write it into url:.",
            )
        if status in NOT_LET_IN:
            fix = f"Check url:, model: and the token. {AGAIN}"
            raise InfrastructureError("the server refuses the request", where=where, got=got, fix=fix)
        raise SutError("the server refuses the request", where=where, got=got, fix="Check url: and model:.")

    def _read(self, response: Any, end: float, where: str) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise SutError(
                "the server compresses its response, which the request does not allow",
                where=where,
                got=response.headers["content-encoding"],
            )
        parts, size = [], 0
        for part in self._parts(response):
            size += len(part)
            if size > self._max_bytes:
                raise SutError(
                    "the server's answer is too long",
                    where=where,
                    got=f"more than {self._max_bytes / (1 << 20):g} MB",
                    fix="Find out why; if the model's outputs are so large, raise max_response_mb:.",
                )
            if time.monotonic() > end:
                raise self._slow(where)
            parts.append(part)
        return b"".join(parts)

    def _parts(self, response: Any) -> Iterator[bytes]:
        """Give the body as it comes; of a status that says that nobody was asked, as far as it comes."""
        try:
            yield from response.iter_raw()
        except self._httpx.RemoteProtocolError:
            if response.status_code not in NOBODY_THERE | NOT_LET_IN:
                raise

    def _slow(self, where: str) -> SutError:
        fix = "Make the served model faster, or raise timeout_s:."
        kind: type[SutError] = LateError
        if not self._late_is_fault:
            kind = InfrastructureError
            fix += f" If the model itself hangs on some images, set late_is_fault: true. {AGAIN}"
        got = f"no complete answer after {self._timeout_s:g} s"
        return kind("the server did not answer in time", where=where, got=got, fix=fix)


class _PassingError(Exception):
    """Something that may be over at the next try."""

    def __init__(self, what: str, got: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.got, self.fix = what, got, fix


def _broken_off(where: str, got: str) -> SutError:
    return SutError(
        "the server closed the connection in the midst of its answer",
        where=where,
        got=got,
        wanted="a complete answer",
        fix="See the server's log: the model may have crashed.",
    )


def _no_url(base: str, got: str) -> SutError:
    return SutError(
        "this is not the address of a server",
        where=f"url: {base}",
        got=got,
        wanted="http://HOST:PORT or https://HOST:PORT",
        fix="Give the address without the part that begins with /v2.",
    )


def _shown(body: bytes) -> str:
    text = " ".join(body[:SHOWN_BYTES].decode("utf-8", "replace").split())
    return f"{text}..." if len(body) > SHOWN_BYTES else text or "nothing"
