"""Video in: speed against the program ffmpeg piping raw frames, and memory over an hour.

    python bench/video.py                 20 s: frames per second of CPU time, and the ratio
    python bench/video.py --minutes 60    memory over an hour, 36000 frames: ten minutes of CPU time

A 1080p H.264 video is made first. Both sides decode with one thread, turn every frame into RGB and darken it;
CPU time counts, that of ffmpeg included. For the hour a minute is encoded, and repeated without encoding it
again; what the process holds is noted every few minutes and must not grow with the length of the video.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from adverse.data.video_frames import VideoFrame, reader_of
from adverse.mutations import apply

WIDTH, HEIGHT = 1920, 1080
RATE, SLOW_RATE = 30, 10
"""Frames per second, and those of an hour."""
MUTATION = "brightness(scale=0.6)"
ROUNDS = 3
NOTED = 12
"""Times that memory is looked at over the whole video."""
CODED = ("-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p")
MB = 1e6


def make(path: Path, seconds: int, rate: int, *, repeated: int = 1) -> None:
    """Write a video of moving shapes, with noise where it is played once, or without many times over."""
    source = f"testsrc2=size={WIDTH}x{HEIGHT}:rate={rate}:duration={seconds}"
    grain = ["-vf", "noise=alls=12:allf=t"] if repeated == 1 else []
    once = path.with_stem("once")
    _ffmpeg("-f", "lavfi", "-i", source, *grain, *CODED, once)
    _ffmpeg("-stream_loop", repeated - 1, "-i", once, "-c", "copy", path)
    once.unlink()


def _ffmpeg(*arguments: object) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-y", *map(str, arguments)], check=True)


def ours(path: Path, frames: int) -> tuple[float, int]:
    """Return the CPU time of our reader plus the mutation, and a checksum of what came out."""
    begin, total = time.process_time(), 0
    for number in range(frames):
        total += int(apply(VideoFrame(path, number)(), MUTATION, seed=1)[0, 0, 0])
    return time.process_time() - begin, total


def piped(path: Path) -> tuple[float, int]:
    """Return the same of ffmpeg piping raw frames into the same mutation."""
    command = ["ffmpeg", "-v", "error", "-threads", "1", "-i", str(path)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin, total = time.process_time(), 0
    with subprocess.Popen(
        [*command, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        while data := process.stdout.read(WIDTH * HEIGHT * 3):
            frame = np.frombuffer(data, np.uint8).reshape(HEIGHT, WIDTH, 3)
            total += int(apply(frame, MUTATION, seed=1)[0, 0, 0])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    theirs = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.process_time() - begin + theirs, total


def speed(path: Path, frames: int) -> None:
    """Print frames per second of both sides, the best of several rounds, and their ratio."""
    best = {"adverse": np.inf, "ffmpeg": np.inf}
    for _ in range(ROUNDS):
        (spent, total), (other, same) = ours(path, frames), piped(path)
        assert total == same, "the pixels differ"
        best = {"adverse": min(best["adverse"], spent), "ffmpeg": min(best["ffmpeg"], other)}
    for name, spent in best.items():
        print(f"{name:7} {frames / spent:6.1f} frames per second of CPU time")
    print(f"ratio   {best['ffmpeg'] / best['adverse']:.2f}")


def memory(path: Path, frames: int) -> None:
    """Print what the process holds as the video goes by, and the peak."""
    begin, noted = time.process_time(), {round(part * (frames - 1) / NOTED) for part in range(1, NOTED + 1)}
    for number in range(frames):
        apply(VideoFrame(path, number)(), MUTATION, seed=1)
        if number in noted:
            print(
                f"minute {number / SLOW_RATE / 60:5.1f}: {held_mb():.0f} MB held, peak {peak_mb():.0f} MB",
                flush=True,
            )
    spent = time.process_time() - begin
    print(f"{frames} frames in {spent:.0f} s of CPU time, {frames / spent:.1f} per second")


def held_mb() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MB


def peak_mb() -> float:
    """Return the largest that it ever was."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB


def main() -> None:
    """Measure the one or the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=int, default=0, help="measure memory over so many minutes instead")
    given = parser.parse_args()
    if shutil.which("ffmpeg") is None:
        sys.exit("ffmpeg is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.mp4"
        if given.minutes:
            make(path, 60, SLOW_RATE, repeated=given.minutes)
        else:
            make(path, 20, RATE)
        begin = time.process_time()
        frames = len(reader_of(path, 100.0).index)
        print(f"{frames} frames of {WIDTH}x{HEIGHT}, {path.stat().st_size / MB:.0f} MB")
        print(f"index: {time.process_time() - begin:.2f} s of CPU time", flush=True)
        apply(np.zeros((8, 8, 3), np.uint8), MUTATION, seed=1)
        if given.minutes:
            memory(path, frames)
        else:
            speed(path, frames)


if __name__ == "__main__":
    main()
