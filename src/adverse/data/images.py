"""Image files, decoded strictly into RGB: what is not clearly a picture is refused with a reason.

The header is checked before any pixel is read, so a decompression bomb costs no memory. What can be
normalised without guessing (gray, palette, CMYK, alpha) is, and said in notes; what needs a convention
(EXIF rotation, 16 bits) is refused until the data set declares it. Images are written as PNG or JPEG.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.data import codecs
from adverse.data.files import read_bytes
from adverse.data.image_header import Header, upright
from adverse.errors import DataError
from adverse.plugins import Positive, library_version
from adverse.types import Image

Exif = Literal["refuse", "apply", "ignore"]
Size = tuple[int, int]
"""Width and height in pixels, in the order of COCO and of image headers."""

MAX_MEGAPIXELS = 100.0
DECODERS = ("opencv-python-headless", "pillow", "simplejpeg")
"""Distributions whose version can change a decoded pixel."""
SUFFIXES = frozenset(suffix for group in codecs.SUFFIXES.values() for suffix in group)
"""File name endings that count as images when a folder is listed."""
_BYTES_PER_PIXEL = 8  # 16-bit RGBA without compression; a larger file holds something else
_SLACK_BYTES = 2**24  # metadata


@dataclass(frozen=True)
class ImagePolicy:
    """What a data set declares about its images: the options that all formats share.

    `scale_16bit` turns 16-bit values into 0..255 by multiplication: 255/4095 for a 12-bit camera.
    """

    max_megapixels: Positive = MAX_MEGAPIXELS
    exif: Exif = "refuse"
    scale_16bit: Positive | None = None


DEFAULT_POLICY = ImagePolicy()


class Decoded(NamedTuple):
    """An image (H,W,3) RGB uint8, and words for what was done to get it."""

    image: Image
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ImageFile:
    """An image on disk; call it to get (H,W,3) RGB uint8 or DataError. `size` is what the labels say."""

    path: Path
    policy: ImagePolicy = field(default_factory=ImagePolicy)
    size: Size | None = None

    @property
    def recipe(self) -> str:
        """How the bytes become pixels: the policy, and the libraries that decode."""
        versions = [f"{name} {library_version(name)}" for name in DECODERS]
        return f"image {self.policy} {self.size} {' '.join(versions)}"

    def __call__(self) -> Image:
        """Read and decode the file."""
        return self.read_with_notes().image

    def read_with_notes(self) -> Decoded:
        """Read and decode the file, and say how it was normalised."""
        return self.decode(self.read_bytes())

    def read_bytes(self) -> bytes:
        """Read the file, unless it is missing or too large to be an image within the pixel limit."""
        limit = int(self.policy.max_megapixels * 1e6) * _BYTES_PER_PIXEL + _SLACK_BYTES
        return read_bytes(self.path, what="image", limit=limit)

    def decode(self, data: bytes) -> Decoded:
        """Decode the bytes of the file, already read."""
        return decode_bytes(data, self.path, self.policy, self.size)

    def measure(self) -> Size:
        """Return the width and height that decoding would give, from the header alone."""
        if self.size is not None:
            return self.size
        header = _checked_header(self.read_bytes(), self.path, self.policy)
        return _shown_size(header, self.policy)


def decode_bytes(data: bytes, path: Path, policy: ImagePolicy, size: Size | None = None) -> Decoded:
    """Decode an image strictly; `path` is only named in errors and its ending compared with the content.

    Notes: gray, palette, rgba (alpha dropped, colours kept as stored), cmyk, 16-bit, exif applied, exif
    ignored, wrong extension.
    """
    where = _where(path)
    header = _checked_header(data, path, policy)
    _check_size(_shown_size(header, policy), size, where)
    pixels = codecs.decode(data, header, where=where)
    notes = list(header.notes)
    if header.bits == 16 and policy.scale_16bit is not None:
        pixels = _scaled(pixels, policy.scale_16bit, where)
        notes.append("16-bit")
    if header.orientation != 1:
        if policy.exif == "apply" and header.orientation is not None:
            pixels = upright(pixels, header.orientation)
            notes.append("exif applied")
        else:
            notes.append("exif ignored")
    if path.suffix.lower() not in codecs.SUFFIXES[header.format]:
        notes.append("wrong extension")
    return Decoded(pixels, tuple(notes))


def _checked_header(data: bytes, path: Path, policy: ImagePolicy) -> Header:
    where = _where(path)
    header = codecs.inspect(data, where=where)
    megapixels = header.width * header.height / 1e6
    if megapixels > policy.max_megapixels:
        raise DataError(
            "the image is larger than the pixel limit",
            where=where,
            got=f"{header.width}x{header.height} = {megapixels:.1f} megapixels",
            wanted=f"at most {policy.max_megapixels:g} megapixels",
            fix="Raise max_megapixels in the study's data section if the image is genuine.",
        )
    if header.frames != 1:
        raise DataError(
            "the image file holds more than one picture",
            where=where,
            got=f"{header.format} with {header.frames} frames",
            wanted="one picture for each file",
            fix="Export the picture that is meant as a PNG or JPEG of its own.",
        )
    if header.bits == 16 and policy.scale_16bit is None:
        raise DataError(
            "a 16-bit image needs a declared scale",
            where=where,
            got=f"16-bit {header.format}, no scale_16bit",
            wanted="the factor that turns stored values into 0..255",
            fix="Set scale_16bit in the study's data section, e.g. 0.00389105 (255/65535).",
        )
    _check_orientation(header, policy, where)
    return header


def _check_orientation(header: Header, policy: ImagePolicy, where: str) -> None:
    if header.orientation == 1 or policy.exif == "ignore":
        return
    if header.orientation is None:
        raise DataError(
            "the EXIF data of the image cannot be read",
            where=where,
            wanted="an orientation from 1 to 8",
            fix="Set exif: ignore in the study's data section if the pixels are upright as stored.",
        )
    if policy.exif == "refuse":
        raise DataError(
            "the image has an EXIF orientation, and the data set does not say whether to apply it",
            where=where,
            got=f"EXIF orientation {header.orientation}",
            wanted="a declared convention: were the boxes drawn on the rotated image, or on it as stored?",
            fix="Set exif: apply (rotated) or exif: ignore (as stored) in the study's data section.",
        )


def _check_size(got: Size, wanted: Size | None, where: str) -> None:
    if wanted is not None and got != wanted:
        raise DataError(
            "the image size differs from the annotations or the calibration",
            where=where,
            got=f"{got[0]}x{got[1]} pixels",
            wanted=f"{wanted[0]}x{wanted[1]}",
            fix="Use the image that was annotated and calibrated, left and right of one size, or correct "
            "width and height in the annotations or camera.json (swapped: see exif).",
        )


def _shown_size(header: Header, policy: ImagePolicy) -> Size:
    turned = policy.exif == "apply" and header.orientation is not None and header.orientation >= 5
    return (header.height, header.width) if turned else (header.width, header.height)


def _scaled(pixels: NDArray[Any], scale: float, where: str) -> Image:
    top = int(pixels.max())
    if round(top * scale) > 255:
        raise DataError(
            "a 16-bit value exceeds 255 at the declared scale",
            where=where,
            got=f"{top} * {scale:g} = {top * scale:.1f}",
            wanted="at most 255",
            fix=f"Correct scale_16bit in the study's data section; {255 / top:.3g} fits this image.",
        )
    table = np.rint(np.arange(top + 1) * scale).astype(np.uint8)
    scaled = table[pixels]
    return np.repeat(scaled[:, :, None], 3, axis=2) if scaled.ndim == 2 else scaled


def _where(path: Path) -> str:
    return f"image file {path}"


def images_below(folder: Path, most: int) -> list[ImageFile]:
    """Return at most so many of the image files below a folder, evenly chosen in the order of their names."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not paths:
        raise DataError(
            "there are no images in the folder",
            where=str(folder),
            wanted=", ".join(sorted(SUFFIXES)),
            fix="Give a folder of photographs.",
        )
    chosen = [paths[number * len(paths) // most] for number in range(most)] if most < len(paths) else paths
    return [ImageFile(path) for path in chosen]


WRITABLE_SUFFIXES = (".png", ".jpg", ".jpeg")
JPEG_QUALITY = 95
Pixels = Image | NDArray[np.uint16]


def write_image(path: Path, image: Pixels) -> None:
    """Write RGB or gray as PNG (exact, 8 or 16 bits) or JPEG (quality 95), by the file's ending."""
    data = image_bytes(image, path)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise DataError(
            "the image cannot be written",
            where=str(path),
            got=error.strerror or str(error),
            fix="Choose a folder that exists and that you may write to.",
        ) from error


def image_bytes(image: Pixels, path: Path) -> bytes:
    """Return an image as the bytes of the file it is to be written to: PNG or JPEG by its ending."""
    suffix = path.suffix.lower()
    if suffix not in WRITABLE_SUFFIXES:
        raise DataError(
            "images are written as PNG or JPEG only",
            where=str(path),
            got=f"extension {suffix!r}",
            wanted=", ".join(WRITABLE_SUFFIXES),
            fix="Give a name that ends in .png.",
        )
    stored = image[..., ::-1] if image.ndim == 3 and image.shape[2] == 3 else image
    quality = [] if suffix == ".png" else [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    _, data = cv2.imencode(suffix, np.ascontiguousarray(stored), quality)
    return data.tobytes()
