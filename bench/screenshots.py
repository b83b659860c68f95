"""The pictures of README and docs: the top of a demo's report, the explorer's grid and a frame.

    adverse demo --out demo
    python bench/screenshots.py demo/run

The pages are the real ones, in the machine's Chromium. The frame is the first of the
grid's selection.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from playwright.sync_api import Page, sync_playwright

from adverse.pages.view.app import routes
from adverse.pages.view.session import ExploredRun
from adverse.report.page import write_report
from adverse.serving import Door, application, open_door

OUT = Path(__file__).resolve().parents[1] / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, QUALITY = 1280, 82
HEIGHTS = {"report.jpg": 800, "explorer.jpg": 1180, "grid.jpg": 800}
MOST_BYTES = 300 * 1024
PATIENCE_MS = 300_000
"""Sixty thumbnails of rendered mutations take their time on a busy machine."""
SELECTED = {"show": "lost", "sort": "order"}
"""What the grid shows: people found on clean frames and missed under a mutation, in the data set's order."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="the run folder of a demo")
    parser.add_argument("--out", type=Path, default=OUT, help="where the pictures go")
    chosen = parser.parse_args()
    run, out = chosen.run, chosen.out
    out.mkdir(exist_ok=True, parents=True)
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(color_scheme="light", reduced_motion="reduce")
        page.set_default_timeout(PATIENCE_MS)
        page.goto(write_report(run).resolve().as_uri())
        _keep(page, out / "report.jpg")
        _explorer(page, run, out)
        browser.close()


@contextlib.contextmanager
def explorer(run: Path) -> Iterator[Door]:
    """Serve a run's explorer, and yield who is let in."""
    door, bound = open_door()
    config = uvicorn.Config(application(door, routes(ExploredRun(run))), log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield door
    finally:
        server.should_exit = True
        thread.join()


def _explorer(page: Page, run: Path, out: Path) -> None:
    with explorer(run) as door:
        page.goto(door.address)
        page.goto(f"{door.address.partition('?')[0]}grid?{urlencode(SELECTED)}")
        page.set_viewport_size({"width": WIDTH, "height": HEIGHTS["grid.jpg"]})
        page.wait_for_load_state("networkidle")
        _keep(page, out / "grid.jpg")
        page.locator(".tiles a").first.click()
        page.wait_for_load_state("networkidle")
        _keep(page, out / "explorer.jpg")


def _keep(page: Page, path: Path) -> None:
    page.set_viewport_size({"width": WIDTH, "height": HEIGHTS[path.name]})
    data = page.screenshot(type="jpeg", quality=QUALITY)
    if len(data) > MOST_BYTES:
        raise SystemExit(f"{path.name} is too large: {len(data)} bytes")
    path.write_bytes(data)
    print(f"{path}: {len(data) // 1024} KB")


if __name__ == "__main__":
    main()
