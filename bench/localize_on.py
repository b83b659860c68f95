"""What location on the mutated pair does to the levels, against location on the clean one.

Run it with `python bench/localize_on.py`; it prints the table of docs/localizer.md. The SUT answers the true
boxes at every setting, so that only depth can be wrong.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import adverse
from adverse.data.rendered import orchard_world
from adverse.types import LocalizeOn

SETTINGS = (
    "identity",
    "haze(visibility_m=97.8)",
    "haze(visibility_m=20)",
    "haze(visibility_m=8)",
    "defocus(focus_m=2, kappa=16)",
    "rain(rate_mm_h=100)",
    "low_light(stops=8)",
    "salt_pepper(fraction=0.1)",
    "salt_pepper(fraction=0.3)",
    "lens_drops(coverage=0.2)",
)
LEVELS = ("located", "path", "loop")
SIZE, SEED = (320, 240), 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=8)
    logs = parser.parse_args().logs
    data = orchard_world(logs={"test": logs}, size=SIZE, seed=SEED)
    entries = [
        {"image_id": frame.image_id, "category_id": 1, "bbox": [x0, y0, x1 - x0, y1 - y0], "score": 0.9}
        for log in data.logs
        for frame in log.frames
        for x0, y0, x1, y1 in frame.truth.boxes.tolist()
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for setting in SETTINGS:
            (folder / f"{setting}.json").write_text(json.dumps(entries))
        sut = {"name": "true boxes", "adapter": "predictions", "path": f"{folder}/{{mutation}}.json"}
        areas = {
            where: _areas(folder / where, where, logs, {**sut, "categories": {1: "person"}})
            for where in ("clean", "mutated")
        }
    print(
        f"| {logs} logs, {len(entries)} people | "
        + " | ".join(f"{level}, clean | mutated" for level in LEVELS)
        + " |"
    )
    print("|---|" + "---:|" * (2 * len(LEVELS)))
    for setting in SETTINGS:
        cells = [f"{areas[where][level, setting]:.3f}" for level in LEVELS for where in ("clean", "mutated")]
        print(f"| `{setting}` | " + " | ".join(cells) + " |")


def _areas(out: Path, where: LocalizeOn, logs: int, sut: dict[str, object]) -> dict[tuple[str, str], float]:
    study = {
        "name": "localize-on",
        "data": {"format": "orchard-world", "logs": {"test": logs}, "size": list(SIZE), "seed": SEED},
        "suts": [{**sut, "missing": "no-detections"}],
        "depth": {"from": "stereo"},
        "localize_on": where,
        "mutations": list(SETTINGS[1:]),
        "levels": list(LEVELS),
        "robot": {"control_radius_m": 2.0, "safety_radius_m": 1.0},
        "robustness": {"bootstrap": 0},
    }
    adverse.run(study, out)
    rows = json.loads((out / "results" / "summary.json").read_text())["rows"]
    return {
        (row["level"].removesuffix("/annotated"), row["setting"]): row["area"]
        for row in rows
        if row["level"].endswith("/annotated")
    }


if __name__ == "__main__":
    main()
