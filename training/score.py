"""Score the bundled detectors on the orchard's test split, write their cards: python training/score.py RUN.

Thresholds come from the validation split, as in every study, and so do a few numbers of the recipes; the test
split was used for nothing else. The scores of the segmenter, which `segment.py` writes into its card, are
counted here as well.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from numpy.typing import NDArray

import adverse
import recipe
from adverse.content import file_sha256
from adverse.suts.bundled import MODELS, BundledModel
from scenes import Frames

BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
DATA = {"format": "orchard-world", "logs": {"validation": 12, "test": 24}, "size": [320, 240], "seed": 1}
MUTATIONS = ["gaussian_blur(sigma_px=2)", "haze(visibility_m=97.8)", "channel_dropout(channel=G)"]
CARD = """\
# {file}

A detector of people ({family}), {kilobytes:.0f} kB, for the rendered orchard.
**Synthetic: it makes curves to look at and must not be used on anything real.**

| | |
|---|---|
| recipe | {recipe} |
| input | 320 x 240 RGB, one class, `person` |
| use | `{section}` |
| sha256 | `{sha}` |

Areas of the curves of safety against efficiency on {logs} test logs of `orchard-world` (seed 1):

| setting | ROC_A | ROC_B |
|---|---|---|
{rows}
"""


def main() -> None:
    """Run the study and write a card for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the run folder")
    parser.add_argument("names", nargs="*", default=list(MODELS), help="of the models; all unless given")
    parser.add_argument("--workers", type=int, default=2)
    told = parser.parse_args()
    chosen = {name: MODELS[name] for name in told.names}
    suts = [
        {**one.section(name, "."), "model": str((BUNDLED / one.file).resolve())}
        for name, one in chosen.items()
    ]
    study = {"name": "bundled", "seed": 7, "data": DATA, "suts": suts, "mutations": MUTATIONS}
    found = adverse.run(study, told.out, workers=told.workers)
    areas = {(row["sut"], row["setting"], row["level"]): row["area"] for row in found.rows}
    for name, one in chosen.items():
        card = _card(name, one, areas)
        (BUNDLED / one.file).with_suffix(".md").write_text(card)
        print(card)


def confusion(model: Path, data: Frames, channel_of: NDArray[np.uint8], channels: int) -> NDArray[np.int64]:
    """Return (channels, channels): how many pixels of each true channel (row) a segmenter gives to each."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    table = np.zeros((channels, channels), np.int64)
    for image, labels in zip(data.images, data.labels, strict=True):
        pixels = (image.astype(np.float32) / 255).transpose(2, 0, 1)[None]
        (logits,) = session.run(None, {"images": pixels})
        wide = cv2.resize(logits[0].transpose(1, 2, 0), image.shape[1::-1], interpolation=cv2.INTER_LINEAR)
        truth, said = channel_of[labels].astype(np.int64), wide.argmax(axis=2)
        known = truth < channels
        table += np.bincount(truth[known] * channels + said[known], minlength=channels**2).reshape(
            table.shape
        )
    return table


def intersection_over_union(table: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the IoU of each channel; NaN where it is neither there nor said.

    >>> intersection_over_union(np.array([[3, 1], [0, 4]]))
    array([0.75, 0.8 ])
    """
    union = table.sum(axis=0) + table.sum(axis=1) - np.diag(table)
    return np.where(union > 0, np.diag(table) / np.maximum(union, 1), np.nan)


def _card(name: str, one: BundledModel, areas: dict[tuple[str, str, str], float | None]) -> str:
    path = BUNDLED / one.file
    settings = dict.fromkeys(setting for sut, setting, _ in areas if sut == name)
    rows = []
    for setting in settings:
        values = [areas.get((name, setting, f"image/{level}")) for level in ("ROC_A", "ROC_B")]
        rows.append(
            f"| {setting} | "
            + " | ".join("-" if value is None else f"{value:.3f}" for value in values)
            + " |"
        )
    return CARD.format(
        file=one.file,
        family=one.family,
        kilobytes=path.stat().st_size / 1e3,
        recipe=recipe.told(name),
        section=one.section(name, "models"),
        sha=file_sha256(path),
        logs=DATA["logs"]["test"],
        rows="\n".join(rows),
    )


if __name__ == "__main__":
    main()
