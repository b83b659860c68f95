"""Depth as a stereo matcher would measure it: disparity off by a share of a pixel, alike for neighbours.

A matcher compares windows, so its errors are those of patches and not of single pixels. An error in disparity
is one in depth that grows with the square of the distance.
"""

from __future__ import annotations

import cv2
import numpy as np

from adverse.types import Camera, Depth

PATCH_PX = 3.0
"""Standard deviation of the window over which errors are alike."""
LEAST = 0.5
"""No disparity is measured smaller than this share of the true one."""


def stereo_depth_m(depth_m: Depth, camera: Camera, noise_px: float, rng: np.random.Generator) -> Depth:
    """Return depth (H, W) whose disparity has a normal error of `noise_px` pixels; the sky stays `inf`.

    With no noise, or no second camera, the depth is returned as it is.
    """
    if noise_px == 0 or not camera.baseline_m:
        return depth_m
    disparity = camera.fx * camera.baseline_m / depth_m.astype(np.float64)  # 0 in the sky
    measured = np.maximum(disparity + noise_px * _patches(depth_m.shape, rng), LEAST * disparity)
    with np.errstate(divide="ignore"):
        return (camera.fx * camera.baseline_m / np.where(disparity > 0, measured, 0.0)).astype(np.float32)


def _patches(
    shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return smooth noise (H, W), normal with a variance of 1 everywhere."""
    reach = int(4 * PATCH_PX)
    white = rng.standard_normal((shape[0] + 2 * reach, shape[1] + 2 * reach))
    kernel = cv2.getGaussianKernel(2 * reach + 1, PATCH_PX)
    smooth = cv2.sepFilter2D(white, cv2.CV_64F, kernel, kernel)[reach:-reach, reach:-reach]
    return np.asarray(smooth / (kernel**2).sum())
