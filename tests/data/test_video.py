"""Videos as data: exact frames in any order, damage said, bad files refused in one line each."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse.data import video_frames
from adverse.data.check import check
from adverse.data.formats import guess
from adverse.data.images import ImageFile
from adverse.data.subsets import cut_logs
from adverse.data.video import COUNTED, LEFT_OUT, TURNED, UNEVEN, UNLABELLED, video
from adverse.data.video_frames import KEEPING, VideoFrame, VideoReader, reader_of
from adverse.data.video_index import index_video
from adverse.errors import DataError, StudyError
from adverse.plugins import load
from adverse.types import Dataset
from films import HEIGHT, WIDTH, av, decoded, film, number_on, packets, picture

KINDS: dict[str, dict[str, Any]] = {
    "h264.mp4": {},
    "open-gop.mkv": {"options": {"x264-params": "open-gop=1"}},
    "one-key.mov": {"gop": 1000},
    "hevc.mkv": {"codec": "libx265", "options": {"x265-params": "log-level=none"}},
    "vp8.webm": {"codec": "libvpx", "options": {"auto-alt-ref": "1", "lag-in-frames": "16"}, "b_frames": 0},
    "vp9.webm": {"codec": "libvpx-vp9", "b_frames": 0},
    "mpeg4.avi": {"codec": "mpeg4"},
    "mpeg2.mkv": {"codec": "mpeg2video"},
    "mjpeg.avi": {"codec": "mjpeg", "pix_fmt": "yuvj420p", "b_frames": 0},
    "h264.avi": {},
}


@pytest.mark.parametrize("name", KINDS)
def test_a_frame_is_the_same_whatever_was_read_before(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = film(tmp_path / name, **KINDS[name])
    witness = decoded(path)
    index = index_video(path, 1.0)
    assert len(index) == len(witness) == 48
    order = [*range(48), *random.Random(3).sample(range(48), 14), 47, 0, 47, 11, 12, 13, 12]
    for most in (video_frames.KEPT_BYTES, 0):  # short groups are kept whole, long ones decoded twice
        monkeypatch.setattr(video_frames, "KEPT_BYTES", most)
        reader = VideoReader(index)
        for number in order:
            image = reader.picture(number)
            assert number_on(image) == number
            assert np.array_equal(image, witness[number])
    assert len(reader._recent) == 1, "no more than KEPT_BYTES allows"
    assert index.counted == (name == "h264.avi")
    assert np.allclose(np.diff(index.times_s), 1 / 25)


def test_the_pixels_are_those_of_the_ffmpeg_program(tmp_path: Path) -> None:
    program = shutil.which("ffmpeg")
    if program is None:
        pytest.skip("ffmpeg is not installed")
    path = film(tmp_path / "a.mp4", 12, rotation=90)
    command = [program, "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    shown = np.frombuffer(raw, np.uint8).reshape(12, WIDTH, HEIGHT, 3)  # the program turns it, too
    assert all(np.array_equal(VideoFrame(path, number)(), shown[number]) for number in (7, 0, 11))


@pytest.mark.parametrize("name", ["h264.mp4", "open-gop.mkv", "hevc.mkv", "mpeg4.avi", "mjpeg.avi"])
def test_damage_costs_what_rests_on_it_and_nothing_else_in_any_order(name: str, tmp_path: Path) -> None:
    path = film(tmp_path / name, **KINDS[name])
    whole = decoded(path)
    index = index_video(path, 1.0)
    in_file = packets(path)
    place_of = {int(frame): at for at, frame in enumerate(index.packet_frames)}
    second = [at for at in range(place_of[13], place_of[22]) if not in_file[at][3]]
    hit = max(second or [20], key=lambda at: in_file[at][1])  # in the second group of pictures
    place, size, *_ = in_file[hit]
    data = bytearray(path.read_bytes())
    head = 24 if path.suffix == ".avi" else 12  # the frame's own header stays, so that it is begun
    data[place + head : place + size] = bytes((7 * at) % 251 for at in range(size - head))
    broken = tmp_path / f"broken{path.suffix}"
    broken.write_bytes(data)

    def shown(order: list[int]) -> dict[int, str | bool]:
        reader = VideoReader(index_video(broken, 1.0))
        seen: dict[int, str | bool] = {}
        for number in order:
            try:
                seen[number] = np.array_equal(reader.picture(number), whole[number])
            except DataError as error:
                seen[number] = f"{error.where}: {error.got}"
        return seen

    straight = shown(list(range(48)))
    lost = {number for number, was in straight.items() if isinstance(was, str)}
    assert all(f", frame {number}: " in str(straight[number]) for number in lost)
    group = index.group == index.group[index.packet_frames[hit]]
    checked = path.suffix == ".mkv"  # a cluster has one checksum, which does not say where it fails
    assert lost == set(np.flatnonzero(group | checked)), "its group and no other"
    assert all(was is True for number, was in straight.items() if number not in lost), "never a wrong pixel"
    for seed in (1, 2):
        assert shown(random.Random(seed).sample(range(48), 48)) == straight


def test_variable_rate_rotation_and_choosing_frames(tmp_path: Path) -> None:
    times = [0, 1, 2, 3, 10, 11, 12, 20, 21, 22]
    path = film(tmp_path / "v.mp4", 10, times=times, rotation=90)
    dataset = video(path)
    frames = dataset.logs[0].frames
    assert [round(25 * (frame.time_s or 0)) for frame in frames] == times
    assert dataset.notes[UNEVEN] == 2
    assert dataset.notes[TURNED] == 1
    upright, stored = VideoFrame(path, 4)(), VideoFrame(path, 4, "ignore")()
    assert upright.shape == (WIDTH, HEIGHT, 3)
    assert VideoFrame(path, 4).measure() == (HEIGHT, WIDTH)
    assert np.array_equal(upright, np.rot90(stored, k=1))
    assert [frame.id for frame in video(path, every=4).logs[0].frames] == ["v/000000", "v/000004", "v/000008"]
    by_rate = [int(frame.id[-6:]) for frame in video(path, rate_hz=5.0).logs[0].frames]
    assert by_rate == [0, 4, 7]  # the first at or after 0, 0.2 (none till 0.4) and 0.8 s
    with pytest.raises(StudyError, match="chosen twice"):
        video(path, every=2, rate_hz=1.0)


def _audio(path: Path) -> None:
    with av.open(str(path), "w") as out:
        stream = out.add_stream("aac", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.rate = 8000
        out.mux(stream.encode(frame))
        out.mux(stream.encode())


def _sizes(path: Path) -> None:
    film(path, [picture(0)] * 4, codec="mjpeg", pix_fmt="yuvj420p", b_frames=0)
    small = path.with_name("small.avi")
    film(small, [picture(0, 64, 32)] * 4, codec="mjpeg", pix_fmt="yuvj420p", b_frames=0)
    with av.open(str(path)) as first, av.open(str(small)) as second:
        found = [packet for file in (first, second) for packet in file.demux(video=0) if packet.size]
        joint = path.with_name("joint.avi")
        with av.open(str(joint), "w") as out:
            stream = out.add_stream_from_template(first.streams.video[0])
            for number, packet in enumerate(found):
                packet.pts = packet.dts = number
                packet.stream = stream
                out.mux(packet)
    joint.replace(path)


def _cut(path: Path, share: float, **made: Any) -> None:
    data = film(path, **made).read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def _no_rate(path: Path) -> None:
    data = bytearray(film(path).read_bytes())
    at = data.index(b"vids") + 24  # scale, rate
    data[at : at + 4] = bytes(4)
    path.write_bytes(data)


def _read_all(path: Path) -> None:
    for frame in video(path).logs[0].frames:
        frame.image()


SECRET = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": "76" * 16, "encryption_kid": "a7" * 16}
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty.mp4": (lambda path: path.write_bytes(b""), "the video is empty"),
    "text.mp4": (lambda path: path.write_text("#EXTM3U\nhttp://127.0.0.1/a.ts\n"), "text that begins with"),
    "no-moov.mp4": (lambda path: _cut(path, 0.5), "cut off: it has no index"),
    "front.mp4": (
        lambda path: _cut(path, 0.6, container={"movflags": "faststart"}),
        "48 frames, as its header",
    ),
    "cut.mkv": (lambda path: _cut(path, 0.4), "s, as its header says"),
    "cut.avi": (lambda path: _cut(path, 0.9, codec="mpeg4"), "bytes, as its header"),
    "audio.mp4": (_audio, "the video has no pictures"),
    "secret.mp4": (lambda path: film(path, container=SECRET), "the video is encrypted"),
    "still.avi": (_no_rate, "are nonsense"),
    "fast.mkv": (lambda path: film(path, codec="ffv1", rate=1_000_000, b_frames=0), "are nonsense"),
    "deep.mkv": (lambda path: film(path, 3, codec="ffv1", pix_fmt="gray16le", b_frames=0), "16 bits"),
    "hdr.mp4": (lambda path: film(path, 3, pix_fmt="yuv420p10le", trc=16), "HDR"),
    "sizes.avi": (_sizes, "changes its size at frame 4.*64x32 after 128x64, 0.160 s"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_video_gets_one_clear_error(name: str, tmp_path: Path) -> None:
    make, words = BAD[name]
    path = tmp_path / name
    make(path)
    with pytest.raises(DataError, match=words) as caught:
        _read_all(path)
    error = caught.value
    assert name in (error.where or "")
    assert error.fix
    assert "\n" not in str(error)


def test_what_a_folder_of_videos_is(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    film(tmp_path / "day" / "walk2.mp4", 5)
    film(tmp_path / "day" / "walk10.mkv", 4)
    guessed = guess(tmp_path, load().all("dataset"))
    assert (guessed.format.name, guessed.options) == ("video", {"root": str(tmp_path)})
    dataset = video(tmp_path)
    assert [(log.id, len(log.frames)) for log in dataset.logs] == [("day/walk2", 5), ("day/walk10", 4)]
    assert COUNTED not in dataset.notes
    checked = check(dataset)
    assert (checked.images, checked.unusable, checked.sizes) == (9, 0, {"128x64": 9})
    with pytest.raises(DataError, match="no video"):
        video(tmp_path, split={"test": "night"})


def test_a_video_in_the_place_of_an_image_is_called_one(tmp_path: Path) -> None:
    for name in ("a.mp4", "a.mkv", "a.avi"):
        with pytest.raises(DataError, match="a video, which a study reads as it is"):
            ImageFile(film(tmp_path / name, 2))()


def test_a_reader_follows_a_file_that_is_replaced(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4", 4)
    assert len(reader_of(path, 1.0).index) == 4
    film(tmp_path / "b.mp4", 7).replace(path)
    assert len(reader_of(path, 1.0).index) == 7


def test_only_the_last_videos_that_were_read_keep_pictures(tmp_path: Path) -> None:
    films = [film(tmp_path / f"{name}.mp4", 4) for name in "abc"]
    readers = [reader_of(path, 1.0) for path in films]
    for turn in range(2):
        for path in films:
            assert number_on(reader_of(path, 1.0).picture(3 - turn)) == 3 - turn
    assert [len(reader._recent) for reader in readers] == [0] + [3] * KEEPING, (
        "frames 0 to 2 of the second turn"
    )
    assert [reader._video is None for reader in readers] == [True] + [False] * KEEPING


def test_a_forked_process_leaves_the_decoders_of_its_parent_alone(tmp_path: Path) -> None:
    """Closing one there would wait for threads that stayed behind, for ever."""
    path = film(tmp_path / "walk.mp4")
    before = reader_of(path, 1.0).picture(3)
    if (child := os.fork()) == 0:
        os._exit(0 if np.array_equal(reader_of(path, 1.0).picture(3), before) else 1)
    ended = 0
    for _ in range(600):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended, "the copy hangs"
    assert status == 0


def test_logs_are_cut_by_seconds_frames_and_shots(tmp_path: Path) -> None:
    dark, light = np.full((HEIGHT, WIDTH, 3), 20, np.uint8), np.full((HEIGHT, WIDTH, 3), 230, np.uint8)
    path = film(tmp_path / "a.mp4", [dark] * 30 + [light] * 20)

    def pieces(dataset: Dataset) -> list[tuple[str, int]]:
        assert [frame.index for log in dataset.logs for frame in log.frames] == [
            place for log in dataset.logs for place in range(len(log.frames))
        ]
        return [(log.id, len(log.frames)) for log in dataset.logs]

    whole = video(path)  # 2 s at 25 frames per second
    assert pieces(cut_logs(whole, seconds=0.8)) == [("a:1", 20), ("a:2", 20), ("a:3", 10)]
    assert pieces(cut_logs(whole, frames=21)) == [("a:1", 21), ("a:2", 29)]  # 8 frames are too few
    assert pieces(cut_logs(whole, shots=True)) == [("a:1", 30), ("a:2", 20)]
    assert pieces(cut_logs(whole, seconds=10)) == [("a", 50)]
    assert cut_logs(whole, frames=21).logs[1].frames[0].id == "a/000021"
    assert [name for name, _ in pieces(cut_logs(whole, frames=5, keep=3))] == ["a:2", "a:6", "a:9"]
    assert pieces(cut_logs(whole, seconds=0.8, keep=3)) == pieces(cut_logs(whole, seconds=0.8))


MOT = "1,3,11,5,20,30,1,1,1\n2,3,12,5,20,30,1,1,0.4\n2,8,1,1,5,5,0,1,1\n3,9,40,8,10,20,1,7,1\n"
KITTI = "0 3 Pedestrian 0 0 0 10 4 30 34 1 1 1 1 1 9 0\n1 -1 DontCare -1 -1 0 0 0 9 9 -1 -1 -1 -1 -1 -1 0\n"


def test_annotations_beside_a_video(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4", 4)
    beside = path.with_suffix(".txt")
    beside.write_text(MOT)
    dataset = video(path)
    first, second, third, fourth = (frame.truth for frame in dataset.logs[0].frames)
    assert dataset.categories == ("pedestrian", "static person")
    assert first.boxes.tolist() == [[10, 4, 30, 34]]
    assert (first.ids.tolist(), second.ids.tolist()) == ([3], [3, 8])
    assert second.ignore.tolist() == [False, True]
    assert [row.get("visible") for row in second.attributes] == ["25 to 50 %", "75 to 100 %"]
    assert (third.labels.tolist(), third.ignore.tolist()) == ([1, 0], [False, True])
    assert len(fourth.boxes) == 0
    assert dataset.annotations == (beside,)

    film(tmp_path / "b.mp4", 2)
    both = video(tmp_path)  # what nobody annotated is not free of objects
    assert ([log.id for log in both.logs], both.notes[LEFT_OUT]) == (["a"], 1)
    (tmp_path / "b.mp4").unlink()

    beside.write_text(KITTI)
    dataset = video(path)
    assert dataset.categories == ("Pedestrian",)
    assert dataset.logs[0].frames[0].truth.boxes.tolist() == [[10, 4, 30, 34]]
    assert dataset.logs[0].frames[1].truth.ignore.tolist() == [True]

    beside.unlink()
    coco = {
        "images": [{"id": 7, "file_name": "frame_000002.png", "width": WIDTH, "height": HEIGHT}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [10, 4, 20, 30], "track_id": 5}],
    }
    path.with_suffix(".json").write_text(json.dumps(coco))
    dataset = video(path)
    assert [(frame.id, frame.image_id) for frame in dataset.logs[0].frames] == [("a/000002", 7)]
    assert dataset.logs[0].frames[0].truth.ids.tolist() == [5]
    assert dataset.notes[UNLABELLED] == 3

    beside.write_text(MOT)
    with pytest.raises(DataError, match="two files of annotations"):
        video(path)
    path.with_suffix(".json").unlink()
    for line, words in {
        "9,1,1,1,5,5,1,1,1": "more frames than the video has",
        "1,1,1,1,5,5": "7 to 10 numbers",
        "0,1,1,1,5,5,1,1,1": "from 1 on",
        "1,1,1,1,5,5,1,44,1": "class 44",
        "1,1,1,1,5,5,1,1,1\n1,1,2,2,5,5,1,1,1": "twice in frame 1",
    }.items():
        beside.write_text(line)
        with pytest.raises(DataError, match=words):
            video(path)
