"""A local server that lets in only who was given its address.

Every page of ours passes one guard: the Host header must be one of ours (else another site could reach the
server through a name it controls), the token of the printed address must have been shown once (it then lives
in a cookie that other sites cannot send), and every answer carries a policy under which nothing but our own
files can run. An error leaves as a short page without a path or a traceback; the terminal gets the rest.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import re
import secrets
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit

import jinja2
import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adverse.connections import PatientProtocol
from adverse.errors import AdverseError, IncompleteError

LOOPBACK = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what a user may ask for, with a warning
MOST_BODY = 64 * 1024
"""No page of ours sends more; a larger body is refused before it is read to the end."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
ABSOLUTE = re.compile(rb"(?i:http)://(?P<name>[^/]*)(?P<path>(/.*)?)", re.DOTALL)
HOST_NAME = re.compile(r"[a-z0-9.:-]+")
NOT_TEXT = "That is not UTF-8."
AGAIN = "again"
"""Marks the address that a page asks for by itself, so that it does so once."""
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "png": "image/png"}


@dataclass(frozen=True)
class Door:
    """Where a server listens, and the secret that opens it."""

    host: str
    port: int
    token: str
    public_url: str = ""
    """The origin (https://name) of a proxy that encrypts and passes requests on to this server."""

    @property
    def address(self) -> str:
        """What to open in a browser, once; the token is then kept in a cookie."""
        origin = self.public_url or f"http://{_in_url(self.reachable)}:{self.port}"
        return f"{origin}/?{urlencode({'token': self.token})}"

    @property
    def origins(self) -> frozenset[str]:
        """The Origin headers of our own pages; behind a proxy there is one."""
        if self.public_url:
            return frozenset({self.public_url})
        return frozenset(f"http://{name}" for name in self._local_names)

    @property
    def reachable(self) -> str:
        """An address at which others reach this server; one that stands for all addresses is none."""
        return _outer_address() if self.host in EVERYWHERE else self.host

    @property
    def names(self) -> frozenset[str]:
        """The Host headers that mean this server: one that listens everywhere goes by each address it has.

        Behind a proxy it goes by the public name alone, which the proxy passes on: whoever comes past the
        proxy would come unencrypted.
        """
        names = {origin.partition("://")[2] for origin in self.origins}
        if self.encrypted:  # 443 is what https:// means; a proxy may say it or not
            names |= {f"{name}:443" for name in names if not re.search(r":\d+$", name)}
        return frozenset(names)

    @property
    def _local_names(self) -> set[str]:
        own = {self.reachable, *(_own_addresses() if self.host in EVERYWHERE else ())}
        every = {_in_url(name.lower()) for name in own} | {LOOPBACK, "localhost", "[::1]"}
        return {f"{name}:{self.port}" for name in every}

    @property
    def encrypted(self) -> bool:
        """Whether browsers reach it encrypted, so that its cookies need not go any other way."""
        return bool(self.public_url)

    @property
    def cookie(self) -> str:
        """Its name holds the port, because browsers share cookies between the ports of a host."""
        return f"adverse_{self.port}"


def public_origin(address: str) -> str:
    """Return the origin of the address that a proxy is reached at, or raise where it cannot be one.

    >>> public_origin("https://Study.example.org:443/")
    'https://study.example.org'
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    rest = (parts.path.strip("/"), parts.query, parts.fragment, parts.username or "")
    if parts.scheme != "https" or not parts.hostname or any(rest) or not HOST_NAME.fullmatch(parts.hostname):
        raise AdverseError(
            "this is no address of a proxy",
            where="--public-url",
            got=repr(address),
            wanted="https:// and a name, without a path: https://study.example.org",
            fix="Let the proxy pass on all of a name of its own, encrypted.",
        )
    return f"https://{_in_url(parts.hostname)}" + (f":{port}" if port not in (None, 443) else "")


def open_door(
    host: str = LOOPBACK, port: int = 0, *, token: str | None = None, public_url: str = ""
) -> tuple[Door, socket.socket]:
    """Bind a port (0: any that is free) and make up a token; return both."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen()  # whoever opens the address before the server is ready waits for it
    except (OSError, OverflowError) as error:
        bound.close()
        raise AdverseError(
            "cannot listen there",
            where=f"{host}, port {port}",
            got=str(error),
            fix="Choose another port with --port, or leave it out for any that is free.",
        ) from error
    return Door(host, bound.getsockname()[1], token or secrets.token_urlsafe(18), public_url), bound


def serve(door: Door, bound: socket.socket, routes: Sequence[BaseRoute]) -> None:
    """Answer requests until interrupted."""
    config = uvicorn.Config(
        application(door, routes),
        http=PatientProtocol,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
    )
    try:
        uvicorn.Server(config).run(sockets=[bound])
    except KeyboardInterrupt:  # how a person ends it
        return


def application(door: Door, routes: Sequence[BaseRoute]) -> ASGIApp:
    """Return the application: the routes behind the guard."""
    handlers: Mapping[Any, Callable[[Request, Any], Response]] = {
        HTTPException: _refusal,
        AdverseError: _our_error,
        Exception: _bug,
    }
    return Guard(Starlette(routes=list(routes), exception_handlers=handlers), door)


class Guard:
    """Lets requests in that carry one of our names and the token; puts the policy on every answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app = app
        self.door = door
        self.names = door.names
        self.origins = door.origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] != "http":
            return  # no page of ours opens anything else
        scope, authority = _origin_form(scope)
        request = Request(scope)
        answer = self._stop(request, authority) if _is_text(scope) else _short_page(400, NOT_TEXT, request)
        if answer is None:
            with contextlib.suppress(Exception):  # answered and told by then; raised again for other servers
                await _Bounded(self.app)(scope, receive, _with_policy(send))
        else:
            await answer(scope, receive, _with_policy(send))

    def _stop(self, request: Request, authority: str | None) -> Response | None:
        if not request.scope["path"].startswith("/"):
            return _short_page(400, "That is not the address of a page.", request)
        hosts = {request.headers.get("host", "").lower(), *([] if authority is None else [authority])}
        if not hosts <= self.names:
            return _short_page(421, "This server does not go by that name.", request)
        given = request.query_params.get("token")
        if given is not None and _same(given, self.door.token):
            rest = urlencode([(key, value) for key, value in _query(request) if key != "token"])
            path = "/" + request.url.path.lstrip("/")  # two slashes would lead to another site
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
            answer.set_cookie(
                self.door.cookie,
                self.door.token,
                httponly=True,
                samesite="strict",
                secure=self.door.encrypted,
            )
            return answer
        if not _same(request.cookies.get(self.door.cookie, ""), self.door.token):
            return _stranger(request)
        origin = request.headers.get("origin")
        if origin is not None and origin not in self.origins:
            return _short_page(403, "That request came from another site.", request)
        return None


def _origin_form(scope: Scope) -> tuple[Scope, str | None]:
    """Return a request for http://NAME/path as one for /path, and NAME, which must be ours as Host must.

    Clients write the whole address to a proxy, and every server has to take it (RFC 9112, 3.2.2).
    """
    whole = ABSOLUTE.fullmatch(scope.get("raw_path") or b"")
    if whole is None:
        return scope, None
    path = whole["path"] or b"/"
    text = unquote(path.decode("ascii", errors="replace"))
    return {**scope, "raw_path": path, "path": text}, whole["name"].decode("latin-1").lower()


def _is_text(scope: Scope) -> bool:
    """Tell whether path and query are UTF-8 once their %XX are bytes again."""
    try:
        unquote(scope["query_string"].decode("ascii"), errors="strict")
        unquote(scope.get("raw_path", b"").decode("ascii"), errors="strict")
    except UnicodeDecodeError:
        return False
    return True


class _Bounded:
    """Refuses a body that is larger than anything our pages send."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > MOST_BODY:
                raise HTTPException(413, "That is more than any page sends.")
            return message

        await self.app(scope, counted, send)


def _with_policy(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Content-Security-Policy"] = POLICY
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "same-origin"  # with none at all, forms would name no origin
            headers["Cross-Origin-Resource-Policy"] = "same-origin"
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sent


async def form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form that was posted, or refuse what is not UTF-8."""
    try:
        text = (await request.body()).decode()
        fields = parse_qs(text, errors="strict", max_num_fields=100)
    except UnicodeDecodeError:
        raise HTTPException(400, NOT_TEXT) from None
    except ValueError:
        raise HTTPException(400, "That is more than any form sends.") from None
    return {name: values[-1] for name, values in fields.items()}


def json_answer(value: object, *, status: int = 200) -> Response:
    """Return JSON without NaN; `<` and `&` are written as numbers, so that it is harmless as a page too."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Response(text, status_code=status, media_type="application/json")


def templates_of(package: str) -> jinja2.Environment:
    """Return the templates in the folder `templates` of a package; all they show is escaped."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def assets(package: str, names: Sequence[str]) -> Route:
    """Serve these files of a package's `templates` folder under /assets/NAME, and no others."""
    folder = resources.files(package) / "templates"
    files = {name: (folder / name).read_bytes() for name in names}

    def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            raise HTTPException(404)
        return Response(files[name], media_type=TYPES[name.rsplit(".", 1)[-1]])

    return Route("/assets/{name}", asset)


def _refusal(request: Request, error: HTTPException) -> Response:
    words = {404: "There is nothing here.", 405: "That cannot be done here."}
    return _short_page(error.status_code, words.get(error.status_code, error.detail), request)


def _our_error(request: Request, error: AdverseError) -> Response:
    print(f"{request.url.path!a}: {error}", file=sys.stderr)  # noqa: T201
    if isinstance(error, IncompleteError) and isinstance(error.__cause__, OSError):
        return _short_page(507, "The disk is full, so this was not saved. Try again in a while.", request)
    return _short_page(409, error.what, request)


def _bug(request: Request, error: Exception) -> Response:
    print(f"{request.url.path!a}: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
    return _short_page(500, "Internal error; the terminal says more.", request)


def _stranger(request: Request) -> Response:
    """Refuse, but let the page ask once more by itself.

    Whoever follows the printed address from another site (a mail in the browser) arrives without the cookie
    just set, which only requests that our own pages make may carry.
    """
    words = "Open the address that was printed when the server started."
    query = _query(request)
    if request.method != "GET" or (AGAIN, "1") in query or request.url.path.endswith(".json"):
        return _short_page(403, words, request)
    path = quote(request.scope["path"].lstrip("/"))  # a backslash is read as a slash, and leads elsewhere
    same = f"/{path}?{urlencode([*query, (AGAIN, '1')])}"
    head = f'<meta http-equiv=refresh content="0; url={escape(same)}">'
    return _short_page(403, words, request, head)


def _short_page(status: int, words: str, request: Request, more: str = "") -> Response:
    if request.url.path.endswith(".json"):
        return json_answer({"error": words}, status=status)
    head = "<!doctype html><html lang=en><meta charset=utf-8><title>Adverse</title>" + more
    return HTMLResponse(f"{head}<p>{escape(words)}</p></html>", status_code=status)


def _query(request: Request) -> list[tuple[str, str]]:
    return parse_qsl(request.url.query, keep_blank_values=True)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogateescape"), secret.encode())


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _own_addresses() -> set[str]:
    """The name of this machine, and the addresses of its network interfaces."""
    interfaces = psutil.net_if_addrs().values()
    found = {entry.address for entries in interfaces for entry in entries if entry.family == socket.AF_INET}
    return found | {socket.gethostname()}


def _outer_address() -> str:
    """The address by which others reach this machine; nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return LOOPBACK
