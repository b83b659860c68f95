"""3-D detectors: what a SUT itself says of where its detections are goes before the Localizer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import adverse
from adverse.errors import SutError
from adverse.interop.coco_results import export_coco
from adverse.report.page import write_report
from adverse.store.finished_run import finished
from adverse.store.folder import RunFolder
from adverse.suts.ask import as_detections
from adverse.suts.predictions import predictions
from adverse.suts.wire import answer_line, parse, read_answer
from adverse.types import Detections
from analysis.test_context import PERSON_M, ROBOT, STEP_M, areas, perfect, write_drives

WALL_BOX = [18, 2, 78, 6]
"""Where depth is that of the wall, 3 m: the Localizer finds nobody there."""
IN_CONTEXT = [
    f"{level}/{truth}" for level in ("located", "path", "loop") for truth in ("annotated", "localized")
]


def reporting(shift_m: float = 0.0) -> Callable[[Any], list[dict[str, Any]]]:
    """Return a SUT whose box is on the wall, but which knows where the person is, give or take."""

    def detect(images: Any) -> list[dict[str, Any]]:
        found = []
        for image, (boxes, scores, labels) in zip(images, perfect(images), strict=True):
            away = PERSON_M - STEP_M * int(image[0, 0, 0]) + shift_m
            place = [WALL_BOX for _ in boxes]
            found.append(
                {
                    "boxes": place,
                    "scores": scores,
                    "labels": labels,
                    "positions_m": [[0, 0.5, away]] * len(boxes),
                }
            )
        return found

    return detect


def study(root: Path, **more: Any) -> dict[str, Any]:
    return {
        "name": "placed",
        "data": {"format": "folder", "root": str(root)},
        "levels": ["located", "path", "loop"],
        "robot": ROBOT,
        "robustness": {"bootstrap": 0},
        **more,
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("placed")
    write_drives(folder / "data")
    return folder


@pytest.fixture(scope="module")
def run(root: Path) -> Path:
    detectors = {"exact": reporting(), "shifted": reporting(2.0), "flat": perfect}
    adverse.run(study(root / "data"), root / "run", detectors=detectors)
    return root / "run"


def summary(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "results" / "summary.json").read_text()))


def test_true_positions_reach_the_known_areas_and_two_metres_lose_them(run: Path) -> None:
    rows = summary(run)["rows"]
    assert areas(rows, "exact") == dict.fromkeys(IN_CONTEXT, 1.0)
    assert areas(rows, "shifted") == dict.fromkeys(IN_CONTEXT, 0.0)
    assert areas(rows, "flat") == dict.fromkeys(IN_CONTEXT, 1.0)  # beside them, by the Localizer


def test_results_and_report_say_what_places_detections(run: Path) -> None:
    places = summary(run)["places"]
    by = {"localizer": "foreground", "localize_on": "clean"}
    assert places["exact"] == {"detections": 30, "reported": 30, **by}
    assert places["flat"] == {"detections": 30, "reported": 0, **by}
    text = write_report(run).read_text()
    assert "as the SUT reports them" in text
    assert "the localizer foreground on the clean depth" in text


def test_what_is_placed_by_its_sut_needs_no_depth(run: Path) -> None:
    answers = finished(run).answers("exact")["identity"]
    assert np.isnan(answers.depths_m).all()
    assert answers.positions_m is not None
    np.testing.assert_allclose(answers.positions_m[:, 2], PERSON_M - STEP_M * np.arange(30), rtol=1e-6)


def test_a_study_without_any_depth_where_all_suts_report(root: Path, tmp_path: Path) -> None:
    bare = tmp_path / "data"
    shutil.copytree(root / "data", bare)
    for log in ("meeting", "empty"):
        shutil.rmtree(bare / log / "depth")
    said = {"name": "exact", "adapter": "python", "positions": "reported"}
    given = study(bare, suts=[said])
    adverse.run(given, tmp_path / "run", detectors={"exact": reporting()})
    wanted = {name: 1.0 for name in IN_CONTEXT if name.endswith("annotated")}
    assert areas(summary(tmp_path / "run")["rows"], "exact") == wanted
    with pytest.raises(adverse.AdverseError, match="needs depth for every frame"):
        adverse.run(study(bare), tmp_path / "other", detectors={"flat": perfect})


def test_a_sut_that_must_report_and_does_not_fails(root: Path, tmp_path: Path) -> None:
    said = {"name": "flat", "adapter": "python", "positions": "reported"}
    adverse.run(study(root / "data", suts=[said]), tmp_path / "run", detectors={"flat": perfect})
    counts = summary(tmp_path / "run")["counts"]["flat"]
    assert (counts["fault"], counts["ok"]) == (30, 30)  # an answer without detections has no position to lack
    (reason,) = {row["reason"] for row in summary(tmp_path / "run")["troubles"]}
    assert "does not report where its detections are" in reason


def test_the_localizer_can_be_chosen_for_a_sut_that_reports(root: Path, tmp_path: Path) -> None:
    said = {"name": "exact", "adapter": "python", "positions": "localized"}
    adverse.run(study(root / "data", suts=[said]), tmp_path / "run", detectors={"exact": reporting()})
    assert areas(summary(tmp_path / "run")["rows"], "exact")["located/annotated"] < 0.5  # on the wall
    assert summary(tmp_path / "run")["places"]["exact"]["reported"] == 0


def test_positions_go_out_as_coco_and_come_back(run: Path, tmp_path: Path) -> None:
    export_coco(run, tmp_path / "out")
    file = tmp_path / "out" / "{mutation}.json"
    (tmp_path / "out" / "exact" / "identity.json").rename(tmp_path / "out" / "identity.json")
    recorded = predictions(file, categories={1: "person"})
    answers = finished(run).answers("exact")["identity"]
    entries = json.loads((tmp_path / "out" / "identity.json").read_text())
    back = np.concatenate([recorded.recall(entry["image_id"], "identity").positions_m for entry in entries])
    np.testing.assert_array_equal(back, answers.positions_m)


def test_runs_of_versions_before_positions_are_read(run: Path, tmp_path: Path) -> None:
    old = tmp_path / "run"
    shutil.copytree(run, old)
    for file in RunFolder(old).detections.glob("*.parquet"):
        table = pq.read_table(file)
        pq.write_table(table.drop_columns(["positions_m"]), file)
    from adverse.store.read import Store  # noqa: PLC0415 - opened without checking the seals that were broken

    answers = Store(RunFolder(old)).answers("flat")["identity"]
    assert answers.positions_m is None
    np.testing.assert_array_equal(answers.depths_m, finished(run).answers("flat")["identity"].depths_m)


def test_the_wire_carries_positions() -> None:
    answer = Detections([[0, 0, 9, 9]], [0.5], [0], positions_m=[[0.1, 0.2, 7]])
    (back,) = read_answer(parse(answer_line(1, [answer])), 1, 1)
    assert isinstance(back, Detections)
    assert back.same(answer)
    assert not back.same(Detections([[0, 0, 9, 9]], [0.5]))


def test_an_answer_has_masks_and_positions() -> None:
    masks = np.zeros((2, 4, 6), np.uint8)
    masks[0, 1:3, 2:5], masks[1, :2, :1] = 1, 1
    places = [[0.1, 0.2, 7.0], [1.0, 0.0, 9.0]]
    given = {"boxes": [[2, 1, 5, 3], [0, 0, 1, 2]], "scores": [0.5, 0.25], "labels": [0, 1]}
    answer = as_detections({**given, "positions_m": places, "masks": masks})
    (back,) = read_answer(parse(answer_line(1, [answer])), 1, 1)
    assert isinstance(back, Detections)
    assert back.same(answer)
    assert back.masks is not None
    assert back.masks.areas.tolist() == [6, 2]
    assert back.positions_m is not None
    np.testing.assert_allclose(back.positions_m, places)
    with pytest.raises(SutError, match="wrong shape"):
        as_detections({**given, "positions_m": places[:1], "masks": masks})
    with pytest.raises(SutError, match="not numbers"):
        as_detections({**given, "positions_m": [["0.1", "0.2", "7"], places[1]]})


def bad_positions() -> Iterator[tuple[Any, str]]:
    yield [[1, 2]], "wrong shape"
    yield [[1, 2, 3], [1, 2, 3]], "wrong shape"
    yield [["a", 2, 3]], "not numbers"
    yield [[0, 0, float("nan")]], "the camera cannot see it"
    yield [[0, 0, -4]], "the camera cannot see it"
    yield [[12.5, 0.3, 0]], "the camera cannot see it"


@pytest.mark.parametrize(("positions", "what"), list(bad_positions()))
def test_positions_that_cannot_be_are_refused(positions: Any, what: str) -> None:
    with pytest.raises(SutError, match=what):
        as_detections({"boxes": [[0, 0, 9, 9]], "scores": [0.5], "labels": [0], "positions_m": positions})


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"position_m": [1, 2]}, "position_m is"),
        ({"position_m": [1, 2, "x"]}, "position_m is"),
        ({"position_m": [1e39, 0, 5]}, "the camera cannot see it"),
        ({}, "others have none"),
    ],
)
def test_recorded_positions_that_cannot_be_spoil_their_image(
    tmp_path: Path, entry: dict[str, Any], what: str
) -> None:
    plain = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5}
    rows = [{**plain, "position_m": [0, 0, 5]}, {**plain, **entry}]
    (tmp_path / "identity.json").write_text(json.dumps(rows))
    recorded = predictions(tmp_path / "{mutation}.json", categories={1: "person"})
    with pytest.raises(SutError, match=what):
        recorded.recall(1, "identity")
