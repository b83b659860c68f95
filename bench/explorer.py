"""How long the explorer takes to open a run and show its pages: 10,000 and 100,000 images, each a log.

    python bench/explorer.py 10000 100000
    python bench/explorer.py --write 10000 100000      # also into docs/explorer.md

The runs are made up, without images (`synthetic_run.py`), so what is measured is everything but rendering.
Each page is asked for as a browser would, first with nothing remembered and then again. Seconds are processor
time.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from starlette.testclient import TestClient

from adverse.analysis.results import analyze
from adverse.pages.view.app import routes
from adverse.pages.view.session import ExploredRun
from adverse.serving import Door, application
from report import machine, table, write
from synthetic_run import UNIT_FRAMES, Size, write_run

DOOR = Door("127.0.0.1", 8123, "token")
SUTS, CONDITIONS = 1, 3
WORDS = (
    f"Seconds of processor time, not of waiting; one measurement. {SUTS} SUT, {CONDITIONS} settings, the "
    f"default `unit_frames: {UNIT_FRAMES}`. The first frame also loads what runs mutations and matching."
)
PAGES = {
    "grid": "/grid",
    "grid, lost of one slice": "/grid?show=lost&slice={slice}&mutation={mutation}",
    "grid, lowest score, last page": "/grid?sort=score&page=999999",
    "frame from the grid": "{tile}",
    "next frame": "{next}",
    "frame of any log": "/explore",
    "thumbnail without a picture": "{thumbnail}",
}


def timed(act: Callable[[], object]) -> float:
    """Return the processor time of all threads: a busy machine stretches only the wall time."""
    start = time.process_time()
    act()
    return time.process_time() - start


def measure(folder: Path, frames: int) -> list[tuple[str, float, float, int]]:
    """Return name, seconds at first and again, and bytes, of opening the run and of each page."""
    size = Size(
        suts=SUTS,
        conditions=CONDITIONS,
        logs=frames,
        frames_per_log=1,
        validation_logs=min(1000, frames // 10),
        detections=3.0,
        bootstrap=0,
        levels=("image",),
    )
    print(f"{frames} frames: written in {timed(lambda: write_run(folder, size)):.0f} s", flush=True)
    print(f"  analysed in {timed(lambda: analyze(folder)):.0f} s", flush=True)
    opened: list[ExploredRun] = []
    rows = [("opening the run", timed(lambda: opened.append(ExploredRun(folder))), 0.0, 0)]
    client = TestClient(application(DOOR, routes(opened[0])), base_url="http://127.0.0.1:8123")
    client.cookies.set(DOOR.cookie, DOOR.token)
    known: dict[str, str] = {}
    for name, address in PAGES.items():
        url = address.format(**known)

        def ask(url: str = url) -> None:
            client.get(url).raise_for_status()

        once, again = timed(ask), timed(ask)
        size_bytes = len(client.get(url).content)
        rows.append((name, once, again, size_bytes))
        print(f"  {name}: {once:.2f} s, again {again:.2f} s, {size_bytes} bytes", flush=True)
        if name == "grid":
            page = client.get("/grid.json").json()
            tile = page["tiles"][0]
            known |= {"tile": tile["address"], "thumbnail": tile["thumbnail"], "mutation": tile["setting"]}
            known["slice"] = page["choices"]["slice"][1]
            known["next"] = page["tiles"][1]["address"]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frames", type=int, nargs="+")
    parser.add_argument("--write", action="store_true", help="write the table into docs/explorer.md")
    asked = parser.parse_args()
    columns = {}
    for frames in asked.frames:
        folder = Path(tempfile.mkdtemp()) / "run"
        try:
            columns[frames] = measure(folder, frames)
        finally:
            shutil.rmtree(folder.parent)
    first = columns[asked.frames[0]]
    head = ["", *(f"{frames:,} images" for frames in asked.frames), *(f"again, {n:,}" for n in asked.frames)]
    rows = [
        [name]
        + [f"{columns[frames][n][1]:.2f} s" for frames in asked.frames]
        + [f"{columns[frames][n][2]:.2f} s" if columns[frames][n][3] else "" for frames in asked.frames]
        for n, (name, *_) in enumerate(first)
    ]
    lines = table(head, rows)
    print("\n".join(lines))
    if asked.write:
        write("explorer.md", "measured times", [*lines, "", f"{WORDS} {machine()}"])


if __name__ == "__main__":
    main()
