from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from adverse import plugins
from adverse.errors import StudyError, SutError
from adverse.plugins import Plugin, sut
from adverse.suts.build import build, is_recorded, watches_itself
from adverse.types import Detections, Image


class Silent:
    def detect(self, images: Sequence[Image]) -> list[Detections]:
        return [Detections.none() for _ in images]


class Recorder:
    classes = ("person",)

    def recall(self, image_id: int | str, setting: str) -> Detections:  # noqa: ARG002 - a Recorded
        return Detections.none()


@sut(name="kinds")
def kinds(what: str) -> Any:
    if what == "raises":
        raise FileNotFoundError(2, "no such weights", "w.bin")
    if what == "exits":
        sys.exit(4)
    if what == "study":
        raise StudyError("decoder does not fit", fix="Use another.")
    return {"silent": Silent(), "recorder": Recorder(), "nothing": None}[what]


def plugin() -> Plugin:
    found: Plugin = kinds.__adverse__  # type: ignore[attr-defined]
    return found


def test_a_detector_without_classes_knows_the_default_one() -> None:
    built = build(plugin(), {"what": "silent"}, default_class="pedestrian")
    assert built.classes == ("pedestrian",)
    assert not hasattr(built, "recall")


def test_a_recorded_system_is_given_back_as_it_is() -> None:
    assert isinstance(build(plugin(), {"what": "recorder"}, default_class="x"), Recorder)


@pytest.mark.parametrize(
    ("what", "told"),
    [("raises", "no such weights"), ("exits", "SystemExit"), ("nothing", "NoneType")],
)
def test_what_goes_wrong_names_the_system(what: str, told: str) -> None:
    with pytest.raises(SutError) as caught:
        build(plugin(), {"what": what}, name="vendor", default_class="x")
    assert "where: vendor" in str(caught.value)
    assert told in str(caught.value)


def test_an_error_of_ours_keeps_its_own_fix() -> None:
    with pytest.raises(StudyError, match="decoder does not fit"):
        build(plugin(), {"what": "study"}, default_class="x")


def test_what_a_system_is_can_be_told_without_building_it() -> None:
    known = {plugin.name: plugin for plugin in plugins.load().all("sut")}
    assert [name for name, plugin in known.items() if watches_itself(plugin)] == ["command", "http"]
    assert [name for name, plugin in known.items() if is_recorded(plugin)] == ["predictions"]


def test_every_built_in_adapter_has_a_summary_and_plain_options() -> None:
    names = {adapter.name for adapter in plugins.load().all("sut")}
    assert {"command", "contrast-blobs", "onnx", "opencv-hog", "predictions"} <= names
    for adapter in plugins.load().all("sut"):
        assert adapter.summary.endswith("."), adapter.name
        assert isinstance(adapter.code, str)
        assert all(not isinstance(option.default, Path) for option in adapter.options.values())
