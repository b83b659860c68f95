"""Does it help to train on stylized or mutated images? python training/remedy.py train KIND, then score RUN.

Table 2 of Michaelis et al. (2019) in small: the bundled two-stage detector, which has seen frames as they are
and nothing else, is trained on for equally many steps on the same frames of the orchard: as they are (clean),
stylized, both, or with a copy under mutations of other families than the corruptions it is tested with. Then
`coco-c` on held-out logs. Boxes only: masks are not trained. Training needs PyTorch; scoring does not.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import adverse
from adverse import mutations
from adverse.content import digest, file_sha256
from adverse.data.worlds.writing import cache_folder
from adverse.seeds import generator
from adverse.stylize import Stylizer, stylization
from adverse.suts.bundled import MODELS
from adverse.types import Image
from scenes import Frames, depth_m, frames

NET = "two-stage"
KINDS = ("clean", "stylized", "both", "mutated")
LOGS, PER_LOG, LENGTH = 800, 2, 0.75
"""Train logs, frames of each, and the steps as a part of the usual 1600."""
SEED = 17
"""Of the styles and mutations of the copies."""
RUNS = 3
"""Trainings of each kind, which differ in their seeds: what one training says may be chance."""
OTHER_FAMILIES = (
    *(f"channel_dropout(channel={channel})" for channel in "RGB"),
    *(f"lens_mud(coverage={share})" for share in (0.03, 0.1, 0.25)),
    *(f"lens_drops(coverage={share})" for share in (0.05, 0.15, 0.3)),
    *(f"glare(veiling_ratio={ratio})" for ratio in (0.05, 0.2, 0.5)),
)
"""Dirt on the lens, stray light in it, a lost channel: neither noise nor blur, weather or coding."""
TEST = {
    "format": "orchard-world",
    "logs": {"validation": 2, "test": 60},
    "size": [320, 240],
    "seed": 41,
    "test_frames": 120,
}
"""Logs that no network was trained, tuned or tested with."""


def main() -> None:
    """Train one of the four, or score them."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train")
    train.add_argument("kind", choices=KINDS)
    train.add_argument("seed", type=int, help=f"1 to {RUNS} in the table")
    train.add_argument("--styles", type=Path, help="folder of paintings; made styles unless given")
    train.add_argument("--model", type=Path, help="another AdaIN in ONNX than the bundled one")
    train.add_argument("--minutes", type=float, default=math.inf, help="stop then; the next call goes on")
    score = commands.add_parser("score")
    score.add_argument("run", type=Path)
    for command in (train, score):
        command.add_argument("--out", type=Path, default=cache_folder() / "training" / "remedy")
    told = parser.parse_args()
    if told.command == "score":
        suts = [
            {
                **MODELS[NET].section(kind, "."),
                "model": str((told.out / f"{kind}.onnx").resolve()),
                "trained_on": [],
            }
            for kind in KINDS
        ]
        adverse.run(
            {"name": "remedy", "seed": 7, "data": TEST, "suts": suts, "mutations": ["coco-c"]}, told.run
        )
        return
    _train(told.kind, told.seed, data(told.kind, told.styles, told.model), told.out, told.minutes)


def data(kind: str, styles: Path | None, model: Path | None) -> Frames:
    """Return what a kind is trained on: frames, their copies, or first the frames and then the copies."""
    clean = frames("orchard", "train", LOGS, PER_LOG)
    if kind == "clean":
        return clean
    images = copies(clean, "mutated" if kind == "mutated" else "stylized", styles, model)
    copied = clean._replace(images=images)
    if kind == "stylized":
        return copied
    return Frames(*(np.concatenate(pair) for pair in zip(clean, copied, strict=True)))


def copies(clean: Frames, kind: str, styles: Path | None, model: Path | None) -> NDArray[np.uint8]:
    """Return stylized or mutated copies of all images, made once and kept; a stopped one goes on."""
    made: Callable[[Image, int], Image]
    if kind == "stylized":
        how = stylization(styles, model=model)
        key = digest(how.key, *(style.content for style in how.styles), size=4)
        stylizer = Stylizer(how)

        def made(image: Image, row: int) -> Image:
            return stylizer(image, SEED, str(row))
    else:
        key = digest(*OTHER_FAMILIES, adverse.__version__, size=4)

        def made(image: Image, row: int) -> Image:
            drawn = OTHER_FAMILIES[int(generator(SEED, "remedy", str(row)).integers(len(OTHER_FAMILIES)))]
            depth = depth_m(clean.depth[row])
            return mutations.apply(image, drawn, seed=SEED, key=str(row), depth_m=depth)

    path = cache_folder() / "training" / f"remedy-{kind}-{len(clean.images)}-{key}.npy"
    done = path.with_suffix(".rows")
    if not path.exists():
        np.lib.format.open_memmap(path, "w+", np.uint8, clean.images.shape).flush()
        done.write_text("0")
    images = np.lib.format.open_memmap(path, "r+")
    for row in range(int(done.read_text()), len(images)):
        images[row] = made(np.ascontiguousarray(clean.images[row]), row)
        if row % 50 == 49 or row + 1 == len(images):
            images.flush()
            done.write_text(str(row + 1))
            print(f"{row + 1} of {len(images)} {kind}", flush=True)
    return images


def _train(kind: str, seed: int, seen: Frames, out: Path, minutes: float) -> None:
    import torch  # noqa: PLC0415 - scoring does without

    from export import export  # noqa: PLC0415
    from train import BUNDLED, THREADS, Training  # noqa: PLC0415

    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(mode=True)
    start = BUNDLED / MODELS[NET].file
    training = Training(NET, LENGTH, seen, seed)
    training.start_from(start, NET)
    key = digest(file_sha256(start), seen.images[-1].tobytes(), f"{len(seen.images)} {LENGTH} {seed}", size=4)
    if training.run(out / f"{kind}-{seed}-{key}.pt", 60 * minutes):
        export(training.made(), out / f"{kind}-{seed}.onnx")


if __name__ == "__main__":
    main()
