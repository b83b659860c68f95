"""The study as a checked value: defaults, strictness, and a file that reads back as itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adverse.errors import StudyError
from adverse.study.spec import read_study, study_from, to_yaml

LEAST: dict[str, Any] = {
    "name": "orchard",
    "data": {"format": "folder", "root": "data"},
    "suts": [{"name": "blobs", "adapter": "contrast-blobs"}],
}


def test_the_least_that_is_a_study(tmp_path: Path) -> None:
    study = study_from(LEAST, tmp_path).study
    assert (study.seed, study.targets, study.levels, study.quarantine_budget) == (
        0,
        ("person",),
        ("image",),
        0.01,
    )
    assert study.data.options == {"root": "data"}
    assert study.suts[0].options == {}


def test_a_study_written_out_in_full_reads_as_itself(tmp_path: Path) -> None:
    study = study_from({**LEAST, "mutations": ["first-look", {"haze": {"beta": 0.1}}]}, tmp_path).study
    (tmp_path / "study.yaml").write_text(to_yaml(study))
    assert read_study(tmp_path / "study.yaml").study == study


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"levels": []}, "at least one level"),
        ({"mutations": []}, "at least one mutation"),
        ({"mutations": None}, "at least one mutation, as in mutations: [gaussian_blur"),
        ({"mutations": "haze"}, "a list, as in mutations: [gaussian_blur"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"seed": True}, "seed"),
        ({"seed": 1.0}, "seed"),
        ({"seed": "1"}, "seed"),
        ({"fpr_max": 0}, "greater than 0"),
        ({"fpr_max": float("nan")}, "fpr_max"),
        ({"fpr_max": float("inf")}, "fpr_max"),
        ({"targets": []}, "at least 1 item"),
        ({"targets": "person"}, "targets"),
        ({"name": ""}, "1 to 100"),
        ({"name": "a/b"}, "1 to 100"),
        ({"invalid_depth": "guess"}, "'refuse', 'far' or 'nearest'"),
        ({"unit_frames": 0}, "greater than or equal to 1"),
        ({"sensitivity": {"levels": 1}}, "greater than or equal to 2"),
        ({"sensitivity": {"lowest": 0.5, "highest": 0.1}}, "lowest"),
        ({"suts": [{"name": "x", "adapter": "y", "timeout_s": 0}]}, "greater than 0"),
        ({"suts": [{"name": "x", "adapter": "y", "timeout_s": float("inf")}]}, "timeout_s"),
        ({"suts": [{"name": "x", "adapter": "y", "batch": 0}]}, "greater than or equal to 1"),
        ({"suts": [{"name": "../x", "adapter": "y"}]}, "1 to 100"),
        ({"suts": ["blobs"]}, "suts[0]"),
        ({"sede": 3}, "Did you mean 'seed'?"),
        ({7: 3}, "unknown key '7'"),
    ],
)
def test_refused(tmp_path: Path, changed: dict[Any, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_from({**LEAST, **changed}, tmp_path)
    assert words in str(caught.value)
    assert caught.value.fix
    assert "tuple" not in str(caught.value)


def test_all_mistakes_are_counted(tmp_path: Path) -> None:
    wrong = {"sede": 1, "seed": -1, "fpr_max": 0}
    with pytest.raises(StudyError, match=r"\(2 more after this one\)"):
        study_from({**LEAST, **wrong}, tmp_path)
