"""What a metamorphic relation is computed from, and what it returns.

A relation says what must hold between the detections of one SUT on clean frames and under a mutation, or on
neighbouring frames. It needs no annotation. It is called once for each setting and returns its checks: each
holds or is a violation, and lies somewhere in a frame, where it can be shown. None says that the relation has
nothing to say about a setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.errors import PluginError
from adverse.levels.context import LevelInput, call_plugin
from adverse.plugins import Plugin
from adverse.store.tables import Frames


@dataclass(frozen=True, eq=False)
class RelationInput:
    """One SUT under one setting, at its operating point: what the function of a relation takes.

    `weaker` are the settings of the study that differ from this one in their strength alone, weakest first,
    each with its detections; the clean frames are not among them. On clean frames `changed` is `clean`.
    """

    clean: LevelInput
    changed: LevelInput
    weaker: tuple[LevelInput, ...] = ()

    @property
    def frames(self) -> Frames:
        """All frames of the run, with their logs."""
        return self.clean.frames

    @property
    def counted(self) -> NDArray[np.bool_]:
        """The frames (F,) that could be used both clean and changed."""
        return self.clean.counted & self.changed.counted


class Checks(NamedTuple):
    """What was checked: the frame (N,), the box there (N,4), and whether the relation holds (N,).

    `weight` (N,) says which violations are worth showing first: the score of what is lost, say.
    """

    frame: NDArray[np.int64]
    boxes: NDArray[np.float64]
    holds: NDArray[np.bool_]
    weight: NDArray[np.float64]

    @staticmethod
    def none() -> Checks:
        """Return no checks at all."""
        return Checks(np.zeros(0, np.int64), np.zeros((0, 4)), np.zeros(0, np.bool_), np.zeros(0))

    def and_also(self, other: Checks) -> Checks:
        """Return these checks and other ones."""
        return Checks(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def evaluate_relation(relation: Plugin, given: RelationInput) -> Checks | None:
    """Return the checks of a relation, or say what is wrong with it; None: it is not about this setting."""
    result = call_plugin(relation, given)
    if result is None:
        return None
    if not isinstance(result, Checks):
        raise PluginError(
            f"the relation {relation.name} returns no Checks", got=type(result).__name__, wanted="Checks"
        )
    kinds = (np.int64, np.float64, np.bool_, np.float64)
    try:
        checks = Checks(*(np.asarray(part, kind) for part, kind in zip(result, kinds, strict=True)))
    except (TypeError, ValueError) as error:
        raise PluginError(f"the checks of relation {relation.name} are not arrays", got=str(error)) from error
    count = len(checks.frame) if checks.frame.ndim == 1 else -1
    shapes = tuple(part.shape for part in checks)
    if shapes != ((count,), (count, 4), (count,), (count,)):
        raise PluginError(
            f"the checks of relation {relation.name} have the wrong shapes",
            got=", ".join(map(str, shapes)),
            wanted="(N,), (N, 4), (N,) and (N,)",
        )
    frames = len(given.frames.ids)
    inside = (checks.frame >= 0) & (checks.frame < frames)
    if not inside.all() or not given.counted[checks.frame].all():
        raise PluginError(
            f"the relation {relation.name} checks frames that do not count",
            wanted="frames that are marked in given.counted",
            fix="Leave out frames where counted is False.",
        )
    if not (np.isfinite(checks.boxes).all() and np.isfinite(checks.weight).all()):
        raise PluginError(f"the checks of relation {relation.name} hold NaN or infinite numbers")
    return checks
