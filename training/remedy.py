"""The remedy: does it help to train on stylized or mutated images.

    python training/remedy.py train KIND SEED    # for each of the four kinds and seeds 1 to 3
    python training/remedy.py score RUN
    python training/remedy.py table RUN

Table 2 of Michaelis et al. (2019) in small: the bundled two-stage detector, which has seen frames as they are
and nothing else, is trained on for equally many steps on the same frames of the orchard: as they are (clean),
stylized, both, or with a copy under mutations of other families than the corruptions it is tested with. Then
`coco-c` on held-out logs. Boxes only: masks are not trained. Training needs PyTorch; scoring does not.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

import adverse
from adverse import mutations
from adverse.benchmarks.intervals import standard_error
from adverse.benchmarks.table import BenchTable, SutRobustness, bench_table
from adverse.content import digest, file_sha256
from adverse.data.worlds.writing import cache_folder
from adverse.seeds import generator
from adverse.stylize import Stylizer, stylization
from adverse.suts.bundled import MODELS
from adverse.types import Image
from scenes import Frames, depth_m, frames

BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
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
PARTS = ("clean", "corrupted", "relative")
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
    shown = commands.add_parser("table")
    shown.add_argument("run", type=Path)
    for command in (train, score):
        command.add_argument("--out", type=Path, default=cache_folder() / "training" / "remedy")
    told = parser.parse_args()
    if told.command == "table":
        print("\n".join(table(bench_table(told.run))))
        return
    if told.command == "score":
        adverse.run(
            {
                "name": "remedy",
                "seed": 7,
                "data": TEST,
                "suts": suts(told.out),
                "mutations": ["coco-c"],
            },
            told.run,
        )
        return
    _train(told.kind, told.seed, data(told.kind, told.styles, told.model), told.out, told.minutes)


def suts(folder: Path) -> list[dict[str, Any]]:
    """Return the bundled network and all that were trained on, as a study lists them."""
    base, families = MODELS[NET], sorted({text.split("(")[0] for text in OTHER_FAMILIES})
    listed = [{**base.section("before", "."), "model": str(BUNDLED / base.file)}]
    for kind in KINDS:
        for seed in range(1, RUNS + 1):
            model = (folder / f"{kind}-{seed}.onnx").resolve()
            entry = {**base.section(f"{kind}-{seed}", "."), "model": str(model)}
            listed.append({**entry, "trained_on": families} if kind == "mutated" else entry)
    return listed


def table(scores: BenchTable) -> list[str]:
    """Return rows: means over seeds, and how far they are from those of frames as they are."""
    of = {row.sut: row for row in scores.rows}
    groups = {"before": [of["before"]]}
    groups |= {kind: [of[f"{kind}-{seed}"] for seed in range(1, RUNS + 1)] for kind in KINDS}
    lines = [
        "| trained on | P | mPC | rPC | mPC of each | mPC to clean | rPC to clean |",
        "|---|" + "---:|" * 6,
    ]
    for name, rows in groups.items():
        cells = [told(*estimate(rows, part)) for part in PARTS]
        each = " ".join(f"{100 * row.whole.corrupted:.1f}" for row in rows)
        gains = ["", ""]
        if name in KINDS[1:]:
            gains = [told(*estimate(rows, part, groups["clean"]), sign="+") for part in PARTS[1:]]
        lines.append("| " + " | ".join([name, *cells, each, *gains]) + " |")
    by_group = [row.whole.by_group for row in of.values()]
    lines += ["", "| trained on | " + " | ".join(by_group[0]) + " |", "|---|" + "---:|" * len(by_group[0])]
    for name, rows in groups.items():
        means = [np.mean([row.whole.by_group[group] for row in rows]) for group in by_group[0]]
        lines.append("| " + " | ".join([name, *(f"{100 * mean:.1f}" for mean in means)]) + " |")
    return lines


def estimate(
    rows: Sequence[SutRobustness], part: str, others: Sequence[SutRobustness] = ()
) -> tuple[float, float]:
    """Return a mean over trainings, or its difference from others', and half of its 95 % interval.

    Logs are drawn and so are seeds: the two variances are added, with degrees of freedom by Satterthwaite.
    """
    sides = [(1, rows), (-1, others)] if others else [(1, rows)]
    value, variances, freedoms = 0.0, [], []
    without: NDArray[np.float64] = np.zeros(1)
    for sign, side in sides:
        values = [float(getattr(row.whole, part)) for row in side]
        value += sign * float(np.mean(values))
        without = without + sign * np.mean([getattr(row.without, part) for row in side], axis=0)
        if len(side) > 1:
            variances.append(float(np.var(values, ddof=1)) / len(side))
            freedoms.append(len(side) - 1)
    variances.append(standard_error(without) ** 2)
    freedoms.append(len(without) - 1)
    total = sum(variances)
    freedom = total**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    return value, float(stdtrit(freedom, 0.975)) * math.sqrt(total)


def told(value: float, reach: float, *, sign: str = "") -> str:
    """Return a number in points with its interval."""
    return f"{100 * value:{sign}.1f} ± {100 * reach:.1f}"


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
    from train import THREADS, Training  # noqa: PLC0415

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
