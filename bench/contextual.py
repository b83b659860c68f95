"""Haze and defocus against plain and direct versions, and what the mutations need: memory, and time to start.

Writes its tables into docs/performance.md.
"""

from __future__ import annotations

import argparse
import itertools
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numba
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # for the scenes that the tests use

import drawn
import pictures
import report
from adverse import mutations, plugins
from adverse.mutations import contract
from adverse.mutations.batteries import BATTERIES
from adverse.mutations.defocus import blur_radius_px
from adverse.mutations.pixels import HAZE_COLOUR
from adverse.seeds import generator
from adverse.types import Depth, Image

SIZES = ((480, 640), (375, 1242), (1024, 2048))
WIDE_BLUR_PX = 1.7
MEMORY_SIZE = (2000, 3000)
FLOAT_IMAGE_BYTES = 4 * 3 * MEMORY_SIZE[0] * MEMORY_SIZE[1]


def seconds(function: Callable[[], object], repeat: int) -> float:
    function()
    taken = []
    for _ in range(repeat):
        begin = time.process_time()
        function()
        taken.append(time.process_time() - begin)
    return min(taken)


def plain_haze(image: Image, depth: Depth, visibility_m: float) -> NDArray[np.float64]:
    """Haze as one would write it with numpy and scipy; sky is left out of the smoothing."""
    far = np.where(np.isinf(depth), 0, depth).astype(np.float64)
    near = np.isfinite(depth).astype(np.float64)
    smooth = ndimage.gaussian_filter(far, 2) / np.maximum(ndimage.gaussian_filter(near, 2), 1e-30)
    clear = np.exp(-3.912 / visibility_m * np.where(np.isinf(depth), np.inf, smooth))[..., None]
    made: NDArray[np.float64] = np.clip(np.rint(image * clear + np.array(HAZE_COLOUR) * (1 - clear)), 0, 255)
    return made


@numba.njit(fastmath=True, error_model="numpy")
def direct_scatter(image: Image, radius: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """The scatter as one would compile it: every pixel spreads its colour over its own window."""
    rows, columns = radius.shape
    total = np.zeros((rows, columns, 4), np.float32)
    for y in range(rows):
        for x in range(columns):
            sigma = radius[y, x]
            reach = math.ceil(4 * sigma) if sigma >= 0.2 else 0
            taps = np.empty(2 * reach + 1, np.float32)
            for k in range(-reach, reach + 1):
                taps[k + reach] = math.exp(-0.5 * (k / sigma) ** 2) if reach else 1.0
            taps /= taps.sum()
            red, green, blue = (
                np.float32(image[y, x, 0]),
                np.float32(image[y, x, 1]),
                np.float32(image[y, x, 2]),
            )
            for v in range(max(y - reach, 0), min(y + reach + 1, rows)):
                down = taps[v - y + reach]
                for u in range(max(x - reach, 0), min(x + reach + 1, columns)):
                    weight = down * taps[u - x + reach]
                    total[v, u, 0] += weight * red
                    total[v, u, 1] += weight * green
                    total[v, u, 2] += weight * blue
                    total[v, u, 3] += weight
    for y in range(rows):
        for x in range(columns):
            for c in range(3):
                out[y, x, c] = total[y, x, c] / total[y, x, 3]


def naive_loop(image: Image, radius: NDArray[np.float32]) -> NDArray[np.float64]:
    """The scatter as a plain Python loop over pixels and their windows."""
    rows, columns = radius.shape
    total = np.zeros((rows, columns, 4))
    for y, x in itertools.product(range(rows), range(columns)):
        sigma = float(radius[y, x])
        reach = math.ceil(4 * sigma) if sigma >= 0.2 else 0
        taps = [math.exp(-0.5 * (k / sigma) ** 2) if reach else 1.0 for k in range(-reach, reach + 1)]
        norm = sum(taps) ** 2
        for v in range(max(y - reach, 0), min(y + reach + 1, rows)):
            for u in range(max(x - reach, 0), min(x + reach + 1, columns)):
                weight = taps[v - y + reach] * taps[u - x + reach] / norm
                total[v, u, :3] += weight * image[y, x]
                total[v, u, 3] += weight
    made: NDArray[np.float64] = total[..., :3] / total[..., 3:]
    return made


def haze_rows() -> list[list[str]]:
    rows = []
    for height, width in SIZES:
        image, depth = drawn.street(height, width)
        ours = seconds(lambda: mutations.haze(image, depth_m=depth, visibility_m=97.8), 7)  # noqa: B023
        plain = seconds(lambda: plain_haze(image, depth, 97.8), 3)  # noqa: B023
        gap = np.abs(
            mutations.haze(image, depth_m=depth, visibility_m=97.8) - plain_haze(image, depth, 97.8)
        ).max()
        rows.append(
            [
                f"{width}x{height}",
                f"{ours * 1e3:.2f}",
                f"{plain * 1e3:.1f}",
                f"{plain / ours:.1f}",
                f"{gap:.0f}",
            ]
        )
    return rows


def defocus_rows(scenes: list[tuple[str, Image, Depth]]) -> list[list[str]]:
    rows = []
    texts = [text for text, _ in BATTERIES["riot-2018"] if text.startswith("defocus")]
    for name, image, depth in scenes:
        for text in texts:
            focus_m, kappa = (float(part.split("=")[1]) for part in text[8:-1].split(", "))
            radius = blur_radius_px(depth, focus_m=focus_m, kappa=kappa)

            def fast(i: Image = image, d: Depth = depth, f: float = focus_m, k: float = kappa) -> Image:
                return mutations.defocus(i, depth_m=d, focus_m=f, kappa=k)

            exact = np.empty(image.shape, np.float32)
            direct = seconds(lambda i=image, r=radius, e=exact: direct_scatter(i, r, e), 2)  # type: ignore[misc]
            ours = seconds(fast, 5)
            middle = (slice(100, 116), slice(100, 116))
            begin = time.process_time()
            naive_loop(image[middle], radius[middle])
            naive = (time.process_time() - begin) * radius.size / radius[middle].size
            gap = np.abs(fast().astype(np.float64) - np.rint(exact)).max()
            typical = float(np.median(radius))
            holds = gap <= 1 and (typical <= WIDE_BLUR_PX or (direct / ours >= 5 and naive / ours >= 300))
            rows.append(
                [
                    f"{name} {text[8:-1]}",
                    f"{typical:.2f}",
                    f"{ours * 1e3:.1f}",
                    f"{direct / ours:.1f}",
                    f"{naive / ours:.0f}",
                    f"{gap:.0f}",
                    "yes" if holds else "**no**",
                ]
            )
    return rows


def resident_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field)))


def memory_rows() -> list[list[str]]:
    """Measure the peak of resident memory during a call, less the result, in float32 images."""
    image, depth = drawn.street(*MEMORY_SIZE)
    rows = []
    for plugin in plugins.load().all("mutation"):
        given: dict[str, Any] = {"depth_m": depth, "labels": image[..., 0]}
        options = contract.example_options(plugin)

        def call(picture: Image, far: Depth, p: Any = plugin, o: Any = options) -> Image:
            extras = {**given, "depth_m": far, "rng": generator(0, "memory")}  # noqa: B023
            made: Image = p.function(picture, **o, **{name: extras[name] for name in p.needs})
            return made

        call(image[:64, :64].copy(), depth[:64, :64].copy())
        Path("/proc/self/clear_refs").write_text("5")
        before = resident_bytes("VmRSS")
        made = call(image, depth)
        used = resident_bytes("VmHWM") - before - made.nbytes
        del made
        rows.append([f"`{plugin.name}`", f"{max(used, 0) / FLOAT_IMAGE_BYTES:.2f}"])
    return rows


def start_seconds() -> float:
    """Return the CPU time of a fresh process that applies one compiled mutation, with everything cached."""
    code = (
        "import time, numpy as np; from adverse import mutations;"
        "mutations.apply(np.zeros((480, 640, 3), np.uint8), 'c.fog(severity=3)');"
        "print(time.process_time())"
    )
    taken = [
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(7)
    ]
    return min(taken)


def depth_section() -> list[str]:
    scenes = [("street", *drawn.street())]
    if pictures.MIDDLEBURY.is_dir():
        scenes += [(name, *pictures.scene(name)) for name in pictures.SCENES]
    haze = report.table(["haze", "ours, ms", "plain numpy, ms", "times", "largest gap, levels"], haze_rows())
    head = ["defocus", "median blur, px", "ours, ms", "times direct", "times naive", "largest gap", "holds"]
    return [
        f"Measured on {report.machine()}. CPU time. Plain: float64 numpy and scipy.",
        "Direct: the compiled scatter, by pixels. Naive: the same in Python, on 16x16 pixels, scaled up.",
        "Wanted: haze at least 8 times plain; defocus within 1 level, and 5 times direct and 300 times naive",
        "where the blur exceeds 1.7 px.",
        "",
        *haze,
        "",
        *report.table(head, defocus_rows(scenes)),
    ]


def needs_section() -> list[str]:
    used = memory_rows()
    worst = max(used, key=lambda row: float(row[1]))
    return [
        f"Measured on {report.machine()}. A fresh process imports the library, loads its",
        f"compiled code and has its first fog after {start_seconds():.2f} s of CPU time. Working space",
        "beside input and output, in float32 images of the same size (3000x2000), is",
        f"{worst[1]} at most ({worst[0]}):",
        "",
        *report.table(["mutation", "float32 images"], used),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    sections = {"haze and defocus": depth_section, "memory and start": needs_section}
    parser.add_argument("--only", choices=sections)
    parser.add_argument("--dry", action="store_true", help="print only, leave the docs alone")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    for name, measured in sections.items():
        if options.only in (None, name):
            lines = measured()
            print("\n".join(lines))
            if not options.dry:
                report.write("performance.md", name, lines)


if __name__ == "__main__":
    main()
