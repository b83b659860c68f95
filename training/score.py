"""Score the bundled detectors on the orchard's test split, write their cards: python training/score.py RUN.

Thresholds come from the validation split, as in every study; the test logs were used for nothing else.
With `--finished` the run is read that `adverse demo` made of the same logs: nothing is drawn or run twice. To
tune, score on the logs of another seed with `--seed`, which writes no cards. The scores of the segmenter,
which `segment.py` writes into its card, are counted here as well.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
import yaml
from numpy.typing import NDArray

import adverse
import recipe
from adverse import FinishedRun, plugins
from adverse.content import file_sha256
from adverse.data.worlds.orchard import orchard_log
from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import stereo_camera
from adverse.seeds import generator
from adverse.study.demo import QUICK
from adverse.suts.bundled import MODELS, BundledModel
from scenes import Frames

BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
DATA = {name: value for name, value in QUICK.data.items() if name != "test_frames"}
"""The logs of the demo, with all of their frames; they were drawn once, when the networks were final."""
LEVELS = {"image/ROC_A": "ROC_A", "image/ROC_B": "ROC_B", "loop/annotated": "closed loop"}
"""The levels in a card, and what their columns are called."""
MUTATIONS = ["gaussian_blur(sigma_px=2)", "haze(visibility_m=97.8)", "channel_dropout(channel=G)"]
TIMED_S = 2.0
"""So many seconds of work are timed, frame by frame."""
CARD = """\
# {file}

A detector of people ({family}), {kilobytes:.0f} kB, for the rendered orchard.
**Synthetic: it makes curves to look at and must not be used on anything real.**

| | |
|---|---|
| recipe | {recipe} |
| input | 320 x 240 RGB, one class, `person` |
| time | {milliseconds:.1f} ms of one core for a frame |
| use | `{section}` |
| sha256 | `{sha}` |

Areas of the curves of safety against efficiency on {frames}{logs} test logs of `orchard-world` (seed {seed},
noise of 20 mm in positions and of 0.25 pixels in disparity), the closed loop's at the buffer:

| setting | ROC_A | ROC_B | closed loop |
|---|---|---|---|
{rows}
"""


def main() -> None:
    """Run the study and write a card for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the run folder")
    parser.add_argument("names", nargs="*", default=list(MODELS), help="of the models; all unless given")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--frames", type=int, help="score on at most so many test frames, evenly spaced")
    parser.add_argument("--seed", type=int, help="of other logs to score on; then no card is written")
    parser.add_argument(
        "--finished", action="store_true", help="read the run of `adverse demo` that is there"
    )
    told = parser.parse_args()
    chosen = {name: MODELS[name] for name in told.names}
    found = _demo_run(told.out, chosen) if told.finished else _scored(told, chosen)
    areas = {(row["sut"], row["setting"], row["level"]): row["area"] for row in found.rows}
    if told.seed is not None:
        for (name, setting, level), area in areas.items():
            print(name, setting, level, area)
        return
    frames = QUICK.test_frames if told.finished else told.frames
    for name, one in chosen.items():
        card = _card(name, one, areas, frames)
        (BUNDLED / one.file).with_suffix(".md").write_text(card)
        print(card)


def _demo_run(folder: Path, chosen: Mapping[str, BundledModel]) -> FinishedRun:
    """Return the demo's run, if it is one of the logs and the detectors as they are."""
    if yaml.safe_load((folder.parent / "study.yaml").read_bytes())["data"] != QUICK.data:
        raise ValueError(f"{folder}: not the logs of the demo")
    for one in chosen.values():
        if file_sha256(folder.parent / "models" / one.file) != file_sha256(BUNDLED / one.file):
            raise ValueError(f"{folder}: ran another {one.file}")
    return adverse.open_run(folder)


def _scored(told: argparse.Namespace, chosen: Mapping[str, BundledModel]) -> FinishedRun:
    """Run the detectors on the test logs, or on those of another seed."""
    data = DATA if told.frames is None else {**DATA, "test_frames": told.frames}
    suts = [
        {**one.section(name, "."), "model": str((BUNDLED / one.file).resolve())}
        for name, one in chosen.items()
    ]
    study = {
        "name": "bundled",
        "seed": 7,
        "data": data if told.seed is None else {**data, "seed": told.seed},
        "suts": suts,
        "mutations": MUTATIONS,
        "levels": ["image", "loop"],
    }
    return adverse.run(study, told.out, workers=told.workers)


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


def _card(
    name: str, one: BundledModel, areas: dict[tuple[str, str, str], float | None], frames: int | None
) -> str:
    path = BUNDLED / one.file
    settings = dict.fromkeys(setting for sut, setting, _ in areas if sut == name)
    rows = []
    for setting in settings:
        values = [areas.get((name, setting, level)) for level in LEVELS]
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
        milliseconds=_milliseconds(name, one),
        section=one.section(name, "models"),
        sha=file_sha256(path),
        frames="" if frames is None else f"{frames} frames of ",
        logs=DATA["logs"]["test"],
        seed=DATA["seed"],
        rows="\n".join(rows),
    )


def _milliseconds(name: str, one: BundledModel) -> float:
    """Return the time of one core for a frame: the least of many, as other work slows all the others down.

    Of a network it is that of the network alone, with ONNX Runtime on one thread.
    """
    script = orchard_log(1, "train/positive000", "positive")
    camera, pose = stereo_camera(*DATA["size"]), script.drive.pose(1.0)
    image = render(script.scene(), camera, pose, 1.0, generator(1, "time")).image
    if one.adapter == "onnx":
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(BUNDLED / one.file), options)
        pixels = (image.astype(np.float32) / 255).transpose(2, 0, 1)[None]
        work = functools.partial(session.run, None, {"images": pixels})
    else:
        section = one.section(name, str(BUNDLED))
        chosen = {key: value for key, value in section.items() if key not in ("name", "adapter")}
        plugin = plugins.load().get("sut", section["adapter"])
        detector = plugin.function(**plugins.bind(plugin, chosen, where="suts", base=BUNDLED))
        work = functools.partial(detector.detect, [image])
    times: list[float] = []
    while sum(times) < TIMED_S:
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return 1000 * min(times)


if __name__ == "__main__":
    main()
