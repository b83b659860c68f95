"""Who gets in, what every answer carries, and what an error gives away."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from adverse.connections import PatientProtocol
from adverse.errors import AdverseError, DataError
from adverse.serving import EVERYWHERE, MOST_BODY, Door, application, form_fields, json_answer, open_door
from adverse.store.durable import append_line

DOOR = Door("127.0.0.1", 8123, "secret-token")


def _hello(_: Request) -> Response:
    return PlainTextResponse("hello")


async def _read(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def _fields(request: Request) -> Response:
    fields = await form_fields(request)
    append_line(Path(fields["file"]), b"vote\n")
    return json_answer(fields)


def _missing(_: Request) -> Response:
    raise DataError("the data set is gone", where="/home/someone/private/data")


def _broken(_: Request) -> Response:
    raise RuntimeError("/home/someone/private")


ROUTES = [
    Route("/", _hello),
    Route("/read", _read, methods=["POST"]),
    Route("/fields.json", _fields, methods=["POST"]),
    Route("/missing", _missing),
    Route("/broken.json", _broken),
]


@pytest.fixture
def stranger() -> TestClient:
    return TestClient(application(DOOR, ROUTES), base_url="http://127.0.0.1:8123")


@pytest.fixture
def guest(stranger: TestClient) -> TestClient:
    assert stranger.get("/", params={"token": "secret-token"}).text == "hello"
    return stranger


@pytest.mark.fault(53)
def test_the_token_is_shown_once_and_then_kept_where_scripts_cannot_read_it(stranger: TestClient) -> None:
    assert stranger.get("/").status_code == 403
    first = stranger.get("/?a=1&token=secret-token&b=%3D", follow_redirects=False)
    assert (first.status_code, first.headers["location"]) == (303, "/?a=1&b=%3D")
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=strict" in first.headers["set-cookie"]
    assert stranger.get("/").text == "hello"


@pytest.mark.fault(53)
@pytest.mark.parametrize("token", ["", "secret-tokem", "secret-token0", "\u00e9", "x" * 5000])
def test_a_wrong_token_opens_nothing(stranger: TestClient, token: str) -> None:
    assert stranger.get("/", params={"token": token}).status_code == 403
    assert stranger.get("/", headers={b"cookie": f"adverse_8123={token}".encode()}).status_code == 403


def test_the_token_does_not_lead_to_another_site(stranger: TestClient) -> None:
    answer = stranger.get(
        "http://127.0.0.1:8123//elsewhere.example/?token=secret-token", follow_redirects=False
    )
    assert answer.headers["location"].startswith("/elsewhere")


@pytest.mark.fault(53)
@pytest.mark.parametrize(
    "host", ["elsewhere.example", "127.0.0.1", "127.0.0.1:9", "127.0.0.1:8123.example", ""]
)
def test_another_host_header_is_refused_even_with_the_token(guest: TestClient, host: str) -> None:
    assert guest.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8123", "LOCALHOST:8123", "[::1]:8123"])
def test_the_names_of_the_loopback_are_accepted(guest: TestClient, host: str) -> None:
    headers = {"host": host, "cookie": "adverse_8123=secret-token"}
    assert guest.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "path", ["//elsewhere.example/", "/%5Celsewhere.example/", "/%2F%5C%22elsewhere.example"]
)
def test_a_stranger_is_not_sent_to_another_site(stranger: TestClient, path: str) -> None:
    page = stranger.get(f"http://127.0.0.1:8123{path}").text
    (where,) = re.findall(r'url=([^"]*)"', page)
    assert re.match(r"/(%5C%22|%5C)?elsewhere.example/?\?again=1$", where), where


@pytest.mark.fault(53)
def test_another_site_cannot_post(guest: TestClient) -> None:
    assert guest.post("/read", headers={"origin": "http://elsewhere.example"}).status_code == 403
    assert guest.post("/read", headers={"origin": "http://127.0.0.1:8123"}).status_code == 200


@pytest.mark.fault(54)
def test_a_large_body_is_refused(guest: TestClient) -> None:
    assert guest.post("/read", content=b"x" * MOST_BODY).text == str(MOST_BODY)
    assert guest.post("/read", content=b"x" * (MOST_BODY + 1)).status_code == 413


@pytest.mark.parametrize("path", ["/", "/nothing", "/missing", "/broken.json"])
def test_every_answer_carries_the_policy_and_no_private_path(guest: TestClient, path: str) -> None:
    answer = guest.get(path)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "private" not in answer.text


def test_errors_say_what_without_where(guest: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    answer = guest.get("/missing")
    assert (answer.status_code, "the data set is gone" in answer.text) == (409, True)
    assert "/home/someone/private/data" in capsys.readouterr().err
    assert guest.get("/broken.json").json() == {"error": "Internal error; the terminal says more."}
    assert guest.delete("/").status_code == 405


def test_json_is_harmless_as_a_page() -> None:
    assert json_answer({"name": "<script>&"}).body == rb'{"name":"\u003cscript\u003e\u0026"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_answer(float("nan"))


def test_a_port_in_use_is_an_error_with_a_fix() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(AdverseError, match="Choose another port"):
            open_door(port=taken.getsockname()[1])


def test_a_free_port_and_a_token_are_made_up() -> None:
    door, bound = open_door()
    with bound:
        assert door.address == f"http://127.0.0.1:{bound.getsockname()[1]}/?token={door.token}"
        assert len(door.token) >= 24


def test_who_comes_from_another_site_is_let_ask_once_more(stranger: TestClient) -> None:
    first = stranger.get("http://127.0.0.1:8123//evil.example/a?b=%22%3E")
    assert first.status_code == 403
    assert 'content="0; url=/evil.example/a?b=%22%3E&amp;again=1"' in first.text
    assert "refresh" not in stranger.get("/a?again=1").text
    assert "refresh" not in stranger.post("/a").text
    assert "refresh" not in stranger.get("/a.json").text


@pytest.mark.fault(54)
@pytest.mark.parametrize("path", ["/%ff", "/?a=%ff", "/?%c3", "/?token=%80"])
def test_what_is_not_utf_8_is_a_bad_request(guest: TestClient, tmp_path: Path, path: str) -> None:
    assert guest.get(path).status_code == 400
    assert guest.get("/?a=%c3%a4").text == "hello"
    for body in (b"file=%ff", b"file=\xff"):
        assert guest.post("/fields.json", content=body).status_code == 400
    assert guest.post("/fields.json", content=b"a=1&" * 101).status_code == 400
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault(42, 55)
def test_a_full_disk_loses_nothing_that_was_acknowledged(
    guest: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes = {"file": str(tmp_path / "votes")}
    assert guest.post("/fields.json", data=votes).status_code == 200

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        answer = guest.post("/fields.json", data=votes)
    assert (answer.status_code, "disk is full" in answer.json()["error"]) == (507, True)
    assert (tmp_path / "votes").read_text() == "vote\n"
    assert guest.post("/fields.json", data=votes).status_code == 200
    assert (tmp_path / "votes").read_text() == "vote\nvote\n"


@pytest.mark.fault(53)
@pytest.mark.parametrize("host", EVERYWHERE)
def test_a_server_on_all_addresses_prints_one_that_works(host: str) -> None:
    door = Door(host, 8123, "secret-token")
    stranger = TestClient(application(door, ROUTES), base_url=door.address.partition("/?")[0])
    assert host not in door.address
    assert stranger.get(door.address).text == "hello"
    addresses = [
        entry.address
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family == socket.AF_INET
    ]
    for name in (*addresses, socket.gethostname()):
        assert stranger.get("/", headers={"host": f"{name}:8123"}).status_code == 200
    assert stranger.get("/", headers={"host": "elsewhere.example:8123"}).status_code == 421


@contextlib.contextmanager
def _served(monkeypatch: pytest.MonkeyPatch, patience_s: float) -> Iterator[tuple[Door, str]]:
    """Serve for real, to at most four connections at a time."""
    monkeypatch.setattr(PatientProtocol, "patience_s", patience_s)
    monkeypatch.setattr(PatientProtocol, "most_connections", 4)
    door, bound = open_door()
    config = uvicorn.Config(
        application(door, ROUTES), http=PatientProtocol, lifespan="off", log_level="error"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield door, door.address
    finally:
        server.should_exit = True
        thread.join()


def _connected(door: Door, begin: bytes) -> socket.socket:
    made = socket.create_connection((door.host, door.port))
    made.sendall(begin)
    return made


HALF = b"POST /read HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf"


@pytest.mark.fault(54)
def test_connections_that_say_nothing_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with _served(monkeypatch, patience_s=3600) as (door, address), contextlib.ExitStack() as kept:
        silent = [
            kept.enter_context(_connected(door, begin))
            for begin in (b"", b"GET / HT", HALF)
            for _ in range(4)
        ]
        with httpx.Client(follow_redirects=True, timeout=None) as client:
            assert client.get(address).text == "hello"
        assert silent[0].recv(1) == b""  # the one that kept the server waiting longest


@pytest.mark.fault(54)
@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nHost: 127", HALF])
def test_a_client_that_never_finishes_is_closed(monkeypatch: pytest.MonkeyPatch, begin: bytes) -> None:
    with (
        _served(monkeypatch, patience_s=0.2) as (door, _),
        _connected(door, begin) as made,
        contextlib.suppress(ConnectionResetError),
    ):
        while made.recv(4096):
            pass


def _status(door: Door, request: str) -> tuple[str, str]:
    """Send a request as it is, and return the status and the location or the end of the answer."""
    with _connected(door, request.encode()) as made:
        answer = b"".join(iter(lambda: made.recv(4096), b"")).decode()
    head, _, body = answer.partition("\r\n\r\n")
    return head.split(" ")[1], dict(re.findall(r"(?m)^(\S+): (.*?)\r?$", head)).get("location", body)


@pytest.mark.fault(53)
def test_a_whole_address_in_the_request_line_passes_the_same_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """As clients write it that take us for a proxy; asked over a real socket."""
    with _served(monkeypatch, patience_s=3600) as (door, _):
        ours, evil, port = f"127.0.0.1:{door.port}", "elsewhere.example", door.port
        cookie = f"Cookie: adverse_{port}={door.token}\r\n"

        def asked(target: str, host: str = ours, more: str = cookie) -> tuple[str, str]:
            lines = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"
            return _status(door, lines)

        assert asked(f"http://{ours}/") == asked(f"HTTP://{ours}") == asked("/") == ("200", "hello")
        assert asked(f"http://{ours}/?a=1&token={door.token}", more="") == ("303", "/?a=1")
        assert asked(f"http://{ours}/", more="")[0] == asked("/", more="")[0] == "403"
        for target, host in (
            (f"http://{evil}/", ours),
            (f"http://{ours}/", evil),
            (f"http://x@{ours}/", ours),
        ):
            assert asked(target, host)[0] == "421", (target, host)
        for target in (f"https://{ours}/", "*", ours, "read", f"http://{ours}/%ff"):
            assert asked(target)[0] == "400", target
        assert asked(f"http://{ours}//{evil}/?token={door.token}", more="") == ("303", f"/{evil}/")
