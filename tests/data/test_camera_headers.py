"""MP4 and MOV as cameras, phones and recorders write them: every frame is read, with its number and time."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse.data.video import SEVERAL, video
from adverse.data.video_frames import VideoFrame, VideoReader
from adverse.data.video_index import index_video
from adverse.errors import DataError
from films import HEIGHT, WIDTH, av, film, number_on
from mp4_writing import (
    HZ,
    MOVIE_HZ,
    STEP,
    UPRIGHT,
    Coded,
    Layout,
    box,
    coded,
    full,
    shown_at,
    words,
    write,
    write_fragments,
)

LENGTH = 48 * STEP * MOVIE_HZ // HZ
MATRICES = [
    (a, b, c, d)
    for a, b, c, d in product((-1, 0, 1), repeat=4)
    if (abs(a), abs(b)) == (abs(d), abs(c)) and abs(a) + abs(b) == 1
]
"""Quarter turns, mirrored or not."""
PHONE_META = full(b"hdlr", bytes(4), b"mdta", bytes(12))[8:]
UDTA = box(b"udta", box(b"\xa9mod", b"\0\5\0\0Phone"), bytes(4))
PHONE: dict[str, Any] = {"brand": b"qt  ", "quicktime": True, "before": (box(b"wide"),), "in_movie": (UDTA,)}
WHOLE: dict[str, Layout] = {
    "as FFmpeg": Layout(edits=((LENGTH, STEP),)),
    "phone, sound and metadata": Layout(
        **PHONE,
        others_after=(b"soun", b"meta", b"meta"),
        in_track=(box(b"tapt", full(b"clef", words(0, 0))),),
        per_chunk=(5, 7, 3),
        edits=((LENGTH, STEP),),
        wide_data=True,
    ),
    "sound first": Layout(others=(b"soun",), edits=((LENGTH, STEP),)),
    "metadata and time code first": Layout(others=(b"meta", b"tmcd", b"soun"), long_offsets=True),
    "64 bits": Layout(version=1, long_offsets=True, wide_data=True, edits=((LENGTH, STEP),)),
    "room kept for the header": Layout(before=(box(b"free", bytes(4000)),), header_first=True),
    "data to the end of the file": Layout(header_first=True, open_data=True),
    "late pictures": Layout(edits=((60, -1), (LENGTH, STEP)), track_length=LENGTH + 60),
    "late pictures, not in the track's length": Layout(edits=((60, -1), (LENGTH, STEP)), track_length=LENGTH),
    "edits without a length of the track": Layout(edits=((LENGTH, STEP),), track_length=0),
    "no edits": Layout(),
    "shifts with a sign": Layout(signed=True, early=True, edits=((LENGTH, 0),)),
    "shifts with a sign in version 0": Layout(early=True, edits=((LENGTH, 0),)),
    "an entry for each frame": Layout(long_runs=False),
    "changing steps": Layout(steps=(STEP, STEP, STEP, 3 * STEP, 900)),
    "one chunk": Layout(per_chunk=(48,)),
    "bytes after the end": Layout(after=(b"made by a camera \0\1\2\3",)),
    "boxes of a vendor": Layout(
        before=(box(b"uuid", bytes(64)), box(b"skip", b"GPS "), box(b"pnot", bytes(12))),
        in_movie=(UDTA, box(b"gps ", bytes(32)), box(b"meta", PHONE_META), bytes(4)),
        in_track=(box(b"uuid", bytes(40)), UDTA),
        after=(box(b"gpsx", bytes(8)),),
    ),
    "a brand that nobody knows": Layout(brand=b"XAVC"),
}


@pytest.fixture(scope="module")
def hevc(tmp_path_factory: pytest.TempPathFactory) -> Coded:
    options = {"x265-params": "log-level=none"}
    return coded(film(tmp_path_factory.mktemp("hevc") / "a.mp4", codec="libx265", options=options))


@pytest.fixture(scope="module")
def h264(tmp_path_factory: pytest.TempPathFactory) -> Coded:
    return coded(film(tmp_path_factory.mktemp("h264") / "a.mp4"))


def _check(path: Path, times: list[int], shown: range = range(48)) -> None:
    index = index_video(path, 1.0)
    reader = VideoReader(index)
    some = [0, 1, 11, 12, 13, len(shown) - 1, len(shown) // 2]
    assert len(index) == len(shown)
    assert [number_on(reader.picture(number)) for number in some] == [shown[number] for number in some]
    assert np.allclose(index.times_s, np.array(times) / HZ, atol=1e-6)
    assert not index.damage
    assert not index.counted


@pytest.mark.parametrize("name", WHOLE)
def test_frames_under_the_headers_of_cameras(name: str, h264: Coded, tmp_path: Path) -> None:
    layout = WHOLE[name]
    times = sorted(shown_at(h264, layout.lengths(48)))
    _check(write(tmp_path / "a.mov", h264, layout), times)


def _frames(count: int) -> int:
    return count * STEP * MOVIE_HZ // HZ


@pytest.mark.parametrize(
    "shown", [range(5, 48), range(5, 41), range(28), range(20, 48), range(29, 43)], ids=str
)
def test_frames_that_an_edit_leaves_out_are_not_shown(shown: range, h264: Coded, tmp_path: Path) -> None:
    length = _frames(len(shown))
    layout = Layout(edits=((length, (shown[0] + 1) * STEP),), track_length=length)
    _check(write(tmp_path / "a.mov", h264, layout), [STEP * at for at in range(len(shown))], shown)


def test_a_damaged_size_of_a_frame_that_an_edit_leaves_out_is_one_error(h264: Coded, tmp_path: Path) -> None:
    layout = Layout(edits=((_frames(28), 21 * STEP),), track_length=_frames(28))
    path = write(tmp_path / "a.mov", h264, layout)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"stsz") + 48] ^= 0x20  # a size of half a gigabyte
    path.write_bytes(data)
    with pytest.raises(DataError, match="cut off"):
        index_video(path, 1.0)


KNOWN = (box(b"styp", b"msdh"), box(b"sidx", bytes(24)), box(b"emsg", bytes(30)), box(b"prft", bytes(20)))
FRAGMENTED: dict[str, tuple[Layout, tuple[bytes, ...]]] = {
    "pictures": (Layout(), ()),
    "with sound": (Layout(others=(b"soun",)), ()),
    "as streamed": (Layout(brand=b"dash", after=(box(b"mfra", full(b"mfro", words(16))),)), KNOWN),
    "an edit to the end": (Layout(edits=((0, STEP),)), ()),
    "boxes of a vendor": (Layout(in_movie=(UDTA,)), (box(b"gpsx", bytes(8)),)),
    "version 1": (Layout(version=1), ()),
}


@pytest.mark.parametrize("name", FRAGMENTED)
def test_frames_in_fragments_of_recorders(name: str, h264: Coded, tmp_path: Path) -> None:
    layout, extra = FRAGMENTED[name]
    path = write_fragments(tmp_path / "a.mp4", h264, layout, extra=extra)
    _check(path, [STEP * at for at in range(48)])


@pytest.mark.parametrize("kind", [b"moof", b"mdat"])
@pytest.mark.parametrize("which", range(4))
def test_a_fragment_with_a_damaged_name_is_no_box_of_a_vendor(
    kind: bytes, which: int, h264: Coded, tmp_path: Path
) -> None:
    path = write_fragments(tmp_path / "a.mp4", h264, Layout())
    parts = path.read_bytes().split(kind)
    path.write_bytes(kind.join(parts[: which + 1]) + b"moot" + kind.join(parts[which + 1 :]))
    with pytest.raises(DataError, match="damaged, so its frames cannot be numbered"):
        index_video(path, 1.0)


def test_a_fragment_at_a_damaged_time_is_not_left_out(h264: Coded, tmp_path: Path) -> None:
    path = write_fragments(tmp_path / "a.mp4", h264, Layout())
    data = bytearray(path.read_bytes())
    data[data.index(b"tfdt", data.index(b"tfdt", data.index(b"tfdt") + 4) + 4) + 10] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(DataError, match="at its end that are not to be shown"):
        index_video(path, 1.0)


@pytest.mark.parametrize("tag", [b"hvc1", b"hev1"])
def test_hevc_of_phones(tag: bytes, hevc: Coded, tmp_path: Path) -> None:
    path = write(tmp_path / "a.mov", hevc, Layout(tag=tag, **PHONE, others=(b"soun",)))
    _check(path, [STEP * at for at in range(48)])


def test_parameter_sets_in_the_frames_alone(h264: Coded, tmp_path: Path) -> None:
    header = h264.entry[
        8:
    ]  # avcC: 6 bytes, then sets with a length of 16 bits before each, PPS after their count
    sps_end = 8 + int.from_bytes(header[6:8], "big")
    pps = header[sps_end + 3 : sps_end + 3 + int.from_bytes(header[sps_end + 1 : sps_end + 3], "big")]
    sets = b"".join(len(unit).to_bytes(4, "big") + unit for unit in (header[8:sps_end], pps))
    samples = [sets * key + sample for sample, key in zip(h264.samples, h264.keys, strict=True)]
    bare = box(b"avcC", header[:5], bytes([0xE0, 0]))
    moved = replace(h264, samples=samples, entry=bare)
    _check(write(tmp_path / "a.mov", moved, Layout(tag=b"avc3")), [STEP * at for at in range(48)])


def test_frames_of_one_size_and_frames_without_bytes(tmp_path: Path) -> None:
    motion = coded(film(tmp_path / "m.avi", codec="mjpeg", pix_fmt="yuvj420p", b_frames=0))
    longest = max(map(len, motion.samples))
    padded = [sample.ljust(longest, b"\0") for sample in motion.samples]
    equal = Layout(uniform=True, tag=b"jpeg", per_chunk=(4,))
    _check(write(tmp_path / "a.mov", replace(motion, samples=padded), equal), [STEP * at for at in range(48)])
    # a recorder that had no new picture wrote an empty one: it takes its time, and nothing is decoded
    samples = [*motion.samples[:20], b"", *motion.samples[20:]]
    empty = replace(motion, samples=samples, shifts=[0] * 49, keys=[True] * 49)
    times = [STEP * at for at in range(49) if at != 20]
    _check(write(tmp_path / "b.mov", empty, Layout(tag=b"jpeg")), times)


@pytest.mark.parametrize("matrix", MATRICES, ids=str)
def test_pictures_are_turned_and_mirrored_as_the_header_says(
    matrix: tuple[int, int, int, int], h264: Coded, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.mov", h264, Layout(matrix=matrix))
    a, b, c, d = matrix
    rows, columns = np.indices((HEIGHT, WIDTH))
    across, down = a * columns + c * rows, b * columns + d * rows
    across, down = across - across.min(), down - down.min()
    upright = np.empty((down.max() + 1, across.max() + 1, 3), np.uint8)
    upright[down, across] = VideoFrame(path, 5, "ignore")()
    read = VideoFrame(path, 5).read_with_notes()
    assert np.array_equal(read.image, upright)
    assert bool(read.notes) == (matrix != UPRIGHT)
    assert VideoFrame(path, 5).measure() == upright.shape[1::-1]
    assert ("mirrored" in read.notes) == (a * d - b * c < 0)


def test_of_several_tracks_of_pictures_the_first_is_read_and_the_data_say_so(tmp_path: Path) -> None:
    path = tmp_path / "two.mkv"
    with av.open(str(film(tmp_path / "a.mp4", 4))) as one, av.open(str(path), "w") as out:
        pairs = [(packet, number) for packet in one.demux(video=0) if packet.size for number in (0, 1)]
        streams = [out.add_stream_from_template(one.streams.video[0]) for _ in range(2)]
        for packet, number in pairs:
            packet.stream = streams[number]
            out.mux(packet)
    assert video(path).notes[SEVERAL] == 1
