from __future__ import annotations

import io
import itertools
import pickle
import struct
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image as Pil
from PIL import ImageFile as PilFile

from adverse.data import codecs
from adverse.data.images import ImageFile, ImagePolicy, decode_bytes
from adverse.errors import DataError

Pixels = NDArray[np.uint8]
PLAIN = ImagePolicy()
COCO128 = Path(__file__).resolve().parents[2].parent / "shared/data/coco128_permissive/train2017"


def picture(height: int = 12, width: int = 16, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def encoded(image: Any, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    (image if isinstance(image, Pil.Image) else Pil.fromarray(image)).save(out, kind, **options)
    return out.getvalue()


def refusal(data: bytes, name: str = "a.png", policy: ImagePolicy = PLAIN, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        decode_bytes(data, Path("set") / name, policy, **options)
    error = caught.value
    assert error.where is not None
    assert f"set/{name}" in error.where
    assert error.fix
    return str(error)


def chunk(kind: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def bomb_png(side: int = 30_000) -> bytes:
    """A few kB that claim `side` x `side` pixels, with pixel data that would really inflate."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    body = zlib.compressobj()
    squeezed = b"".join(body.compress(bytes(3 * side + 1)) for _ in range(200)) + body.flush()
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", squeezed) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_formats_give_the_pixels_back(kind: str) -> None:
    suffix = codecs.SUFFIXES[kind][0]
    decoded = decode_bytes(encoded(picture(), kind), Path(f"a{suffix}"), PLAIN)
    assert decoded.notes == ()
    assert decoded.image.dtype == np.uint8
    assert decoded.image.flags.c_contiguous
    np.testing.assert_array_equal(decoded.image, picture())


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 99))
def test_png_round_trip_is_exact(height: int, width: int, seed: int) -> None:
    image = picture(height, width, seed)
    np.testing.assert_array_equal(decode_bytes(encoded(image, "PNG"), Path("a.png"), PLAIN).image, image)


def test_jpeg_decodes_as_pillow_does() -> None:
    data = encoded(picture(40, 50), "JPEG", quality=90)
    decoded = decode_bytes(data, Path("a.JPG"), PLAIN)
    np.testing.assert_array_equal(decoded.image, np.asarray(Pil.open(io.BytesIO(data))))
    assert decoded.notes == ()


@pytest.mark.fault(6, 7)
@pytest.mark.parametrize(
    ("mode", "kind", "notes"),
    [
        ("L", "PNG", ("gray",)),
        ("1", "PNG", ("gray",)),
        ("P", "PNG", ("palette",)),
        ("P", "GIF", ("palette",)),
        ("P", "BMP", ("palette",)),
        ("L", "JPEG", ("gray",)),
        ("CMYK", "JPEG", ("cmyk",)),
        ("CMYK", "TIFF", ("cmyk",)),
        ("L", "PPM", ("gray",)),
    ],
)
def test_other_colour_models_become_rgb_and_are_noted(mode: str, kind: str, notes: tuple[str, ...]) -> None:
    data = encoded(Pil.fromarray(picture()).convert(mode), kind)
    decoded = decode_bytes(data, Path(f"a{codecs.SUFFIXES[kind][0]}"), PLAIN)
    assert decoded.notes == notes
    assert decoded.image.shape == (12, 16, 3)
    np.testing.assert_array_equal(decoded.image, np.asarray(Pil.open(io.BytesIO(data)).convert("RGB")))


@pytest.mark.fault(6)
@pytest.mark.parametrize(
    ("bands", "notes"), [("RGB", ("rgba",)), ("L", ("gray", "rgba"))], ids=["RGBA", "LA"]
)
def test_alpha_is_dropped_and_colours_kept(bands: str, notes: tuple[str, ...]) -> None:
    image = Pil.fromarray(picture()).convert(bands)
    expected = np.asarray(image.convert("RGB"))
    image.putalpha(Pil.fromarray(picture()[..., 0]))
    decoded = decode_bytes(encoded(image, "PNG"), Path("a.png"), PLAIN)
    assert decoded.notes == notes
    np.testing.assert_array_equal(decoded.image, expected)


@pytest.mark.fault(4)
def test_a_wrong_extension_is_decoded_by_content_and_noted() -> None:
    decoded = decode_bytes(encoded(picture(), "PNG"), Path("a.jpg"), PLAIN)
    assert decoded.notes == ("wrong extension",)
    np.testing.assert_array_equal(decoded.image, picture())


@pytest.mark.fault(3)
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ["empty", "0 bytes"]),
        (b"<!DOCTYPE html><html>404</html>", ["not an image", "web page"]),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", ["not an image", "WebP"]),
        (b"hello, I am text", ["not an image", "hello"]),
    ],
)
def test_what_is_no_image_is_refused(data: bytes, words: list[str]) -> None:
    text = refusal(data, "a.jpg")
    for word in words:
        assert word in text


def test_missing_file_folder_and_oversized_file_are_refused(tmp_path: Path) -> None:
    for path, word in [(tmp_path / "no.png", "missing"), (tmp_path, "not a plain file")]:
        with pytest.raises(DataError, match=word) as caught:
            ImageFile(path)()
        assert str(path) in str(caught.value)
        assert caught.value.fix
    huge = tmp_path / "huge.png"
    with huge.open("wb") as out:
        out.truncate(2 * 10**9)
    with pytest.raises(DataError, match="too large") as caught:
        ImageFile(huge)()
    assert "max_megapixels" in str(caught.value)


@pytest.mark.fault(1)
@pytest.mark.parametrize("options", [{}, {"progressive": True}], ids=["baseline", "progressive"])
def test_a_jpeg_cut_anywhere_is_refused(options: dict[str, Any]) -> None:
    data = encoded(picture(), "JPEG", **options)
    for length in range(1, len(data)):
        refusal(data[:length], "a.jpg")


@pytest.mark.fault(1)
@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF", "PPM"])
def test_a_file_cut_in_its_pixels_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a plug-in has told Pillow, which holds for the whole process."""
    monkeypatch.setattr(PilFile, "LOAD_TRUNCATED_IMAGES", True)
    monkeypatch.setattr(Pil, "MAX_IMAGE_PIXELS", 1)
    source = Pil.fromarray(picture())
    data = encoded(source.convert("P") if kind == "GIF" else source, kind)
    text = refusal(data[: len(data) // 2])
    assert "truncated or corrupt" in text
    whole = decode_bytes(data, Path(f"a{codecs.SUFFIXES[kind][0]}"), PLAIN).image
    np.testing.assert_array_equal(
        whole, np.array(source.convert("P").convert("RGB")) if kind == "GIF" else picture()
    )
    assert (PilFile.LOAD_TRUNCATED_IMAGES, Pil.MAX_IMAGE_PIXELS) == (True, 1)


@pytest.mark.fault(2)
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_changed_byte_of_a_png_is_never_a_different_picture(draw: st.DataObject) -> None:
    data = bytearray(encoded(picture(), "PNG"))
    at = draw.draw(st.integers(0, len(data) - 1))
    data[at] ^= draw.draw(st.integers(1, 255))
    refusal(bytes(data))


@pytest.mark.fault(2)
@pytest.mark.parametrize("interlaced", [0, 1])
@pytest.mark.parametrize("surplus", [-13, 0, 13])
def test_a_png_of_other_rows_than_its_header_but_right_checksums_is_refused(
    surplus: int, interlaced: int
) -> None:
    """Four rows of four RGB pixels and a filter byte; interlaced, rows of 1, 1, 2, 2 x 2 and 2 x 4 pixels."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, interlaced))
    stored = (4 + 4 + 7 + 2 * 7 + 2 * 13) if interlaced else 4 * 13
    squeezed = zlib.compress(bytes(stored + surplus))
    rows = chunk(b"IDAT", squeezed[:5]) + chunk(b"IDAT", squeezed[5:])
    data = b"\x89PNG\r\n\x1a\n" + header + rows + chunk(b"IEND", b"")
    if surplus:
        assert "as many pixels as the header says" in refusal(data)
    else:
        assert not decode_bytes(data, Path("a.png"), PLAIN).image.any()


@pytest.mark.fault(1)
@pytest.mark.parametrize("options", [{"progressive": True}, {"progressive": True, "subsampling": 2}])
def test_a_jpeg_without_its_last_scans_is_refused(options: dict[str, Any]) -> None:
    """It ends like a whole one, so libjpeg gives a coarse picture without a word."""
    data = encoded(picture(40, 48), "JPEG", **options)
    scans = [at for at in range(len(data) - 1) if data[at : at + 2] == b"\xff\xda"]
    starts = [max(data.rfind(b"\xff\xc4", 0, at), before) for before, at in itertools.pairwise(scans)]
    assert len(starts) > 5
    for at in starts:
        assert "scans that leave" in refusal(data[:at] + b"\xff\xd9", "a.jpg")


@pytest.mark.fault(2)
def test_a_flipped_marker_in_a_jpeg_is_refused() -> None:
    data = bytearray(encoded(picture(64, 64), "JPEG", restart_marker_blocks=1))
    at = data.index(b"\xff\xd0", data.index(b"\xff\xda"))
    data[at + 1] = 0xD5
    assert "JPEG is truncated or corrupt" in refusal(bytes(data), "a.jpg")


@pytest.mark.fault(11)
def test_many_frames_are_refused() -> None:
    first, second = Pil.fromarray(picture()), Pil.fromarray(picture(seed=1))
    for kind in ("PNG", "GIF", "TIFF", "MPO"):
        data = encoded(first, kind, save_all=True, append_images=[second])
        text = refusal(data)
        assert "more than one picture" in text
        assert "2 frames" in text


def test_the_pixel_limit_is_that_of_the_policy() -> None:
    data = encoded(picture(100, 101), "PNG")
    text = refusal(data, policy=ImagePolicy(max_megapixels=0.01))
    assert "101x100" in text
    assert "max_megapixels" in text
    assert decode_bytes(data, Path("a.png"), ImagePolicy(max_megapixels=0.0101)).image.shape == (100, 101, 3)


@pytest.mark.fault(10)
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TIFF", "GIF", "PPM"])
def test_pixels_of_an_oversized_image_are_never_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*_: Any, **__: Any) -> None:
        pytest.fail("decode was reached")

    monkeypatch.setattr(codecs, "decode", reached)
    data = encoded(Pil.fromarray(picture()).convert("P" if kind == "GIF" else "RGB"), kind)
    assert "pixel limit" in refusal(data, policy=ImagePolicy(max_megapixels=1e-4))


@pytest.mark.fault(10)
def test_a_bomb_costs_no_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.png"
    bomb.write_bytes(bomb_png())
    code = f"""
        import resource
        from pathlib import Path
        from adverse.data.images import ImageFile
        from adverse.errors import DataError
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            ImageFile(Path({str(bomb)!r}))()
        except DataError as error:
            print(error)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert "30000x30000 = 900.0 megapixels" in said[0]
    assert int(said[1]) < 50 * 1024 * (1024 if sys.platform == "darwin" else 1)


def test_a_tiff_whose_tiles_dwarf_it_is_refused() -> None:
    fields = {256: 16, 257: 12, 258: 8, 259: 5, 262: 1, 277: 1, 322: 60_000, 323: 60_000, 324: 200, 325: 8}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in fields.items())
    data = b"II*\x00" + struct.pack("<IH", 8, len(fields)) + entries + bytes(100)
    text = refusal(data, "a.tif")
    assert "tiles of 60000x60000" in text


def turned(orientation: int) -> Pil.Exif:
    exif = Pil.Exif()
    exif[0x0112] = orientation
    return exif


@pytest.mark.fault(8)
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(2, 9))
def test_exif_rotation_needs_a_convention(kind: str, orientation: int) -> None:
    data = encoded(picture(), kind, exif=turned(orientation))
    text = refusal(data)
    assert f"EXIF orientation {orientation}" in text
    assert "exif: apply" in text
    assert "exif: ignore" in text
    path = Path(f"a{codecs.SUFFIXES[kind][0]}")
    ignored = decode_bytes(data, path, ImagePolicy(exif="ignore"))
    assert ignored.notes == ("exif ignored",)
    np.testing.assert_array_equal(ignored.image, picture())
    applied = decode_bytes(data, path, ImagePolicy(exif="apply"))
    assert applied.notes == ("exif applied",)
    np.testing.assert_array_equal(applied.image, WITNESS[orientation](picture()))


WITNESS: dict[int, Callable[[Pixels], Pixels]] = {
    2: np.fliplr,
    3: lambda image: np.rot90(image, 2),
    4: np.flipud,
    5: lambda image: image.transpose(1, 0, 2),
    6: lambda image: np.rot90(image, -1),
    7: lambda image: np.rot90(image.transpose(1, 0, 2), 2),
    8: np.rot90,
}
"""EXIF 2.3: where row 0 and column 0 of the stored picture are in the scene."""


def test_exif_of_a_jpeg_is_read_and_the_size_is_that_after_rotation() -> None:
    data = encoded(picture(), "JPEG", exif=turned(6))
    assert "EXIF orientation 6" in refusal(data, "a.jpg")
    applied = decode_bytes(data, Path("a.jpg"), ImagePolicy(exif="apply"), (12, 16))
    assert applied.image.shape == (16, 12, 3)
    assert "12x16" in refusal(data, "a.jpg", ImagePolicy(exif="apply"), size=(16, 12))
    assert decode_bytes(encoded(picture(), "JPEG", exif=turned(1)), Path("a.jpg"), PLAIN).notes == ()


def exif_block(kind: int, orientation: int) -> bytes:
    """One directory entry, whose value is stored as TIFF field type `kind`."""
    return b"Exif\0\0II*\0" + struct.pack("<IHHHIII", 8, 1, 0x112, kind, 1, orientation, 0)


EMPTY_EXIF = b"Exif\0\0II*\0" + struct.pack("<IHI", 8, 0, 0)


@pytest.mark.fault(8)
@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([exif_block(3, 6), EMPTY_EXIF], "EXIF orientation 6"),
        ([EMPTY_EXIF, exif_block(3, 6)], "EXIF orientation 6"),
        ([exif_block(3, 6), exif_block(3, 1)], "EXIF orientation 6"),
        ([exif_block(1, 6)], "EXIF orientation 6"),
        ([exif_block(3, 6), exif_block(3, 8)], "EXIF data of the image cannot be read"),
        ([exif_block(2, 6)], "EXIF data of the image cannot be read"),
    ],
    ids=["the first", "the last", "one says upright", "a byte", "two ways", "text"],
)
def test_every_exif_block_is_heeded(blocks: list[bytes], words: str) -> None:
    jpeg, png = encoded(picture(), "JPEG"), encoded(picture(), "PNG")
    segments = [b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block for block in blocks]
    assert words in refusal(jpeg[:2] + b"".join(segments) + jpeg[2:], "a.jpg")
    chunks = [chunk(b"eXIf", block.removeprefix(b"Exif\0\0")) for block in blocks]
    assert words in refusal(png[:33] + b"".join(chunks) + png[33:])


def test_unreadable_exif_is_refused_unless_ignored() -> None:
    data = encoded(picture(), "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\x00")
    assert "EXIF data of the image cannot be read" in refusal(data, "a.jpg")
    assert "cannot be read" in refusal(data, "a.jpg", ImagePolicy(exif="apply"))
    assert decode_bytes(data, Path("a.jpg"), ImagePolicy(exif="ignore")).notes == ("exif ignored",)


def sixteen_bit_colour() -> bytes:
    values = (picture().astype(np.uint16) * 16).astype(">u2").tobytes()
    rows = b"".join(b"\0" + values[at : at + 16 * 6] for at in range(0, len(values), 16 * 6))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 12, 16, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.fault(5)
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_need_a_scale(kind: str) -> None:
    values = picture()[..., 0].astype(np.uint16) * 16
    data = encoded(values, kind)
    assert "scale_16bit" in refusal(data)
    suffix = codecs.SUFFIXES[kind][0]
    decoded = decode_bytes(data, Path(f"a{suffix}"), ImagePolicy(scale_16bit=1 / 16))
    assert decoded.notes == ("gray", "16-bit")
    np.testing.assert_array_equal(decoded.image, np.repeat(picture()[..., :1], 3, axis=2))
    assert "exceeds 255" in refusal(data, policy=ImagePolicy(scale_16bit=1.0))


def test_sixteen_bit_colour_keeps_its_channels() -> None:
    decoded = decode_bytes(sixteen_bit_colour(), Path("a.png"), ImagePolicy(scale_16bit=1 / 16))
    assert decoded.notes == ("16-bit",)
    np.testing.assert_array_equal(decoded.image, picture())


def test_pixel_types_without_a_meaning_are_refused() -> None:
    text = refusal(encoded(np.ones((4, 4), np.float32), "TIFF"), "a.tif")
    assert "pixel type" in text
    assert "mode F" in text


@pytest.mark.fault(12)
def test_size_must_be_that_of_the_annotations(tmp_path: Path) -> None:
    text = refusal(encoded(picture(), "PNG"), size=(12, 16))
    assert "16x12" in text
    assert "12x16" in text
    path = tmp_path / "a.png"
    path.write_bytes(encoded(picture(), "PNG"))
    assert ImageFile(path).measure() == (16, 12)


def test_an_image_file_pickles_and_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "bild-äöü-写真.png"
    path.write_bytes(encoded(picture(), "PNG"))
    source = pickle.loads(pickle.dumps(ImageFile(path, PLAIN, (16, 12))))
    assert source == ImageFile(path, PLAIN, (16, 12))
    np.testing.assert_array_equal(source(), picture())
    assert source.read_with_notes().notes == ()


@pytest.mark.skipif(not COCO128.is_dir(), reason="the shared COCO sample is not beside the repository")
def test_real_photographs_decode_as_pillow_does() -> None:
    for path in sorted(COCO128.glob("*.jpg"))[:5]:
        decoded = ImageFile(path).read_with_notes()
        with Pil.open(path) as image:
            np.testing.assert_array_equal(decoded.image, np.asarray(image.convert("RGB")))
