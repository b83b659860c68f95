"""No code of a user reaches the pixels that others see, whatever it does to those that it is shown."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from adverse.mutations.settings import apply_step
from adverse.plugins import Plugin
from adverse.study.attempts import AttemptLog
from adverse.study.loaded_sut import LoadedSut
from adverse.study.stages import Stage
from adverse.study.sut_queue import ask_batch
from adverse.types import Detections, Image

BUFFER = np.zeros((4, 5, 3), np.uint8)


def by_flag(array: Any) -> None:
    array.setflags(write=True)
    array[:] = 0


def by_address(array: Any) -> None:
    ctypes.memset(array.ctypes.data, 0, array.nbytes)


@pytest.mark.parametrize("spoil", [by_flag, by_address])
def test_a_sut_spoils_no_pixels_but_its_own(spoil: Any) -> None:
    seen: list[int] = []

    class Spoiling:
        classes = ("person",)

        def detect(self, images: Sequence[Image]) -> list[Detections]:
            for image in images:
                seen.append(int(image.min()))
                assert not image.flags.writeable
                spoil(image)
            return [Detections.none()] * (len(images) % 2)  # a batch of two fails, and is asked again alone

    loaded = SimpleNamespace(
        index=0,
        sut=Spoiling(),
        isolated=False,
        task=SimpleNamespace(name="spoiling"),
        attempts=AttemptLog(),
        access=SimpleNamespace(noted=contextlib.nullcontext),
        check=lambda _: None,
        note_fault=lambda *_: None,
    )
    images = [np.full((4, 5, 3), value, np.uint8) for value in (7, 8)]
    ask_batch(cast("LoadedSut", loaded), images, Stage("asking", "frame", "identity"), lambda _: None)
    assert seen == [7, 8, 7, 8]
    assert [int(image.min()) for image in images] == [7, 8]


@pytest.mark.parametrize("spoil", [by_flag, by_address])
def test_a_mutation_spoils_neither_its_source_nor_what_it_gave_before(spoil: Any) -> None:
    def spoiling(image: Image, *, depth_m: Any) -> Image:
        """Use one buffer for all frames."""
        BUFFER[:] = image + 1
        spoil(image)
        spoil(depth_m)
        return BUFFER[:]

    plugin = Plugin("mutation", "spoiling", spoiling, {}, frozenset({"depth_m"}))
    images, depth_m = [np.full((4, 5, 3), value, np.uint8) for value in (7, 8)], np.ones((4, 5), np.float32)
    made = [apply_step(image, plugin, {}, {"depth_m": depth_m}, frame="f") for image in images]
    assert [int(image.min()) for image in made] == [8, 9]
    assert [int(image.min()) for image in images] == [7, 8]
    assert depth_m.min() == 1
