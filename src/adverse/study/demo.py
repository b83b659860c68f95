"""The studies of `adverse demo`: bundled detectors in a rendered orchard, as a first look or whole.

Synthetic: they show what the machinery finds, and nothing about any product.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from adverse.errors import StudyError
from adverse.suts import bundled
from adverse.types import Split

SEED = 6
"""Of the logs; the bundled detectors were trained and tuned on those of other seeds."""
SIZE = (320, 240)
POSE_NOISE_MM = 20.0
"""Of a satellite receiver with corrections (RTK), as on the robots that real logs come from."""
DISPARITY_NOISE_PX = 0.25
"""Of a stereo matcher on ordinary texture."""
NOISE = (POSE_NOISE_MM, DISPARITY_NOISE_PX)
LEVELS = ("image", "located", "path", "loop")
MODELS = "models"


@dataclass(frozen=True)
class Demo:
    """A demo by its name: how many logs, half of them with people, which detectors, which mutations."""

    name: str
    logs: Mapping[Split, int]
    models: tuple[str, ...]
    mutations: tuple[str, ...]
    test_frames: int | None = None
    """At most so many of the test frames, evenly spaced; None: all of them."""

    @property
    def data(self) -> dict[str, Any]:
        """The study's data section."""
        thinned = {} if self.test_frames is None else {"test_frames": self.test_frames}
        return {
            "format": "orchard-world",
            "logs": dict(self.logs),
            "size": list(SIZE),
            "seed": SEED,
            "pose_noise_mm": POSE_NOISE_MM,
            "disparity_noise_px": DISPARITY_NOISE_PX,
            "right": False,
            **thinned,
        }

    def study(self) -> dict[str, Any]:
        """Return the study, whose models lie in a folder beside it."""
        return {
            "name": self.name,
            "seed": 7,
            "data": self.data,
            "suts": [bundled.model(name).section(name, MODELS) for name in self.models],
            "mutations": list(self.mutations),
            "levels": list(LEVELS),
        }


NETS = ("anchor", "centre", "two-stage")
"""The sliding window (hog) is left to the whole demo: it takes longer than all of these together."""
QUICK = Demo("demo", {"validation": 16, "test": 80}, NETS, ("demo",), test_frames=1400)
"""Of 2097; the truth is driven by the same frames. No finding changed on earlier logs (bench/thinning.py)."""
FULL = Demo("demo-full", {"validation": 32, "test": 160}, (*NETS, "hog"), ("field-2021",), test_frames=1600)
"""Mutations and levels are those of Pezzementi et al. 2021; two frames of five, as hog is slow."""


def write_demo(demo: Demo, out: Path) -> Path:
    """Write a demo's study and models into a folder, and return the study; one that is there is kept.

    It may have been changed by its user, but must be a study of the same demo.
    """
    study = out / "study.yaml"
    bundled.copy_models(out / MODELS)
    if not study.exists():
        content = json.loads(json.dumps(demo.study()))  # shares nothing, so that YAML needs no anchors
        study.write_text(yaml.safe_dump(content, sort_keys=False, default_flow_style=None))
    elif (name := _content(study).get("name", demo.name)) != demo.name:
        raise StudyError(
            "the folder holds another study",
            where=str(study),
            got=f"a study called {name!r}",
            wanted=f"the study {demo.name!r}, or none",
            fix="Give another folder with --out.",
        )
    return study


def reads_demo_data(demo: Demo, study: Path) -> bool:
    """Return whether a study still reads the demo's data; what else is wrong with it the run will say."""
    return bool(_content(study).get("data") == demo.data)


def _content(study: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(study.read_bytes())
    except yaml.YAMLError:
        return {}
    return content if isinstance(content, dict) else {}
