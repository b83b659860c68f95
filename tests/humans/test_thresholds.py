"""A threshold by name: published, from a file, or a number; whatever is wrong is said in one shape."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from adverse import plugins
from adverse.errors import AdverseError, StudyError
from adverse.humans.thresholds import KINDS, Kind, Threshold, checksum, mutation_of, published, threshold

PRINTED = {
    "t.rgb_shift": (0.82, 0.26),
    "t.contrast": (0.77, 0.28),
    "t.defocus_blur": (0.98, 0.94),
    "t.frost": (0.84, 0.91),
    "t.brightness": (0.87, 0.87),
    "t.gaussian_noise": (0.91, 0.91),
    "t.color_jitter": (0.48, 0.48),
    "t.jpeg": (0.94, 0.94),
}
"""The constants of the authors' repository, as the specification lists them."""

INTERVAL = {
    "low": 0.3,
    "high": 0.5,
    "confidence": 0.9,
    "method": "profile over participants",
    "logs": 30,
    "status": "ok",
    "why": "",
}
GOOD: list[dict[str, Any]] = [
    {
        "transformation": "t.jpeg",
        "kind": "correctness",
        "status": "found",
        "value": 0.4,
        "tolerated_to": 0.4,
        "interval": INTERVAL,
        "backend": "vifp",
    },
    {
        "transformation": "t.jpeg",
        "kind": "prediction",
        "status": "not found",
        "value": None,
        "tolerated_to": 0.97,
        "interval": INTERVAL | {"low": 0.9, "high": None},
        "backend": "vifp",
    },
    {
        "transformation": "haze",
        "kind": "prediction",
        "status": "insufficient",
        "value": None,
        "why": "few",
        "backend": "vifp",
    },
]


def estimates(folder: Path, entries: object = GOOD, **changes: object) -> Path:
    path = folder / "estimates.json"
    whole = {"format": "adverse human thresholds", "version": 4, "thresholds": entries, **changes}
    path.write_text(json.dumps({"checksum": checksum(whole)} | whole))
    return path


def test_the_published_ones_are_those_of_the_repository_and_say_their_caveat() -> None:
    found = {(t.transformation, t.kind): t for t in published()}
    assert {name: tuple(found[name, kind].value for kind in KINDS) for name in PRINTED} == PRINTED
    assert len(found) == 16
    assert all("differs in several cells" in t.note and "200 ms" in t.source for t in found.values())
    none = {name for name, t in found.items() if "found no drop" in t.origin}
    assert none == {("t.rgb_shift", "correctness"), ("t.jpeg", "correctness")}
    assert none == {name for name, t in found.items() if "fallback: no drop was found" in t.doubt}


def test_a_threshold_carries_its_backend_and_no_other_may_measure_for_it(tmp_path: Path) -> None:
    path = str(estimates(tmp_path))
    assert {found.backend for found in published()} == {"vif"}
    assert threshold(path, "t.jpeg", "correctness").backend == "vifp"
    assert threshold(path, "t.jpeg", "correctness", backend="vifp").value == 0.4
    assert threshold("published", "t.jpeg", "correctness", backend="vif").value == 0.94
    assert [threshold(0.4, "haze", "correctness", backend=b).backend for b in (None, "vif", "vifp")] == [
        "vif",
        "vif",
        "vifp",
    ]
    with pytest.raises(StudyError, match=r"measured with vif, .*with vifp.* 0\.94 of t\.jpeg by vif.*Leave"):
        threshold("published", "t.jpeg", "correctness", backend="vifp")
    with pytest.raises(StudyError, match=r"measured with vifp, .*with vif;.*estimates\.json"):
        threshold(path, "t.jpeg", "correctness", backend="vif")


def test_a_threshold_of_0_asks_nothing_and_is_refused(tmp_path: Path) -> None:
    path = str(estimates(tmp_path, [GOOD[0] | {"value": 0.0, "tolerated_to": 0.0, "interval": None}]))
    with pytest.raises(StudyError, match=r"tolerate no visible change by t\.jpeg.*= 0.*above 0"):
        threshold(path, "t.jpeg", "correctness")


def test_every_published_transformation_is_a_mutation_of_ours() -> None:
    known = {plugin.name for plugin in plugins.load().all("mutation")}
    assert {t.transformation for t in published()} <= known


@pytest.mark.parametrize("name", ["color_jitter", "colour jitter", "Color-Jitter"])
def test_the_authors_names_mean_our_mutations(name: str) -> None:
    assert mutation_of(name) == "t.color_jitter"


@pytest.mark.parametrize("number", [0.4, "0.4", 1, "1"])
def test_a_number_is_itself(number: str | float) -> None:
    found = threshold(number, "haze", "prediction")
    assert found.value == found.tolerated_to == float(number)
    assert found.source == "given"


def test_an_estimate_is_read_with_its_interval(tmp_path: Path) -> None:
    estimates(tmp_path)
    found = threshold("estimates.json", "t.jpeg", "correctness", base=tmp_path)
    assert found.interval is not None
    assert (found.value, found.interval.value, found.interval.plain()) == (0.4, 0.4, INTERVAL)
    assert Threshold.read(json.loads(json.dumps(found.plain()))) == found
    assert found.words == "t_c = 0.4"


def test_no_drop_is_no_number(tmp_path: Path) -> None:
    found = threshold(str(estimates(tmp_path)), "t.jpeg", "prediction")
    assert found.value is None
    assert found.tolerated_to == 0.97
    assert found.words == "t_p: tolerated up to 0.97, the last populated bin"


@pytest.mark.parametrize("wrong", [0, -0.1, 1.01, "nan", "inf", "0_1", "publisched", True])
def test_what_is_no_threshold_is_an_error(wrong: str | float, tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        threshold(wrong, "haze", "correctness", where="requirements.yaml, line 3", base=tmp_path)
    assert "requirements.yaml, line 3" in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize("name", ["brightness", "jpeg", "frost"])
def test_a_mutation_that_nobody_was_shown_has_no_threshold(name: str, tmp_path: Path) -> None:
    """A mutation of ours, or of a plug-in, that is only called like one of the paper's."""
    entries = [GOOD[0] | {"transformation": f"t.{name}"}]
    for source in ("published", str(estimates(tmp_path, entries))):
        with pytest.raises(StudyError, match=re.escape(f"Did you mean 't.{name}'?")):
            threshold(source, name, "correctness")
        assert threshold(source, f"t.{name}", "correctness").value is not None


@pytest.mark.parametrize(("name", "kind"), [("haze", "correctness"), ("t.frosst", "prediction")])
def test_what_is_not_published_says_what_is(name: str, kind: Kind) -> None:
    with pytest.raises(StudyError, match=r"t\.frost.*human study"):
        threshold("published", name, kind)


def test_what_a_study_did_not_show_or_could_not_tell_is_an_error(tmp_path: Path) -> None:
    path = str(estimates(tmp_path))
    with pytest.raises(StudyError, match="no t_c of 'haze'"):
        threshold(path, "haze", "correctness")
    with pytest.raises(StudyError, match=r"could not estimate t_p of haze.*few"):
        threshold(path, "haze", "prediction")


@pytest.mark.parametrize(
    "spoilt",
    [
        {"format": "other"},
        {"version": 1},
        {"thresholds": {}},
        {"thresholds": ["x"]},
        {"thresholds": [{**GOOD[0], "kind": "t_c"}]},
        {"thresholds": [{**GOOD[0], "value": 1.5}]},
        {"thresholds": [{**GOOD[0], "value": None}]},
        {"thresholds": [{**GOOD[0], "transformation": 3}]},
        {"thresholds": [{**GOOD[0], "interval": {"low": 0.1}}]},
        {"thresholds": [{**GOOD[1], "value": 0.5}]},
        {"thresholds": [{**GOOD[2], "value": 0.5}]},
        {"thresholds": [{**GOOD[0], "status": "great"}]},
        {"thresholds": [{**GOOD[0], "backend": None}]},
        {"thresholds": [{**GOOD[0], "backend": "ssim"}]},
    ],
)
def test_a_spoilt_file_is_refused(tmp_path: Path, spoilt: dict[str, Any]) -> None:
    path = estimates(tmp_path, **{"entries": GOOD, **spoilt})
    with pytest.raises(StudyError, match="no thresholds of a human study"):
        threshold(str(path), "t.jpeg", "correctness")


@pytest.mark.parametrize(
    ("edited", "got"),
    [
        ({"value": 0.9}, r"value 0\.9, but tolerated_to 0\.4"),
        ({"interval": INTERVAL | {"low": 0.6, "high": 0.2}}, r"an interval from 0\.6 to 0\.2"),
        (
            {"interval": INTERVAL | {"low": 0.5, "high": None}},
            r"from 0\.5 to 1 that does not hold the value 0\.4",
        ),
        (
            {"interval": INTERVAL | {"low": 0.1, "high": 0.2}},
            r"from 0\.1 to 0\.2 that does not hold the value",
        ),
    ],
)
def test_an_edited_file_that_contradicts_itself_is_refused(
    tmp_path: Path, edited: dict[str, Any], got: str
) -> None:
    path = estimates(tmp_path, [GOOD[1], GOOD[0] | edited])
    with pytest.raises(
        StudyError, match=rf"contradicts itself.*thresholds\[1\]: t_c of t\.jpeg.*{got}.*Write it again"
    ):
        threshold(str(path), "t.jpeg", "correctness")


@pytest.mark.parametrize(
    "edited",
    [
        {"backend": "vif"},
        {"checksum": None},
        {"thresholds": [GOOD[0] | {"value": 0.6, "tolerated_to": 0.6, "interval": INTERVAL | {"high": 0.7}}]},
        {"thresholds": [GOOD[0] | {"participants": 1}]},
        {"thresholds": [GOOD[0] | {"bins": []}]},
        {"thresholds": [GOOD[0] | {"surely": True}]},
        {"surely": True},
    ],
)
def test_a_file_that_was_edited_is_refused(tmp_path: Path, edited: dict[str, Any]) -> None:
    """Each of these could be true by itself; the layout of the JSON may change."""
    path = estimates(tmp_path)
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole, indent=3))
    assert threshold(str(path), "t.jpeg", "correctness").value == 0.4
    path.write_text(json.dumps(whole | edited))
    with pytest.raises(StudyError, match=r"changed after they were written.*Write it again"):
        threshold(str(path), "t.jpeg", "correctness")


def test_a_file_that_is_not_json_says_where(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("participant,image\n")
    with pytest.raises(AdverseError, match="not valid JSON"):
        threshold(str(path), "t.jpeg", "correctness")
