"""The grid holds what its filters say, counted again by hand; its order and its neighbours are that order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from adverse.pages.view.grid import PER_PAGE
from adverse.pages.view.selection import Selections
from adverse.pages.view.session import ExploredRun
from adverse.pages.view.thumbnails import Thumbnails
from adverse.store.finished_run import finished


def overlap(a: Any, b: Any) -> float:
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(wide, 0) * max(high, 0)
    return float(shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared))


@cache
def by_hand(run: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return hits, losses and false positives of every frame: one person at most is in each."""
    store = finished(run)
    summary = json.loads((run / "results" / "summary.json").read_text())
    table = pq.read_table(run / "truth.parquet", columns=["frame", "box"])
    truth = {row["frame"]: row["box"] for row in table.to_pylist()}
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for sut, setting in itertools.product(store.suts, store.groups):
        threshold = summary["sensitivity"][sut]["operating_point"]["score"]
        for row in store.detections(sut, setting).to_pylist():
            person = truth.get(row["frame"])
            boxes = list(zip(row["boxes"], row["scores"], strict=True))
            hits = [s for box, s in boxes if person is not None and overlap(box, person) >= 0.5]
            false = [
                s
                for box, s in boxes
                if s >= (threshold or -1) and (person is None or overlap(box, person) < 0.5)
            ]
            found[sut, setting, row["frame"]] = {
                "objects": int(person is not None),
                "hits": int(bool(hits) and max(hits) >= (threshold or -1)),
                "score": max(hits, default=0.0),
                "false_positives": len(false),
                "surest_false": max(false, default=None),
            }
    for (sut, _, frame), row in found.items():
        before = found[sut, store.run.baseline.id, frame]
        row["missed"] = row["objects"] - row["hits"]
        row["lost"] = int(before["hits"] > row["hits"])
        row["fall"] = before["score"] - row["score"]
    return found


KEPT = {
    "all": lambda row: row["objects"] >= 0,
    "lost": lambda row: row["lost"] > 0,
    "missed": lambda row: row["missed"] > 0,
    "hit": lambda row: row["hits"] > 0,
    "false": lambda row: row["false_positives"] > 0,
    "trouble": lambda row: row["objects"] < 0,
}


def tiles(guest: TestClient, **pick: str) -> list[dict[str, Any]]:
    first = guest.get("/grid.json", params=pick).json()
    found = list(first["tiles"])
    for page in range(1, first["pages"]):
        found += guest.get("/grid.json", params={**pick, "page": page}).json()["tiles"]
    assert len(found) == first["count"]
    return found


@pytest.mark.parametrize("show", KEPT)
def test_filters_hold_what_a_count_by_hand_says(guest: TestClient, run: Path, show: str) -> None:
    store, known = finished(run), by_hand(run)
    total = 0
    for sut, mutation in itertools.product(store.suts, ["every mutation", *store.groups]):
        settings = list(store.groups)[1:] if mutation == "every mutation" else [mutation]
        wanted = {
            (setting, frame): row
            for (of, setting, frame), row in known.items()
            if of == sut and setting in settings and KEPT[show](row)
        }
        found = tiles(guest, sut=sut, mutation=mutation, show=show)
        assert {(tile["setting"], tile["frame"]) for tile in found} == wanted.keys()
        for tile in found:
            row = wanted[tile["setting"], tile["frame"]]
            for name in ("objects", "hits", "missed", "lost", "false_positives"):
                assert tile[name] == row[name], name
            if row["objects"]:
                assert tile["fall"] == pytest.approx(row["fall"], abs=1e-6)
            assert tile["surest_false"] == pytest.approx(row["surest_false"])
        total += len(found)
    assert total or show == "trouble"


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("loss", lambda tile: (-tile["lost"], -tile["fall"] if tile["objects"] else 9)),
        ("score", lambda tile: tile["lowest"] if tile["objects"] else 9),
        ("false", lambda tile: -(tile["surest_false"] or -9)),
        ("order", lambda tile: tile["objects"] < 0),
    ],
)
def test_the_order_is_as_asked_and_ties_stand_as_in_the_data_set(
    driver: TestClient, driven: Path, sort: str, key: Callable[[dict[str, Any]], Any]
) -> None:
    store = finished(driven)
    found = tiles(driver, sort=sort)
    place = {name: number for number, name in enumerate(store.frames.ids)}
    settings = list(store.groups)
    wanted = sorted(found, key=lambda t: (key(t), place[t["frame"]], settings.index(t["setting"])))
    assert [tile["n"] for tile in found] == list(range(len(found)))
    assert found == wanted
    assert len({json.dumps(key(tile)) for tile in found}) > (sort != "order")


def test_a_slice_holds_frames_with_people_of_it_only(driver: TestClient, driven: Path) -> None:
    page = driver.get("/grid.json").json()
    slices = page["choices"]["slice"][1:]
    assert len({name.partition(":")[0] for name in slices}) > 2
    summary = json.loads((driven / "results" / "summary.json").read_text())
    sut = page["pick"]["sut"]
    rows = [row for row in summary["slices"] if row["sut"] == sut and row["slice"] in ("distance", "height")]
    mutated = [row for row in rows if row["group"] != "baseline"]
    for row in mutated[:: max(1, len(mutated) // 6)]:
        pick = {"sut": sut, "mutation": row["setting"], "slice": f"{row['slice']}: {row['part']}"}
        found = tiles(driver, **pick)
        assert sum(tile["objects"] for tile in found) == row["people"]
        assert sum(tile["hits"] for tile in found) == round(row["recall"] * row["people"])
        assert sum(tile["lost"] for tile in found) == round((row["lost"] or 0) * row["found_before"])
        missed = tiles(driver, **pick, show="missed")
        assert [tile["n"] for tile in missed] == list(range(sum(tile["missed"] > 0 for tile in found)))


def test_frames_that_were_left_out_are_in_the_slices_of_who_is_there(
    driven: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is counted in them, so they stand among faults and frames left out, and among all."""
    selections = Selections(ExploredRun(driven))
    name = next(name for name in selections.slices if name.startswith("distance"))
    pick = replace(selections.picked({}), mutation=selections.mutations[1], slice=name)
    whole = selections.of(pick)
    tables = dict(selections.tables(pick.sut))
    frames = tables["frames"]
    at = frames.column_names.index("status")
    tables["frames"] = frames.set_column(at, "status", pa.array(["quarantined"] * len(frames)))
    tables["objects"] = tables["objects"].slice(0, 0)
    monkeypatch.setattr(selections, "tables", lambda _: tables)
    selections.of.cache_clear()
    for show in ("trouble", "all"):
        left_out = selections.of(replace(pick, show=show))
        assert len(whole)
        assert set(left_out.table["frame"].to_pylist()) == set(whole.table["frame"].to_pylist())
    assert len(selections.of(replace(pick, show="missed"))) == 0


def test_a_selection_is_walked_to_its_end_and_back(guest: TestClient) -> None:
    pick = {"sut": "dull", "show": "lost"}
    found = tiles(guest, **pick)
    assert len(found) > 3
    address, seen = found[0]["address"], []
    while address:
        page = guest.get(address.replace("/explore", "/explore.json")).json()
        seen.append((page["frame"]["id"], page["pick"]["right"]))
        before, address = page["selection"]["previous"], page["selection"]["next"]
    assert seen == [(tile["frame"], tile["setting"]) for tile in found]
    back = guest.get(before.replace("/explore", "/explore.json")).json()
    assert (back["frame"]["id"], back["pick"]["right"]) == seen[-2]
    assert f"{len(found)} of {len(found)}" in guest.get(found[-1]["address"]).text
    last = guest.get(page["selection"]["grid"].replace("/grid", "/grid.json").partition("#")[0]).json()
    assert last["pick"]["page"] == (len(found) - 1) // PER_PAGE
    assert {key: last["pick"][key] for key in pick} == pick


def test_the_page_of_a_row_counts_what_the_grid_counted(guest: TestClient) -> None:
    opened = guest.get("/explore.json", params={"sut": "keen"}).json()
    here = opened["sensitivity"]["words"][opened["pick"]["k"]]
    assert "includes all that counts in report and grid" in here
    score = guest.get("/grid.json", params={"sut": "keen"}).json()["threshold_words"]
    assert score.split("score ")[1].split(",")[0] in here
    for tile in tiles(guest, sut="keen")[::9]:
        page = guest.get(tile["address"].replace("/explore", "/explore.json")).json()
        side = page["frame"]["sides"]["right"]
        k = page["pick"]["k"]
        assert k == opened["pick"]["k"]
        hits = sum(box["since"] <= k for box in side["true"] if box["kind"] == "true")
        assert hits >= tile["hits"]  # the sensitivity is the first of the slider that is no stricter
        false = sum(box["since"] <= k for box in side["found"] if box["kind"] == "false")
        assert false >= (tile["false_positives"] or 0)


def test_the_end_of_a_log_leads_into_the_next(guest: TestClient) -> None:
    names = [log["name"] for log in guest.get("/explore.json").json()["choices"]["log"]]
    first = guest.get("/frame.json", params={"log": names[1], "frame": 0}).json()["beside"]
    assert first == {"previous": {"log": names[0], "frame": 3}, "next": {"log": names[2], "frame": 0}}
    assert guest.get("/frame.json", params={"log": names[0]}).json()["beside"]["previous"] is None
    assert guest.get("/frame.json", params={"log": names[-1]}).json()["beside"]["next"] is None


def test_thumbnails_mark_who_is_found_and_keep_to_their_bound(guest: TestClient, run: Path) -> None:
    tile = next(tile for tile in tiles(guest, sut="dull", show="lost"))
    answer = guest.get(tile["thumbnail"])
    assert answer.headers["content-type"] == "image/jpeg"
    explored = ExploredRun(run)
    selections = Selections(explored)
    thumbnails = Thumbnails(explored, most_bytes=3 * len(answer.content))
    frame = explored.store.frames.ids.index(tile["frame"])
    drawn = {}
    for setting in (explored.baseline, tile["setting"]):
        jpeg = np.frombuffer(thumbnails.of(selections, "dull", setting, frame), np.uint8)
        drawn[setting] = np.asarray(cv2.imdecode(jpeg, cv2.IMREAD_COLOR))
    blue, red = (drawn[explored.baseline][..., n].astype(int) for n in (0, 2))
    assert (blue - red).max() > 60  # found: a blue box
    blue, red = (drawn[tile["setting"]][..., n].astype(int) for n in (0, 2))
    assert (red - blue).max() > 60  # missed: an orange one
    for row in range(8):
        thumbnails.of(selections, "dull", tile["setting"], row)
        assert sum(map(len, thumbnails.kept.values())) <= thumbnails.most_bytes
    assert 1 < len(thumbnails.kept) < 8


def test_what_is_not_there_is_refused_and_nothing_found_is_said(guest: TestClient) -> None:
    for name in ("sut", "mutation", "show", "slice", "sort"):
        assert guest.get("/grid.json", params={name: "../manifest"}).status_code == 404
    assert guest.get("/grid.json", params={"sort": "change"}).status_code == 404  # it was not measured
    assert guest.get("/grid.json", params={"page": "-1"}).status_code == 400
    assert guest.get("/grid.json", params={"page": "999"}).json()["pick"]["page"] == 1
    text = guest.get("/grid", params={"show": "trouble"}).text
    assert "Nothing in this run is like that." in text
    assert "measure: visual_change" in text
