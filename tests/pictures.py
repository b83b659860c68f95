"""Images for the tests, drawn or found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from adverse.data.images import write_image
from adverse.types import Depth, Image

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
MIDDLEBURY = SHARED / "data" / "stereo_middlebury"

SCENES = {
    "aloe": ("aloeL.jpg", "aloeGT.png", 1, 270.0, 598.0),
    "cones": ("im2.png", "disp2.png", 4, 0.0, 150.0),
    "motorcycle": ("motorcycle_left.png", "motorcycle_disp.npz", 1, 31.086, 192.03),
    "teddy": ("im2.png", "disp2.png", 4, 0.0, 150.0),
    "tsukuba": ("im2.png", "disp2.png", 16, 0.0, 30.0),
    "venus": ("im2.png", "disp2.png", 8, 0.0, 40.0),
}
"""Image, disparity, its scale, offset in pixels, and focal length times baseline in pixel metres.

The last is calibrated for motorcycle and aloe, and chosen so that the others lie between 2 and 10 m.
"""


def scene(name: str) -> tuple[Image, Depth]:
    """Read a Middlebury scene; where the disparity is unknown, the depth is +inf."""
    picture, disparity, scale, offset, numerator = SCENES[name]
    folder = MIDDLEBURY / name
    image = cv2.imread(str(folder / picture), cv2.IMREAD_COLOR_RGB)
    assert image is not None
    if disparity.endswith(".npz"):
        shift = np.load(folder / disparity)["arr_0"].astype(np.float64)
    else:
        read = cv2.imread(str(folder / disparity), cv2.IMREAD_GRAYSCALE)
        assert read is not None
        shift = np.where(read > 0, read / scale, np.inf)
    known = np.isfinite(shift)
    depth = np.full(shift.shape, np.inf, np.float32)
    depth[known] = numerator / (shift[known] + offset)
    return image.astype(np.uint8), depth


def photo(rows: int = 60, columns: int = 80, *, channels: int = 3, seed: int = 0) -> Image:
    """Draw something like a photograph: soft shapes, edges, texture, black and white."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((rows, columns, channels))
    soft = cv2.GaussianBlur(noise, (0, 0), max(min(rows, columns) / 8, 0.5)).reshape(noise.shape)
    image = 128 + 60 * soft / max(soft.std(), 1e-9) + 12 * noise
    image[rows // 4 : rows // 2, columns // 3 : columns // 2] += 90
    image[-rows // 4 :, : columns // 4] -= 120
    out: Image = np.clip(image, 0, 255).astype(np.uint8)
    return out if channels == 3 else out[..., 0]


def sizes(largest: int = 40) -> st.SearchStrategy[tuple[int, int]]:
    """Rows and columns from 1x1 up."""
    return st.tuples(st.integers(1, largest), st.integers(1, largest))


def gap(one: NDArray[np.uint8], other: NDArray[np.number]) -> float:
    """Return the largest difference in levels."""
    return float(np.abs(one.astype(np.float64) - other).max())


def each_level(repeat: int) -> Iterator[tuple[int, Image]]:
    """Yield constant images, one for each of a few levels."""
    for level in (0, 1, 20, 77, 128, 200, 254, 255):
        yield level, np.full((1, repeat), level, np.uint8)


def three_squares(log: int, frame: int, *, gray: int, darker: tuple[int, int]) -> Image:
    """Draw light squares on gray, each darker than the one before, and those of a log than the last one's."""
    image = np.full((48, 96, 3), gray, np.uint8)
    for number in range(3):
        x = 4 + 30 * number + frame
        image[10 + log : 26 + log, x : x + 16] = 250 - darker[0] * number - darker[1] * log
    return image


def write_logs(root: Path, logs: int, frames: int, draw: Callable[[int, int], Image]) -> None:
    """Write frames as a folder of logs has them; `draw` takes the numbers of log and frame."""
    for log in range(logs):
        (root / f"log{log}").mkdir(parents=True)
        for frame in range(frames):
            write_image(root / f"log{log}" / f"{frame}.png", draw(log, frame))
