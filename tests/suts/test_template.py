from __future__ import annotations

from pathlib import Path

import pytest

from adverse.suts.predictions import files_of, is_template, path_for

IDS = ["identity", "gaussian_blur(sigma_px=2)", "haze(visibility_m=200)+brightness(gain=[x]*?)"]


@pytest.mark.parametrize(
    "shape", ["{mutation}.json", "a[1]/v2_{mutation}.json", "{mutation}/{mutation}.json"]
)
def test_the_files_that_exist_are_found_by_setting(tmp_path: Path, shape: str) -> None:
    template = tmp_path / shape
    for setting in IDS:
        path = path_for(template, setting)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]", "utf-8")
    (tmp_path / "notes.txt").write_text("not one of them", "utf-8")
    assert files_of(template) == {setting: path_for(template, setting) for setting in sorted(IDS)}
    assert is_template(template)


def test_a_plain_path_is_no_template(tmp_path: Path) -> None:
    assert not is_template(tmp_path / "weights.onnx")
    assert files_of(tmp_path / "{mutation}.json") == {}
