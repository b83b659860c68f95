"""Pictures and small child programs that the SUT tests share."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from adverse.types import Image

settings.register_profile("no time limits", deadline=None)
settings.load_profile("no time limits")

READY = '@adverse {"protocol": 1, "classes": ["person", "car"], "ready": true}'

ANSWERING = f"""
import json, os, signal, sys, time
def say(text):
    sys.stdout.write(text + "\\n"); sys.stdout.flush()
def reply(number, detections):
    say("@adverse " + json.dumps({{"id": number, "detections": detections}}))
ONE = {{"boxes": [[1, 2, 3, 4]], "scores": [0.5], "labels": [1]}}
say('{READY}')
for line in iter(sys.stdin.buffer.readline, b""):
    message = json.loads(line)
    number = message["id"]
    pixels = [sys.stdin.buffer.read(i["width"] * i["height"] * i["channels"]) for i in message["images"]]
"""
"""A child that has read a request; a test adds, indented, what it does next."""

Script = Callable[[str], list[str]]


REAL_FILES = Path(os.environ.get("ADVERSE_TEST_FILES", Path(__file__).parents[3] / "shared"))
"""Real models and photos are no part of the project; tests that need them are skipped without."""


@pytest.fixture
def photos() -> Path:
    return _real("data/coco128_permissive")


@pytest.fixture
def fastestdet() -> Path:
    return _real("models/FastestDet.onnx")


def _real(name: str) -> Path:
    path = REAL_FILES / name
    if not path.exists():
        pytest.skip(f"needs {name} in the folder that ADVERSE_TEST_FILES names")
    return path


@pytest.fixture
def picture() -> Image:
    return np.random.default_rng(3).integers(0, 256, (48, 64, 3)).astype(np.uint8)


@pytest.fixture
def program(tmp_path: Path) -> Script:
    """Write a whole Python program and return the command that runs it."""

    def write(text: str) -> list[str]:
        path = tmp_path / "child.py"
        path.write_text(text, "utf-8")
        return [sys.executable, str(path)]

    return write


@pytest.fixture
def on_request(program: Script) -> Script:
    """Write a program that speaks the protocol and does `body` on every request."""

    def write(body: str) -> list[str]:
        return program(ANSWERING + textwrap.indent(textwrap.dedent(body), "    "))

    return write
