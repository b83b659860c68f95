"""The requirements file: what it means, and what it says about what is wrong with it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from adverse import plugins
from adverse.errors import StudyError
from adverse.humans.thresholds import checksum
from adverse.requirements.file import read_requirements
from adverse.requirements.run import derived
from adverse.visual.strength import read_transformation

STUDY: dict[str, Any] = {
    "name": "small",
    "seed": 3,
    "data": {"format": "folder", "root": "data"},
    "suts": [{"name": "a", "adapter": "opencv-hog"}, {"name": "b", "adapter": "opencv-hog"}],
}
HAZE = {"transformation": "haze", "kind": "correctness", "threshold": 0.4}
FROST = {"transformation": "t.frost", "kind": "prediction", "threshold": "published"}


def write(folder: Path, data: dict[str, Any], study: dict[str, Any] | None = None) -> Path:
    (folder / "study.yaml").write_text(yaml.safe_dump({**STUDY, **(study or {})}, sort_keys=False))
    path = folder / "requirements.yaml"
    path.write_text(yaml.safe_dump({"study": "study.yaml", **data}, sort_keys=False))
    return path


def wrong(folder: Path, **changes: Any) -> StudyError:
    data = {"require": [{**HAZE, **changes.pop("first", {})}], **changes}
    with pytest.raises(StudyError) as caught:
        derived(read_requirements(write(folder, data)))
    return caught.value


def test_a_file_names_its_study(tmp_path: Path) -> None:
    file = read_requirements(write(tmp_path, {"require": [HAZE, FROST], "margin": 0.1}))
    assert file.study.study.name == "small"
    assert file.seed == 3
    assert file.names() == ["haze correctness", "t.frost prediction"]
    assert [file.measure(n) for n in (0, 1)] == ["recall", "box_f1"]
    assert file.plan(0).margin == 0.1
    assert file.plan(0).rarest_kind == 0.02  # images hold unequally many people


@pytest.mark.parametrize(
    ("task", "measure", "rarest"),
    [
        ("classification", "top1", 0.0),
        ("segmentation", "pixel_accuracy", 0.0),
        ("segmentation", "mean_iou", 0.1),
        ("detection", "ap", 0.1),
    ],
)
def test_kinds_of_image_matter_where_few_may_hold_most(
    tmp_path: Path, task: str, measure: str, rarest: float
) -> None:
    data = {"require": [{**HAZE, "measure": measure}], "rarest_kind": 0.1}
    assert read_requirements(write(tmp_path, data, {"task": task})).plan(0).rarest_kind == rarest


def test_a_study_holds_its_requirements(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        yaml.safe_dump({**STUDY, "requirements": {"require": [HAZE], "seed": 9}})
    )
    file = read_requirements(tmp_path / "study.yaml")
    assert (file.seed, file.requirements.require[0].transformation) == (9, "haze")
    (tmp_path / "study.yaml").write_text(
        yaml.safe_dump({**STUDY, "requirements": {"require": [{**HAZE, "kin": 1}]}})
    )
    with pytest.raises(StudyError, match="unknown key 'kin'") as caught:
        read_requirements(tmp_path / "study.yaml")
    assert "line" in str(caught.value.where)
    assert "'kind'" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"confidnce": 0.9}, "'confidence'"),
        ({"first": {"treshold": 0.4}}, "'threshold'"),
        ({"first": {"kind": "correct"}}, "'correctness' or 'prediction'"),
        ({"confidence": 95}, "less than 1"),
        ({"batches": 5}, "greater than or equal to 20"),
        ({"first": {"margin": -0.1}}, "greater than or equal to 0"),
        ({"sensitivity": 0.1, "score": 0.5}, "not both"),
        ({"first": {"measure": "accuracy"}}, "no measure 'accuracy'"),
        ({"first": {"kind": "prediction", "measure": "recall"}}, "box_f1"),
        ({"first": {"transformation": "hase"}}, "Did you mean 'haze'"),
        ({"first": {"transformation": "haze(beta=0.1)"}}, "beta is the strength of haze"),
        ({"first": {"transformation": "channel_dropout(channel=R)"}}, "no searchable strength"),
        ({"first": {"transformation": "grayscale(", "threshold": 0.1}}, "cannot be read"),
        ({"first": {"transformation": "defocus"}}, "focus_m"),
        ({"first": {"threshold": "published"}}, "no threshold is published"),
        ({"first": {"threshold": 1.5}}, "at most 1"),
        (
            {"first": {"threshold": True}},
            "threshold; got: True; wanted: published, an estimates file, or a n",
        ),
        ({"first": {"threshold": math.nan}}, "threshold; got: nan; wanted: published, an estimates file, or"),
        ({"first": {"threshold": "nowhere.json"}}, "nowhere.json"),
        ({"first": {"parameters": {"beta": {"uniform": [0.2, 0.1]}}}}, "below"),
        ({"first": {"parameters": {"beta": {}}}}, "one of uniform"),
        ({"first": {"parameters": {"bta": {"uniform": [0.1, 0.2]}}}}, "'beta'"),
        ({"suts": ["c"]}, "no SUT 'c'"),
        ({"require": []}, "at least 1"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    error = wrong(tmp_path, **changes)
    assert words in str(error)
    assert "requirements.yaml" in str(error.where)
    assert error.fix


@pytest.mark.parametrize("text", ["name: x\n", "study: study.yaml\n", "- 1\n", "require: [1]\n"])
def test_a_file_without_requirements_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "requirements.yaml"
    path.write_text(text)
    with pytest.raises(StudyError):
        read_requirements(path)


def test_the_range_is_covered_evenly(tmp_path: Path) -> None:
    data = {"require": [HAZE, FROST, {**HAZE, "kind": "prediction"}], "versions": 4}
    study, versions = derived(read_requirements(write(tmp_path, data)))
    ids = versions[0].within
    assert len(ids) == 4
    for number, name in enumerate(ids):
        low = f"lowest={0.1 * number:.6g}".rstrip()
        assert f"highest={0.1 * (number + 1):.6g}" in name
        assert low in name
    assert versions[0].barely == ()
    assert "highest=0.0455" in versions[1].barely[0]  # 5 % of 0.91
    assert versions[2].within == ids  # shared: what one requirement was answered on is not asked again
    assert len(study.study.mutations) == 4 + 5 + 1


@pytest.mark.parametrize(("backend", "used"), [(None, ("vif", "vif", "vifp")), ("vif", None), ("vifp", None)])
def test_visual_change_is_measured_as_the_threshold_was(
    tmp_path: Path, backend: str | None, used: tuple[str, ...] | None
) -> None:
    """A published one is by wavelet VIF, that of the study here by pixel VIF, a number by the default."""
    entry: dict[str, Any] = {
        "transformation": "haze",
        "kind": "correctness",
        "status": "found",
        "backend": "vifp",
    }
    entry |= {"value": 0.3, "tolerated_to": 0.3}
    whole = {"format": "adverse human thresholds", "version": 4, "thresholds": [entry]}
    whole |= {"checksum": checksum(whole)}
    (tmp_path / "people.json").write_text(json.dumps(whole))
    data: dict[str, Any] = {"require": [FROST, HAZE, {**HAZE, "threshold": "people.json"}]}
    data |= {} if backend is None else {"backend": backend}
    file = read_requirements(write(tmp_path, data))
    if used is None:
        with pytest.raises(StudyError, match=r"the threshold was measured with .*Leave backend: out"):
            derived(file)
        return
    _, versions = derived(file)
    for one, wanted in zip(versions, used, strict=True):
        assert one.threshold.backend == wanted
        assert {f"backend={wanted}," in name for name in (*one.within, *one.barely)} == {True}


@pytest.mark.parametrize("backend", ["vif", "vifp"])
def test_a_number_is_by_the_backend_of_the_file(tmp_path: Path, backend: str) -> None:
    _, (found,) = derived(read_requirements(write(tmp_path, {"require": [HAZE], "backend": backend})))
    assert found.threshold.backend == backend
    assert all(f"backend={backend}," in name for name in found.within)


def test_options_are_drawn_from_their_distributions(tmp_path: Path) -> None:
    drawn = {**HAZE, "parameters": {"beta": {"loguniform": [0.001, 0.1]}}}
    _, versions = derived(read_requirements(write(tmp_path, {"require": [drawn], "versions": 3})))
    assert len(set(versions[0].within)) == 3
    assert all("loguniform" in name and "highest=0.4" in name for name in versions[0].within)


def test_a_ranking_asks_for_the_battery(tmp_path: Path) -> None:
    file = read_requirements(write(tmp_path, {"require": [HAZE, FROST], "ranking": True}))
    _, versions = derived(file)
    assert versions[0].battery == tuple(f"c.fog(severity={n})" for n in range(1, 6))
    assert versions[1].battery[4] == "c.frost(severity=5)"


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("haze", "beta"),
        ("t.frost", "strength"),
        ("gaussian_blur", "sigma_px"),
        ("alpha_blend(color=[0, 0, 0])", "alpha"),
        ("defocus(focus_m=2)", "kappa"),
    ],
)
def test_the_strength_is_left_open(text: str, option: str) -> None:
    found = read_transformation(text, plugins.load())
    assert found.strength is not None
    assert found.strength.option == option
    assert option not in found.fixed


def test_a_mutation_without_strength_can_be_drawn_from(tmp_path: Path) -> None:
    drawn = {"transformation": "channel_dropout(channel=R)", "kind": "correctness", "threshold": 0.3}
    drawn["parameters"] = {"severity": {"choice": [1, 2]}}
    assert "no option 'severity'" in str(wrong(tmp_path, require=[drawn]))
