"""One `adverse run` does each thing once: validate, load plug-ins, read data, open the run, make tables."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from adverse.cli.app import app
from analysis.test_results import write_images

ONCE = (
    "study/spec.py:_validated",
    "plugins/registry.py:load_file",
    "data/formats.py:read_format",
    "study/plan.py:make_plan",
    "store/finished_run.py:finished",
    "store/read.py:Store.__init__",
)
TABLE = re.compile(r"(study|report)/\w+\.py:[a-z]\w*_tables?")
"""A public function that makes tables for the run folder or the report."""
DECODING = "study decodes a unit"
SAMPLING = "study/shifted_truth.py"
"""Reads again, but never more than 150 frames."""


class Calls:
    """Counts the calls of our functions while a block runs, and the units that the study decodes."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> Counter[str]:
        sys.setprofile(self._seen)
        return self.counts

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _seen(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code, caller = frame.f_code, frame.f_back
        _, ours, path = code.co_filename.partition("/src/adverse/")
        if ours:
            self.counts[f"{path}:{code.co_qualname}"] += 1
        elif code.co_name == "read_table" and caller and "/adverse/study/" in caller.f_code.co_filename:
            self.counts[DECODING] += not caller.f_code.co_filename.endswith(SAMPLING)


def recorded(folder: Path) -> dict[str, Any]:
    """Write the answers of a SUT for every setting, and return its section."""
    answers = [{"image_id": n, "category_id": 1, "bbox": [10, 5, 20, 20], "score": 0.9} for n in range(8)]
    for setting in ("identity", "brightness(scale=0.5)"):
        (folder / f"{setting}.json").write_text(json.dumps(answers))
    path = "{mutation}.json"
    return {"name": "recorded", "adapter": "predictions", "path": path, "categories": {1: "person"}}


@pytest.mark.parametrize("with_recordings", [False, True])
def test_each_thing_is_done_once(tmp_path: Path, with_recordings: bool) -> None:  # noqa: FBT001
    write_images(tmp_path)
    suts = [{"name": "square", "adapter": "square"}, *([recorded(tmp_path)] if with_recordings else [])]
    study = {
        "name": "once",
        "plugins": ["square.py"],
        "data": {"format": "coco", "root": "data", "annotations": "truth.json"},
        "suts": suts,
        "mutations": ["brightness(scale=0.5)"],
        "unit_frames": 2,
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    command = ["run", str(tmp_path / "study.yaml"), "--workers", "0", "--out", str(tmp_path / "run")]
    with Calls() as calls:
        result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run" / "report.html").exists()
    assert {name: calls[name] for name in ONCE} == dict.fromkeys(ONCE, 1)
    tables = {name: count for name, count in calls.items() if TABLE.fullmatch(name)}
    assert len(tables) >= 8
    assert tables == dict.fromkeys(tables, 1)
    assert calls[DECODING] == 0
