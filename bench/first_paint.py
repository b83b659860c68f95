"""When pages show their first screen, and how large they are, in the machine's Chromium.

    python bench/first_paint.py NAME=PAGE_OR_RUN... [--write]

A page is an HTML file (a report, a comparison, a history); a run folder stands for its explorer: grid and
frame. Each is opened a few times in a new profile, and the best counts, as others may use the machine. *First
text* is the browser's own first contentful paint, *first screen* its largest: of the picture or the block of
text that fills most of the window.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from report import machine, table, write
from screenshots import BROWSERS, PATIENCE_MS, explorer

TIMES = 5
WIDTH, HEIGHT = 1280, 800
PAINTS = """() => Promise.all(["paint", "largest-contentful-paint"].map(type => new Promise(done =>
  new PerformanceObserver(list => done(list.getEntries().at(-1).startTime)).observe({type, buffered: true})
)))"""
SIZE = """() => [performance.getEntriesByType("navigation")[0], ...performance.getEntriesByType("resource")]
  .reduce((sum, entry) => sum + entry.encodedBodySize, 0)"""
WORDS = (
    f"Best of {TIMES}, each in a new profile, {WIDTH} x {HEIGHT}; wall time on a machine that others used. "
    "Explorer: its run was opened before; the size is of all that the page loads."
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", metavar="NAME=PATH")
    parser.add_argument("--write", action="store_true", help="also into docs/performance.md")
    chosen = parser.parse_args()
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for entry in chosen.pages:
            name, _, path = entry.partition("=")
            with addresses(name, Path(path)) as pages:
                rows += [[title, *measured(browser, address, door)] for title, address, door in pages]
        browser.close()
    heads = ["page", "first text, s", "first screen, s", "size, MB"]
    text = [f"{machine()}. {WORDS}", "", *table(heads, rows)]
    print("\n".join(text))
    if chosen.write:
        write("performance.md", "first paint", text)


@contextlib.contextmanager
def addresses(name: str, path: Path) -> Iterator[list[tuple[str, str, str]]]:
    """Yield title, address and the address that lets in, of a page on disk or of a run's explorer."""
    if path.is_file():
        yield [(name, path.resolve().as_uri(), "")]
        return
    with explorer(path) as door:
        host = door.address.partition("?")[0]
        pages = {"grid": f"{host}grid", "a frame": f"{host}explore"}
        yield [(f"{name}, {words}", address, door.address) for words, address in pages.items()]


def measured(browser: Browser, address: str, door: str) -> list[str]:
    """Return seconds to the first text and the first screen, and megabytes."""
    paints, size = [], 0
    for _ in range(TIMES):
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        if door:
            page.goto(door)
        page.goto(address, wait_until="load")
        paints.append(page.evaluate(PAINTS))
        size = int(page.evaluate(SIZE))
        context.close()
    if not door:
        size = Path(address.removeprefix("file://")).stat().st_size
    first, largest = (min(values) / 1000 for values in zip(*paints, strict=True))
    return [f"{first:.2f}", f"{largest:.2f}", f"{size / 1e6:.2f}"]


if __name__ == "__main__":
    main()
