"""A thousand requests, good and broken: no error of ours, nothing given away, nothing run."""

from __future__ import annotations

import json
import random
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from adverse.pages.view.app import Pages, warm_up
from adverse.pages.view.session import ExploredRun
from adverse.store.finished_run import finished

PATHS = (
    "/grid",
    "/grid.json",
    "/thumbnail.jpg",
    "/explore",
    "/explore.json",
    "/frame",
    "/frame.json",
    "/drive",
    "/drive.json",
    "/picture.png",
    "/labels.png",
    "/",
    "/assets/view.js",
    "/assets/view.css",
)
ODD_PATHS = (
    "/../../etc/passwd",
    "/assets/../../app.py",
    "/assets/%2e%2e/app.py",
    "/assets/..%2fapp.py",
    "/assets/",
    "/nothing",
    "/explore.json/",
    "/explore%00",
    "/picture.png/..",
    "//etc/passwd",
    "/%",
    "/\u202e",
    "/explore.html",
    "/assets/explore.html",
    "/run/manifest.json",
    "/" + "a" * 3000,
)
ODD = (
    "",
    "-1",
    "NaN",
    "nan",
    "inf",
    "1e9",
    "9" * 400,
    "9" * 9,
    "0x10",
    "1.5",
    "\u0661",
    "\u00b2",
    "../../../etc/passwd",
    "/etc/passwd",
    "..\\..",
    "<script>alert(1)</script>",
    "'\"><img src=x>",
    "%00",
    "\x00",
    "identity\n",
    "=cmd()",
    "\u202e",
    "n" * 5000,
    "None",
    "[]",
    "{}",
    "true",
    "identity'; DROP TABLE runs; --",
    "$sut",
    "file:///etc/passwd",
    "\ufffd",
)
METHODS = ("GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW")
HOSTS = ("elsewhere.example", "127.0.0.1", "127.0.0.1:80", "localhost:8123.elsewhere.example", "")
REQUESTS = 1000


@pytest.mark.fault(54)
def test_a_thousand_requests_break_nothing_and_learn_nothing(guest: TestClient, run: Path) -> None:
    store = finished(run)
    known = {
        "sut": store.suts,
        "level": ["image/ROC_A", "image/ROC_B"],
        "left": list(store.groups),
        "right": list(store.groups),
        "setting": list(store.groups),
        "log": list(store.frames.logs),
        "frame": ["0", "1", "3", "99"],
        "k": ["0", "50", "99", "100"],
        "at": ["0", "50", "100"],
        "mutation": ["every mutation", *store.groups],
        "show": ["all", "lost", "missed", "hit", "false", "trouble"],
        "slice": ["everybody", "occluded: yes"],
        "sort": ["loss", "score", "false", "order"],
        "n": ["0", "5", "99999"],
        "page": ["0", "1", "99"],
    }
    rng = random.Random(7)
    secrets = (str(run), str(run.parent), str(Path.home()), "Traceback", 'File "', '.py"', "root:")
    seen: dict[int, int] = {}
    for _ in range(REQUESTS):
        path = rng.choice(PATHS) if rng.random() < 0.85 else rng.choice(ODD_PATHS)
        query = {
            name: rng.choice(values) if rng.random() < 0.8 else rng.choice(ODD)
            for name, values in known.items()
            if rng.random() < 0.4
        }
        headers, trusted = {}, True
        if rng.random() < 0.07:
            headers["host"], trusted = rng.choice(HOSTS), False
        if rng.random() < 0.07:
            headers["cookie"], trusted = f"adverse_8123={quote(rng.choice(ODD))}", False
        text = "&".join(f"{name}={quote(value)}" for name, value in query.items())
        answer = guest.request(
            rng.choice(METHODS),
            f"http://127.0.0.1:8123{path}?{text}",
            headers=headers,
            follow_redirects=False,
        )
        seen[answer.status_code] = seen.get(answer.status_code, 0) + 1
        where = (path, query, answer.status_code)
        assert answer.status_code < 500, where
        assert trusted or answer.status_code in (403, 421), where
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        if answer.headers.get("content-type", "").startswith("image/"):
            continue
        assert [secret for secret in secrets if secret in answer.text] == [], where
        if path.endswith(".json") and answer.text:
            json.loads(answer.text)
    assert seen[200] > 100
    assert {400, 403, 404, 405, 421} <= seen.keys()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_names_are_shown_and_never_live(guest: TestClient, run: Path) -> None:
    logs = finished(run).frames.logs
    assert len(logs) > 8
    for log in logs:
        for name in ("explore", "frame", "drive", "grid"):
            answer = guest.get(f"/{name}", params={"log": log})
            assert answer.status_code == 200
            reader = Tags()
            reader.feed(answer.text)
            assert "\u202e" not in reader.text  # in the value of an option nobody reads it
            for tag, attrs in reader.tags:
                assert tag not in ("iframe", "object", "embed", "base", "style")
                assert tag != "img" or (attrs["src"] or "").startswith("/thumbnail.jpg?")
                assert not any(key.startswith("on") or key == "style" for key in attrs)
                if tag == "script":
                    file = "grid" if name == "grid" else "view"
                    assert attrs == {"src": f"/assets/{file}.js", "defer": None}
        assert guest.get("/explore.json", params={"log": log}).json()["pick"]["log"] == log


@pytest.mark.parametrize("page", ["explore", "frame", "drive"])
def test_names_that_the_run_does_not_have_are_not_found(guest: TestClient, page: str) -> None:
    for name in ("sut", "level", "left", "right", "log"):
        answer = guest.get(f"/{page}.json", params={name: "../manifest"})
        assert answer.status_code == 404
        assert answer.json() == {"error": "There is nothing here."}
    assert guest.get(f"/{page}.json", params={"k": "-3"}).status_code == 400


def test_what_the_first_frame_needs_is_read_before_it_is_asked_for(run: Path) -> None:
    explored = ExploredRun(run)
    warm_up(explored)
    known = explored.judged.cache_info().misses
    assert known == 2  # the settings of both sides
    Pages(explored).explore({})
    assert explored.judged.cache_info().misses == known


def test_a_frame_beyond_the_end_is_the_last(guest: TestClient) -> None:
    assert guest.get("/frame.json", params={"frame": 999}).json()["number"] == 3
