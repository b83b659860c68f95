"""A small human study, served by a process of its own or asked without a network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml
from starlette.testclient import TestClient

from adverse.humans.experiment import Experiment, participant_of
from adverse.humans.records import Answer
from adverse.humans.server import routes
from adverse.humans.stimuli import Stimuli, Stimulus
from adverse.humans.study_file import HumanStudyFile, read_human_study
from adverse.serving import Door, application

HOSTILE = "<b onclick=alert(1)>disc</b>"
DOOR = Door("127.0.0.1", 8123, "secret-token")
STUDY: dict[str, Any] = {
    "name": "Shapes",
    "data": {"format": "class-folders", "root": "photos"},
    "question": "What was it?",
    "categories": [HOSTILE, "square"],
    "truth": {HOSTILE: ["disc"], "square": ["square"]},
    "transformations": ["t.contrast"],
    "exposure_ms": 100,
    "fixation_ms": 200,
    "mask_ms": 50,
    "batch": 4,
    "batches": 2,
    "qualification": {"items": 0, "right": 0},
    "sanity": {"items": 1, "exposure_ms": 100},
    "consent": {"version": 1, "text": "You will see shapes.\n\nYou can stop at any time."},
}


def write_study(folder: Path, images: int = 12, **changes: object) -> Path:
    """Write a study of discs and squares on noise."""
    rng = np.random.default_rng(0)
    for shape in ("disc", "square"):
        place = folder / "photos" / shape
        place.mkdir(parents=True, exist_ok=True)
        for number in range(images // 2):
            pixels = cv2.GaussianBlur(rng.integers(0, 256, (72, 72, 3)).astype(np.uint8), (0, 0), 2)
            if shape == "disc":
                cv2.circle(pixels, (36, 36), 18, (250, 40, 40), -1)
            else:
                cv2.rectangle(pixels, (20, 20), (52, 52), (40, 40, 250), -1)
            cv2.imwrite(str(place / f"{number:02}.png"), pixels)
    path = folder / "shapes.yaml"
    path.write_text(yaml.safe_dump({**STUDY, **changes}))
    return path


def happened(study: Path) -> list[dict[str, Any]]:
    """Read the records of a study as they are on the disk, without our reader."""
    lines = (study.parent / "shapes-answers" / "answers.jsonl").read_text().splitlines()
    return [json.loads(line.partition(" ")[2]) for line in lines]


class QuickStimuli(Stimuli):
    """Takes every visual change for reached, up to a limit, without looking for it."""

    reach = 1.0

    def changed(self, image: str, transformation: str, wanted: float) -> Stimulus:
        assert transformation in self.study.transformations
        return self.original(image)._replace(dv=min(wanted, self.reach))


def experiment_of(study: Path) -> Experiment:
    file: HumanStudyFile = read_human_study(study)
    file.folder.mkdir(exist_ok=True)
    return Experiment(file, QuickStimuli(file))


def visitor(experiment: Experiment, door: Door = DOOR, base_url: str = "http://127.0.0.1:8123") -> TestClient:
    """Return somebody who was given the address."""
    client = TestClient(application(door, routes(experiment, door)), base_url=base_url)
    assert client.get("/", params={"token": door.token}).status_code == 200
    return client


def participant(experiment: Experiment) -> TestClient:
    """Return somebody who agreed."""
    client = visitor(experiment)
    assert client.post("/join", data={"consent": experiment.study.consent.version}).status_code == 200
    return client


def quick_batch(experiment: Experiment, secret: str) -> None:
    """Go through a batch without the pages."""
    number = participant_of(secret)
    if number not in experiment.state.people:
        experiment._write({"kind": "joined", "participant": number, "consent": "1"})
    person = experiment.state.people[number]
    experiment.next_batch(person)
    while (trial := experiment.start(person, f"request-{len(experiment.state.started)}")) is not None:
        experiment.answer(person, trial.id, Answer(trial.truth, 100, 16.7, 500))


class Served:
    """A study served by a process of its own."""

    def __init__(self, study: Path, *options: str) -> None:
        self.study = study
        self.options = options
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "adverse", "humans", "serve", str(self.study), *self.options]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]

    def kill(self) -> None:
        """End it without a warning, as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve one study to all tests of a file; each is a participant of its own."""
    server = Served(write_study(tmp_path_factory.mktemp("served")))
    yield server
    server.kill()
