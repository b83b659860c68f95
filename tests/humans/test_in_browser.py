"""The experiment in a real Chromium: by keys alone, reloaded, in two tabs, and with the server killed."""

from __future__ import annotations

import socket
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from adverse.humans.records import CLOCK_MS, LONGEST_FRAME_MS, export
from adverse.humans.server import read_state
from adverse.humans.study_file import read_human_study
from browsing import barriers
from human_studies import HOSTILE, Served, happened, write_study
from tls_proxy import tls_proxy, write_certificate

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 400, "height": 800}
PATIENCE_MS = 60_000


@pytest.fixture
def tab(browser: Browser, served: Served) -> Any:
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    yield new_tab(context, served)
    context.close()


def new_tab(context: BrowserContext, served: Served) -> Page:
    page = context.new_page()
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(served.address)
    return page


def agree(page: Page) -> None:
    expect(page.locator("button")).to_be_focused(timeout=PATIENCE_MS)
    page.keyboard.press("Enter")
    expect(page.locator("#go")).to_be_focused(timeout=PATIENCE_MS)


def answer(page: Page, key: str = "1") -> None:
    page.locator("#choice").wait_for(state="visible")
    page.keyboard.press(key)
    page.locator("#choice").wait_for(state="hidden")


def mine(page: Page, served: Served, kind: str) -> list[dict[str, Any]]:
    """Return what happened to the participant of this page."""
    number = page.locator("summary").inner_text().split()[-1]
    return [
        record
        for record in happened(served.study)
        if record["participant"] == number and record["kind"] == kind
    ]


def times(page: Page, served: Served, kind: str) -> list[int]:
    """Return how often it happened to each trial."""
    return list(Counter(record["trial"] for record in mine(page, served, kind)).values())


def test_a_batch_by_keys_alone_with_the_time_each_image_was_visible(tab: Page, served: Served) -> None:
    agree(tab)
    tab.keyboard.press("Enter")
    for key in ("1", "2", "1", "2"):
        answer(tab, key)
    expect(tab.locator("#message")).to_contain_text("Batch 1 of 2", timeout=PATIENCE_MS)
    expect(tab.locator("#go")).to_be_focused()
    told = mine(tab, served, "answered")
    assert len(told) == 4
    assert Counter(record["answer"] for record in told) == {HOSTILE: 2, "square": 2}
    assert all(record["shown_ms"] > 0 and record["frame_ms"] > 0 for record in told)
    file = read_human_study(served.study)
    off = {
        record["trial"]
        for record in told
        if abs(record["shown_ms"] - 100) > min(record["frame_ms"], LONGEST_FRAME_MS) + CLOCK_MS
    }
    left_out = {
        one.trial.id for one in export(read_state(file), file.study).excluded if one.reason == "off time"
    }
    judged = {
        trial["id"]
        for batch in mine(tab, served, "batch")
        for trial in batch["trials"]
        if trial["role"] in {"original", "changed"}
    }
    assert left_out == off & judged


def test_nobody_is_shut_out(tab: Page) -> None:
    assert barriers(tab) == []
    agree(tab)
    assert barriers(tab) == []


@pytest.mark.fault(55)
def test_a_reload_shows_no_image_twice_and_loses_no_answer(tab: Page, served: Served) -> None:
    agree(tab)
    tab.keyboard.press("Enter")
    answer(tab)
    tab.locator("#choice").wait_for(state="visible")
    tab.reload()
    expect(tab.locator("#go")).to_have_text("Go on", timeout=PATIENCE_MS)
    tab.keyboard.press("Enter")
    answer(tab)
    answer(tab)
    expect(tab.locator("#message")).to_contain_text("Batch 1 of 2", timeout=PATIENCE_MS)
    assert times(tab, served, "started") == [1, 1, 1, 1]
    assert times(tab, served, "answered") == [1, 1, 1]


def test_two_tabs_share_a_batch(tab: Page, served: Served) -> None:
    agree(tab)
    other = new_tab(tab.context, served)
    tab.bring_to_front()
    tab.keyboard.press("Enter")
    tab.locator("#choice").wait_for(state="visible")
    other.bring_to_front()
    other.locator("#go").click()
    other.locator("#choice").wait_for(state="visible")
    other.keyboard.press("2")
    tab.bring_to_front()
    tab.keyboard.press("1")
    for page in (other, tab):
        page.bring_to_front()
        answer(page)
    for page in (tab, other):
        expect(page.locator("#message")).to_contain_text("Batch 1 of 2", timeout=PATIENCE_MS)
    assert times(tab, served, "started") == [1, 1, 1, 1]
    assert times(tab, served, "answered") == [1, 1, 1, 1]


@pytest.mark.fault(55)
def test_a_server_that_is_killed_and_comes_back_has_every_answer_once(tab: Page, served: Served) -> None:
    agree(tab)
    tab.keyboard.press("Enter")
    answer(tab)
    tab.locator("#choice").wait_for(state="visible")
    served.kill()
    tab.keyboard.press("2")
    expect(tab.locator("#note")).to_contain_text("connection is lost", timeout=PATIENCE_MS)
    served.start()
    answer(tab)
    answer(tab)
    expect(tab.locator("#message")).to_contain_text("Batch 1 of 2", timeout=PATIENCE_MS)
    assert times(tab, served, "started") == [1, 1, 1, 1]
    assert times(tab, served, "answered") == [1, 1, 1, 1]


def test_a_narrow_screen_a_hostile_name_and_the_button_that_erases(tab: Page, served: Served) -> None:
    tab.set_viewport_size(NARROW)  # type: ignore[arg-type]

    def fits() -> bool:
        return bool(tab.evaluate("document.documentElement.scrollWidth <= innerWidth"))

    assert fits()
    tab.locator("button").click()
    expect(tab.locator("#instructions")).to_contain_text(HOSTILE)
    assert fits()
    tab.locator("#go").click()
    tab.locator("#choice").wait_for(state="visible")
    expect(tab.locator("#buttons button").first).to_contain_text(HOSTILE)
    assert fits()
    tab.locator("#buttons button").first.click()
    tab.locator("#choice").wait_for(state="visible")
    number = tab.locator("summary").inner_text().split()[-1]
    assert len(mine(tab, served, "answered")) == 1
    tab.locator("summary").click()
    tab.locator("footer button").click()
    expect(tab.locator("h1")).to_have_text("Your answers are erased")
    file = served.study.parent / "shapes-answers" / "answers.jsonl"
    assert number not in file.read_text()


def test_the_address_works_from_a_mail_in_the_browser(browser: Browser, served: Served) -> None:
    page = browser.new_page()
    mail = f'<a href="{served.address}">take part</a>'
    page.route("http://mail.example/", lambda route: route.fulfill(body=mail, content_type="text/html"))
    page.goto("http://mail.example/")
    page.locator("a").click()
    expect(page.locator("h1")).to_have_text("Shapes", timeout=PATIENCE_MS)
    page.context.close()


def test_a_worker_takes_part_behind_an_encrypting_proxy(browser: Browser, tmp_path: Path) -> None:
    """From the platform's link to the completion code, at the public name, over TLS."""
    platform = {"parameter": "PROLIFIC_PID", "completion_code": "C0DE-77"}
    study = write_study(tmp_path, platform=platform, batches=1, sanity={"items": 0})
    certificate = tmp_path / "both.pem"
    write_certificate(certificate, "localhost")
    listener = socket.create_server(("127.0.0.1", 0))
    public = f"https://localhost:{listener.getsockname()[1]}"
    inside = socket.create_server(("127.0.0.1", 0))
    port = inside.getsockname()[1]
    inside.close()
    server = Served(study, "--port", str(port), "--public-url", public)
    context = browser.new_context(viewport=WIDE, ignore_https_errors=True)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    try:
        with tls_proxy(certificate, listener, port):
            assert server.address.startswith(f"{public}/?token=")
            page = context.new_page()
            page.on("pageerror", lambda error: pytest.fail(str(error)))
            page.goto(f"{server.address}&PROLIFIC_PID=worker-7")
            expect(page.locator("section")).to_contain_text("worker-7")
            agree(page)
            page.keyboard.press("Enter")
            for _ in range(4):
                assert not page.get_by_text("C0DE-77").is_visible()
                answer(page)
            expect(page.locator("#code")).to_contain_text("C0DE-77", timeout=PATIENCE_MS)
            assert all(cookie["secure"] for cookie in context.cookies())
            assert {urlsplit(frame.url).scheme for frame in page.frames} == {"https"}
            page.reload()
            expect(page.locator("#code")).to_contain_text("C0DE-77")
    finally:
        context.close()
        server.kill()
    assert [record["platform_id"] for record in happened(study) if record["kind"] == "joined"] == ["worker-7"]
    assert sum(record["kind"] == "answered" for record in happened(study)) == 4
