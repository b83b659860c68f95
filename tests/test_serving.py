"""Who gets in, what every answer carries, and what an error gives away."""

from __future__ import annotations

import re
import socket

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from adverse.errors import AdverseError, DataError
from adverse.serving import MOST_BODY, Door, application, json_answer, open_door

DOOR = Door("127.0.0.1", 8123, "secret-token")


def _hello(_: Request) -> Response:
    return PlainTextResponse("hello")


async def _read(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


def _missing(_: Request) -> Response:
    raise DataError("the data set is gone", where="/home/someone/private/data")


def _broken(_: Request) -> Response:
    raise RuntimeError("/home/someone/private")


ROUTES = [
    Route("/", _hello),
    Route("/read", _read, methods=["POST"]),
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


def test_the_token_is_shown_once_and_then_kept_where_scripts_cannot_read_it(stranger: TestClient) -> None:
    assert stranger.get("/").status_code == 403
    first = stranger.get("/?a=1&token=secret-token&b=%3D", follow_redirects=False)
    assert (first.status_code, first.headers["location"]) == (303, "/?a=1&b=%3D")
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=strict" in first.headers["set-cookie"]
    assert stranger.get("/").text == "hello"


@pytest.mark.parametrize("token", ["", "secret-tokem", "secret-token0", "\u00e9", "x" * 5000])
def test_a_wrong_token_opens_nothing(stranger: TestClient, token: str) -> None:
    assert stranger.get("/", params={"token": token}).status_code == 403
    assert stranger.get("/", headers={b"cookie": f"adverse_8123={token}".encode()}).status_code == 403


def test_the_token_does_not_lead_to_another_site(stranger: TestClient) -> None:
    answer = stranger.get(
        "http://127.0.0.1:8123//elsewhere.example/?token=secret-token", follow_redirects=False
    )
    assert answer.headers["location"].startswith("/elsewhere")


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


def test_another_site_cannot_post(guest: TestClient) -> None:
    assert guest.post("/read", headers={"origin": "http://elsewhere.example"}).status_code == 403
    assert guest.post("/read", headers={"origin": "http://127.0.0.1:8123"}).status_code == 200


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
    assert guest.get("/broken.json").json() == {
        "error": "An error of our own making; the terminal says more."
    }
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
