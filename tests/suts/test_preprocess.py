from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.suts.preprocess import Anchor, Preprocess, Resize, place

SIDES = st.integers(1, 3000)


@given(
    st.tuples(SIDES, SIDES),
    st.tuples(st.integers(8, 1280), st.integers(8, 1280)),
    st.sampled_from(["letterbox", "stretch"]),
    st.sampled_from(["centre", "top-left"]),
    st.integers(0, 2**32 - 1),
)
def test_a_box_comes_back_to_where_it_was(
    image: tuple[int, int], size: tuple[int, int], resize: Resize, anchor: Anchor, seed: int
) -> None:
    placed = place(*image, size, resize=resize, anchor=anchor)
    boxes = np.random.default_rng(seed).uniform(-50, 3000, (5, 4))
    assert np.abs(placed.to_image(placed.to_input(boxes)) - boxes).max() < 1e-3
    inside = placed.to_input(np.array([[0, 0, *image]], np.float64))[0]
    assert inside.min() >= 0
    assert inside[2] <= size[0] + 1e-9
    assert inside[3] <= size[1] + 1e-9


@given(st.integers(2, 5), st.integers(20, 120), st.integers(20, 120), st.data())
@settings(max_examples=40)
def test_the_mapping_is_the_one_the_pixels_take(
    factor: int, width: int, height: int, data: st.DataObject
) -> None:
    """A white rectangle in a black image is where the mapped box says, after scaling up."""
    x0, y0 = data.draw(st.integers(0, width - 8)), data.draw(st.integers(0, height - 8))
    x1, y1 = data.draw(st.integers(x0 + 4, width)), data.draw(st.integers(y0 + 4, height))
    image = np.zeros((height, width, 3), np.uint8)
    image[y0:y1, x0:x1] = 255
    side = max(width, height) * factor
    how = Preprocess((side, side), np.float32, pad=0)
    values, (placed,) = how.batch([image])
    # The amount of white under a linear ramp is the box's extent, and its centre the box's centre.
    bright = values[0, 0].astype(np.float64)
    rows, columns = bright.sum(axis=1), bright.sum(axis=0)
    at = np.arange(side) + 0.5
    box = placed.to_input(np.array([[x0, y0, x1, y1]], np.float64))[0]
    away = [x0 == 0, x1 == width, y0 == 0, y1 == height]
    if not any(away):  # at the border the ramp is cut off
        assert abs((columns * at).sum() / columns.sum() - (box[0] + box[2]) / 2) < 0.05
        assert abs((rows * at).sum() / rows.sum() - (box[1] + box[3]) / 2) < 0.05
        assert abs(bright.sum() - (box[2] - box[0]) * (box[3] - box[1])) < 0.02 * bright.sum()


def test_letterbox_is_centred_and_grey_unless_told_otherwise() -> None:
    image = np.full((10, 20, 3), 255, np.uint8)
    values, _ = Preprocess((20, 20), np.uint8, layout="nhwc").batch([image])
    assert values.dtype == np.uint8
    assert (values[0, 5:15] == 255).all()
    assert (values[0, :5] == 114).all()
    assert (values[0, 15:] == 114).all()
    values, _ = Preprocess((20, 20), np.uint8, layout="nhwc", anchor="top-left", pad=7).batch([image])
    assert (values[0, :10] == 255).all()
    assert (values[0, 10:] == 7).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_values_channels_and_layout(dtype: type) -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    image[:, :] = (10, 20, 30)
    how = Preprocess(
        (6, 4), dtype, resize="stretch", channels="bgr", scale=0.5, mean=(1, 2, 3), std=(2, 4, 8)
    )
    values, _ = how.batch([image, image])
    assert values.shape == (2, 3, 4, 6)
    assert values.dtype == dtype
    assert values[1, :, 0, 0].tolist() == [(15 - 1) / 2, (10 - 2) / 4, (5 - 3) / 8]
    assert values.flags.c_contiguous


def test_stretch_fills_the_input_as_opencv_scales() -> None:
    image = np.random.default_rng(0).integers(0, 256, (33, 47, 3)).astype(np.uint8)
    values, _ = Preprocess((24, 16), np.uint8, resize="stretch", layout="nhwc", interpolation="area").batch(
        [image]
    )
    assert (values[0] == cv2.resize(image, (24, 16), interpolation=cv2.INTER_AREA)).all()
