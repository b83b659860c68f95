"""What people see of each setting, where the study had it measured: median and range over frames."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adverse.study.store.read import Store

RECORDED = "visual_change_"
"""What visual change is called in records, before the name of its backend (adverse.reliability.visual)."""


def visual_changes(store: Store) -> dict[tuple[str, str], dict[str, float]]:
    """Return what was measured of every (setting, frame); nothing where the study did not ask.

    Every SUT that looked at a frame has the same numbers in its record.
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    if not store.run.visual_change:
        return found
    mutated = list(store.groups)[1:]
    for sut in store.suts:
        table = store.told(sut, mutated)
        columns = (table[name].to_pylist() for name in ("setting", "frame", "told"))
        for setting, frame, told in zip(*columns, strict=True):
            numbers = dict(told or ())
            if any(name.startswith(RECORDED) for name in numbers):
                found[setting, frame] = numbers
        if len(found) == table.num_rows:
            break
    return found


def visual_change_rows(store: Store) -> list[dict[str, Any]]:
    """Return median and range of visual change by setting and backend, with what is recorded beside it."""
    groups: dict[tuple[str, str], list[dict[str, float]]] = {}
    for (setting, _), numbers in sorted(visual_changes(store).items()):
        name = next(name for name in numbers if name.startswith(RECORDED))
        groups.setdefault((setting, name), []).append(numbers)
    rows = []
    for setting, group in store.groups.items():
        for (known, name), measured in groups.items():
            if known == setting:
                rows.append({"setting": setting, "group": group, **_row(name, measured)})
    return rows


def _row(name: str, measured: list[dict[str, float]]) -> dict[str, Any]:
    dv = np.array([numbers[name] for numbers in measured])
    vsnr = float(np.median([numbers["vsnr_db"] for numbers in measured]))
    return {
        "backend": name.removeprefix(RECORDED),
        "frames": len(dv),
        "median": float(np.median(dv)),
        "least": float(dv.min()),
        "most": float(dv.max()),
        "unseen": float(np.mean([math.isinf(numbers["vsnr_db"]) for numbers in measured])),
        "vsnr_db_median": vsnr if math.isfinite(vsnr) else None,
        "mse_median": float(np.median([numbers["mse"] for numbers in measured])),
        "ssim_median": float(np.median([numbers["ssim"] for numbers in measured])),
    }
