"""Noise of recorded depth: as large as asked for in disparity, alike for neighbours, repeatable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.stereo_noise import LEAST, stereo_depth_m
from adverse.data.worlds.writing import WorldSpec, write_log

CAMERA = stereo_camera(320, 240)
NOISE_PX = 0.25
SPEC = WorldSpec("orchard", (("test", 2),), 64, 48, 5, disparity_noise_px=NOISE_PX)


def errors_px(
    distance_m: float, noise_px: float, seed: int = 0
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    true = np.full((CAMERA.height, CAMERA.width), distance_m, np.float32)
    found = stereo_depth_m(true, CAMERA, noise_px, np.random.default_rng(seed)).astype(np.float64)
    return CAMERA.fx * (CAMERA.baseline_m or 0) * (1 / found - 1 / distance_m)


@pytest.mark.parametrize("distance_m", [2.0, 8.0])
def test_the_error_is_that_of_disparity_at_any_distance(distance_m: float) -> None:
    error = np.concatenate([errors_px(distance_m, NOISE_PX, seed) for seed in range(8)])
    assert error.std() == pytest.approx(NOISE_PX, rel=0.05)
    assert abs(error.mean()) < 0.02
    np.testing.assert_allclose(
        errors_px(distance_m, 2 * NOISE_PX), 2 * errors_px(distance_m, NOISE_PX), atol=1e-4
    )


def test_neighbours_err_alike_and_far_pixels_do_not() -> None:
    error = np.stack([errors_px(5.0, NOISE_PX, seed) for seed in range(8)]) / NOISE_PX
    assert (error[:, :, 1:] * error[:, :, :-1]).mean() > 0.9
    assert abs((error[:, :, 40:] * error[:, :, :-40]).mean()) < 0.1


def test_the_sky_stays_the_sky_and_no_depth_is_negative_or_boundless() -> None:
    true = np.full((48, 64), 300.0, np.float32)
    true[:20] = np.inf
    found = stereo_depth_m(true, stereo_camera(64, 48), 1.0, np.random.default_rng(3))
    assert np.isinf(found[:20]).all()
    assert (found[20:] > 0).all()
    assert found[20:].max() <= 300 / LEAST * 1.001
    np.testing.assert_array_equal(
        stereo_depth_m(true, stereo_camera(64, 48), 0.0, np.random.default_rng(3)), true
    )


def test_the_noise_changes_recorded_depth_alone_and_depends_on_seed_log_and_frame(tmp_path: Path) -> None:
    name, kind = SPEC.log_names()[1]
    quiet = WorldSpec("orchard", SPEC.logs, 64, 48, 5)
    folders = {word: tmp_path / word for word in ("quiet", "noisy", "again")}
    for word, spec in (("quiet", quiet), ("noisy", SPEC), ("again", SPEC)):
        write_log(folders[word], spec, name, kind)
    files = {
        word: {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for word, root in folders.items()
    }
    differ = {path for path in files["quiet"] if files["quiet"][path] != files["noisy"][path]}
    assert differ == {path for path in files["quiet"] if "/depth/" in path}
    assert files["noisy"] == files["again"]
    first, second = (np.load(folders["noisy"] / name / "depth" / f"000{at}.npy") for at in (0, 1))
    before = [np.load(folders["quiet"] / name / "depth" / f"000{at}.npy") for at in (0, 1)]
    ground = np.isfinite(before[0]) & np.isfinite(before[1])
    with np.errstate(invalid="ignore"):
        errors = [1 / one[ground] - 1 / two[ground] for one, two in zip((first, second), before, strict=True)]
    assert abs(np.corrcoef(*errors)[0, 1]) < 0.3
