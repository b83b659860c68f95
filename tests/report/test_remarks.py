"""What is said about figures that are not there: the true reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import adverse
from adverse.analysis.results import read_summary
from adverse.report.remarks import remarks
from adverse.store.finished_run import finished
from analysis.test_context import FRAMES, PERSON_M, STEP_M, perfect, write_drives

LAST_M = PERSON_M - STEP_M * (FRAMES - 1)
"""How far from the person the drive ends."""


@pytest.mark.parametrize(("control_radius_m", "stops"), [(LAST_M - 0.3, False), (LAST_M + 0.3, True)])
def test_a_loop_whose_truth_never_stops_says_so(
    tmp_path: Path, control_radius_m: float, *, stops: bool
) -> None:
    write_drives(tmp_path / "data")
    study = {
        "name": "hold",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "levels": ["loop"],
        "robot": {"control_radius_m": control_radius_m, "safety_radius_m": 1.0, "hold": "speed"},
        "sensitivity": {"levels": 3, "lowest": 0.01, "highest": 2.0},
    }
    adverse.run(study, tmp_path / "run", detectors={"perfect": perfect})
    said = "\n".join(remarks(read_summary(finished(tmp_path / "run"))))
    assert "no target is annotated" not in said
    assert ("no log with a target could be judged; logs left out: the truth never stops (1)" in said) != stops
    assert ("hold: obstacle" in said) != stops
