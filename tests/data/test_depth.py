from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pil

from adverse.data.depth import DepthFile
from adverse.data.images import ImageFile
from adverse.errors import DataError


@pytest.fixture
def image(tmp_path: Path) -> ImageFile:
    path = tmp_path / "image.png"
    Pil.fromarray(np.zeros((3, 4, 3), np.uint8)).save(path)
    return ImageFile(path)


def saved(folder: Path, depth: NDArray[Any], name: str = "depth.npy") -> Path:
    path = folder / name
    if path.suffix == ".npy":
        np.save(path, depth)
    else:
        Pil.fromarray(depth).save(path)
    return path


METRES = np.array([[1.5, np.inf, np.nan, 0.0], [-1, 2, 3, 4], [5, 6, 7, 8]])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_comes_back_as_float32_with_sky_and_holes(
    tmp_path: Path, image: ImageFile, dtype: str, order: Any
) -> None:
    source = DepthFile(saved(tmp_path, np.array(METRES, dtype, order=order)), image)
    depth = pickle.loads(pickle.dumps(source))()
    assert depth.dtype == np.float32
    assert depth.flags.c_contiguous
    np.testing.assert_array_equal(depth, METRES.astype(np.float32))


@pytest.mark.fault(14)
def test_png_is_scaled_and_its_zero_is_unknown(tmp_path: Path, image: ImageFile) -> None:
    stored = np.arange(12, dtype=np.uint16).reshape(3, 4) * 1000
    depth = DepthFile(saved(tmp_path, stored, "d.png"), image, scale_m=0.001)()
    assert depth.dtype == np.float32
    assert np.isnan(depth[0, 0])
    np.testing.assert_allclose(depth.ravel()[1:], np.arange(1, 12), rtol=1e-6)


@pytest.mark.fault(14)
def test_another_size_needs_consent(tmp_path: Path, image: ImageFile) -> None:
    path = saved(tmp_path, np.array([[1, 2], [3, 4]], np.float32))
    with pytest.raises(DataError) as caught:
        DepthFile(path, image)()
    for word in (str(path), "2x2", "4x3", "depth_resample: nearest"):
        assert word in str(caught.value)
    expected = [[1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]  # rows at 1/3, 1, 5/3 of 2: pixels 0, 1, 1
    np.testing.assert_array_equal(DepthFile(path, image, resample="nearest")(), expected)


def objects() -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([[{}]], object), allow_pickle=True)
    return out.getvalue()


def claims(shape: str) -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(48)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ["header cannot be read"]),
        (b"not numpy at all", ["header cannot be read"]),
        (claims("(100000, 100000)"), ["truncated or too long", "48 bytes"]),
        (claims("(3, 4)")[:-1], ["truncated or too long", "47 bytes"]),
        (claims("(3, 4, 1)"), ["wrong shape", "(3, 4, 1)", "(rows, columns)"]),
        (claims("(0, 4)"), ["wrong shape"]),
        (objects(), ["does not hold floats", "object"]),
        (claims("(3, 4)").replace(b"<f4", b"<i4"), ["does not hold floats", "int32"]),
    ],
)
def test_what_is_no_depth_map_is_refused(
    tmp_path: Path, image: ImageFile, data: bytes, words: list[str]
) -> None:
    path = tmp_path / "depth.npy"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        DepthFile(path, image)()
    for word in [*words, str(path)]:
        assert word in str(caught.value)
    assert caught.value.fix


def test_png_must_be_sixteen_bit_gray_and_scaled(tmp_path: Path, image: ImageFile) -> None:
    eight = saved(tmp_path, np.zeros((3, 4), np.uint8), "eight.png")
    with pytest.raises(DataError, match=r"16-bit gray PNG; where: .*eight\.png; got: 8-bit PNG gray"):
        DepthFile(eight, image, scale_m=0.001)()
    sixteen = saved(tmp_path, np.ones((3, 4), np.uint16), "sixteen.png")
    with pytest.raises(DataError, match="depth_scale_m"):
        DepthFile(sixteen, image)()
    sixteen.write_bytes(sixteen.read_bytes()[:-20])
    with pytest.raises(DataError, match="truncated or corrupt"):
        DepthFile(sixteen, image, scale_m=0.001)()
    with pytest.raises(DataError, match="depth file is missing"):
        DepthFile(tmp_path / "no.npy", image)()
