"""What every level comes to: counts per log and sensitivity level.

A curve is a ratio of sums over logs, so whatever is done to logs (resampling, leaving one out) is done to
these counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Counts for L logs and K levels.

    `hits` (L,K) of `truths` (L,) were detected; `alarms` (L,K) were raised on `images` (L,).
    """

    logs: tuple[str, ...]
    hits: NDArray[np.int64]
    truths: NDArray[np.int64]
    alarms: NDArray[np.int64]
    images: NDArray[np.int64]

    def safety(self) -> NDArray[np.float64]:
        """Return the recall at each level; NaN where there is no truth."""
        return _ratio(self.hits.sum(axis=0), int(self.truths.sum()))

    def false_rate(self) -> NDArray[np.float64]:
        """Return the alarms per image at each level; NaN where there is no image."""
        return _ratio(self.alarms.sum(axis=0), int(self.images.sum()))

    def efficiency(self, fpr_max: float) -> NDArray[np.float64]:
        """Return 1 - min(alarms per image / fpr_max, 1)."""
        return 1.0 - np.minimum(self.false_rate() / fpr_max, 1.0)


def counts_by_level(
    group: NDArray[np.int64], level: NDArray[np.int64], groups: int, levels: int
) -> NDArray[np.int64]:
    """Count events per group and level; an event counts at its first level and at all later ones."""
    table = np.bincount(group * (levels + 1) + level, minlength=groups * (levels + 1))
    return table.reshape(groups, levels + 1)[:, :levels].cumsum(axis=1)


def _ratio(part: NDArray[np.int64], whole: int) -> NDArray[np.float64]:
    return part / whole if whole else np.full(len(part), np.nan)
