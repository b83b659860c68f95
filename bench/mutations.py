"""CPU time of every corruption against imagecorruptions and albumentations, on one thread each.

The three take turns, so that a busy machine is busy for all; what is compared is the least time of each.
Writes its table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

import drawn
import report
from peers import Peer, versions

WANTED = {
    "glass_blur": 500,
    **dict.fromkeys(("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"), 15),
    **dict.fromkeys(("brightness", "saturate"), 90),
    **dict.fromkeys(("defocus_blur", "motion_blur", "zoom_blur", "snow", "contrast"), 12),
    "frost": 35,
    **dict.fromkeys(("fog", "elastic_transform"), 8),
    **dict.fromkeys(("spatter", "gaussian_blur"), 5),
    **dict.fromkeys(("jpeg_compression", "pixelate"), 1),
}
"""How many times as fast as imagecorruptions each has to be."""

WANTED_SUM = 18
LIKE = (
    *("gaussian_noise", "shot_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("gaussian_blur", "pixelate", "jpeg_compression", "brightness", "saturate", "elastic_transform"),
)
"""Where albumentations does the same work: the same kernel sizes, factors, qualities."""

SIZES = ("640x480", "1242x375", "2048x1024")
SEVERITIES = (1, 3, 5)


class Times(NamedTuple):
    least: float
    median: float


def measure(image: Path, severities: tuple[int, ...], rounds: int) -> dict[tuple[str, str, int], Times]:
    """Return the CPU seconds of (library, corruption, severity)."""
    seconds: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        ours, theirs, also = (
            stack.enter_context(Peer(name)) for name in ("adverse", "imagecorruptions", "albumentations")
        )
        for name in WANTED:
            for severity in severities:
                ours.times(image, name, severity, repeat=3)
                also.times(image, name, severity)
                if name != "glass_blur":
                    theirs.times(image, name, severity)
                for turn in range(1 if name == "glass_blur" else rounds):
                    for peer, repeat in ((theirs, 1), (ours, 5), (also, 1)):
                        taken = peer.times(image, name, severity, seed=turn, repeat=repeat)
                        seconds[peer.name, name, severity] += taken
            print(".", end="", flush=True)
    print()
    return {key: Times(min(taken), statistics.median(taken)) for key, taken in seconds.items() if taken}


def shown(found: list[float]) -> str:
    return " / ".join(f"{ratio:.0f}" if ratio >= 20 else f"{ratio:.1f}" for ratio in found)


def ratios(
    times: dict[tuple[str, str, int], Times], severities: tuple[int, ...]
) -> tuple[list[list[str]], float]:
    """Return the rows of the table, and the ratio of the sums without glass_blur."""
    rows = []
    total = {"adverse": 0.0, "imagecorruptions": 0.0}
    for name, wanted in WANTED.items():
        found, alike = [], []
        for severity in severities:
            ours, theirs = times["adverse", name, severity], times["imagecorruptions", name, severity]
            found.append(theirs.least / ours.least)
            if name in LIKE:
                alike.append(times["albumentations", name, severity].least / ours.least)
            if name != "glass_blur":
                total["adverse"] += ours.least
                total["imagecorruptions"] += theirs.least
        middle = severities[len(severities) // 2]
        least, median = times["adverse", name, middle]
        peer = times["imagecorruptions", name, middle]
        rows.append(
            [
                f"`c.{name}`",
                f"{least * 1e3:.2f} ({median * 1e3:.2f})",
                f"{peer.least * 1e3:.1f} ({peer.median * 1e3:.1f})",
                shown(found),
                f"{wanted}",
                "yes" if min(found) >= wanted else "**no**",
                shown(alike),
            ]
        )
    return rows, total["imagecorruptions"] / total["adverse"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), help="width x height")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="print only, leave the docs alone")
    options = parser.parse_args()
    lines = [
        f"Measured on {report.machine()}. Milliseconds of CPU time at severity 3: least (median).",
        "Ratios of the least times at severity 1 / 3 / 5; with albumentations where it does the same work.",
        "",
    ]
    lines += [f"- {versions(name)}" for name in ("adverse", "imagecorruptions", "albumentations")]
    for size in options.sizes:
        columns, rows = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            image = Path(folder) / "image.npy"
            np.save(image, drawn.street(rows, columns)[0])
            found, ratio = ratios(measure(image, SEVERITIES, options.rounds), SEVERITIES)
        verdict = f"the sum of the 18 without glass_blur is {ratio:.1f} times as fast (wanted: {WANTED_SUM})"
        head = ["", "ours", "imagecorruptions", "times as fast", "wanted", "holds", "times albumentations"]
        lines += ["", f"**{size}**: {verdict}.", "", *report.table(head, found)]
        print("\n".join(lines[-len(found) - 5 :]))
    if not options.dry:
        report.write("performance.md", "speed of the corruptions", lines)


if __name__ == "__main__":
    main()
