"""What style transfer keeps of photographs and takes of styles, how long it takes, and a sheet to look at.

python bench/styles_kept.py --photos FOLDER --styles FOLDER [--sheet sheet.png] [--model FILE]

Edges: correlation of the gradients of photograph and stylized image (1: all there), and with those of the
image turned upside down (by chance). Colours and textures: the distance to the style, over that of the
photograph (0: those of the style, 1: nothing taken). Textures are the covariances of oriented differences at
three scales, and the logarithms of the energies of Gabor filters, six directions at four scales, over all
light; the network was trained on neither.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.data.images import images_below, write_image
from adverse.stylize import Stylizer, stylization
from adverse.types import Image

SPEED_PX = 512
SHEET = 12
TILE = (240, 180)


def edges(image: Image) -> NDArray[np.float64]:
    gray = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), (0, 0), 1.5).astype(np.float64)
    return np.asarray(np.hypot(*np.gradient(gray)).ravel(), np.float64)


def colours(image: Image) -> NDArray[np.float64]:
    values = image.reshape(-1, 3).astype(np.float64)
    return np.concatenate([values.mean(axis=0), values.std(axis=0)])


def textures(image: Image) -> NDArray[np.float64]:
    """Return the covariance of luminance differences in four directions at three scales."""
    plane = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float64)
    found = []
    for scale in (1, 2, 4):
        smooth = cv2.GaussianBlur(plane, (0, 0), 0.7 * scale)
        for down, across in ((0, 1), (1, 1), (1, 0), (1, -1)):
            found.append(
                (smooth - np.roll(smooth, (down * scale, across * scale), (0, 1)))[8:-8, 8:-8].ravel()
            )
    return np.cov(np.array(found))


def bands(image: Image) -> NDArray[np.float64]:
    """Return the logarithms of the energies of Gabor filters in six directions, at the size and three halved.

    Energies are shares of the variance of the image.
    """
    plane = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    variance, found = float(plane.var()), []
    for _ in range(4):
        for turn in range(6):
            parts = []
            for phase in (0, np.pi / 2):
                wave = cv2.getGaborKernel((11, 11), 1.8, np.pi * turn / 6, 4.0, 1.0, phase)
                parts.append(cv2.filter2D(plane, cv2.CV_32F, wave - wave.mean()) / np.abs(wave).sum())
            found.append(float(np.mean(parts[0] ** 2 + parts[1] ** 2)))
        plane = cv2.pyrDown(plane).astype(np.float32)
    return np.log(np.array(found) / variance + 1e-6)


def distance_ratio(measure: object, image: Image, made: Image, style: Image) -> float:
    assert callable(measure)
    wanted = measure(style)
    return float(np.linalg.norm(measure(made) - wanted) / np.linalg.norm(measure(image) - wanted))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--styles", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--sheet", type=Path)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    stylizer = Stylizer(stylization(options.styles, model=options.model))
    rows, tiles = [], []
    for number, file in enumerate(images_below(options.photos, 24)):
        image, frame = file(), file.path.stem
        style = stylizer.style(0, frame)
        made = stylizer.stylized(image, style)
        turned = np.ascontiguousarray(made[::-1, ::-1])
        rows.append(
            (
                np.corrcoef(edges(image), edges(made))[0, 1],
                np.corrcoef(edges(image), edges(turned))[0, 1],
                distance_ratio(colours, image, made, style),
                distance_ratio(textures, image, made, style),
                distance_ratio(bands, image, made, style),
            )
        )
        if number < SHEET:
            small = [cv2.resize(one, TILE, interpolation=cv2.INTER_AREA) for one in (image, made)]
            corner = cv2.resize(style, (60, 60), interpolation=cv2.INTER_AREA)
            small[1][-60:, -60:] = corner
            tiles.append(np.hstack(small))
    table = np.array(rows)
    print(f"{len(table)} photographs; median, and the worst")
    for name, values, worst in zip(
        ("edges", "edges by chance", "colours", "textures", "bands"),
        table.T,
        (min, max, max, max, max),
        strict=True,
    ):
        print(f"{name}: {np.median(values):.2f}, {worst(values):.2f}")
    square = np.random.default_rng(0).integers(0, 256, (SPEED_PX, SPEED_PX, 3), np.uint8)
    stylizer.stylized(square, style)
    begin = time.process_time()
    for _ in range(5):
        stylizer.stylized(square, style)
    print(f"{5 / (time.process_time() - begin):.1f} images of {SPEED_PX}x{SPEED_PX} per second of CPU")
    if options.sheet:
        sheet = np.vstack([np.hstack(tiles[row : row + 2]) for row in range(0, SHEET, 2)])
        write_image(options.sheet, np.asarray(sheet, np.uint8))


if __name__ == "__main__":
    main()
