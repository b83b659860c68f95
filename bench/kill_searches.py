"""kill -9 searches and runs that stop early, again and again; resume with other workers; the same answer.

`run --until`, `limits` and `margins` choose what is run next by what was found before. Each is run once
without a kill, then killed with all of its workers after a random number of units, resumed by another number
of workers, killed again, and at last left to end: what it writes for machines must be the same.

    python bench/kill_searches.py --kills 3 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from adverse.data.images import write_image
from adverse.seeds import generator

LOGS, WORKERS = 26, (2, 1, 4, 2)
SUT = """
import numpy as np
from adverse import Detections, sut

class Spot:
    classes = ("person",)
    def detect(self, images):
        found = []
        for image in images:
            rows, columns = np.nonzero(image[..., 0] > 90)
            box = [[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]] if len(rows) else []
            found.append(Detections(np.reshape(box, (-1, 4)), [float(image.max()) / 255] * len(box)))
        return found

@sut
def spot():
    \"\"\"Find the bright spot where it is bright enough.\"\"\"
    return Spot()
"""
STUDY: dict[str, Any] = {
    "name": "killed",
    "seed": 3,
    "plugins": ["spot.py"],
    "data": {"format": "folder", "root": "data"},
    "suts": [{"name": "spot", "adapter": "spot"}],
    "mutations": [f"brightness(scale={scale})" for scale in (0.9, 0.6, 0.3)],
    "operating_point": {"score": 0.1},
    "robustness": {"bootstrap": 100},
    "unit_frames": 4,
    "limits": {"rules": [{"measure": "recall", "at_least": 0.6}], "conditions": []},
    "margins": {"conditions": []},
}
SCALES = {"brightness": {"scale": [0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.2]}}
RULES = [
    {"measure": "recall", "setting": "clean", "at_least": 0.5},
    {"measure": "recall", "setting": "brightness(scale=0.6)", "at_least": 0.6},
    {"measure": "recall", "setting": "brightness(scale=0.3)", "at_least": 0.5},
]


class Search(NamedTuple):
    """A command, and the file that holds its answer."""

    command: tuple[str, ...]
    answer: str


SEARCHES = (
    Search(("run", "study.yaml", "--until", "rules.yaml"), "until.json"),
    Search(("limits", "study.yaml"), "limits.json"),
    Search(("margins", "study.yaml"), "margins.json"),
)


def write_data(folder: Path) -> None:
    """Write logs with a spot of some brightness and logs without, the SUT, the study and the rules."""
    images: list[dict[str, Any]] = []
    truth: list[dict[str, Any]] = []
    for number in range(2 * LOGS):
        rng = generator(number, "kill searches")
        image = rng.integers(0, 50, (24, 32, 3)).astype(np.uint8)
        name = f"log{number:02}/0.png"
        (folder / "data" / name).parent.mkdir(parents=True)
        images.append({"id": number + 1, "file_name": name, "width": 32, "height": 24})
        if number < LOGS:
            image[8:16, 10:16] = rng.integers(100, 250)
            truth.append({"id": number + 1, "image_id": number + 1, "category_id": 1, "bbox": [10, 8, 6, 8]})
        write_image(folder / "data" / name, image)
    every = {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "person"}]}
    (folder / "data" / "truth.json").write_text(json.dumps(every))
    (folder / "spot.py").write_text(SUT)
    for section in ("limits", "margins"):
        STUDY[section]["conditions"] = [SCALES]
    (folder / "study.yaml").write_text(json.dumps(STUDY))
    (folder / "rules.yaml").write_text(json.dumps({"rules": RULES}))


def acknowledged(out: Path) -> int:
    """Return how much the journals below a folder hold, in bytes."""
    return sum(path.stat().st_size for path in out.rglob("journal"))


def started(folder: Path, search: Search, out: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start a search."""
    command = [sys.executable, "-m", "adverse", *search.command, "--out", str(out), "--workers", str(workers)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def killed(process: subprocess.Popen[bytes], out: Path, more: int) -> bool:
    """Kill a search and all its workers once its journals have grown by so much; False: it ended before."""
    before = acknowledged(out)
    while acknowledged(out) < before + more:
        if process.poll() is not None:
            return False
        time.sleep(0.01)
    everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for victim in everyone:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    process.wait()
    return True


def ended(process: subprocess.Popen[bytes]) -> None:
    """Wait for a search, and raise where it broke: verdicts end with 0, 1 or 3."""
    _, errors = process.communicate()
    if process.returncode not in (0, 1, 3) or b"Traceback" in errors:
        raise SystemExit(errors.decode())


def main() -> None:
    """Print for each search how often it was killed, and whether its answer is the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        for search in SEARCHES:
            straight, cut, rng = folder / "straight", folder / "cut", generator(given.seed, search.answer)
            straight, cut = straight / search.answer, cut / search.answer
            ended(started(folder, search, straight, 1))
            kills = 0
            for number in range(given.kills):
                process = started(folder, search, cut, WORKERS[number % len(WORKERS)])
                kills += killed(process, cut, int(rng.integers(1, acknowledged(straight) // given.kills)))
            ended(started(folder, search, cut, WORKERS[given.kills % len(WORKERS)]))
            same = (straight / search.answer).read_text() == (cut / search.answer).read_text()
            wrong += not same
            words = "the same answer" if same else "ANOTHER ANSWER"
            print(f"adverse {' '.join(search.command)}: killed {kills} times, {words}", flush=True)
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
