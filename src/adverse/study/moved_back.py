"""Answers to an image in which a mutation moved things, taken back to where things are on the clean frame.

A mutation such as `mirror` says how to undo what it moves. Answers are taken back as soon as they are there,
so that everything after (truth, depth, levels, pictures) has one geometry: that of the clean frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.errors import StudyError
from adverse.marks import Moves
from adverse.masks import Masks
from adverse.plugins import Registry
from adverse.study.spec import StudyFile
from adverse.types import Answer, Detections, LabelMap, Setting


@dataclass(frozen=True, eq=False)
class WayBack:
    """How to undo what the steps of a setting moved, the last one first, in an image of (rows, columns)."""

    moves: tuple[tuple[Moves, dict[str, Any]], ...]
    size: tuple[int, int]

    def answer(self, answer: Answer) -> Answer:
        """Return an answer as if it had been given about the clean frame; scores of classes stay."""
        if isinstance(answer, LabelMap):
            return LabelMap(self.pixels(answer.labels))
        if not isinstance(answer, Detections):
            return answer
        boxes, masks = answer.boxes, answer.masks
        for move, options in self.moves:
            boxes = move.boxes(boxes, self.size, **options).astype(np.float32)
        if masks is not None and len(masks):
            masks = Masks.of(np.stack([self.pixels(masks.array(row)) for row in range(len(masks))]))
        return Detections(boxes, answer.scores, answer.labels, masks=masks)

    def pixels(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array (rows, columns, ...) of the mutated image in the places of the clean one."""
        for move, options in self.moves:
            array = move.pixels(array, **options)
        return array


def way_back(setting: Setting, registry: Registry, size: tuple[int, int]) -> WayBack | None:
    """Return how to undo what a setting moves; None where everything stays where it is."""
    moves = tuple(
        (plugin.moves, dict(step.options))
        for step in reversed(setting.steps)
        if (plugin := registry.get("mutation", step.mutation)).moves is not None
    )
    return WayBack(moves, size) if moves else None


def unmet_by_moves(file: StudyFile, settings: Iterable[Setting], registry: Registry) -> Iterator[StudyError]:
    """Yield an error where a setting moves what is in the image and a SUT says itself where things stand."""
    moving = [setting.id for setting in settings if moved_by(setting, registry)]
    for index, sut in enumerate(file.study.suts if moving else ()):
        if sut.positions == "reported":
            yield StudyError(
                f"{moving[0]} moves what is in the image, and SUT {sut.name!r} reports positions",
                where=file.where("suts", index, "positions"),
                wanted="boxes alone: only these can be taken back to the clean frame",
                fix=f"Drop {moving[0]} from mutations:, or make a study of image levels for it.",
            )


def moved_by(setting: Setting, registry: Registry) -> bool:
    """Return whether a setting moves what is in the image."""
    return any(registry.get("mutation", step.mutation).moves is not None for step in setting.steps)
