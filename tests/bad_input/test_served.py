"""Served models that fail on the third picture: it counts as nothing detected, and the run goes on.

A server that cannot be reached is another thing: nothing is known of the model then, so no answer is kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from inference_server import Model, serving

from .cases import CANNOT_RUN, INCOMPLETE, PASS
from .command import adverse_here
from .good_study import BOX, HEIGHT, WIDTH, GoodStudy

X, Y, W, H = BOX
FAILED = ("probe: failed on 2 of 16 images", "frame '2' under brightness 0.9 and 1 more:")

TRIAL, REPEATED = 1, 8
"""Requests beside those for each picture: when the adapter is made, for those asked about twice."""


def net(values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Find the red figure by its colour."""
    red = values[:, 0, Y + 5, X + 3] > values[:, 1, Y + 5, X + 3] + 50
    rows = [[X, Y, X + W, Y + H, 0.9 if found else 0.0, 0] for found in red]
    return {"dets": np.array(rows, np.float32)[:, None]}


def third(values: NDArray[Any]) -> bool:
    """Recognise the picture by the grey of its corner, 10 for each number, also under brightness(0.9)."""
    return bool(17 <= values[0, 0, 2, 2] <= 21)


def failing(way: str) -> Model:
    return Model(net, [1, 3, HEIGHT, WIDTH], ["dets"], fails=lambda values: way if third(values) else None)


def sut(url: str) -> dict[str, Any]:
    return {
        "name": "probe",
        "adapter": "http",
        "url": url,
        "model": "tiny",
        "decoder": "decoded",
        "classes": ["person"],
        "scale": 1,
        "timeout_s": 0.5,
        "late_is_fault": True,
        "max_response_mb": 1,
    }


@pytest.mark.fault(40)
@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("slow", ("did not answer in time", "after 0.5 s")),
        ("failing", ("status 500", "assertion failed in layer 3")),
        ("garbage", ("not JSON", "It works!")),
        ("not_a_number", ("not finite numbers",)),
        ("huge", ("too long", "more than 1 MB")),
    ],
)
def test_a_served_model_fails_on_one_picture(coco: GoodStudy, way: str, words: tuple[str, ...]) -> None:
    with serving(failing(way)) as url:
        coco.study["suts"] = [sut(url)]
        coco.adverse().expect(PASS, *FAILED, *words)
    for row in coco.rows():
        assert (row["frames"], row["truths"], row["faults"], row["area"]) == (8, 4, 1, 0.75)


@pytest.mark.fault(40)
@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("broken", ("status 503", "out of memory on device 0", "See the server's log")),
        ("hung_up", ("the server cannot be reached", "Start the server")),
        ("slow", ("did not answer in time", "after 0.5 s", "late_is_fault: true")),
    ],
)
def test_a_server_that_goes_away_leaves_the_run_incomplete(
    coco: GoodStudy, tmp_path: Path, way: str, words: tuple[str, ...]
) -> None:
    """The cells with the third picture are asked again by the next run; what was lost counts as outages."""
    ways: list[str | None] = [way]
    lost: list[str] = []

    def fails(values: NDArray[Any]) -> str | None:
        if ways[0] is None or not third(values):
            return None
        lost.append(ways[0])
        return ways[0]

    model = Model(net, [1, 3, HEIGHT, WIDTH], ["dets"], fails=fails)
    with serving(model) as url:
        coco.study["suts"] = [
            {**sut(url), "retries": 0, "late_is_fault": False},
            {"name": "local", "adapter": "probe"},
        ]
        said = coco.adverse()
        said.expect(INCOMPLETE, "SUT 'probe' could not be reached; 8 of 16 images are left to ask", *words)
        assert "24/32 images done" in said.text
        coco.adverse("analyze").expect(INCOMPLETE, "could not be reached; 8 images are left to ask")
        coco.adverse("plan").expect(PASS, "32 images to judge, 24 done, 8 to do")
        ways[0] = None
        asked = model.asked.count("binary")
        resumed = coco.adverse()
        resumed.expect(PASS, "24 of 32 images were done before")
        assert model.asked.count("binary") - asked == 8 + TRIAL + 4  # of 8 that are left 4 are un-mutated
        again = tmp_path / "again"
        adverse_here("run", coco.file, "--out", again, "--workers", "0").expect(PASS)
    for name in ("curves.parquet", "outcomes.parquet"):
        assert (coco.run / "results" / name).read_bytes() == (again / "results" / name).read_bytes()
    ended, undisturbed = (
        json.loads((folder / "results" / "summary.json").read_text()) for folder in (coco.run, again)
    )
    attempts = [summary["counts"]["probe"].pop("attempts") for summary in (ended, undisturbed)]
    assert attempts[0] > attempts[1]  # what was answered before the server went away was asked again
    outages = ended["counts"]["probe"].pop("outages")
    assert (outages, undisturbed["counts"]["probe"].pop("outages")) == (len(lost), 0)
    failed = ended.pop("failed_attempts")
    assert undisturbed.pop("failed_attempts") == []
    assert sum(row["attempts"] for row in failed) == outages > 0
    assert all(row["answered"] and row["kind"] == "connection" for row in failed)
    resumed.expect(PASS, f"probe was unavailable: {outages} of {attempts[0] + outages} requests")
    assert ended == undisturbed


def test_outages_that_pass_are_counted_beside_the_faults(coco: GoodStudy) -> None:
    sent: list[str] = []

    def fails(_values: NDArray[Any]) -> str | None:
        sent.append("broken" if len(sent) % 3 == 2 else "")
        return sent[-1] or None

    with serving(Model(net, [1, 3, HEIGHT, WIDTH], ["dets"], fails=fails)) as url:
        coco.study["suts"] = [{**sut(url), "timeout_s": 60}]
        said = coco.adverse()
    lost, requests = sent.count("broken"), len(sent) - TRIAL
    share = f"probe was unavailable: {lost} of {requests} requests found no server or memory"
    said.expect(PASS, share, f"({lost / requests:.1%})", "status 503")
    assert share in (coco.run / "report.html").read_text()
    rules = coco.folder / "rules.yaml"
    rules.write_text(
        '{"rules": [{"measure": "recall", "setting": "baseline", "at_least": 0.1},'
        ' {"measure": "outage_rate", "at_most": 0.05}]}'
    )
    written = [f"--{kind}={coco.folder / kind}" for kind in ("junit", "json", "markdown")]
    gate = adverse_here("check", coco.run, rules, *written)
    assert (gate.code, gate.text.count(f"- {share}")) == (1, 1)
    texts = [(coco.folder / kind).read_text() for kind in ("junit", "json", "markdown")]
    assert [text.count(share) for text in texts] == [3, 2, 1]  # a failure has its text twice in JUnit
    recall, rate = json.loads(texts[1])
    assert (recall["outcome"], rate["outcome"], rate["measured"]) == ("PASS", "FAIL", lost / requests)
    counts = coco.summary()["counts"]["probe"]
    assert (counts["outages"], counts["failed_attempts"]) == (sent.count("broken"), 0)
    assert counts["attempts"] == sent.count("") - TRIAL


def test_a_failure_of_the_server_itself_is_the_models(coco: GoodStudy) -> None:
    sent: list[str] = []

    def fails(_values: NDArray[Any]) -> str | None:
        sent.append("failing" if len(sent) % 3 == 2 else "")
        return sent[-1] or None

    with serving(Model(net, [1, 3, HEIGHT, WIDTH], ["dets"], fails=fails)) as url:
        coco.study["suts"] = [{**sut(url), "timeout_s": 60}]
        flaky = coco.adverse()
    counts = f"{sent.count('failing')} of {len(sent) - TRIAL}"
    flaky.expect(PASS, f"probe is flaky: {counts} attempts failed and were retried", "status 500")


def test_the_time_limit_is_for_one_request_and_ends_no_worker(coco: GoodStudy) -> None:
    """Four requests of 0.3 s answer a batch; the adapter keeps to its time by itself, nobody watches it."""
    model = failing("slow")
    model.latency_s = 0.3
    with serving(model) as url:
        coco.study["suts"] = [{**sut(url), "batch": 4}]
        said = coco.adverse(workers=1)
    said.expect(PASS, *FAILED, "did not answer in time")
    assert "a worker" not in said.text


def test_a_server_that_is_not_there_stops_the_study(coco: GoodStudy) -> None:
    coco.study["suts"] = [
        {
            "name": "probe",
            "adapter": "http",
            "url": "http://127.0.0.1:9",
            "model": "tiny",
            "decoder": "decoded",
            "retries": 0,
        }
    ]
    coco.adverse().expect(
        CANNOT_RUN, "cannot be reached", "GET http://127.0.0.1:9/v2/models/tiny/ready", "url:"
    )
