"""What is tried for an operating point: thresholds, and ways to drive; and the logs driven by all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.closed_loop import VIOLATIONS, DrivenSettings, Operation, drive_settings
from adverse.analysis.detections import SutDetections
from adverse.analysis.plain_metrics import operating_threshold
from adverse.errors import StudyError
from adverse.levels.context import Context
from adverse.levels.outcomes import Outcomes
from adverse.store.read import Store


def thresholds_to_try(store: Store, detections: SutDetections) -> NDArray[np.float32]:
    """Return the thresholds to try, falling: those of the shared sensitivities, and the present one."""
    present = operating_threshold(store, detections).score
    return np.unique(np.append(detections.sensitivity.thresholds, present))[::-1]


class Ways(NamedTuple):
    """All that is tried, in this order: each threshold of the first operation, of the second, ...

    The study's own operation comes last.
    """

    operations: tuple[Operation, ...]
    thresholds: NDArray[np.float32]

    def operation(self, k: int) -> Operation:
        """Return the operation of a place."""
        return self.operations[k // len(self.thresholds)]

    def threshold(self, k: int) -> float:
        """Return the threshold of a place."""
        return float(self.thresholds[k % len(self.thresholds)])

    def block(self, operation: Operation) -> slice:
        """Return the places of all thresholds of an operation."""
        first = self.operations.index(operation) * len(self.thresholds)
        return slice(first, first + len(self.thresholds))

    @property
    def size(self) -> int:
        """How many places there are."""
        return len(self.operations) * len(self.thresholds)


def operations_to_try(
    context: Context, speeds_mps: Sequence[float], radii_m: Sequence[float], confirms: Sequence[int]
) -> tuple[Operation, ...]:
    """Return every combination, the study's own last."""
    if context.robot is None:
        return ()
    own = Operation.of(context.robot)
    every = [
        Operation(speed, radius, confirm)
        for speed in sorted({*speeds_mps} or {own.max_speed_mps}, reverse=True)
        for radius in sorted({*radii_m} or {own.control_radius_m})
        for confirm in sorted({*confirms} or {own.confirm}, reverse=True)
    ]
    for operation in every:
        operation.robot(context.robot)  # raises where there is no such robot
        if operation.confirm < 1:
            raise StudyError(
                "a robot believes one image at least",
                where="--confirm",
                got=str(operation.confirm),
                fix="Give 1 or more.",
            )
    return (*(one for one in every if one != own), own)


def drive_all(
    store: Store,
    detections: SutDetections,
    context: Context,
    thresholds: NDArray[np.float32],
    operations: Sequence[Operation],
) -> Iterator[DrivenSettings]:
    """Yield the outcomes of all operations, for each kind of truth, beside each other like thresholds."""
    driven = [drive_settings(store, detections, context, thresholds, operation) for operation in operations]
    for of_kind in zip(*driven, strict=True):
        settings = {name: _beside([one.settings[name] for one in of_kind]) for name in of_kind[0].settings}
        yield DrivenSettings(of_kind[0].level, settings, of_kind[0].incomplete)


def _beside(parts: Sequence[Outcomes]) -> Outcomes:
    """Return outcomes of the same logs as those of one robot with more thresholds.

    A log counts where it was driven by all; the truth's time is the least, that of the highest speed.
    """
    truths = np.min([part.truths for part in parts], axis=0)
    exposure = np.min([part.exposure for part in parts], axis=0)
    hits, violations = (
        np.concatenate(arrays, axis=1) * truths[:, None]
        for arrays in ([part.hits for part in parts], [part.beside[VIOLATIONS] for part in parts])
    )
    cost = np.concatenate([part.cost for part in parts], axis=1) * (exposure > 0)[:, None]
    first = parts[0]
    return Outcomes(
        first.logs, hits, truths, cost, exposure, first.kind, first.left_out, {VIOLATIONS: violations}
    )
