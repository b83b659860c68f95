"""Are the corruptions those of imagecorruptions? By pixels where it is deterministic, else by distribution.

A random corruption is drawn many times by both. Each draw gives a few numbers: mean, standard deviation, the
shares of 16 bins of levels, and the power in 8 rings of the spectrum. Both libraries agree if the means of
those numbers over the draws do, within the tolerance or within four standard errors. Writes its report into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

import drawn
import report
from peers import Peer

DETERMINISTIC = (
    *("brightness", "contrast", "saturate", "pixelate"),
    *("jpeg_compression", "defocus_blur", "gaussian_blur", "zoom_blur"),
)
RANDOM = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    *("glass_blur", "motion_blur", "snow", "fog", "elastic_transform", "spatter", "frost"),
)
WITHIN_ONE = 0.999
TOLERANCE = {"mean": 0.5, "deviation": 0.5, "histogram": 0.005, "spectrum": 0.2}
"""Levels, levels, share of the pixels in a bin, decibels."""

STANDARD_ERRORS = 4.0
RINGS = 8


class Gap(NamedTuple):
    difference: float
    errors: float


def numbers(image: NDArray[np.uint8]) -> dict[str, NDArray[np.float64]]:
    values = image.astype(np.float64)
    shares = np.histogram(values, bins=16, range=(0, 256))[0] / values.size
    gray = values.mean(axis=2)
    window = np.outer(np.hanning(gray.shape[0]), np.hanning(gray.shape[1]))
    power = np.abs(np.fft.fft2((gray - gray.mean()) * window)) ** 2
    frequency = np.hypot(*np.meshgrid(*(np.fft.fftfreq(size) for size in gray.shape), indexing="ij"))
    ring = np.minimum((frequency / 0.5 * RINGS).astype(int), RINGS)
    rings = np.bincount(ring.ravel(), power.ravel(), RINGS + 1) / np.bincount(
        ring.ravel(), minlength=RINGS + 1
    )
    return {
        "mean": np.array([values.mean()]),
        "deviation": np.array([values.std()]),
        "histogram": shares,
        "spectrum": 10 * np.log10(rings[:RINGS] + 1e-9),
    }


def gaps(ours: list[NDArray[np.uint8]], theirs: list[NDArray[np.uint8]]) -> dict[str, Gap]:
    """Return the largest difference of each kind of number, and how many standard errors the worst one is."""
    found = {}
    a, b = [numbers(image) for image in ours], [numbers(image) for image in theirs]
    for kind, allowed in TOLERANCE.items():
        one, other = np.array([item[kind] for item in a]), np.array([item[kind] for item in b])
        difference = np.abs(one.mean(axis=0) - other.mean(axis=0))
        error = np.sqrt(one.var(axis=0, ddof=1) / len(one) + other.var(axis=0, ddof=1) / len(other))
        beyond = difference > allowed
        errors = np.where(beyond, difference / np.maximum(error, 1e-12), 0)
        found[kind] = Gap(float(difference.max()), float(errors.max()))
    return found


def photographs(folder: Path | None) -> list[NDArray[np.uint8]]:
    images = [drawn.street(240, 320)[0]]
    for path in sorted(folder.glob("*.jpg"))[:3] if folder else []:
        read = cv2.imread(str(path), cv2.IMREAD_COLOR_RGB)
        if read is not None:
            images.append(cv2.resize(read, (320, 240), interpolation=cv2.INTER_AREA).astype(np.uint8))
    return images


def compare_pixels(ours: Peer, theirs: Peer, image: Path, name: str) -> list[str]:
    equal, within, worst = [], [], 0
    for severity in range(1, 6):
        gap = np.abs(
            ours.output(image, name, severity).astype(int) - theirs.output(image, name, severity).astype(int)
        )
        equal.append(float(np.mean(gap == 0)))
        within.append(float(np.mean(gap <= 1)))
        worst = max(worst, int(gap.max()))
    holds = "yes" if min(within) >= WITHIN_ONE else "**no**"
    return [f"`c.{name}`", f"{min(equal):.2%}", f"{min(within):.3%}", str(worst), holds]


def compare_draws(ours: Peer, theirs: Peer, image: Path, name: str, draws: int) -> list[str]:
    worst = dict.fromkeys(TOLERANCE, Gap(0.0, 0.0))
    for severity in range(1, 6):
        one, other = (
            [peer.output(image, name, severity, seed=seed) for seed in range(draws)]
            for peer in (ours, theirs)
        )
        for kind, gap in gaps(one, other).items():
            worst[kind] = Gap(*map(max, gap, worst[kind]))
    holds = "yes" if max(gap.errors for gap in worst.values()) <= STANDARD_ERRORS else "**no**"
    shown = [f"{worst[kind].difference:.3f}" for kind in TOLERANCE]
    return [f"`c.{name}`", *shown, f"{max(gap.errors for gap in worst.values()):.1f}", holds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--photos", type=Path, help="a folder of JPEGs to use besides the drawn image")
    parser.add_argument("--dry", action="store_true", help="print only, leave the docs alone")
    options = parser.parse_args()
    images = photographs(options.photos)
    with tempfile.TemporaryDirectory() as folder, Peer("adverse") as ours, Peer("imagecorruptions") as theirs:
        paths = [Path(folder) / f"{number}.npy" for number in range(len(images))]
        for path, image in zip(paths, images, strict=True):
            np.save(path, image)
        sure = []
        for name in DETERMINISTIC:
            found = [compare_pixels(ours, theirs, path, name) for path in paths]
            sure.append(min(found, key=lambda row: float(row[2].rstrip("%"))))
            print(*sure[-1])
        small = Path(folder) / "small.npy"
        np.save(small, np.ascontiguousarray(images[-1][60:220, 60:260]))
        drawn_often = []
        for name in RANDOM:
            drawn_often.append(compare_draws(ours, theirs, small, name, options.draws))
            print(*drawn_often[-1])
    lines = [
        f"Measured on {report.machine()}, on images of 320x240 ({len(images)}); the worst of all severities.",
        "",
        *report.table(["deterministic", "equal pixels", "within 1 level", "largest gap", "holds"], sure),
        "",
        f"Random ones, {options.draws} draws each on 200x160 pixels: the largest difference of means.",
        "",
        *report.table(
            [
                *("random", "mean, levels", "deviation, levels", "histogram, share", "spectrum, dB"),
                *("standard errors, where beyond tolerance", "holds"),
            ],
            drawn_often,
        ),
    ]
    if not options.dry:
        report.write("performance.md", "equivalence with imagecorruptions", lines)


if __name__ == "__main__":
    main()
