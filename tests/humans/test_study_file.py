"""The file of a human study: what is wrong in it is told with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adverse.errors import AdverseError
from adverse.humans.stimuli import Stimuli
from adverse.humans.study_file import read_human_study
from human_studies import HOSTILE, write_study


def test_a_good_one_is_read_with_its_defaults(tmp_path: Path) -> None:
    file = read_human_study(write_study(tmp_path))
    assert file.study.size_px == 400
    assert file.study.consent.version == "1"
    assert file.folder == tmp_path / "shapes-answers"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"categories": ["one"]}, "2 to 16 different categories"),
        ({"categories": ["a", "a"]}, "2 to 16 different categories"),
        ({"categories": [f"c{k}" for k in range(17)]}, "2 to 16"),
        ({"transformations": []}, "at least one transformation"),
        ({"transformations": ["t.frosst"]}, "t.frost"),
        ({"transformations": ["haze"]}, "cannot be shown to people"),
        ({"transformations": ["identity"]}, "no searchable strength"),
        ({"truth": {"circle": ["disc"]}}, "names of categories only"),
        ({"truth": {HOSTILE: ["disc", "square"], "square": ["square"]}}, "in one category: square"),
        ({"exposure_ms": 0}, "exposure_ms has a value it cannot take"),
        ({"batch": 2}, "batch has a value"),
        ({"sanity": {"items": 3}}, "at most half of a batch"),
        ({"qualification": {"items": 2, "right": 3}}, "no more right than there are items"),
        ({"consent": {"version": 1}}, "'text' is missing"),
        ({"exposure": 5}, "Did you mean 'exposure_ms'?"),
    ],
)
def test_a_bad_one_says_what_and_where(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(AdverseError) as caught:
        read_human_study(write_study(tmp_path, **changes))
    assert words in str(caught.value)
    assert "shapes.yaml" in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"truth": {"square": []}}, "too few images have a known category"),
        (
            {"truth": {HOSTILE: ["dsic"]}},
            r"the data have no class 'dsic'.*shapes\.yaml.*truth.*Did you mean 'disc'",
        ),
        ({"batch": 13}, "fewer images than one batch needs"),
    ],
)
def test_data_that_do_not_fit_are_told(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(AdverseError, match=words):
        Stimuli(read_human_study(write_study(tmp_path, **changes)))
