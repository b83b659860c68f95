"""Location under mutation: depth computed again from the stereo pair as mutated, drawn for both cameras."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import adverse
from adverse import depth, plugins
from adverse.content import content_hashes
from adverse.data.folder import folder
from adverse.data.images import write_image
from adverse.depth.boxes import box_depths_m
from adverse.depth.rectification import StereoRig
from adverse.errors import AdverseError
from adverse.mutations.rain import Camera as RainCamera
from adverse.mutations.rain import rain_before
from adverse.mutations.settings import Streams, apply_setting, apply_to_right, parse
from adverse.plugins import mutation
from adverse.store.finished_run import finished
from adverse.study import depth_cache
from adverse.study.depth_maps import prune_cache, with_depth, with_right_depth
from adverse.study.plan import make_plan
from adverse.study.spec import DepthSection, study_from
from adverse.types import Image, Setting
from stereo_scenes import haze_error, orchard

SIZE = (160, 120)
BOX = [60.0, 40.0, 100.0, 110.0]
SHARED = {"rain", "snow", "c.fog", "c.motion_blur", "t.rgb_shift", "t.color_jitter"}
"""Of the mutations that draw at random those that draw once for both cameras; the others for each."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pairs") / "data"
    for number in (3, 4):
        pair = orchard(number, *SIZE)
        for kind, image in (("images", pair.left), ("right", pair.right)):
            (root / "row" / kind).mkdir(parents=True, exist_ok=True)
            write_image(root / "row" / kind / f"{number}.png", image)
    (root / "camera.json").write_text(json.dumps(asdict(orchard(3, *SIZE).camera)))
    turn = "0.5,-0.5,0.5,-0.5"
    (root / "row" / "poses.csv").write_text(
        f"frame,time_s,x_m,y_m,z_m,qw,qx,qy,qz\n3,0,0,0,1,{turn}\n4,1,1,0,1,{turn}\n"
    )
    return root


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def one_box(images: Any) -> list[Any]:
    return [([BOX], [0.9], [0]) for _ in images]


def study(root: Path, **more: Any) -> dict[str, Any]:
    return {
        "name": "pairs",
        "data": {"format": "folder", "root": str(root)},
        "depth": {"from": "stereo"},
        "levels": ["located"],
        "mutations": ["haze(visibility_m=20)", "salt_pepper(fraction=0.3)"],
        "robustness": {"bootstrap": 0},
        **more,
    }


def test_every_random_mutation_is_of_the_world_or_of_a_camera() -> None:
    random = [plugin for plugin in plugins.load().all("mutation") if plugin.needs & {"rng", "log_rng"}]
    assert {plugin.name for plugin in random if plugin.draw == "shared"} == SHARED
    assert {plugin.name for plugin in random} > SHARED


def test_a_plug_in_says_how_it_draws_for_a_pair() -> None:
    @mutation(stereo="shared")
    def dust(image: Image, *, rng: np.random.Generator) -> Image:
        """Add dust."""
        return np.asarray(image + rng.integers(0, 2, image.shape, np.uint8), np.uint8)

    assert dust.__adverse__.draw == "shared"  # type: ignore[attr-defined]


PLUG_IN = """
import numpy as np
from adverse import mutation

@mutation(stereo="shared")
def dust(image, *, amount: int, rng: np.random.Generator):
    return (image // 2 + rng.integers(0, amount, image.shape)).astype(np.uint8)

@mutation
def grain(image, *, amount: int, rng: np.random.Generator):
    return (image // 2 + rng.integers(0, amount, image.shape)).astype(np.uint8)

@mutation
def far_away(image, *, amount: int, rng: np.random.Generator, depth_m):
    return (image // 2 + rng.integers(0, amount, image.shape) * (depth_m > 5)[..., None]).astype(np.uint8)
"""


def test_mutations_of_plug_ins_draw_as_they_say(tmp_path: Path) -> None:
    file = tmp_path / "plug_in.py"
    file.write_text(PLUG_IN)
    for name, alike in (("dust", True), ("grain", False), ("far_away", True)):
        left, right = pair_of(f"{name}(amount=90)", files=[file])
        assert np.array_equal(left, right) == alike


def pair_of(text: str, shape: tuple[int, int] = (40, 60), files: Sequence[Path] = ()) -> tuple[Image, Image]:
    """Return a gray pair under a setting."""
    registry = plugins.load(files)
    setting: Setting = parse(text, registry)
    gray, far = np.full((*shape, 3), 120, np.uint8), np.full(shape, 9, np.float32)
    draws: list[Streams] = []
    given: dict[str, Any] = {"seed": 7, "key": "f", "log": "l", "depth_m": far}
    left = apply_setting(gray, setting, registry, draws=draws, **given)
    assert np.array_equal(left, apply_setting(gray, setting, registry, **given))
    right = apply_to_right(gray, setting, registry, draws, baseline_m=0.2, **given)
    assert np.array_equal(right, apply_to_right(gray, setting, registry, draws, baseline_m=0.2, **given))
    return left, right


def test_light_is_shared_and_noise_is_not_whatever_comes_first() -> None:
    left, right = pair_of("t.rgb_shift(strength=0.5)")
    assert np.array_equal(left, right)
    left, right = pair_of("c.gaussian_noise(severity=2)")
    assert abs(np.corrcoef(left.ravel(), right.ravel())[0, 1]) < 0.1
    left, right = pair_of("c.gaussian_noise(severity=2) + t.rgb_shift(strength=0.5)")
    means = [image.reshape(-1, 3).mean(axis=0) for image in (left, right)]
    np.testing.assert_allclose(means[0], means[1], atol=2)  # the same colour of light, by its own noise
    assert not np.array_equal(left, right)
    left, right = pair_of("lens_mud(coverage=0.3)")
    assert not np.array_equal(left, right)


def test_drops_of_rain_are_shifted_by_their_distance() -> None:
    camera, baseline = RainCamera(400.0, 0.005, 0.0012), 0.2
    here, there = (rain_before(camera, 50.0, 0.0, metres).tiles for metres in (0.0, baseline))
    for number, (low, high) in enumerate(zip(camera.slices_m, camera.slices_m[1:], strict=False)):
        one, other = (1 - tiles[number] for tiles in (here, there))
        flat = [np.fft.rfft(image - image.mean(), axis=1) for image in (one, other)]
        match = np.fft.irfft((flat[0] * flat[1].conj()).sum(axis=0), n=one.shape[1])  # moved to the left
        shift = int(match.argmax())
        assert camera.focal_px * baseline / high - 1 <= shift <= camera.focal_px * baseline / low + 1


def test_the_right_image_has_a_depth_of_its_own(data: Path) -> None:
    section = DepthSection.model_validate({"from": "stereo"})
    made = with_right_depth(with_depth(folder(data), section, folder=data, where="here"))
    frame = made.logs[0].frames[0]
    assert frame.depth_m is not None
    assert frame.right_depth_m is not None
    left, right = frame.depth_m(), frame.right_depth_m()
    camera = orchard(3, *SIZE).camera
    columns = np.arange(SIZE[0])
    shift = np.rint(camera.fx * (camera.baseline_m or 0) / left).astype(int)
    to = columns - shift
    inside = (to >= 0) & np.isfinite(left)
    seen = right[np.nonzero(inside)[0], to[inside]]
    assert np.median(np.abs(seen / left[inside] - 1)) < 0.02


def test_a_mirrored_rig_sees_mirrored_points() -> None:
    lens = {"fx": 200.0, "fy": 201.0, "cx": 90.0, "cy": 60.0}
    turn = ((0.9998, -0.02, 0.0), (0.02, 0.9998, 0.0), (0.0, 0.0, 1.0))
    rig = StereoRig.model_validate(
        {
            "width": 160,
            "height": 120,
            "left": {**lens, "distortion": (-0.1, 0.02, 0.003, 0.004)},
            "right": {**lens, "cx": 70.0, "distortion": (-0.08, 0.01, -0.002, 0.001)},
            "rotation": turn,
            "translation_m": (-0.24, 0.01, 0.02),
        }
    )
    other = rig.mirrored()
    point = np.array([0.4, -0.2, 3.0])
    in_right = np.array(rig.rotation) @ point + rig.translation_m
    mirror = np.diag([-1.0, 1, 1])
    np.testing.assert_allclose(
        np.array(other.rotation) @ (mirror @ in_right) + other.translation_m, mirror @ point, atol=1e-3
    )

    def seen(lens: Any, where: Any) -> Any:
        nothing = np.zeros(3)
        return cv2.projectPoints(where[None], nothing, nothing, lens.matrix, lens.coefficients)[0].ravel()

    at, there = seen(rig.right, in_right), seen(other.left, mirror @ in_right)
    np.testing.assert_allclose(there, [159 - at[0], at[1]], atol=1e-9)


def test_detections_are_located_on_the_pair_that_the_sut_saw(data: Path, tmp_path: Path) -> None:
    (tmp_path / "plug_in.py").write_text(PLUG_IN)
    given = study(data, plugins=[str(tmp_path / "plug_in.py")])
    given["mutations"].append("dust(amount=100)")
    for where in ("clean", "mutated"):
        adverse.run({**given, "localize_on": where}, tmp_path / where, detectors={"one": one_box})
    stores = {where: finished(tmp_path / where) for where in ("clean", "mutated")}
    assert stores["mutated"].run.localize_on == "mutated"
    answers = {where: store.answers("one") for where, store in stores.items()}
    clean, mutated = answers["clean"], answers["mutated"]
    np.testing.assert_array_equal(clean["identity"].depths_m, mutated["identity"].depths_m)
    np.testing.assert_array_equal(stores["clean"].truth_depths_m(), stores["mutated"].truth_depths_m())
    for setting in given["mutations"]:
        np.testing.assert_array_equal(clean[setting].depths_m, clean["identity"].depths_m)
        assert not np.array_equal(mutated[setting].depths_m, clean[setting].depths_m)
    # the same by hand: both images in haze by their own depth, and matched again
    section = DepthSection.model_validate({"from": "stereo"})
    made = with_right_depth(with_depth(folder(data), section, folder=data, where="here"))
    frame = made.logs[0].frames[0]
    assert frame.depth_m is not None
    assert frame.right is not None
    assert frame.right_depth_m is not None
    left, right = (
        adverse.mutations.haze(image, depth_m=metres, visibility_m=20)
        for image, metres in ((frame.image(), frame.depth_m()), (frame.right(), frame.right_depth_m()))
    )
    sky = np.isinf(frame.depth_m())
    again = depth.from_stereo(left, right, orchard(3, *SIZE).camera, sky=sky, doubted=False).depth_m
    wanted = box_depths_m(again, np.array([BOX]))
    np.testing.assert_array_equal(mutated["haze(visibility_m=20)"].depths_m[:1], wanted)


def test_the_choice_is_a_part_of_the_key_of_mutated_cells_alone(data: Path) -> None:
    keys = {}
    for where in ("clean", "mutated"):
        plan = make_plan(study_from(study(data, localize_on=where, suts=SUTS), data))
        assert not plan.blocked
        keys[where] = {
            plan.job.settings[cell.setting].id: cell.key for unit in plan.units for cell in unit.cells
        }
    same = {setting for setting, key in keys["clean"].items() if keys["mutated"][setting] == key}
    assert same == {"identity"}


SUTS = [{"name": "blobs", "adapter": "contrast-blobs"}]


def refusal(given: dict[str, Any], folder: Path) -> str:
    """Return why a study cannot run."""
    try:
        return "; ".join(map(str, make_plan(study_from(given, folder)).blocked))
    except AdverseError as raised:
        return str(raised)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"depth": None}, "computes depth again from the mutated stereo pair"),
        ({"levels": ["image"]}, "locates nothing"),
        ({"localize_on": "both"}, "localize_on"),
    ],
)
def test_what_cannot_be_located_is_said_before_the_run(data: Path, more: dict[str, Any], what: str) -> None:
    given = {**study(data, localize_on="mutated", suts=SUTS), **more}
    assert what in refusal({name: value for name, value in given.items() if value}, data)


def test_a_pair_that_is_not_doubted_is_matched_all_the_same() -> None:
    pair = orchard(3, *SIZE)
    noise = np.random.default_rng(0).integers(0, 255, (2, *pair.left.shape)).astype(np.uint8)
    sky = np.zeros(SIZE[::-1], np.bool_)
    assert depth.from_stereo(noise[0], noise[1], pair.camera, sky=sky, doubted=False).measured.mean() < 0.35
    clean = depth.from_stereo(pair.left, pair.right, pair.camera)
    given = depth.from_stereo(pair.left, pair.right, pair.camera, sky=clean.sky, doubted=False)
    assert np.array_equal(clean.depth_m, given.depth_m)
    assert haze_error(given.depth_m, pair.depth_m).mean() < 0.05


def test_the_cache_is_bounded_and_keeps_what_is_needed(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    section = DepthSection.model_validate({"from": "stereo"})
    made = with_depth(folder(data), section, folder=data, where="here")
    frames = made.logs[0].frames
    first = frames[0].depth_m
    assert first is not None
    first()
    hashes = content_hashes(path for frame in frames for path in (frame.image.path, frame.right.path))  # type: ignore[union-attr]
    (needed,) = (tmp_path / "adverse" / "depth").rglob("*.npz")
    old = [needed.with_name(f"{letter}.npz") for letter in "abc"]
    for age, path in enumerate(old):
        path.write_bytes(bytes(1000))
        os.utime(path, (age, age))
    limit = (needed.stat().st_size + 1500) / 1e9
    monkeypatch.setenv(depth_cache.LIMIT, repr(limit))
    pruned = prune_cache(frames, hashes)
    assert (pruned.deleted, [path.exists() for path in old]) == (2, [False, False, True])
    monkeypatch.setenv(depth_cache.LIMIT, "0")
    assert prune_cache(frames, hashes) == depth_cache.Pruned(1, needed.stat().st_size)
    assert needed.exists()
    monkeypatch.setenv(depth_cache.LIMIT, "lots")
    with pytest.raises(AdverseError, match="bound of the depth cache"):
        with_depth(folder(data), section, folder=data, where="here")
