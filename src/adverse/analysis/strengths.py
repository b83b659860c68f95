"""How strong a contextual mutation really is on people: the simple magnitude that applies at their depth.

Defocus is blur by depth and haze is blending by depth, so at a person's depth each comes to a blur radius or
an alpha; what it comes to a mutation declares itself (`@mutation(simple=...)`). The histogram of these over
all true boxes stands beside the weights of `adverse predict`, which says which simple settings predict the
contextual one (Pezzementi et al. 2018, IV-B and figure 8). The depth of a person is that of the box as the
Localizer sees it or, where the run has none, of the annotated place.

Beside it stands what people see of each setting, where the study had it measured: median and range over
frames.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.plugins import Registry
from adverse.store.read import Store

BINS = 20


def magnitude_rows(
    store: Store, localized_m: NDArray[np.float64], registry: Registry
) -> list[dict[str, Any]]:
    """Return the histogram over the people of the test images for every contextual setting that ran."""
    simple = {plugin.name: plugin.simple for plugin in registry.all("mutation")}
    truth, frames = store.truth, store.frames
    people = frames.test[truth.frame] & ~truth.ignore
    depth = np.where(np.isfinite(localized_m), localized_m, _annotated_depths_m(store))[people]
    known = depth[depth > 0]
    log = frames.log[truth.frame[people]][depth > 0]
    rows: list[dict[str, Any]] = []
    for setting in store.run.mutations:
        magnitude = simple.get(setting.steps[0].mutation)
        if len(setting.steps) > 1 or magnitude is None or not len(known):
            continue
        values = magnitude.at(known, **setting.steps[0].options)
        top = magnitude.highest or max(float(values.max()), 1e-9)
        counts, edges = np.histogram(values, bins=BINS, range=(0.0, top))
        heads = {
            "setting": setting.id,
            "magnitude": magnitude.option,
            "logs": len(np.unique(log)),
            "of": len(known),
        }
        rows += [
            {**heads, "from": float(low), "to": float(high), "people": int(n), "share": int(n) / len(known)}
            for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    return rows


def _annotated_depths_m(store: Store) -> NDArray[np.float64]:
    """Return how far ahead of the camera annotated places are; NaN where there is no place or no pose."""
    truth = store.truth
    pose = store.frames.poses[truth.frame]
    away: NDArray[np.float64] = np.einsum("ni,ni->n", truth.positions_m - pose[:, :3, 3], pose[:, :3, 2])
    return away


RECORDED = "visual_change_"
"""What visual change is called in records, before the name of its backend (adverse.visual)."""


def visual_changes(store: Store) -> dict[tuple[str, str], dict[str, float]]:
    """Return what was measured of every (setting, frame); nothing where the study did not ask.

    Every SUT that looked at a frame has the same numbers in its record.
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    if not store.run.visual_change:
        return found
    mutated = list(store.groups)[1:]
    for sut in store.suts:
        table = store.mutation_details(sut, mutated)
        columns = (table[name].to_pylist() for name in ("setting", "frame", "details"))
        for setting, frame, details in zip(*columns, strict=True):
            numbers = dict(details or ())
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
