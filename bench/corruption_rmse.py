"""Do the random corruptions change an image as much as those of imagecorruptions? RMSE, ours over theirs.

Each is drawn by both until the ratio's standard error is at most 0.3 per cent, or --draws are spent. The
ratio is of the means over images and draws, for each severity. Every image has seeds of its own: images of
one size would share their drops and clouds otherwise, and the standard error would be too small. Frost has
five textures, which differ far more than places on one of them: each is drawn equally often, by seeds that
are known to draw it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.seeds import generator
from equivalence import RANDOM, photographs
from peers import Peer

WITHIN = 0.02
SURE = 0.003
BATCH = 20
TEXTURES = 5
APART = 1_000_000
"""Between the first seeds of two images."""


class Ratio(NamedTuple):
    """Ours over theirs, its standard error, and how many draws of each image it rests on."""

    value: float
    error: float
    draws: int


def rmse(peer: Peer, path: Path, clean: NDArray[np.uint8], name: str, severity: int, seed: int) -> float:
    made = peer.output(path, name, severity, seed=seed).astype(np.float64)
    return float(np.sqrt(np.mean((made - clean) ** 2)))


def texture(peer: Peer, severity: int, seed: int) -> int:
    """Return which texture of frost a seed draws."""
    if peer.name == "adverse":
        return int(generator(seed, "bench", f"c.frost(severity={severity})").integers(TEXTURES))
    return int(np.random.RandomState(seed).randint(TEXTURES))


def seeds(peer: Peer, name: str, severity: int, number: int, stratum: int) -> Iterator[int]:
    """Yield seeds of the image with that number without end: all, or those that draw one texture of frost."""
    for seed in itertools.count(number * APART):
        if name != "frost" or texture(peer, severity, seed) == stratum:
            yield seed


def ratio(
    peers: tuple[Peer, Peer], paths: dict[Path, NDArray[np.uint8]], name: str, severity: int, most: int
) -> Ratio:
    """Draw until the ratio is known well enough; images and textures of frost are strata."""
    groups = TEXTURES if name == "frost" else 1
    strata = [
        [
            (path, seeds(peer, name, severity, number, group))
            for number, path in enumerate(paths)
            for group in range(groups)
        ]
        for peer in peers
    ]
    values: list[list[list[float]]] = [[[] for _ in side] for side in strata]
    while True:
        for peer, side, places in zip(peers, values, strata, strict=True):
            for kept, (path, drawn) in zip(side, places, strict=True):
                batch = itertools.islice(drawn, BATCH // groups)
                kept += [rmse(peer, path, paths[path], name, severity, seed) for seed in batch]
        stack = np.array(values)
        means = stack.mean(axis=(1, 2))
        errors = np.sqrt(stack.var(axis=2, ddof=1).sum(axis=1) / stack.shape[2]) / stack.shape[1]
        found = float(means[0] / means[1])
        error = found * math.hypot(*(errors / means))
        draws = stack.shape[1] * stack.shape[2] // len(paths)
        if error <= SURE or draws >= most:
            return Ratio(found, error, draws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000, help="at most so many of each image")
    parser.add_argument("--photos", type=Path, help="a folder of JPEGs to use besides the drawn image")
    parser.add_argument("--only", nargs="*", default=RANDOM)
    parser.add_argument("--severities", nargs="*", type=int, default=range(1, 6))
    parser.add_argument("--scale", type=float, default=1.0, help="of the images: glass blur is slow")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Peer("adverse") as ours, Peer("imagecorruptions") as theirs:
        images = [
            np.asarray(
                cv2.resize(one, None, fx=options.scale, fy=options.scale, interpolation=cv2.INTER_AREA),
                np.uint8,
            )
            for one in photographs(options.photos)
        ]
        paths = {Path(folder) / f"{n}.npy": image for n, image in enumerate(images)}
        for path, image in paths.items():
            np.save(path, image)
        print("corruption: ratio of RMSE at each severity, largest standard error, draws, within 2 %")
        for name in options.only:
            found = [
                ratio((ours, theirs), paths, name, severity, options.draws) for severity in options.severities
            ]
            near = all(abs(one.value - 1) <= WITHIN for one in found)
            print(
                f"c.{name}:",
                *(f"{one.value:.3f}" for one in found),
                f"{max(one.error for one in found):.3f}",
                max(one.draws for one in found),
                "yes" if near else "NO",
                flush=True,
            )


if __name__ == "__main__":
    main()
