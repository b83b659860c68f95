"""The report in a real browser: nothing is blocked or broken, keys work, narrow screens too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from browsing import barriers


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
    for part in (".banner", ".story figure.wide-only", ".untested"):
        box = page.locator(part).first.bounding_box()
        assert box is not None, part
        assert box["y"] + box["height"] <= 800, part


def test_the_first_screen_says_it_in_few_words(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    said = page.eval_on_selector_all(
        "#answer p, #answer figcaption",
        "all => all.filter(e => e.checkVisibility()).map(e => e.innerText).join(' ')",
    )
    prose = [word for word in said.split() if any(letter.isalpha() for letter in word)]
    assert 5 < len(prose) <= 60, said


def test_the_chart_of_the_first_screen_has_a_menu_of_levels(opened: tuple[Page, list[str]]) -> None:
    page, complaints = opened
    shown = "all => all.filter(e => !e.hidden).map(e => e.dataset.name)"
    page.locator("[data-choice=survives]").select_option("image/ROC_B")
    assert page.eval_on_selector_all("[data-of=survives]", shown) == ["image/ROC_B"]
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.locator("[data-name='image/ROC_B'] .narrow-only").first.is_visible()
    assert complaints == []


def test_long_rules_stay_on_one_line(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    page.evaluate(
        """() => {
            const chips = document.querySelector(".chips"), one = chips.querySelector("li");
            const copies = [1, 2, 3, 4].map(() => one.cloneNode(true));
            const rule = "a rule with many words ".repeat(4);
            copies.forEach((chip) => { chip.querySelector("span").textContent = rule; });
            chips.replaceChildren(...copies);
        }"""
    )
    boxes = [chip.bounding_box() for chip in page.locator(".chips li").all()]
    assert len({round(box["y"]) for box in boxes if box}) == 1
    assert all(box and box["x"] + box["width"] <= 1280 for box in boxes)
    assert len({round(box["height"]) for box in boxes if box}) == 1
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_nobody_is_shut_out(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    assert barriers(page) == []


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
    table = page.locator("#table .wide").filter(visible=True)
    table.evaluate("box => { box.scrollLeft = 200; }")
    edge = table.evaluate("box => box.getBoundingClientRect().left")
    name = table.locator("tbody th[scope=row]").first.bounding_box()
    assert name
    assert abs(name["x"] - edge) < 1  # the names of the rows stay where the figures scroll
    assert width > 400 or 90 < name["width"] < 200


def test_what_was_chosen_is_printed(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    page.locator("#table label", has_text="image/ROC_B").click()
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert visible_levels(page) == ["image/ROC_B"]
    assert page.locator("#table .switch label").filter(visible=True).all_inner_texts() == ["image/ROC_B"]
    assert page.get_by_text("On paper:").is_visible()
    page.emulate_media(media="screen")


def test_injected_script_cannot_run(opened: tuple[Page, list[str]]) -> None:
    page, complaints = opened
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hit = 1\">')")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    assert any("Content Security Policy" in text for text in complaints)


PAINTED = """() => new Promise(done => new PerformanceObserver(list => {
    if (list.getEntriesByName("first-contentful-paint").length) done(true);
}).observe({type: "paint", buffered: true}))"""


@pytest.fixture
def slow_address(run: Path) -> Iterator[tuple[str, threading.Event]]:
    """Serve the report up to its pictures; the rest comes when the event is set."""
    text = (run / "report.html").read_bytes()
    first, mark, rest = text.partition(b'<section id="failures">')
    assert mark
    go_on = threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(first)
            self.wfile.flush()
            go_on.wait()
            self.wfile.write(mark + rest)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/report.html", go_on
    go_on.set()
    server.shutdown()
    server.server_close()


def test_the_first_paint_does_not_wait_for_the_pictures(
    browser: Browser, slow_address: tuple[str, threading.Event]
) -> None:
    address, go_on = slow_address
    page = browser.new_page()
    page.goto(address, wait_until="commit")
    page.evaluate(PAINTED)  # in vain, if painting waited for what has not been sent
    assert page.locator("#table table").first.is_visible()
    assert page.locator("#rankings table").first.is_visible()
    assert page.locator("image").count() == page.locator("#answer image").count()
    go_on.set()
    page.wait_for_load_state("load")
    assert page.locator("#failures image").count() >= 2
    page.close()


def test_pictures_out_of_sight_are_not_drawn(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    script = "all => all.map(e => getComputedStyle(e).contentVisibility)"
    assert set(page.eval_on_selector_all(".pair, .gallery figure", script)) == {"auto"}
