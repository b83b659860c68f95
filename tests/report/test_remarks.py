"""What is said about figures that are not there: the true reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import adverse
from adverse.analysis.results import Summary, read_summary
from adverse.report.remarks import AGAIN, caveats, remarks, troubles
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


def test_the_worst_system_comes_first_and_one_reason_is_said_once() -> None:
    well = dict.fromkeys(("fault", "retried", "outages", "nondeterministic", "failed_attempts"), 0)
    well |= {"planned": 6, "ok": 6, "attempts": 10}
    flaky = well | {"retried": 4, "failed_attempts": 4, "attempts": 10}
    counts = {"flaky": flaky, "some": well | {"fault": 2}, "crash": well | {"fault": 6, "ok": 0}}
    both = ["identity", "haze"]
    faults = [
        {"status": "fault", "sut": sut, "frame": f"f{number}", "settings": both, "reason": "no"}
        for sut, frames in (("crash", 3), ("some", 1))
        for number in range(frames)
    ]
    failed = {"sut": "flaky", "attempts": 1, "kind": "exception", "answered": True, "settings": ["identity"]}
    reasons = ["rare", "often", "often", "often"]
    attempts = [{**failed, "frame": f"f{number}", "reason": reason} for number, reason in enumerate(reasons)]
    data = {"task": "classification", "counts": counts, "troubles": faults, "failed_attempts": attempts}
    log = "see logs/sut-some.log"
    rate, kinds = "0 of 10 attempts failed (0.0%)", "Kinds: 4 exception; see logs/sut-flaky.log"
    flaky_words = "flaky is flaky: 4 of 10 attempts failed and were retried (40.0%);"
    assert troubles(Summary(data)) == [
        "- crash: failed on 6 of 6 images, on every one; its figures are no result. Commonest fault: no",
        "  frame 'f0' under clean and 5 more: no",
        f"- some: failed on 2 of 6 images; they count as wrong answers; {rate}; {log}; {AGAIN}",
        "  frame 'f0' under clean and 1 more: no",
        f"- {flaky_words} the figures show the answers that it gave then. {kinds}",
        "  frame 'f1' under clean and 2 more: often",
        "  frame 'f0' under clean: rare",
        "- * in a table: the SUT failed on some of the images behind the figure",
        "- \u2020 beside a SUT: requests failed or reached nobody, and were sent again",
    ]


@pytest.mark.parametrize(("ious", "said"), [([0.7, 0.0, 0.0, None], True), ([0.7, 0.0, None], False)])
def test_a_mean_over_classes_that_a_segmenter_does_not_know_is_told(
    ious: list[float | None], *, said: bool
) -> None:
    classes = {str(place): iou for place, iou in enumerate(ious)}
    row = {"sut": "net", "group": "baseline", "per_class": classes}
    data = {"task": "segmentation", "rows": [row], "sensitivity": {}, "notes": {}}
    lines = caveats(Summary(data))
    assert len(lines) == said
    assert all(line.startswith("- net: an IoU of 0 on clean images for 2 of 3 classes") for line in lines)
