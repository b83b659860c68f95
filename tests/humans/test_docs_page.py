"""The page on human studies shows a study that is valid, and every key there is."""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import numpy as np

from adverse.humans.stimuli import Stimuli
from adverse.humans.study_file import HumanStudy, read_human_study

PAGE = (Path(__file__).parents[2] / "docs" / "human-study.md").read_text()


def test_the_study_of_the_page_can_be_served(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    for name in ("car", "jeep", "street", "field", "kitchen"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(5):
            cv2.imwrite(str(tmp_path / "photos" / name / f"{number}.png"), np.zeros((64, 64, 3), np.uint8))
    path = tmp_path / "cars.yaml"
    path.write_text(shown)
    pictures = Stimuli(read_human_study(path)).pictures
    assert {picture.truth for picture in pictures} == {"car", "no car"}
    assert len(pictures) == 20


def test_every_key_is_explained() -> None:
    assert [key for key in HumanStudy.model_fields if f"`{key}`" not in PAGE] == []
