"""The pictures of the README: the top of the report and the explorer, of a run that `adverse demo` made.

    adverse demo --out demo
    python bench/screenshots.py demo/run

The pages are the real ones, in the machine's Chromium; the slider is moved by keys, as a user would.
"""

from __future__ import annotations

import argparse
import shutil
import threading
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from playwright.sync_api import Page, sync_playwright

from adverse.pages.view.app import routes
from adverse.pages.view.session import ExploredRun
from adverse.report.page import write_report
from adverse.serving import application, open_door

OUT = Path(__file__).resolve().parents[1] / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, QUALITY = 1280, 82
HEIGHTS = {"report.jpg": 900, "explorer.jpg": 1180}
MOST_BYTES = 300 * 1024
PICK = {
    "sut": "centre",
    "right": "haze(visibility_m=97.8)",
    "log": "test/positive002",
    "frame": "34",
    "at": "55",
}
"""A frame of the demo with two people, one on each side of the divider."""
STEPS = 16
"""How far the slider is moved up from where the page opens."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="the run folder of a demo")
    run = parser.parse_args().run
    OUT.mkdir(exist_ok=True)
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(color_scheme="light", reduced_motion="reduce")
        page.goto(write_report(run).resolve().as_uri())
        _keep(page, "report.jpg")
        _explorer(page, run)
        browser.close()


def _explorer(page: Page, run: Path) -> None:
    door, bound = open_door()
    config = uvicorn.Config(application(door, routes(ExploredRun(run))), log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        page.goto(door.address)
        page.goto(f"{door.address.partition('?')[0]}explore?{urlencode(PICK)}")
        page.locator("#k").focus()
        for _ in range(STEPS):
            page.keyboard.press("ArrowRight")
        page.evaluate("document.activeElement.blur()")
        page.wait_for_load_state("networkidle")
        _keep(page, "explorer.jpg")
    finally:
        server.should_exit = True
        thread.join()


def _keep(page: Page, name: str) -> None:
    page.set_viewport_size({"width": WIDTH, "height": HEIGHTS[name]})
    data = page.screenshot(type="jpeg", quality=QUALITY)
    if len(data) > MOST_BYTES:
        raise SystemExit(f"{name} is too large: {len(data)} bytes")
    (OUT / name).write_bytes(data)
    print(f"{OUT / name}: {len(data) // 1024} KB")


if __name__ == "__main__":
    main()
