"""Damage anywhere in a video: no frame gets the number of another, in whatever order frames are read.

The reference is the video before the damage, decoded from start to end. A frame that is shown must be that of
the reference, unless FFmpeg, decoding the damaged file from start to end with all its checks, gives the same
picture without a complaint: then nothing in the file tells.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse.data.mp4 import frames_of_tracks
from adverse.data.video_frames import VideoReader
from adverse.data.video_index import index_video
from adverse.errors import DataError
from films import Pixels, av, decoded, film, packets

UNCHECKED = {"write_crc32": "0"}
HEVC = {"codec": "libx265", "options": {"x265-params": "log-level=none"}}
KINDS: dict[str, dict[str, Any]] = {
    "h264.mp4": {},
    "h264.avi": {},
    "checked.mkv": HEVC,
    "h264.mkv": {"container": UNCHECKED},
    "hevc.mp4": HEVC,
    "mpeg4.avi": {"codec": "mpeg4"},
    "mpeg2.mkv": {"codec": "mpeg2video", "container": UNCHECKED},
    "vp9.webm": {"codec": "libvpx-vp9", "b_frames": 0},
}
CASES = 8


def shown(path: Path, order: list[int]) -> dict[int, Pixels | str]:
    reader = VideoReader(index_video(path, 1.0))
    seen: dict[int, Pixels | str] = {}
    for number in order:
        try:
            seen[number] = reader.picture(number)
        except DataError as error:
            seen[number] = str(error.got)
    return seen


def straight_through(path: Path) -> list[Pixels]:
    """Decode with all checks from start to end; nothing where anything complains."""
    pictures = []
    av.logging.set_level(av.logging.ERROR)
    with av.logging.Capture() as said, av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.options = {"err_detect": "crccheck+explode"}
        try:
            for frame in container.decode(stream):
                if frame.is_corrupt:
                    return []
                pictures.append(frame.to_ndarray(format="rgb24"))
        except av.FFmpegError:
            return []
    return [] if said else pictures


def damaged(data: bytes, path: Path, rng: random.Random) -> bytes:
    """Change some bytes in the head of a packet, in a packet, or anywhere."""
    out = bytearray(data)
    place, size, *_ = rng.choice(packets(path))
    near = (place - rng.randrange(-6, 14), place + rng.randrange(size), rng.randrange(len(data)))
    at = min(max(rng.choice(near), 0), len(data) - 64)
    for byte in range(at, at + rng.choice([1, 1, 4, 16, 64])):
        out[byte] ^= rng.randrange(1, 256)
    return bytes(out)


@pytest.mark.parametrize("name", KINDS)
def test_damage_never_gives_a_frame_another_number(name: str, tmp_path: Path) -> None:
    path = film(tmp_path / name, **KINDS[name])
    whole, data, rng = decoded(path), path.read_bytes(), random.Random(11)
    broken = tmp_path / f"broken{path.suffix}"
    touched = 0
    for _ in range(CASES):
        broken.write_bytes(damaged(data, path, rng))
        try:
            seen = shown(broken, list(range(48)))
        except DataError:
            touched += 1
            continue
        again = shown(broken, rng.sample(range(48), 48))
        assert all(np.array_equal(seen[number], again[number]) for number in range(48)), "in any order"
        wrong = [
            number
            for number, image in seen.items()
            if not isinstance(image, str) and not np.array_equal(image, whole[number])
        ]
        touched += any(isinstance(image, str) for image in seen.values())
        if wrong:
            unnoticed = straight_through(broken)
            assert len(unnoticed) == 48, "FFmpeg notices it"
            assert all(np.array_equal(unnoticed[number], seen[number]) for number in wrong)
            assert name != "checked.mkv", "checksums notice everything"
    assert touched, "some damage is noticed"


def test_one_doubled_time_costs_its_group_and_no_other_time(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mkv", container=UNCHECKED)
    in_file, data = packets(path), bytearray(path.read_bytes())
    here = next(at for at, packet in enumerate(in_file) if packet[2] == 600)  # frame 15, in milliseconds
    stamp = data.index(b"\x81" + (600).to_bytes(2, "big"), in_file[here][0] - 16) + 1  # after the track
    data[stamp : stamp + 2] = (640).to_bytes(2, "big")
    path.write_bytes(data)
    index = index_video(path, 1.0)
    assert not index.counted
    assert set(index.damage) == {1}
    others = [*range(15), *range(17, 48)]
    assert np.allclose(index.times_s[others], np.array(others) / 25)
    seen = shown(path, list(range(48)))
    assert {number for number, image in seen.items() if isinstance(image, str)} == set(range(12, 24))


def _moved(data: bytes, at: int, by: bytes) -> bytes:
    return data[:at] + by + data[at + len(by) :]


FRAGMENTS = {"container": {"movflags": "frag_keyframe+empty_moov"}}


@pytest.mark.parametrize(
    ("made", "box", "away", "by", "words"),
    [
        ({}, b"stts", 8, b"\0\0\0\1\0\0\0\x20", "48 frames by stsz, 32 by stts"),
        ({}, b"stsz", 8, b"\0\0\0\0\0\0\0\x20", "32 frames by stsz, 48 by"),
        ({}, b"stsz", 36, bytes(4), "1 frames of 0 bytes"),
        ({}, b"ctts", 64, b"\0\1\0\0", "long before or after it is decoded"),
        ({}, b"elst", 12, b"\0\0\1\0", "another length than its track"),
        ({}, b"elst", 16, b"\0\0\x50\0", "beyond the end of its track"),
        (FRAGMENTS, b"mdat", -4, b"\xff", "called b'mdat'"),
        (FRAGMENTS, b"traf", 0, b"x", "called b'xraf'"),
        (FRAGMENTS, b"trun", 11, b"\2", "a run of 2 frames"),
    ],
)
def test_tables_and_fragments_of_mp4_must_agree(
    made: dict[str, Any], box: bytes, away: int, by: bytes, words: str, tmp_path: Path
) -> None:
    path = film(tmp_path / "a.mp4", **made)
    assert len(index_video(path, 1.0)) == 48
    data = path.read_bytes()
    path.write_bytes(_moved(data, data.rindex(box) + away, by))
    with pytest.raises(DataError, match="damaged, so its frames cannot be numbered") as caught:
        index_video(path, 1.0)
    assert words in str(caught.value.got)


@pytest.mark.parametrize(("box", "away"), [(b"mdhd", 3), (b"mdhd", 17), (b"mvhd", 17)])
def test_units_of_time_that_are_damaged_leave_no_frames_out(box: bytes, away: int, tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4")
    data = path.read_bytes()
    path.write_bytes(_moved(data, data.rindex(box) + away, b"\x20"))
    with pytest.raises(DataError, match=r"damaged|cut off"):
        index_video(path, 1.0)


@pytest.mark.parametrize(
    ("box", "away", "by"),
    [(b"tkhd", 24, b"\xff" * 4), (b"elst", 12, bytes(4))],
    ids=["length of the track not known", "edit to the end"],
)
def test_lengths_of_mp4_may_be_left_open(box: bytes, away: int, by: bytes, tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4")
    data = path.read_bytes()
    path.write_bytes(_moved(data, data.rindex(box) + away, by))
    assert sum(frames_of_tracks(path).values()) == 48


def test_empty_chunks_of_avi_repeat_a_picture_and_are_no_frames(tmp_path: Path) -> None:
    path = film(tmp_path / "a.avi", codec="mpeg4", b_frames=0)
    data = bytearray(path.read_bytes())
    at = data.index(b"00dc", data.index(b"movi"))
    at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
    at += at % 2
    data[at:at] = b"00dc\0\0\0\0"
    for name in (b"RIFF", b"movi"):
        size = data.index(name) + (4 if name == b"RIFF" else -4)
        told = int.from_bytes(data[size : size + 4], "little") + 8
        data[size : size + 4] = told.to_bytes(4, "little")
    count = data.index(b"vids") + 32  # dwLength: chunks, empty ones too
    data[count : count + 4] = (49).to_bytes(4, "little")
    del data[data.index(b"idx1", at) :]
    data[4:8] = (len(data) - 8).to_bytes(4, "little")
    path.write_bytes(data)
    index = index_video(path, 1.0)
    assert np.allclose(index.times_s, [0, *np.arange(2, 49) / 25])
