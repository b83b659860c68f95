"""The review page in a real browser, by keys alone; and what strangers and nonsense get."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.testclient import TestClient

from adverse.errors import StoreError
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import read_outcome
from adverse.fuzz.run import run_campaign
from adverse.fuzz.votes import Votes, review_order
from adverse.pages.review import routes_of
from adverse.report.fuzz import reviewed_table
from adverse.report.fuzz_page import write_fuzz_page
from adverse.serving import Door, application
from adverse.study.engines import Silent, Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.spec import read_study
from browsing import barriers, served
from small_campaign import write_campaign

DOOR = Door("127.0.0.1", 8123, "secret-token")


def campaign(folder: Path, **changes: Any) -> Path:
    study = write_campaign(folder, frames=4, **changes)
    ran = run_campaign(
        read_study(study), folder / "run", InlineEngine(), tests=24, watch=Silent(), stop=Stop()
    )
    return ran.folder.path


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    return campaign(tmp_path_factory.mktemp("fuzzed"))


@pytest.fixture
def guest(fuzzed: Path) -> TestClient:
    client = TestClient(application(DOOR, routes_of(fuzzed)), base_url="http://127.0.0.1:8123")
    client.cookies.set(DOOR.cookie, DOOR.token)
    return client


@pytest.fixture
def address(fuzzed: Path) -> Iterator[str]:
    for name in ("votes", "votes.json"):
        (fuzzed / name).unlink(missing_ok=True)
    with served(routes_of(fuzzed)) as place:
        yield place


@pytest.fixture
def page(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened, complaints
    opened.context.close()


def press(page: Page, key: str) -> None:
    before = page.url
    page.keyboard.press(key)
    page.wait_for_url(lambda url: url != before)
    page.wait_for_load_state("load")


def test_a_reviewer_votes_with_keys_alone(page: tuple[Page, list[str]], address: str, fuzzed: Path) -> None:
    opened, complaints = page
    order = review_order(read_outcome(CampaignFolder(fuzzed)))
    opened.goto(address)
    expect(opened.locator("#reviewer")).to_be_focused()
    opened.keyboard.type("Ann <b>t</b>")  # typing a t is no vote
    opened.keyboard.press("Enter")
    opened.wait_for_url("**/review?*")
    assert opened.locator("img").count() == 5
    for image in opened.locator("img").all():
        assert image.evaluate("one => one.complete && one.naturalWidth") == 320
    press(opened, "t")
    press(opened, "f")
    press(opened, "ArrowLeft")
    assert "You said false" in opened.content().replace("<strong>", "").replace("</strong>", "")
    press(opened, "u")
    name = "Ann <b>t</b>"
    assert Votes(fuzzed / "votes").latest() == {order[0]: {name: "true"}, order[1]: {name: "unsure"}}
    assert [vote.says for vote in Votes(fuzzed / "votes").entries] == ["true", "false", "unsure"]
    opened.goto(opened.url.partition("/review")[0] + "/results")
    assert "1 reviewer" in opened.content()
    assert opened.locator("b").count() == 0, "a name is text"
    assert complaints == []


def test_nobody_is_shut_out(page: tuple[Page, list[str]], address: str, fuzzed: Path) -> None:
    opened, _ = page
    opened.goto(address)
    assert barriers(opened) == []
    expect(opened.locator("#reviewer")).to_be_focused()
    opened.keyboard.type("Ann")
    opened.keyboard.press("Enter")
    opened.wait_for_url("**/review?*")
    assert barriers(opened) == []
    campaign_folder = CampaignFolder(fuzzed)
    opened.goto(write_fuzz_page(campaign_folder, read_outcome(campaign_folder)).resolve().as_uri())
    assert barriers(opened) == []


def test_it_fits_a_telephone(page: tuple[Page, list[str]], address: str) -> None:
    opened, complaints = page
    opened.set_viewport_size({"width": 400, "height": 800})
    opened.goto(address)
    for path in ("/", "/review?reviewer=ann", "/results"):
        opened.goto(address.partition("/?")[0] + path)
        assert opened.evaluate("document.documentElement.scrollWidth") <= 400
    assert complaints == []


def test_all_failures_can_be_gone_through(guest: TestClient, fuzzed: Path) -> None:
    (fuzzed / "votes").unlink(missing_ok=True)
    guest = TestClient(guest.app, base_url="http://127.0.0.1:8123", cookies=guest.cookies)
    order = review_order(read_outcome(CampaignFolder(fuzzed)))
    for key in order:
        fields = {"reviewer": "bob", "key": key, "says": "false"}
        answer = guest.post("/vote", data=fields, follow_redirects=False)
        assert answer.status_code == 303
    assert f"All {len(order)} are reviewed" in guest.get("/review", params={"reviewer": "bob"}).text
    (first, *_) = guest.get("/results.json").json()
    assert first["bin"] == "moderate"
    rows = {row["bin"]: row for row in guest.get("/results.json").json()}
    assert rows["all"]["false_positive_rate"] == 1.0
    outcome = read_outcome(CampaignFolder(fuzzed))
    table = reviewed_table(CampaignFolder(fuzzed), outcome)
    write_fuzz_page(CampaignFolder(fuzzed), outcome, reviewed=table)
    written = json.loads((fuzzed / "results" / "review.json").read_text())
    assert written == guest.get("/results.json").json()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/review?reviewer=", 400),
        ("/review?reviewer=ann&at=99999", 404),
        ("/review?reviewer=ann&at=-1", 404),
        ("/review?reviewer=ann&at=x", 404),
        ("/picture/nothing/0/mutated.png", 404),
        ("/picture/../0/mutated.png", 404),
        ("/assets/app.py", 404),
        ("/vote", 405),
    ],
)
def test_nonsense_is_refused(guest: TestClient, path: str, status: int) -> None:
    assert guest.get(path).status_code == status


@pytest.mark.parametrize(
    "fields", [{}, {"reviewer": "a", "key": "x", "says": "true"}, {"reviewer": "a", "says": "so"}]
)
def test_what_is_no_vote_is_not_kept(guest: TestClient, fuzzed: Path, fields: dict[str, str]) -> None:
    before = (fuzzed / "votes").read_bytes() if (fuzzed / "votes").exists() else None
    assert guest.post("/vote", data=fields).status_code == 400
    assert ((fuzzed / "votes").read_bytes() if (fuzzed / "votes").exists() else None) == before


def test_without_failures_there_is_nothing_to_review(tmp_path: Path) -> None:
    run = campaign(tmp_path, fuzz={"mutations": ["add_car"], "options": {"off": ["perspective", "light"]}})
    with pytest.raises(StoreError, match="nothing to review"):
        routes_of(run)


def test_the_page_of_a_campaign_is_whole(page: tuple[Page, list[str]], fuzzed: Path) -> None:
    opened, complaints = page
    outcome = read_outcome(CampaignFolder(fuzzed))
    written = write_fuzz_page(CampaignFolder(fuzzed), outcome)
    for width in (1280, 400):
        opened.set_viewport_size({"width": width, "height": 900})
        opened.goto(written.as_uri())
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
    failed = {case.base for case in outcome.tests["colour 0"] if case.bin}
    assert opened.locator("#failures figure").count() == len(failed)
    assert opened.locator("#failures figure img").count() == 5 * len(failed)
    for image in opened.locator("figure img").all():
        assert image.evaluate("one => one.complete && one.naturalWidth > 0")
    assert "default-src &#39;none&#39;" in written.read_text()
    assert complaints == []
