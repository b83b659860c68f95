"""Failures in the order they are shown in, against the plain way; predictions of contextual mutations."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

import adverse
from adverse.analysis.detections import sut_detections
from adverse.analysis.failures import (
    LEAST_VISUAL_CHANGE,
    MOST_FAILURES,
    PER_LOG,
    UNDETECTABLE,
    by_visible_change,
    failure_rows,
    sut_failures,
    typical_frame,
)
from adverse.data.images import write_image
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.store.tables import FAULT

GROUPS = {"blur": "mild", "haze": "mild", "a": "severe", "b": "severe", "c": "severe", "night": "severe"}
STORE = cast(Store, SimpleNamespace(run=SimpleNamespace(visual_change=None), groups=GROUPS))
FPR_MAX = 0.5
LOGS, FRAMES, PEOPLE = 4, 3, 3


def write_crowds(root: Path) -> None:
    """Write logs of a few frames, each with three squares of their own brightness."""
    images: list[dict[str, Any]] = []
    truth: list[dict[str, Any]] = []
    for log in range(LOGS):
        rng = np.random.default_rng(log)
        for frame in range(FRAMES):
            image = np.zeros((30, 60, 3), np.uint8)
            images.append({"id": len(images) + 1, "width": 60, "height": 30})
            images[-1]["file_name"] = f"log{log}/{frame}.png"
            for person in range(PEOPLE):
                x = 4 + 18 * person
                image[6 : 18 + person, x : x + 9] = rng.integers(60, 250)
                box = [x, 6, 9, 12 + person]
                entry = {"id": len(truth) + 1, "image_id": len(images), "category_id": 1, "bbox": box}
                truth.append(entry)
            image[24:28, 50:56] = rng.integers(60, 100)  # a false one
            (root / f"log{log}").mkdir(parents=True, exist_ok=True)
            write_image(root / str(images[-1]["file_name"]), image)
    whole = {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "person"}]}
    (root / "truth.json").write_text(json.dumps(whole))


def bright(images: Any) -> list[Any]:
    """Find every square that is brighter than 50, with its brightness as the score."""
    answers = []
    for image in images:
        boxes, scores = [], []
        places = [(4 + 18 * person, 6, 9, 12 + person) for person in range(PEOPLE)]
        for x, y, wide, tall in [*places, (50, 24, 6, 4)]:
            value = int(image[y + 1, x + 1, 0])
            if value > 50:
                boxes.append([x, y, x + wide, y + tall])
                scores.append(value / 255)
        answers.append((boxes, scores, [0] * len(boxes)))
    return answers


def sloppy(images: Any) -> list[Any]:
    """Find the same, but with boxes that are too far off where the image is dark."""
    answers = []
    for image, (boxes, scores, labels) in zip(images, bright(images), strict=True):
        aside = 5 if image.max() < 150 else 0
        answers.append(([[x0 + aside, y0, x1 + aside, y1] for x0, y0, x1, y1 in boxes], scores, labels))
    return answers


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("failures")
    write_crowds(root / "data")
    study = {
        "name": "failures",
        "data": {"format": "folder", "root": str(root / "data")},
        "mutations": ["brightness(scale=0.2)", "brightness(scale=0.5)", "brightness(scale=0.6)"],
        "fpr_max": FPR_MAX,
        "robustness": {"bootstrap": 0},
    }
    adverse.run(study, root / "run", detectors={"bright": bright, "sloppy": sloppy})
    return finished(root / "run")


@pytest.fixture(scope="module")
def summary(store: Store) -> dict[str, Any]:
    return dict(json.loads((store.folder.results / "summary.json").read_text()))


def plain_failures(store: Store, sut: str) -> list[dict[str, Any]]:
    """Return all people that a mutation costs, one after the other."""
    found = []
    images = len(store.frames.ids)
    for row in pq.read_table(store.folder.results / "required.parquet").to_pylist():
        if row["sut"] != sut or not (row["before"] <= FPR_MAX < row["after"]):
            continue
        after = min(max(row["after"], 1 / images), UNDETECTABLE)
        orders = math.log10(after) - math.log10(max(row["before"], 1 / images))
        found.append({**row, "orders": orders})
    return found


def test_every_failure_is_one_and_the_worst_of_its_log(store: Store) -> None:
    rows = sut_failures(store, sut_detections(store, "bright"), required(store, "bright"))
    every = plain_failures(store, "bright")
    keys = {(row["setting"], row["frame"], row["object"]): row["orders"] for row in every}
    assert len(every) > len(rows) > 3
    for row in rows:
        assert keys[row["setting"], row["frame"], row["object"]] == pytest.approx(row["orders"])
    for setting in {row["setting"] for row in every}:
        for log in range(LOGS):
            mine = sorted(
                (-o for (s, f, _), o in keys.items() if s == setting and f.startswith(f"log{log}/"))
            )
            chosen = [
                -row["orders"] for row in rows if (row["setting"], row["log"]) == (setting, f"log{log}")
            ]
            assert len(chosen) == min(PER_LOG, len(mine))
            np.testing.assert_allclose(chosen, mine[: len(chosen)])


def test_an_image_on_which_the_sut_failed_is_no_failure_to_see(store: Store) -> None:
    """A crash says nothing of what the SUT sees: it is counted as a fault, and shows nobody missed."""
    one = sut_detections(store, "bright")
    rows = sut_failures(store, one, required(store, "bright"))
    setting, frame = rows[0]["setting"], rows[0]["frame"]
    matched = one.settings[setting]
    status = matched.answers.status.copy()
    status[matched.answers.frame == store.frames.ids.index(frame)] = FAULT
    crashed = replace(matched, answers=replace(matched.answers, status=status))
    after = sut_failures(
        store, replace(one, settings={**one.settings, setting: crashed}), required(store, "bright")
    )
    places = [{(row["setting"], row["frame"]) for row in found} for found in (rows, after)]
    assert (setting, frame) not in places[1]
    assert places[0] - {(setting, frame)} <= places[1]


def required(store: Store, sut: str) -> Any:
    table = pq.read_table(store.folder.results / "required.parquet")
    return table.filter([name == sut for name in table["sut"].to_pylist()])


def test_undetectable_people_come_by_how_easily_they_were_found(store: Store) -> None:
    rows = sut_failures(store, sut_detections(store, "bright"), required(store, "bright"))
    gone = [row for row in rows if row["after"] is None and row["setting"] == "brightness(scale=0.2)"]
    assert len(gone) > 2
    eases = [(row["before"], -row["score_before"]) for row in gone]
    assert eases == sorted(eases)
    assert len(set(eases)) > 1
    one = sut_detections(store, "bright")
    scores = one.settings["identity"].answers.scores[one.settings["identity"].outcome == 1]
    for row in gone:
        assert row["surer_than"] == np.mean(scores < np.float32(row["score_before"]))


def test_what_is_drawn_is_what_counts_at_fpr_max(store: Store) -> None:
    """At the threshold of a row the person is found before, and not after."""
    (threshold,) = {
        row["threshold"]
        for row in sut_failures(store, sut_detections(store, "bright"), required(store, "bright"))
    }
    one = sut_detections(store, "bright")
    for row in required(store, "bright").to_pylist():
        at = [
            r for r in range(len(store.truth.frame)) if store.frames.ids[store.truth.frame[r]] == row["frame"]
        ]
        person = at[row["object"]]
        for name, setting in (("before", "identity"), ("after", row["setting"])):
            matched = one.settings[setting]
            mine = matched.answers.scores[(matched.truth == person) & (matched.outcome == 1)]
            assert (row[name] <= FPR_MAX) == bool((mine >= threshold).any())


def test_a_person_comes_once_and_a_log_twice(summary: dict[str, Any], store: Store) -> None:
    rows = summary["failures"]
    assert Counter(row["log"] for row in rows) == {f"log{n}": PER_LOG for n in range(LOGS)}
    assert max(Counter((row["log"], row["person"]) for row in rows).values()) == 1
    assert {row["sut"] for row in rows} <= {"bright", "sloppy"}
    for row in rows:
        frame = store.frames.ids.index(row["frame"])
        assert (
            store.frames.ids[
                [n for n, log in enumerate(store.frames.log) if store.frames.logs[log] == row["log"]][
                    row["log_frame"]
                ]
            ]
            == store.frames.ids[frame]
        )


def row(sut: str, setting: str, who: int, orders: float, *, log: str = "a", **more: Any) -> dict[str, Any]:
    heads = {"sut": sut, "setting": setting, "frame": f"{log}/{who}", "object": 0, "log": log, "person": who}
    return {**heads, "orders": orders, "surer_than": 0.5, "overlap_after": 0.0, **more}


def test_suts_and_mutations_take_turns() -> None:
    failures = [
        row(sut, setting, who, orders, log=f"log{who}")
        for who, (sut, setting, orders) in enumerate(
            [("x", "blur", 3.0), ("x", "blur", 2.5), ("x", "haze", 1.0), ("y", "blur", 2.0)]
        )
    ]
    rows = failure_rows(STORE, failures)
    assert [(row["sut"], row["setting"], row["orders"]) for row in rows] == [
        ("x", "blur", 3),
        ("y", "blur", 2),
        ("x", "haze", 1),
        ("x", "blur", 2.5),
    ]
    assert {row["visual_change"] for row in rows} == {None}


def test_one_crowded_frame_does_not_fill_the_gallery() -> None:
    """As on COCO: one image with many people who all vanish under every mutation, and others with one."""
    crowd = [
        row(sut, setting, who, 4.0, log="crowd") for sut in "xyz" for setting in "abc" for who in range(20)
    ]
    others = [
        row(sut, setting, 0, 1.0, log=f"log{n}") for sut in "xyz" for setting in "abc" for n in range(9)
    ]
    rows = failure_rows(STORE, [*crowd, *others])
    assert Counter(one["log"] for one in rows) == {"crowd": 2, **{f"log{n}": 1 for n in range(9)}}
    assert rows[0]["log"] == "crowd"


def test_without_measured_change_mild_mutations_come_first() -> None:
    failures = [row("x", "night", n, 4.0, log=f"log{n // 4}") for n in range(8)]
    failures += [row("x", "blur", n, 1.0, log=f"log{n // 4}") for n in range(0, 8, 4)]
    rows = failure_rows(STORE, failures)
    assert [(one["setting"], one["log"], one["person"]) for one in rows] == [
        ("blur", "log0", 0),
        ("night", "log0", 1),
        ("blur", "log1", 4),
        ("night", "log1", 5),
    ]


def test_whom_no_box_points_at_comes_before_a_box_too_far_off() -> None:
    loose = [row("x", "blur", n, 4.0, log=f"log{n}", overlap_after=0.4) for n in range(3)]
    gone = [row("x", "night", n + 5, 1.0, log=f"log{n}", overlap_after=0.1) for n in range(3)]
    rows = failure_rows(STORE, [*loose, *gone])
    assert [one["setting"] for one in rows] == ["night", "blur"] * 3


@pytest.mark.parametrize(("sut", "loose"), [("bright", False), ("sloppy", True)])
def test_overlaps_after_are_counted_one_by_one(store: Store, sut: str, *, loose: bool) -> None:
    one = sut_detections(store, sut)
    found = sut_failures(store, one, required(store, sut))
    for failure in found:
        frame = store.frames.ids.index(failure["frame"])
        true = store.truth.boxes[store.truth.frame == frame][failure["object"]]
        answers = one.settings[failure["setting"]].answers
        mine = slice(*answers.offsets[[frame, frame + 1]])
        boxes, scores = answers.boxes[mine].astype(float), answers.scores[mine]
        least = np.float32(failure["threshold"])
        wanted = [overlap(box, true) for box, score in zip(boxes, scores, strict=True) if score >= least]
        assert failure["overlap_after"] == pytest.approx(max(wanted, default=0.0))
    assert any(failure["overlap_after"] > 0.1 for failure in found) == loose
    assert all(failure["overlap_after"] < 0.5 for failure in found)


def overlap(box: Any, true: Any) -> float:
    wide, tall = np.minimum(box[2:], true[2:]) - np.maximum(box[:2], true[:2])
    shared = max(wide, 0) * max(tall, 0)
    return float(shared / (np.prod(box[2:] - box[:2]) + np.prod(true[2:] - true[:2]) - shared))


def test_a_track_is_one_person() -> None:
    frames = [{**row("x", "blur", 7, 3.0 - n), "frame": f"a/{n}"} for n in range(5)]
    rows = failure_rows(STORE, [*frames, row("x", "blur", 8, 0.5)])
    assert [(one["person"], one["frame"]) for one in rows] == [(7, "a/0"), (8, "a/8")]


def test_there_are_not_too_many() -> None:
    rows = failure_rows(STORE, [row("x", "blur", n, 1.0, log=f"log{n:03}") for n in range(2 * MOST_FAILURES)])
    assert len(rows) == MOST_FAILURES
    assert [one["log"] for one in rows[:3]] == ["log000", "log001", "log002"]


def test_the_least_visible_change_comes_first() -> None:
    rows: list[dict[str, float | None]] = [
        {"orders": 4.0, "visual_change": None, "overlap_after": 0.0},
        {"orders": 2.0, "visual_change": None, "overlap_after": 0.1},
        {"orders": 1.0, "visual_change": LEAST_VISUAL_CHANGE / 5, "overlap_after": 0.0},
        {"orders": 1.0, "visual_change": 0.5, "overlap_after": 0.0},
        {"orders": 4.0, "visual_change": 0.0, "overlap_after": 0.45},  # a box is only too far off
    ]
    falls = [4 / (100 / 255), 2 / (10 / 255), 1 / LEAST_VISUAL_CHANGE, 1 / 0.5]
    wanted = [*sorted(range(4), key=lambda number: -falls[number]), 4]
    assert by_visible_change(rows, [100.0, 10.0, 99.0, 0.0, 0.0]) == wanted == [2, 1, 0, 3, 4]


def test_the_typical_frame_has_somebody_tall(store: Store) -> None:
    heights = sorted((float(box[3] - box[1]), row) for row, box in enumerate(store.truth.boxes))
    tall = heights[len(heights) * 3 // 4][0]
    frame = store.frames.ids.index(typical_frame(store))
    assert tall in (store.truth.boxes[:, 3] - store.truth.boxes[:, 1])[store.truth.frame == frame]
