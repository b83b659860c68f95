"""Pictures that are damaged, odd or not pictures: left out with a reason, or used and counted."""

from __future__ import annotations

import io
import re
import struct
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from .cases import INCOMPLETE, PASS, Case, case, table
from .command import run_alone
from .good_study import GoodStudy, encoded, picture

AT = 2
"""The picture that is spoilt; it shows a figure."""
LEFT_OUT = ("1 frame could not be used", "frame '2' under", "2.png", "Fix:")


def stored(data: bytes) -> Callable[[GoodStudy], object]:
    """Put these bytes in the place of the picture."""
    return lambda study: study.images[AT].write_bytes(data)


def cut(study: GoodStudy) -> None:
    whole = study.images[AT].read_bytes()
    study.images[AT].write_bytes(whole[: len(whole) // 2])


def flip_a_bit(study: GoodStudy) -> None:
    data = bytearray(study.images[AT].read_bytes())
    data[len(data) // 2] ^= 1
    study.images[AT].write_bytes(data)


def make_a_folder(study: GoodStudy) -> None:
    study.images[AT].unlink()
    study.images[AT].mkdir()


def as_pillow(mode: str, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    Pillow.fromarray(picture(AT)).convert(mode).save(file, kind, **options)
    return file.getvalue()


def named(ending: str, data: bytes) -> Callable[[GoodStudy], object]:
    """Put these bytes beside the picture, under its name with another ending, and list that."""

    def spoil(study: GoodStudy) -> None:
        path = study.images[AT].with_suffix(ending)
        path.write_bytes(data)
        study.images[AT].unlink()
        study.truth["images"][AT]["file_name"] = path.name

    return spoil


def rotated() -> bytes:
    exif = Pillow.Exif()
    exif[0x0112] = 6
    return as_pillow("RGB", "JPEG", exif=exif)


def several() -> bytes:
    file = io.BytesIO()
    pages = [Pillow.fromarray(picture(number)) for number in (AT, 3)]
    pages[0].save(file, "TIFF", save_all=True, append_images=pages[1:])
    return file.getvalue()


def bomb(side: int) -> bytes:
    """Return a small PNG that says it has side x side pixels, and has them, all black."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compressobj(9)
    row = b"\0" * (side * 3 + 1)
    pixels = b"".join([*(rows.compress(row) for _ in range(side)), rows.flush()])
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def tiny(study: GoodStudy) -> None:
    """Make the last picture, a negative, one of a single pixel."""
    study.images[7].write_bytes(encoded(picture(7)[:1, :1], ".png"))
    study.truth["images"][7].update(width=1, height=1)


def sixteen_bits() -> bytes:
    high: NDArray[np.uint16] = picture(AT).astype(np.uint16) * 257
    return encoded(high, ".png")


def declared(option: str, value: object, data: bytes) -> Callable[[GoodStudy], object]:
    """Put these bytes in the picture's place and declare in the study what they need."""

    def spoil(study: GoodStudy) -> None:
        stored(data)(study)
        study.study["data"][option] = value

    return spoil


@pytest.mark.fault(1, cases=["truncated", "truncated JPEG"])
@pytest.mark.fault(2, cases=["bit flipped"])
@pytest.mark.fault(3, cases=["empty", "web page"])
@pytest.mark.fault(4, cases=["wrong extension"])
@pytest.mark.fault(5, cases=["16 bits", "16 bits, declared", "16 bits, beyond white"])
@pytest.mark.fault(6, cases=["gray", "RGBA", "palette"])
@pytest.mark.fault(7, cases=["CMYK"])
@pytest.mark.fault(8, cases=["rotated by EXIF"])
@pytest.mark.fault(9, cases=["one pixel"])
@pytest.mark.fault(11, cases=["several frames"])
@pytest.mark.fault(12, cases=["other size than annotated"])
@pytest.mark.fault(15, cases=["missing"])
@table(
    case("truncated", cut, INCOMPLETE, *LEFT_OUT, "truncated or corrupt", "Copy the file again"),
    case("truncated JPEG", named(".jpg", as_pillow("RGB", "JPEG")[:-300]), INCOMPLETE, "2.jpg", "truncated"),
    case("bit flipped", flip_a_bit, INCOMPLETE, *LEFT_OUT, "a wrong checksum"),
    case("empty", stored(b""), INCOMPLETE, *LEFT_OUT, "is empty", "0 bytes"),
    case("web page", named(".jpg", b"<html>404</html>"), INCOMPLETE, "2.jpg", "a web page", "Fix:"),
    case("missing", lambda s: s.images[AT].unlink(), INCOMPLETE, *LEFT_OUT, "the image file is missing"),
    case("a folder", make_a_folder, INCOMPLETE, *LEFT_OUT, "is not a plain file"),
    case(
        "other size than annotated",
        stored(encoded(picture(AT)[:40], ".png")),
        INCOMPLETE,
        *LEFT_OUT,
        "64x40 pixels",
        "wanted: 64x48",
    ),
    case(
        "several frames", named(".tif", several()), INCOMPLETE, "2.tif", "more than one picture", "2 frames"
    ),
    case("16 bits", stored(sixteen_bits()), INCOMPLETE, *LEFT_OUT, "Set scale_16bit"),
    case("16 bits, declared", declared("scale_16bit", 1 / 257, sixteen_bits()), PASS, "1 x 16-bit"),
    case(
        "16 bits, beyond white",
        declared("scale_16bit", 0.5, sixteen_bits()),
        INCOMPLETE,
        *LEFT_OUT,
        "exceeds 255",
        "Correct scale_16bit",
    ),
    case(
        "rotated by EXIF", named(".jpg", rotated()), INCOMPLETE, "2.jpg", "EXIF orientation 6", "exif: apply"
    ),
    case("wrong extension", stored(as_pillow("RGB", "JPEG", quality=95)), PASS, "1 x wrong extension"),
    case("gray", stored(as_pillow("L")), PASS, "1 x gray"),
    case("RGBA", stored(as_pillow("RGBA")), PASS, "1 x rgba"),
    case("palette", stored(as_pillow("P")), PASS, "1 x palette"),
    case("CMYK", named(".jpg", as_pillow("CMYK", "JPEG")), PASS, "1 x cmyk"),
    case("one pixel", tiny, PASS, "results:"),
)
def test_a_picture(row: Case, coco: GoodStudy) -> None:
    row.check(coco)


@pytest.mark.fault(1)
def test_a_frame_left_out_is_in_no_figure(coco: GoodStudy) -> None:
    cut(coco)
    said = coco.adverse()
    for row in coco.rows():
        assert (row["frames"], row["truths"], row["quarantined"], row["status"]) == (7, 3, 1, "incomplete")
        assert row["area"] == 1.0
    (clean,) = [line for line in said.text.splitlines() if " clean " in line and "│" in line]
    assert ")?" in clean
    assert "1.00? (" in (coco.run / "report.html").read_text()


@pytest.mark.fault(10)
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_a_bomb_costs_no_memory(coco: GoodStudy) -> None:
    """Decoded, 12,000 x 12,000 pixels are 432 MB; the process with all its libraries stays below that."""
    coco.images[AT].write_bytes(bomb(12_000))
    coco.write()
    program = (
        "import atexit, adverse.cli as cli; atexit.register(lambda: print(open('/proc/self/status').read()))"
    )
    said = run_alone("-c", f"{program}; cli.main()", "run", coco.file, "--out", coco.run, "--workers", "0")
    said.expect(INCOMPLETE, *LEFT_OUT, "144.0 megapixels", "Raise max_megapixels")
    peak = re.search(r"VmHWM:\s*(\d+) kB", said.text)
    assert peak is not None
    assert int(peak[1]) / 1024 < 400


def test_not_one_usable_picture(coco: GoodStudy) -> None:
    for path in coco.images:
        path.write_bytes(b"")
    coco.adverse().expect(2, "not one frame", "'0'", "0.png", "is empty", "fix")
