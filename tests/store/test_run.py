"""A run as one typed value: what a manifest says comes back as it was, and what is missing is an error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adverse import plugins
from adverse.errors import StoreError
from adverse.mutations.settings import BASELINE, parse
from adverse.store.run import run_of, setting_entry
from synthetic_run import Size, _manifest

IDS = (BASELINE, "haze(visibility_m=97.8)", "(c.fog(severity=3) + jpeg(quality=20)) @ log")


def manifest() -> dict[str, Any]:
    settings = [parse(text, plugins.load()) for text in IDS]
    made = _manifest({"settings": [BASELINE], "suts": ["a", "b"]}, Size(), 7)
    made["settings"] = {setting.id: setting_entry(setting) for setting in settings}
    read: dict[str, Any] = json.loads(json.dumps(made))
    return read


def test_settings_come_back_as_they_were_run() -> None:
    run = run_of(manifest(), where="here")
    assert run.settings == tuple(parse(text, plugins.load()) for text in IDS)
    assert run.baseline.id == BASELINE
    assert [setting.family for setting in run.mutations] == ["haze", "c.fog+jpeg"]


def test_a_sut_is_found_by_its_name() -> None:
    run = run_of(manifest(), where="here")
    assert [sut.name for sut in run.suts] == ["a", "b"]
    assert run.sut("b").fingerprint == run.suts[1].fingerprint


@pytest.mark.parametrize("key", ["study", "settings", "statistics", "data", "environment"])
def test_a_manifest_that_lacks_a_part_is_an_error(key: str) -> None:
    with pytest.raises(StoreError, match="does not describe a run"):
        run_of({name: part for name, part in manifest().items() if name != key}, where="here")
