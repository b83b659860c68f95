"""The path of a person against a batch least-squares fit, and against paths whose errors are known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import least_squares

from adverse.annotation import trajectory
from adverse.annotation.geometry import disparity_px, seen_at
from adverse.annotation.trajectory import Sighting, fitted_path
from adverse.types import Camera

CAMERA = Camera(512.0, 512.0, 319.5, 239.5, 640, 480, 0.24)
AHEAD = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""A camera that looks along x of the world; its x points to the right, its y down."""


def drive(
    count: int, start_m: float, end_m: float, walk: tuple[float, float] = (0.0, 0.0), camera: Camera = CAMERA
) -> tuple[list[Sighting], NDArray[np.float64]]:
    """Return exact sightings of a person from a camera that drives towards it, and where the person was."""
    times = np.linspace(0.0, 4.0, count)
    places = np.array([[14.0 + walk[0] * time, 0.4 + walk[1] * time, 1.2] for time in times])
    sightings = []
    for number, (time, away) in enumerate(zip(times, np.linspace(start_m, end_m, count), strict=True)):
        pose = np.eye(4)
        pose[:3, :3] = AHEAD
        pose[:3, 3] = 14.0 - away, 0.0, 1.8
        point, depth = seen_at(camera, pose, places[number])
        disparity = disparity_px(camera, depth)
        clicked = number == count // 3
        sightings.append(Sighting(float(time), camera, pose, point, disparity, clicked, (disparity, 0.1)))
    return sightings, places


def off(
    sightings: list[Sighting], disparity: NDArray[np.float64], points: NDArray[np.float64] | None = None
) -> list[Sighting]:
    moved = np.zeros((len(sightings), 2)) if points is None else points
    return [
        each._replace(
            disparity_px=each.disparity_px + float(wrong),
            fine=None,
            point=(each.point[0] + float(shift[0]), each.point[1] + float(shift[1])),
        )
        for each, wrong, shift in zip(sightings, disparity, moved, strict=True)
    ]


@pytest.mark.parametrize("walk", [(0.0, 0.0), (0.7, -0.6)])
@pytest.mark.parametrize("offset", [0.0, 6.0])
def test_exact_sightings_give_the_exact_path(walk: tuple[float, float], offset: float) -> None:
    sightings, places = drive(20, 12.0, 3.0, walk, replace(CAMERA, offset_px=offset))
    assert np.abs(fitted_path(sightings).places_m - places).max() < 0.01
    assert fitted_path([]).places_m.shape == (0, 3)
    one = fitted_path([sightings[0]._replace(fine=None)])
    assert np.allclose(one.places_m, places[:1], atol=1e-3)
    assert one.errors_m[0] > 0.5  # 0.4 px at 12 m are 0.47 m, twice that is told


def reference(sightings: list[Sighting], speed: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit a straight walk, biases and slips of all frames at once, by SciPy; return places and errors."""
    count = len(sightings)
    times = np.array([each.time_s for each in sightings])
    depths = [
        seen_at(each.camera, each.world_from_camera, np.array([14.0, 0.4, 1.2]))[1] for each in sightings
    ]

    def unpacked(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        places = values[:3] + times[:, None] * values[3:6]
        return places, values[6 : 6 + count], values[6 + count : -1].reshape(count, 3)

    def missed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        places, bias, slip = unpacked(values)
        found = [*(values[3:5] / speed), values[5] / min(speed, 0.3), bias[0] / 0.4, *(slip[0] / 0.1)]
        found.append(values[-1] / 0.15)
        for at, each in enumerate(sightings):
            (x, y), depth = seen_at(each.camera, each.world_from_camera, places[at])
            found += [
                (each.point[0] - x - 512 / depths[at] * slip[at, 0]) / 0.5,
                (each.point[1] - y - 512 / depths[at] * slip[at, 1]) / 0.5,
                (
                    each.disparity_px
                    - disparity_px(each.camera, depth)
                    - bias[at]
                    + 512 * 0.24 / depths[at] ** 2 * (slip[at, 2] + values[-1])
                )
                / 0.12,
            ]
            if each.fine is not None:
                disparity, error = each.fine
                slipped = 512 * 0.24 / depths[at] ** 2 * slip[at, 2]
                missed_px = disparity - disparity_px(each.camera, depth) + slipped
                found.append(missed_px / math.hypot(0.1, 1.5 * error))
            if each.clicked:
                found += [*(slip[at] / 0.003)]
            if at:
                kept = math.exp(-abs(math.log(depths[at] / depths[at - 1])) / 0.5)
                found.append((bias[at] - kept * bias[at - 1]) / (0.4 * math.sqrt(1 - kept**2)))
                found += [*((slip[at] - slip[at - 1]) / (0.3 * depths[at] / 512))]
        return np.array(found)

    start = np.zeros(7 + 4 * count)
    start[:3] = 14.0, 0.4, 1.2
    fit = least_squares(missed, start, x_scale="jac", xtol=1e-12, ftol=1e-12)
    covariance = np.linalg.inv(fit.jac.T @ fit.jac)
    errors = []
    for time in times:
        rows = np.hstack([np.eye(3), time * np.eye(3), np.zeros((3, 4 * count + 1))])
        errors.append(2 * math.sqrt(np.linalg.eigvalsh(rows @ covariance @ rows.T)[-1] + 0.03**2))
    return unpacked(fit.x)[0], np.array(errors)


@pytest.mark.parametrize("speed", [0.003, 1.0])
def test_the_filter_agrees_with_a_batch_fit(speed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectory, "MOTIONS", ((1e-12, speed),))
    monkeypatch.setattr(trajectory, "CHANCES", (1.0,))
    rng = np.random.default_rng(3)
    sightings, _ = drive(12, 11.0, 4.0)
    wrong = off(sightings, rng.normal(-0.2, 0.1, 12), rng.normal(0, 0.4, (12, 2)))
    wrong[7:] = [
        each._replace(fine=(exact.disparity_px + float(rng.normal(0, 0.2)), 0.2))
        for each, exact in zip(wrong[7:], sightings[7:], strict=True)
    ]
    path = fitted_path(wrong)
    places, errors = reference(wrong, speed)
    assert np.abs(path.places_m - places).max() < 0.006
    assert path.errors_m == pytest.approx(errors, rel=0.05)


@pytest.mark.parametrize("bias", [-0.3, 0.3])
def test_matches_that_are_all_off_to_one_side_do_not_matter_once_the_person_was_near(bias: float) -> None:
    sightings, places = drive(40, 12.5, 2.5)
    rng = np.random.default_rng(1)
    path = fitted_path(off(sightings, bias + rng.normal(0, 0.1, 40)))
    assert np.linalg.norm(path.places_m - places, axis=1).max() < 0.05
    assert path.errors_m.max() < 0.12
    far, places = drive(20, 12.5, 9.0)
    path = fitted_path(off(far, np.full(20, bias)))
    missed = np.linalg.norm(path.places_m - places, axis=1)
    assert missed.max() > 0.1
    assert (path.errors_m > missed).all()  # it cannot know, and says so


def test_the_pixels_at_the_point_tell_a_silhouette_from_the_surface() -> None:
    """On plain clothes large pieces match what is 15 cm behind the point, in all frames."""
    exact, places = drive(30, 12.0, 3.0)
    behind = [
        disparity_px(CAMERA, 512 * 0.24 / each.disparity_px + 0.15) - each.disparity_px for each in exact
    ]
    plain = off(exact, np.array(behind), np.random.default_rng(6).normal(0, 0.5, (30, 2)))
    path = fitted_path(plain)
    missed = np.linalg.norm(path.places_m - places, axis=1)
    assert (path.errors_m > np.maximum(missed, 0.1)).all()  # it cannot know, and says so
    near = [
        each._replace(fine=(one.disparity_px, 0.4)) if at > 20 else each
        for at, (each, one) in enumerate(zip(plain, exact, strict=True))
    ]
    sure = fitted_path(near)
    assert np.linalg.norm(sure.places_m - places, axis=1).max() < 0.05
    assert sure.errors_m.max() < 0.9 * path.errors_m.min()


def test_the_error_that_is_told_holds_for_errors_as_they_are_taken_to_be() -> None:
    rng = np.random.default_rng(2)
    held = []
    for _ in range(40):
        walks = float(rng.random() < 0.5)
        sightings, places = drive(15, 12.0, 4.0, (walks * rng.normal(0, 0.3), walks * rng.normal()))
        disparity = rng.normal(0, 0.4) + rng.normal(0, 0.12, 15)
        path = fitted_path(off(sightings, disparity, rng.normal(0, 0.5, (15, 2))))
        surface = np.sqrt(path.errors_m**2 - (2 * 0.03) ** 2)  # these bodies are flat
        held.append(np.linalg.norm(path.places_m - places, axis=1) <= surface)
    assert 0.85 < np.mean(held) < 1.0
