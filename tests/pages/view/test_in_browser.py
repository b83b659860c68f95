"""The explorer in a real browser: what is moved shows exactly the numbers of the results, mouse or keys."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect

from adverse.pages.view.app import routes
from adverse.pages.view.session import ExploredRun
from adverse.serving import Door, application, open_door
from browsing import NAMES, barriers
from pages.view.test_numbers import curve as numbers_of

MILD = "brightness(scale=0.9)"
PATIENCE_MS = 300_000
"""What a busy machine may take; nothing waits longer than it must."""
LISTENING = "html.scripted"
"""A page whose script runs: a key pressed before that is lost."""
expect.set_options(timeout=PATIENCE_MS)


class Served:
    """A run behind a real port, for as long as the tests need it."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.door, self.bound = open_door()
        config = uvicorn.Config(
            application(self.door, routes(ExploredRun(run))),
            log_level="warning",
            access_log=False,
            lifespan="off",
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.bound]})
        self.thread.start()

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.bound.close()


@pytest.fixture(scope="module")
def served(browser: Browser, run: Path) -> Iterator[Served]:
    assert browser
    one = Served(run)
    yield one
    one.stop()


@pytest.fixture(scope="module")
def served_drive(browser: Browser, driven: Path) -> Iterator[Served]:
    assert browser
    one = Served(driven)
    yield one
    one.stop()


def enter(browser: Browser, door: Door, query: str, *, width: int = 1280) -> tuple[Page, list[str]]:
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(door.address)
    page.goto(f"{door.address.partition('?')[0]}explore?{query}")
    return page, complaints


@pytest.fixture
def opened(browser: Browser, served: Served) -> Iterator[tuple[Page, list[str]]]:
    page, complaints = enter(browser, served.door, f"sut=keen&log=a&frame=2&right={quote(MILD)}&k=10")
    yield page, complaints
    page.context.close()


def curve(run: Path, setting: str, level: str = "image/ROC_A", sut: str = "keen") -> dict[str, Any]:
    return numbers_of(run, sut=sut, level=level, setting=setting)


def spots(page: Page) -> list[str]:
    script = "all => all.map(e => e.getAttribute('transform'))"
    found: list[str] = page.eval_on_selector_all(".now", script)
    return found


def test_it_opens_without_a_complaint(opened: tuple[Page, list[str]]) -> None:
    page, complaints = opened
    expect(page.locator("#play")).to_be_visible()
    assert page.locator(".without-script").is_hidden()
    assert page.locator("#stage image").count() == 2
    assert complaints == []


def test_the_slider_moves_markers_numbers_and_boxes_to_those_of_the_results(
    opened: tuple[Page, list[str]], served: Served
) -> None:
    page, complaints = opened
    keys = {"Home": 0, "End": 99}
    page.locator("#k").focus()
    seen = set()
    for key, k in keys.items():
        page.keyboard.press(key)
        for row in page.locator("#now tbody tr").all():
            wanted = curve(served.run, row.get_attribute("data-line") or "")
            assert row.locator(".safety").text_content() == f"{wanted['safety'][k]:.3f}"
            assert row.locator(".efficiency").text_content() == f"{wanted['efficiency'][k]:.3f}"
            threshold = wanted["threshold"][k]
        for marker in page.locator(".now").all():
            line, panel = marker.get_attribute("data-line"), int(marker.get_attribute("data-panel") or 0)
            wanted = curve(served.run, line or "")
            x, y = (float(part) for part in (marker.get_attribute("transform") or "")[10:-1].split())
            low = 1 - (y - 10) / 230
            assert low == pytest.approx(wanted["efficiency" if panel == 2 else "safety"][k], abs=0.001)
            across = wanted["efficiency"][k] if panel == 0 else k / 99
            assert (x - 46) / 230 == pytest.approx(across, abs=0.001)
        for side in ("left", "right"):
            twin = page.evaluate("fetch(document.getElementById('twin').href).then(a => a.json())")
            boxes = twin["frame"]["sides"][side]["found"]
            shown = page.locator(f".view[data-side={side}] .found.on").count()
            assert shown == sum(box["score"] >= threshold for box in boxes)
            counts = page.locator(f".counts[data-side={side}]").text_content()
            seen.add((k, side, counts))
    assert len({words for _, side, words in seen if side == "left"}) == 2  # missed, then found
    expect(page).to_have_url(re.compile("k=99"))
    assert complaints == []


def test_boxes_fade_in_as_the_threshold_falls(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    page.locator("#k").focus()
    page.keyboard.press("Home")
    hit, person = (
        page.locator(".view[data-side=left] .found.hit"),
        page.locator(".view[data-side=left] .truth"),
    )
    since = int(hit.get_attribute("data-since") or 0)
    for k, opacity in ((since - 1, "0"), (since, "1")):
        page.locator("#k").fill(str(k))
        assert hit.evaluate("e => getComputedStyle(e).opacity") == opacity
        assert ("on" in (person.get_attribute("class") or "").split()) is (opacity == "1")


def test_hits_misses_and_false_alarms_differ_in_more_than_colour(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    script = """() => ["found hit on", "found false on", "truth true"].map(name => {
        const box = document.createElementNS("http://www.w3.org/2000/svg", "g");
        box.setAttribute("class", `box ${name}`);
        box.innerHTML = '<rect class="line" width="9" height="9"/>';
        document.getElementById("stage").append(box);
        return getComputedStyle(box.firstChild).strokeDasharray;
    })"""
    dashes = page.evaluate(script)
    assert len(set(dashes)) == 3
    assert dashes[0] == "none"


def test_a_log_is_scrubbed_by_slider_arrows_links_and_play(opened: tuple[Page, list[str]]) -> None:
    page, complaints = opened
    place = page.locator("#place")
    page.locator("#scrub").focus()
    page.keyboard.press("Home")
    expect(place).to_have_text("frame 1 of 4")
    page.locator("#stage-keys").focus()
    page.keyboard.press("ArrowRight")
    expect(place).to_have_text("frame 2 of 4")
    expect(page.locator("#stage")).to_have_attribute("aria-label", "frame a/1")
    expect(page.locator(".view[data-side=left] image")).to_have_attribute(
        "href", "/picture.png?log=a&frame=1&setting=identity"
    )
    expect(page.locator(".view[data-side=left] .truth .line")).to_have_attribute("x", "11.0")
    page.locator("#next").click()
    expect(place).to_have_text("frame 3 of 4")
    page.locator("#scrub").focus()
    page.keyboard.press("Home")
    page.locator("#play").click()
    expect(place).to_have_text("frame 4 of 4")
    expect(page.locator("#play")).to_have_text("play")
    assert complaints == []


def test_the_divider_moves_by_mouse_and_by_keys(opened: tuple[Page, list[str]]) -> None:
    page, complaints = opened
    box = page.locator("#stage").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, middle)
    page.mouse.up()
    assert page.locator("#cut-left").get_attribute("width") == "80%"
    assert page.locator("#cut-right").get_attribute("x") == "80%"
    page.locator("#at").focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#cut-left").get_attribute("width") == "79%"
    assert page.locator("#divider .line").get_attribute("x1") == "79%"
    assert complaints == []


def test_each_side_of_the_divider_shows_its_own_pixels(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    hrefs = page.eval_on_selector_all("#stage image", "all => all.map(e => e.getAttribute('href'))")
    assert [
        f"setting={quote(name, safe='')}" in href
        for name, href in zip(("identity", MILD), hrefs, strict=True)
    ]
    sizes = page.evaluate(
        """hrefs => Promise.all(hrefs.map(async url => {
            const image = new Image(); image.src = url; await image.decode();
            const canvas = document.createElement("canvas"); canvas.width = 32; canvas.height = 24;
            const paper = canvas.getContext("2d"); paper.drawImage(image, 0, 0);
            return paper.getImageData(13, 10, 1, 1).data[0];
        }))""",
        hrefs,
    )
    assert sizes[0] == 160
    assert sizes[1] == 144


def test_picking_keeps_the_focus_and_the_sensitivity(opened: tuple[Page, list[str]], served: Served) -> None:
    page, complaints = opened
    page.locator("#k").fill("42")
    page.locator("select[name=sut]").focus()
    page.locator("select[name=sut]").select_option("dull")
    expect(page.locator("#curves-title")).to_contain_text("dull")
    assert page.evaluate("document.activeElement.name") == "sut"
    wanted = curve(served.run, "identity", sut="dull")
    expect(page.locator("#now tbody tr[data-line=identity] .safety")).to_have_text(
        f"{wanted['safety'][42]:.3f}"
    )
    page.locator("select[name=log]").select_option("b")
    expect(page.locator("#stage")).to_have_attribute("aria-label", "frame b/0")
    assert complaints == []


def test_it_works_without_its_script(browser: Browser, served: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(served.door.address)
    page.locator("select[name=sut]").select_option("dull")
    page.locator("select[name=right]").select_option(MILD)
    page.locator(".without-script").click()
    assert "dull" in (page.locator("#curves-title").text_content() or "")
    before = page.locator("#place").text_content()
    page.locator("#next").click()
    assert page.locator("#place").text_content() != before
    assert "dull" in (page.locator("#curves-title").text_content() or "")
    context.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_screen(
    browser: Browser, served: Served, served_drive: Served, width: int
) -> None:
    for one in (served, served_drive):
        page, complaints = enter(browser, one.door, "", width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
        page.context.close()


def test_hostile_names_do_nothing(browser: Browser, served: Served) -> None:
    for log in NAMES.values():
        page, complaints = enter(browser, served.door, f"log={quote(log, safe='')}")
        assert complaints == []
        assert page.locator("select[name=log]").input_value() == log
        page.context.close()


def test_the_closed_loop_follows_frame_and_sensitivity(browser: Browser, served_drive: Served) -> None:
    page, complaints = enter(browser, served_drive.door, "log=test/0000&frame=0&k=60&level=loop/annotated")
    script = "fetch(document.getElementById('twin').href.replace('explore', 'drive')).then(a => a.json())"
    dots = page.locator("#drive .at-frame[data-panel='0']")
    first = dots.first.get_attribute("transform")
    page.locator("#scrub").focus()
    page.keyboard.press("ArrowRight")
    twin = page.evaluate(script)
    for number, run in enumerate(twin["runs"]):
        spot = run["spots"][1]
        if spot is not None:
            x, y = (f"{value:g}" for value in spot[0])
            expect(dots.nth(number)).to_have_attribute("transform", f"translate({x} {y})")
    assert dots.first.get_attribute("transform") != first
    assert page.locator("[data-frame-words]").text_content() == twin["frames"][1]["words"]
    page.locator("#k").focus()
    page.keyboard.press("End")
    expect(page.locator("#drive")).to_have_attribute("data-k", "99")
    twin = page.evaluate(script)
    assert page.locator("#drive p").first.text_content() == "; ".join(twin["verdicts"]) + "."
    assert complaints == []
    page.context.close()


def test_a_server_that_is_gone_is_said(browser: Browser, run: Path) -> None:
    one = Served(run)
    page, _ = enter(browser, one.door, "")
    assert page.locator("#gone").is_hidden()
    one.stop()
    page.locator("#next").click()
    expect(page.locator("#gone")).to_be_visible()
    page.context.close()


def test_the_grid_is_walked_by_keys_alone_and_addresses_say_all(browser: Browser, served: Served) -> None:
    page, complaints = enter(browser, served.door, "")
    page.locator("text=all frames").click()
    expect(page.locator(".tiles img").first).to_have_js_property("complete", value=True)
    assert page.locator(".tiles img").first.evaluate("image => image.naturalWidth") > 0
    page.locator("select[name=sut]").select_option("dull")
    page.wait_for_url("**sut=dull**")
    page.locator("select[name=show]").select_option("lost")
    page.wait_for_url("**show=lost**")
    tiles = page.locator(".tiles a")
    count, wanted = tiles.count(), tiles.nth(1).get_attribute("href") or ""
    assert count > 2
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(tiles.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{wanted}")
    expect(page.locator(f"{LISTENING} #walk b")).to_have_text(f"2 of {count}")
    shared = page.url
    steps = (("n", 3), ("ArrowLeft", 2), ("ArrowRight", 3), ("p", 2), ("ArrowLeft", 1), ("ArrowLeft", 1))
    for key, place in steps:
        page.keyboard.press(key)
        expect(page.locator(f"{LISTENING} #walk b")).to_have_text(f"{place} of {count}")
    page.goto(shared)
    expect(page.locator(f"{LISTENING} #walk b")).to_have_text(f"2 of {count}")
    page.locator("#next").click()
    expect(page.locator(f"{LISTENING} #walk b")).to_have_text(f"3 of {count}")
    assert page.locator("#away").is_hidden()
    page.locator("#scrub").focus()
    page.keyboard.press("End" if page.locator("#scrub").input_value() == "0" else "Home")
    page.locator("#away a").click()
    expect(page.locator(f"{LISTENING} #walk b")).to_have_text(f"3 of {count}")
    assert page.locator("#away").is_hidden()
    page.locator("text=back to the grid").click()
    page.wait_for_url("**/grid?*sut=dull*show=lost*")
    assert complaints == []
    page.context.close()


def test_arrows_lead_from_log_to_log(opened: tuple[Page, list[str]]) -> None:
    page, complaints = opened
    logs = page.locator("select[name=log] option").evaluate_all("all => all.map(e => e.value)")
    place = logs.index("a")
    page.keyboard.press("ArrowRight")
    expect(page.locator(f"{LISTENING} #place")).to_have_text("frame 4 of 4")
    page.keyboard.press("ArrowRight")
    expect(page.locator("select[name=log]")).to_have_value(logs[place + 1])
    expect(page.locator(f"{LISTENING} #place")).to_have_text("frame 1 of 4")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("select[name=log]")).to_have_value("a")
    expect(page.locator(f"{LISTENING} #place")).to_have_text("frame 4 of 4")
    assert complaints == []


def test_nobody_is_shut_out(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    assert barriers(page) == []
    page.locator("text=all frames").click()
    expect(page.locator(".tiles img").first).to_have_js_property("complete", value=True)
    assert barriers(page) == []
