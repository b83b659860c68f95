"""How strong a contextual mutation really is on people: the simple magnitude that applies at their depth.

Defocus is blur by depth and haze is blending by depth, so at a pixel's depth each comes to a blur radius or
an alpha; what it comes to a mutation declares itself (`@mutation(simple=...)`). The histogram of these over
the pixels of all true boxes stands beside the weights of the predictions, which say which simple settings
predict the contextual one (Pezzementi et al. 2018, IV-B and figure 8). Depth inside the boxes is that which
the mutation had; a record keeps quantiles of it, each of which stands for an equal share of the box's pixels.

Beside it stands what people see of each setting, where the study had it measured: median and range over
frames.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adverse.plugins import Registry
from adverse.store.read import Store

BINS = 20


def magnitude_rows(store: Store, registry: Registry) -> list[dict[str, Any]]:
    """Return the histogram over the pixels of people in test images, for every contextual setting."""
    simple = {plugin.name: plugin.simple for plugin in registry.all("mutation")}
    truth, frames = store.truth, store.frames
    contextual = [
        setting
        for setting in store.run.mutations
        if len(setting.steps) == 1
        and setting.drift is None
        and simple.get(setting.steps[0].mutation) is not None
    ]
    depth_m, pixels = store.truth_depth_quantiles_m(setting.id for setting in contextual)
    people = np.flatnonzero(frames.test[truth.frame] & ~truth.ignore & (pixels > 0))
    rows: list[dict[str, Any]] = []
    for setting in contextual:
        magnitude = simple[setting.steps[0].mutation]
        if magnitude is None:
            continue
        values = magnitude.at(depth_m[people].astype(np.float64), **setting.steps[0].options)
        known = np.isfinite(values)
        if not known.any():
            continue
        weight = np.repeat(pixels[people] / depth_m.shape[1], depth_m.shape[1]).reshape(values.shape)
        top = magnitude.highest or max(float(values[known].max()), 1e-9)
        counts, edges = np.histogram(values[known], bins=BINS, range=(0.0, top), weights=weight[known])
        heads = {
            "setting": setting.id,
            "magnitude": magnitude.option,
            "logs": len(np.unique(frames.log[truth.frame[people]])),
            "people": len(people),
            "pixels": int(pixels[people].sum()),
        }
        rows += [
            {**heads, "from": float(low), "to": float(high), "share": float(part)}
            for low, high, part in zip(edges[:-1], edges[1:], counts / weight[known].sum(), strict=True)
        ]
    return rows


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
