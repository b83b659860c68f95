"""CPU time of every corruption against imagecorruptions and albumentations, on one thread each.

The three take turns, so that a busy machine is busy for all; what is compared is the least time of each. Ours
is called as a user calls it, `adverse.mutations.apply(image, "c.fog(severity=3)")`; what that costs beyond
the function itself is measured on an image of 8x8. The weather with physical parameters is measured against
`c.snow`, in turns in one process. Writes its tables into docs/performance.md, unless only a part is measured
(`--only fog frost`, `--quick` for the cost of the call alone); `--weather` writes that table alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

import drawn
import report
from adverse import mutations
from adverse.mutations.batteries import BATTERIES
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

WANTED_OVERHEAD_MS = 0.1
SNOW = "c.snow(severity=3)"
WEATHER = tuple(text for text, _ in BATTERIES["weather"])
WEATHER_SIZES = ("320x240", "640x480", "2048x1024")
WANTED_OF_SNOW = 1.0
"""Weather may take as long as snow, per pixel."""
CALLS = 500
SIZES = ("640x480", "1242x375", "2048x1024")
SEVERITIES = (1, 3, 5)


class Times(NamedTuple):
    least: float
    median: float


class Overhead(NamedTuple):
    plain: float
    random: float


def overhead_ms(calls: int = CALLS) -> Overhead:
    """Return what calling a mutation by its id adds to the function itself, on an image of 8x8.

    A random one gets a generator of its own by (seed, key, id); the function itself is given one.
    """
    image, rng = np.full((8, 8, 3), 100, np.uint8), np.random.default_rng(0)
    plain = _difference_ms(
        lambda: mutations.apply(image, "brightness(scale=0.5)"),
        lambda: mutations.brightness(image, scale=0.5),
        calls,
    )
    random = _difference_ms(
        lambda: mutations.apply(image, "c.gaussian_noise(severity=3)", seed=1, key="bench"),
        lambda: mutations.c.gaussian_noise(image, severity=3, rng=rng),
        calls,
    )
    return Overhead(plain, random)


def _difference_ms(by_id: Callable[[], object], itself: Callable[[], object], calls: int) -> float:
    taken: dict[Callable[[], object], list[float]] = {by_id: [], itself: []}
    for _ in range(calls):  # in turns: the machine is as busy for one as for the other
        for call, seconds in taken.items():
            begin = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - begin)
    return 1e3 * (min(taken[by_id]) - min(taken[itself]))


def weather_ms(size: str, rounds: int) -> dict[str, tuple[float, Times]]:
    """Return milliseconds of CPU: of the first call, and of the others, for snow and each kind of weather."""
    cv2.setNumThreads(1)
    columns, rows = map(int, size.split("x"))
    image, depth = drawn.street(rows, columns)
    first, taken = {}, defaultdict(list)
    for turn in range(rounds + 1):
        for text in (SNOW, *WEATHER):
            begin = time.process_time()
            mutations.apply(image, text, key=str(turn), depth_m=depth)
            spent = 1e3 * (time.process_time() - begin)
            if turn:
                taken[text].append(spent)
            else:
                first[text] = spent
    return {text: (first[text], Times(min(ms), statistics.median(ms))) for text, ms in taken.items()}


def weather(rounds: int) -> list[str]:
    """Return the table of the weather."""
    times = {size: weather_ms(size, rounds) for size in WEATHER_SIZES}
    rows = []
    for text in (SNOW, *WEATHER):
        row, most = [f"`{text}`"], 0.0
        for size in WEATHER_SIZES:
            _, (least, median) = times[size][text]
            share = least / times[size][SNOW][1].least
            row += [f"{least:.2f} ({median:.2f})", f"{share:.2f}"]
            most = max(most, share)
        rows.append(
            [*row, f"{times[WEATHER_SIZES[1]][text][0]:.0f}", "yes" if most <= WANTED_OF_SNOW else "**no**"]
        )
    head = [""]
    for size in WEATHER_SIZES:
        head += [f"{size}, ms", "of snow"]
    return [
        f"Measured on {report.machine()}. Milliseconds of CPU time on one thread, least (median) of",
        f"{rounds} calls in turns, and the share of the least time of snow.",
        "The first call at a size makes tables and, for rain, the far streaks.",
        "",
        *report.table([*head, "first call at 640x480, ms", f"at most {WANTED_OF_SNOW:g} of snow"], rows),
    ]


def measure(
    image: Path, names: Sequence[str], severities: tuple[int, ...], rounds: int
) -> dict[tuple[str, str, int], Times]:
    """Return the CPU seconds of (library, corruption, severity)."""
    seconds: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        ours, theirs, also = (
            stack.enter_context(Peer(name)) for name in ("adverse", "imagecorruptions", "albumentations")
        )
        for name in names:
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
    times: dict[tuple[str, str, int], Times], names: Sequence[str], severities: tuple[int, ...]
) -> tuple[list[list[str]], float]:
    """Return the rows of the table, and the ratio of the sums without glass_blur."""
    rows = []
    total = {"adverse": 0.0, "imagecorruptions": 0.0}
    for name in names:
        wanted, found, alike = WANTED[name], [], []
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
    return rows, total["imagecorruptions"] / total["adverse"] if total["adverse"] else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), help="width x height")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="print only, leave the docs alone")
    parser.add_argument("--only", nargs="+", choices=list(WANTED), help="these corruptions; implies --dry")
    parser.add_argument("--weather", action="store_true", help="measure the weather alone")
    parser.add_argument("--quick", action="store_true", help="print only what a call by id costs")
    options = parser.parse_args()
    if options.weather or not (options.only or options.quick):
        table = weather(5 * options.rounds)
        print("\n".join(table))
        if not options.dry:
            report.write("performance.md", "speed of the weather", table)
    if options.weather:
        return
    cost = overhead_ms()
    overhead = (
        f"A call by id, `adverse.mutations.apply`, costs {cost.plain:.3f} ms beyond the function itself, "
        f"{cost.random:.3f} ms where it also makes a generator (wanted: at most {WANTED_OVERHEAD_MS})."
    )
    print(overhead)
    if options.quick:
        return
    names = options.only or list(WANTED)
    lines = [
        f"Measured on {report.machine()}. Milliseconds of CPU time at severity 3: least (median).",
        "Ratios of the least times at severity 1 / 3 / 5; with albumentations where it does the same work.",
        overhead,
        "",
    ]
    lines += [f"- {versions(name)}" for name in ("adverse", "imagecorruptions", "albumentations")]
    for size in options.sizes:
        columns, rows = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            image = Path(folder) / "image.npy"
            np.save(image, drawn.street(rows, columns)[0])
            times = measure(image, names, SEVERITIES, options.rounds)
        found, ratio = ratios(times, names, SEVERITIES)
        count = len(set(names) - {"glass_blur"})
        verdict = (
            f"the sum of the {count} without glass_blur is {ratio:.1f} times as fast (wanted: {WANTED_SUM})"
        )
        head = ["", "ours", "imagecorruptions", "times as fast", "wanted", "holds", "times albumentations"]
        lines += ["", f"**{size}**: {verdict}.", "", *report.table(head, found)]
        print("\n".join(lines[-len(found) - 5 :]))
    if not (options.dry or options.only):
        report.write("performance.md", "speed of the corruptions", lines)


if __name__ == "__main__":
    main()
