"""Weather against the formulas, written out slowly with the same random numbers."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from adverse.mutations import area_kernels, corruptions, motion, pixels, weather
from pictures import gap, photo


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_plasma_means_are_those_of_diamond_square(n: int) -> None:
    coarse = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
    fine = np.empty((2 * n, 2 * n), np.float32)
    extent = np.empty(2, np.float32)
    area_kernels.refine_plasma(coarse, 0.0, np.uint64(1), fine, extent)
    wanted = np.empty((2 * n, 2 * n))
    for y in range(n):
        for x in range(n):
            wanted[2 * y, 2 * x] = coarse[y, x]
            corners = [coarse[(y + i) % n, (x + j) % n] for i in (0, 1) for j in (0, 1)]
            wanted[2 * y + 1, 2 * x + 1] = np.mean(corners)
    for y in range(2 * n):
        for x in range(2 * n):
            if (y + x) % 2:
                around = [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
                wanted[y, x] = np.mean([wanted[i % (2 * n), j % (2 * n)] for i, j in around])
    np.testing.assert_allclose(fine, wanted, atol=1e-5)
    np.testing.assert_allclose(extent, [wanted.min(), wanted.max()], atol=1e-5)
    part = np.empty((n, 2 * n - 1), np.float32)
    area_kernels.refine_plasma(coarse, 0.0, np.uint64(1), part, extent)
    assert np.array_equal(part, fine[:n, : 2 * n - 1])


def test_plasma_noise_is_uniform_and_new_at_every_point() -> None:
    fine = np.empty((512, 512), np.float32)
    area_kernels.refine_plasma(
        np.zeros((256, 256), np.float32), 4.0, np.uint64(7), fine, np.empty(2, np.float32)
    )
    noise = fine[1::2, 1::2].ravel()
    assert abs(noise.mean()) < 0.05
    assert abs(noise.std() - 4 / np.sqrt(3)) < 0.02
    assert abs(noise).max() <= 4
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.02


@pytest.mark.parametrize("decay", [2.0, 1.7, 1.4])
def test_plasma_noise_decays_from_step_to_step(decay: float) -> None:
    heights = weather.plasma(256, (256, 256), decay, generator()).heights.astype(np.float64)
    for stride in (2, 4, 8):  # the finest step is the eighth, whose noise is at most (100 / decay**7) squared
        corners = heights[::stride, ::stride]
        across = corners + np.roll(corners, -1, axis=1)
        noise = (
            heights[stride // 2 :: stride, stride // 2 :: stride] - (across + np.roll(across, -1, axis=0)) / 4
        )
        most = (100 / decay ** (8 - np.log2(stride))) ** 2
        assert abs(noise.std() / (most / np.sqrt(3)) - 1) < 0.1


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("channels", [1, 3])
def test_fog_is_the_formula(severity: int, channels: int) -> None:
    image = photo(50, 70, channels=channels)
    weight, decay = corruptions.FOG[severity - 1]
    cloud = weather.plasma(70, (128, 128), decay, generator()).heights.astype(np.float64)
    cloud = (cloud - cloud.min()) / (cloud.max() - cloud.min())
    layer = cloud[:50, :70].reshape(50, 70, *[1] * (image.ndim - 2))
    brightest = image.max() / 255
    wanted = np.clip((image / 255 + weight * layer) * brightest / (brightest + weight), 0, 1) * 255
    below = wanted - corruptions.fog(image, severity=severity, rng=generator())
    assert below.min() > -0.01
    assert below.max() < 1.01


def zoomed(field: NDArray[np.float32], factor: float) -> NDArray[np.float64]:
    rows, columns = field.shape
    kept = [-(-rows // factor), -(-columns // factor)]
    top, left = (int((size - keep) // 2) for size, keep in zip(field.shape, kept, strict=True))
    middle = field[top : top + int(kept[0]), left : left + int(kept[1])].astype(np.float64)
    large: NDArray[np.float64] = ndimage.zoom(middle, factor, order=1)[:rows, :columns]
    return large


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("channels", [1, 3])
def test_snow_is_the_formula(severity: int, channels: int) -> None:
    image = photo(64, 90, channels=channels)
    flakes = corruptions.SNOW[severity - 1]
    rng = generator()
    layer = zoomed(pixels.normal((64, 90), rng), flakes.zoom) * flakes.deviation + flakes.mean
    layer = np.clip(np.where(layer < flakes.least, 0, layer), 0, 1)
    path = motion.track(flakes.radius, flakes.sigma, float(rng.uniform(-135, -45)), (64, 90))
    rows, columns = np.arange(64), np.arange(90)
    fallen = np.zeros((64, 90))
    for down, right, weight in zip(*path, strict=True):
        fallen += weight * layer[np.clip(rows - down, 0, 63)][:, np.clip(columns - right, 0, 89)]
    fallen = np.round(fallen * 255) / 255
    values = image / 255
    gray = values @ np.array([0.299, 0.587, 0.114]) if channels == 3 else values
    shape = (64, 90, *[1] * (image.ndim - 2))
    whitened = np.maximum(values, (gray * 1.5 + 0.5).reshape(shape))
    added = (fallen + np.rot90(fallen, 2)).reshape(shape)
    wanted = np.clip(flakes.keep * values + (1 - flakes.keep) * whitened + added, 0, 1) * 255
    below = wanted - corruptions.snow(image, severity=severity, rng=generator())
    assert np.mean((below > -1.01) & (below < 2.01)) == 1.0
    assert np.mean((below > -0.01) & (below < 1.01)) > 0.995  # flakes are rounded, and ties fall either way


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("channels", [1, 3])
def test_spatter_is_the_formula(severity: int, channels: int) -> None:
    image = photo(80, 100, channels=channels)
    splash = corruptions.SPATTER[severity - 1]
    liquid = pixels.normal((80, 100), generator()).astype(np.float64) * splash.deviation + splash.mean
    liquid = ndimage.gaussian_filter(liquid, splash.sigma, mode="nearest", truncate=4)
    shape = (80, 100, *[1] * (image.ndim - 2))
    if splash.mud:
        mud = ndimage.gaussian_filter((liquid > splash.least).astype(float), splash.strength, mode="nearest")
        mud[mud < 0.8] = 0
        colour = np.array([63, 42, 20]) if channels == 3 else np.array([63, 42, 20]) @ [0.299, 0.587, 0.114]
        wanted = image * (1 - mud.reshape(shape)) + colour * mud.reshape(shape)
    else:
        thick = (np.where(liquid < splash.least, 0, liquid) * 255).astype(np.uint8)
        near = np.minimum(cv2.distanceTransform(255 - cv2.Canny(thick, 50, 150), cv2.DIST_L2, 5), 20)
        near = cv2.equalizeHist(cv2.blur(near, (3, 3)).astype(np.uint8))
        relief = cv2.filter2D(near, cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]))
        drops = thick * cv2.blur(relief, (3, 3)).astype(np.float64)
        drops *= splash.strength / drops.max()
        colour = np.array([175, 238, 238])
        gray = colour @ [0.299, 0.587, 0.114]
        wanted = np.clip(image + drops.reshape(shape) * (colour if channels == 3 else gray), 0, 255)
    made = corruptions.spatter(image, severity=severity, rng=generator())
    assert np.mean(np.abs(wanted - made) < 1.01) > 0.995  # thresholds can fall either way by rounding


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (6, 2), (23, 17), (30, 90), (12, 131)])
def test_rims_and_how_far_they_are(shape: tuple[int, int]) -> None:
    smooth = ndimage.gaussian_filter(generator().standard_normal(shape), 1.5) * 250 + 128
    thick = np.clip(smooth, 0, 255).astype(np.uint8)
    thick[thick < 110] = 0
    rims = cv2.Canny(thick, *weather.RIM_GRADIENTS) > 0
    rows, columns = shape
    wanted = np.full((rows + 4, columns + 4), 99, np.float32)
    masks = [(-1, 0, 1.0), (0, -1, 1.0), (-1, -1, 1.4), (-1, 1, 1.4)]
    masks += [(-2, -1, 2.1969), (-2, 1, 2.1969), (-1, -2, 2.1969), (-1, 2, 2.1969)]
    places = list(np.ndindex(shape))
    for turn, order in ((1, places), (-1, places[::-1])):  # Borgefors' two passes, in float32
        for y, x in order:
            ways = [wanted[y + 2 + turn * i, x + 2 + turn * j] + np.float32(cost) for i, j, cost in masks]
            wanted[y + 2, x + 2] = 0 if rims[y, x] else min([wanted[y + 2, x + 2], *ways])
    wanted = np.minimum(wanted[2:-2, 2:-2], 20)
    made = weather.rim_distances(thick)
    assert np.array_equal(made, wanted)
    if rims.any():
        theirs = cv2.distanceTransform((~rims).astype(np.uint8), cv2.DIST_L2, 5)
        np.testing.assert_allclose(made, np.minimum(theirs, 20), atol=1e-3)


def test_no_water_leaves_the_image() -> None:
    dry = weather.Splash(0.1, 0.01, 2, 0.9, 0.6, mud=False)
    image = photo()
    assert gap(weather.spatter(image, dry, rng=generator()), image) == 0
