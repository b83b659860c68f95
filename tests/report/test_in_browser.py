"""The report in a real browser: nothing is blocked or broken, keys work, narrow screens too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page


@pytest.fixture
def opened(browser: Browser, run: Path) -> Iterator[tuple[Page, list[str]]]:
    """Open the report from disk and collect all that the browser complains about."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None
    )
    page.goto((run / "report.html").as_uri())
    yield page, complaints
    page.close()


def visible_levels(page: Page) -> list[str]:
    script = "all => all.filter(e => !e.hidden).map(e => e.dataset.name)"
    found: list[str] = page.eval_on_selector_all("[data-of=level]", script)
    return found


def test_it_opens_with_the_answer_and_without_a_complaint(opened: tuple[Page, list[str]]) -> None:
    page, complaints = opened
    assert complaints == []
    answer = page.locator("#answer").bounding_box()
    assert answer is not None
    assert answer["y"] < 300
    assert page.locator("#answer p").count() >= 2


def test_levels_are_switched_by_keys(opened: tuple[Page, list[str]]) -> None:
    page, complaints = opened
    assert visible_levels(page) == ["image/ROC_A"]
    page.locator("input[name=level]").first.focus()
    page.keyboard.press("ArrowRight")
    assert visible_levels(page) == ["image/ROC_B"]
    assert complaints == []


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_screen(opened: tuple[Page, list[str]], width: int) -> None:
    page, _ = opened
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_is_printed(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert visible_levels(page) == ["image/ROC_A", "image/ROC_B"]


def test_injected_script_cannot_run(opened: tuple[Page, list[str]]) -> None:
    page, complaints = opened
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hit = 1\">')")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    assert any("Content Security Policy" in text for text in complaints)
