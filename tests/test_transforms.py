"""Mutations as training transforms: the pixels of a study, whatever kind of image goes in."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from adverse import mutations
from adverse.errors import AdverseError
from adverse.transforms import Transform

IMAGE = np.random.default_rng(0).integers(0, 256, (24, 32, 3)).astype(np.uint8)
BLUR = "gaussian_blur(sigma_px=2)"
NOISE = "c.gaussian_noise(severity=3)"


class Tensor:
    """Stands for a tensor: read through its buffer, and makes others of its kind."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.array

    def new_tensor(self, array: NDArray[Any]) -> Tensor:
        return Tensor(array)


def test_every_kind_of_image_comes_back_as_it_went_in() -> None:
    wanted = mutations.apply(IMAGE, BLUR)
    blur = Transform(BLUR)
    np.testing.assert_array_equal(blur(IMAGE), wanted)
    pillow = blur(Pillow.fromarray(IMAGE))
    assert isinstance(pillow, Pillow.Image)
    np.testing.assert_array_equal(np.asarray(pillow), wanted)
    planes = IMAGE.transpose(2, 0, 1)
    tensor = blur(Tensor(planes))
    assert isinstance(tensor, Tensor)
    np.testing.assert_array_equal(tensor.array, wanted.transpose(2, 0, 1))
    share = blur(Tensor((planes / 255).astype(np.float32)))
    assert share.array.dtype == np.float32
    np.testing.assert_allclose(share.array, wanted.transpose(2, 0, 1) / 255, atol=1e-6)
    np.testing.assert_array_equal(Transform(BLUR, layout="chw")(planes), wanted.transpose(2, 0, 1))
    assert "torch" not in sys.modules or "torch" not in vars(sys.modules["adverse.transforms"])


def test_boxes_masks_and_targets_come_back_as_they_are() -> None:
    boxes, masks = [[1, 2, 3, 4]], [np.ones((24, 32), np.uint8)]
    out = Transform(BLUR)(image=IMAGE, bboxes=boxes, masks=masks, labels=["car"])
    np.testing.assert_array_equal(out["image"], mutations.apply(IMAGE, BLUR))
    assert out["bboxes"] is boxes
    assert out["masks"] is masks
    assert out["labels"] == ["car"]
    target = {"boxes": boxes}
    assert Transform(BLUR)(IMAGE, target)[1] is target
    batch = [IMAGE.transpose(2, 0, 1)], [SimpleNamespace(boxes=boxes)], [{"id": "a"}]
    images, targets, metadata = Transform(BLUR).augment(batch)
    np.testing.assert_array_equal(images[0], mutations.apply(IMAGE, BLUR).transpose(2, 0, 1))
    assert targets is batch[1]
    assert metadata == [{"id": "a", "mutation": BLUR}]


def test_draws_follow_the_seed_and_every_worker_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(transform: Transform) -> list[bytes]:
        return [transform(IMAGE).tobytes() for _ in range(6)]

    first = drawn(Transform([BLUR, NOISE], seed=3))
    assert drawn(Transform([BLUR, NOISE], seed=3)) == first
    assert drawn(pickle.loads(pickle.dumps(Transform([BLUR, NOISE], seed=3)))) == first
    assert drawn(Transform([BLUR, NOISE], seed=4)) != first
    of_workers = []
    for name in ("Process-1", "Process-2", "Process-1"):
        monkeypatch.setattr(multiprocessing, "current_process", lambda name=name: SimpleNamespace(name=name))
        of_workers.append(drawn(Transform([BLUR, NOISE], seed=3)))
    assert of_workers[0] == of_workers[2]
    assert of_workers[0] != of_workers[1]
    assert first not in of_workers
    monkeypatch.setenv("WORLD_SIZE", "4")
    ranks: list[dict[str, str]] = [{"RANK": "0"}, {"RANK": "1"}, {"RANK": "2"}, {"LOCAL_RANK": "0"}]
    ranks += [{"LOCAL_RANK": "1"}, {"LOCAL_RANK": "1", "NODE_RANK": "1"}]
    of_ranks, by_key = [], Transform([BLUR, NOISE], seed=3)(IMAGE, key="a").tobytes()
    for variables in ranks:
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            of_ranks.append(drawn(Transform([BLUR, NOISE], seed=3)))
            assert drawn(Transform([BLUR, NOISE], seed=3)) == of_ranks[-1]
            assert Transform([BLUR, NOISE], seed=3)(IMAGE, key="a").tobytes() == by_key
    assert of_ranks[0] == of_ranks[3] == of_workers[0]  # rank 0 draws as a training without ranks
    assert len({tuple(one) for one in of_ranks}) == len(ranks) - 1


@pytest.mark.parametrize("process", ["MainProcess", "Process-2"])
def test_a_key_decides_alone_and_gives_the_pixels_of_a_study(
    process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocessing, "current_process", lambda: SimpleNamespace(name=process))
    transform = Transform(NOISE, seed=7)
    transform(IMAGE)
    wanted = mutations.apply(IMAGE, NOISE, seed=7, key="frame 1")
    np.testing.assert_array_equal(transform(IMAGE, key="frame 1"), wanted)
    np.testing.assert_array_equal(transform(image=IMAGE, key="frame 1")["image"], wanted)


def test_two_transforms_of_a_pipeline_draw_independently() -> None:
    count, chance = 2000, 0.5
    blur, noise = Transform(BLUR, p=chance), Transform(NOISE, p=chance)
    both = sum(
        blur._draw(str(number)).id == BLUR and noise._draw(str(number)).id == NOISE for number in range(count)
    )
    assert abs(both / count - chance**2) < 4 * (chance**2 * (1 - chance**2) / count) ** 0.5


def test_the_chance_and_the_choice_are_those_that_were_asked_for() -> None:
    count = 3000
    transform = Transform([BLUR, NOISE], p=0.3)
    ids = [transform._draw(str(number)).id for number in range(count)]
    shares = {name: ids.count(name) / count for name in ("identity", BLUR, NOISE)}
    for name, wanted in (("identity", 0.7), (BLUR, 0.15), (NOISE, 0.15)):
        assert abs(shares[name] - wanted) < 4 * (wanted * (1 - wanted) / count) ** 0.5
    still = Transform(BLUR, p=0)
    assert still(IMAGE) is IMAGE


def test_depth_is_passed_on() -> None:
    depth = np.full(IMAGE.shape[:2], 50, np.float32)
    haze = "haze(visibility_m=100)"
    batch = [IMAGE.transpose(2, 0, 1)], [None], [{"id": "a", "depth_m": depth}]
    hazed = mutations.apply(IMAGE, haze, depth_m=depth).transpose(2, 0, 1)
    np.testing.assert_array_equal(Transform(haze).augment(batch)[0][0], hazed)
    out = Transform(haze)(image=IMAGE, depth_m=depth)
    np.testing.assert_array_equal(out["image"], mutations.apply(IMAGE, haze, depth_m=depth))
    with pytest.raises(AdverseError, match="needs depth"):
        Transform(haze)(IMAGE)


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (IMAGE.astype(np.float32), "normalised"),
        (IMAGE[..., 0], "layout"),
        (IMAGE.astype(np.int16), "normalised"),
        (Pillow.fromarray(IMAGE[..., 0]), "mode L"),
        ("photo.png", "layout"),
        (np.zeros((0, 4, 3), np.float32), "shape"),
    ],
)
def test_what_is_no_image_is_refused(image: Any, words: str) -> None:
    with pytest.raises(AdverseError) as told:
        Transform(BLUR)(image)
    assert words in str(told.value)


@pytest.mark.parametrize(("mutation", "p"), [("c.fogg(severity=3)", 1.0), ([], 1.0), (BLUR, 1.5)])
def test_what_cannot_be_drawn_is_refused_at_once(mutation: Any, p: float) -> None:
    with pytest.raises(AdverseError):
        Transform(mutation, p=p)
