"""Small runs to look at, and a real browser: the machine's Chromium, driven by Playwright.

The report and the pages share them; `conftest.py` makes the fixtures known to all tests.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright
from starlette.routing import BaseRoute

import adverse
from adverse.analysis.results import analyze
from adverse.data.images import write_image
from adverse.report.page import write_report
from adverse.serving import application, open_door
from adverse.types import Image
from synthetic_run import Size, write_run

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
HOSTILE = "<script>alert(1)</script>"
NAMES = {
    "bidi": "row\u202e3",
    "formula": "=cmd()",
    "quote": "\"'><img src=x onerror=alert(1)>",
    "long": "n" * 120,
}


GRAVE = ("serious", "critical")
CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}


@contextlib.contextmanager
def served(routes: Sequence[BaseRoute]) -> Iterator[str]:
    """Serve a local page in a thread, and yield its address."""
    door, bound = open_door()
    config = uvicorn.Config(application(door, routes), log_level="warning", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield door.address
    server.should_exit = True
    thread.join()
    bound.close()


def barriers(page: Page) -> list[str]:
    """Return what axe-core finds to shut people out of a page, in the light and, by contrast, in the dark."""
    found = []
    for scheme, options in (("light", {"resultTypes": ["violations"]}), ("dark", CONTRAST)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for violation in Axe().run(page, options=options).response["violations"]:
            if violation["impact"] in GRAVE:
                nodes = [node["html"][:160] for node in violation["nodes"]]
                found.append(f"{scheme}: {violation['id']}: {len(nodes)}: {nodes[:4]}")
    page.emulate_media(color_scheme=None)
    return found


def barriers_of(browser: Browser, path: Path) -> list[str]:
    """Return the same of a page on disk, opened as narrow as a phone, and whether it is wider than that."""
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto(path.as_uri())
    wide = page.evaluate("document.documentElement.scrollWidth")
    found = [*barriers(page), *([f"{wide} px wide"] if wide > 400 else [])]
    page.close()
    return found


class Bright:
    """Finds the bright box; surer the brighter it is. A jumpy one also sees something in the corner."""

    classes = ("person",)

    def __init__(self, fingerprint: str, least: int, *, jumpy: bool = False) -> None:
        self.fingerprint = fingerprint
        self.least = least
        self.jumpy = jumpy

    def detect(self, images: Sequence[Image]) -> list[Any]:
        found: list[Any] = []
        for image in images:
            rows, columns = np.nonzero(image[..., 0] > self.least)
            boxes, scores = [], []
            if len(rows):
                boxes.append([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
                scores.append(float(image[..., 0].max()) / 255)
            if self.jumpy:
                boxes.append([0, 0, 5, 5])
                scores.append(0.2 + float(image[0, 0, 0]) / 100)
            found.append((boxes, scores))
        return found


def write_logs(root: Path, logs: Sequence[str]) -> None:
    rng = np.random.default_rng(1)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, log in enumerate(logs):
        for frame in range(4):
            image = rng.integers(0, 60, (24, 32, 3)).astype(np.uint8)
            if number % 2 == 0:
                image[8:16, 10 + frame : 16 + frame] = 120 + 20 * frame
                box = [10 + frame, 8, 6, 8]
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": len(images) + 1,
                        "category_id": 1,
                        "bbox": box,
                        "attributes": {"occluded": bool(frame % 2)},
                    }
                )
            name = f"{log}/{frame}.png"
            (root / log).mkdir(parents=True, exist_ok=True)
            write_image(root / name, image)
            images.append({"id": len(images) + 1, "file_name": name, "width": 32, "height": 24})
    categories = [{"id": 1, "name": "person"}, {"id": 2, "name": HOSTILE}]
    truth = {"images": images, "annotations": annotations, "categories": categories}
    (root / "truth.json").write_text(json.dumps(truth))


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_logs(folder / "data", [*NAMES.values(), "a", "b", "c", "d", "e", "f"])
    study = {
        "name": "a study",
        "data": {"format": "folder", "root": str(folder / "data")},
        "mutations": ["brightness(scale=0.5)", {"brightness": {"scale": 0.9}, "group": "mild"}],
        "robustness": {"bootstrap": 50},
    }
    detectors = {
        "keen": Bright("keen", 70, jumpy=True),
        "dull": Bright("dull", 140),
        "blind": Bright("blind", 255),
    }
    adverse.run(study, folder / "run", detectors=detectors)
    write_report(folder / "run")
    return folder / "run"


@pytest.fixture(scope="session")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without images, of all levels up to the closed loop."""
    folder = tmp_path_factory.mktemp("driven") / "run"
    size = Size(suts=2, conditions=3, logs=6, frames_per_log=24, validation_logs=2, bootstrap=0)
    write_run(folder, size)
    analyze(folder, workers=1)
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium once; skip where there is none."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()
