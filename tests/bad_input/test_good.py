"""The studies that all others spoil are good: whatever else is reported comes from the spoiling."""

from __future__ import annotations

import pytest

from .good_study import GoodStudy


@pytest.mark.parametrize("data_format", ["coco", "folder"])
def test_nothing_is_wrong(request: pytest.FixtureRequest, data_format: str) -> None:
    study: GoodStudy = request.getfixturevalue(data_format)
    said = study.adverse()
    said.expect(0, "results: ")
    for row in study.summary()["rows"]:
        assert (row["area"], row["status"]) == (1.0, "ok"), row
    study.adverse("verify").expect(0, "files match their recorded hashes")
    study.adverse("plan").expect(0, "0 to do")
