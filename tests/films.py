"""Small videos for tests: each frame bears its own number in light and dark blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

av: Any = pytest.importorskip("av", reason="the video extra (PyAV) is not installed")
Pixels = NDArray[Any]
WIDTH, HEIGHT, BITS = 128, 64, 8


def picture(number: int, width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    """Draw a number as 8 blocks in the upper half, and something that moves in the lower half."""
    image = np.full((height, width, 3), 40, np.uint8)
    for bit in range(BITS):
        image[: height // 2, bit * width // BITS : (bit + 1) * width // BITS] = (
            220 if number >> bit & 1 else 30
        )
    at = number * 3 % (width - 16)
    image[height // 2 + 4 : height - 8, at : at + 16] = (200, 60, 90)
    return image


def number_on(image: Pixels) -> int:
    """Read the number of a frame off its blocks."""
    height, width = image.shape[:2]
    step = width // BITS
    middles = [image[height // 4, bit * step + step // 2].mean() for bit in range(BITS)]
    return sum(1 << bit for bit, value in enumerate(middles) if value > 128)


def film(
    path: Path,
    frames: int | Iterable[Pixels] = 48,
    *,
    codec: str = "libx264",
    options: Mapping[str, str] | None = None,
    rate: int = 25,
    times: Iterable[int] | None = None,
    pix_fmt: str = "yuv420p",
    gop: int = 12,
    b_frames: int = 2,
    rotation: int = 0,
    container: Mapping[str, str] | None = None,
    trc: int | None = None,
) -> Path:
    """Write a video; `times` are those of its frames in units of 1/rate, in place of one after the other."""
    images = [picture(number) for number in range(frames)] if isinstance(frames, int) else list(frames)
    with av.open(str(path), "w", options=dict(container or {})) as out:
        stream = out.add_stream(codec, rate=rate, options=dict(options or {}))
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = pix_fmt
        stream.codec_context.gop_size = gop
        if b_frames:
            stream.codec_context.max_b_frames = b_frames
        stream.codec_context.time_base = Fraction(1, rate)
        if trc is not None:
            stream.codec_context.color_trc = trc
        if rotation:
            stream.set_display_rotation(rotation)
        for image, time in zip(images, times or range(len(images)), strict=True):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format=pix_fmt)
            frame.pts, frame.time_base = time, Fraction(1, rate)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return path


def decoded(path: Path) -> list[Pixels]:
    """Decode a video from start to end as anybody would: the witness of what each frame is."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def packets(path: Path) -> list[tuple[int, int, int, bool]]:
    """Return place, size, time and whether it is a keyframe of each packet, in the file's order."""
    with av.open(str(path)) as container:
        found = [packet for packet in container.demux(video=0) if packet.size]
        return [(p.pos, p.size, p.pts, p.is_keyframe) for p in found]
