"""Frames per second of our video reader plus one mutation, against the program ffmpeg piping raw frames.

    python bench/video.py [SECONDS]

A 1080p H.264 video of moving noise is made first. Both sides decode with one thread, turn every frame into
RGB and darken it; CPU time counts, that of ffmpeg included. The peak of memory is noted after a tenth of the
frames and at the end: it must not grow with the length of the video.
"""

from __future__ import annotations

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

WIDTH, HEIGHT, RATE = 1920, 1080, 30
MUTATION = "brightness(scale=0.6)"


def make(path: Path, seconds: int) -> None:
    source = f"testsrc2=size={WIDTH}x{HEIGHT}:rate={RATE}:duration={seconds}"
    command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-vf", "noise=alls=12:allf=t"]
    subprocess.run(
        [*command, "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", path], check=True
    )


def ours(path: Path, frames: int) -> tuple[float, int, float, float]:
    begin, total, early = time.process_time(), 0, 0.0
    for number in range(frames):
        total += int(apply(VideoFrame(path, number)(), MUTATION, seed=1)[0, 0, 0])
        if number == frames // 10:
            early = peak_mb()
    return time.process_time() - begin, total, early, peak_mb()


def piped(path: Path) -> tuple[float, int]:
    command = [
        "ffmpeg",
        "-v",
        "error",
        "-threads",
        "1",
        "-i",
        str(path),
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    ]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin, total = time.process_time(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while data := process.stdout.read(WIDTH * HEIGHT * 3):
            frame = np.frombuffer(data, np.uint8).reshape(HEIGHT, WIDTH, 3)
            total += int(apply(frame, MUTATION, seed=1)[0, 0, 0])
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    theirs = spent.ru_utime + spent.ru_stime - children.ru_utime - children.ru_stime
    return time.process_time() - begin + theirs, total


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    if shutil.which("ffmpeg") is None:
        sys.exit("ffmpeg is not installed")
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.mp4"
        make(path, seconds)
        begin = time.process_time()
        frames = len(reader_of(path, 100.0).index)
        print(f"{frames} frames of {WIDTH}x{HEIGHT}, {path.stat().st_size / 1e6:.0f} MB")
        print(f"index: {time.process_time() - begin:.2f} s of CPU time")
        apply(np.zeros((8, 8, 3), np.uint8), MUTATION, seed=1)
        best = {"ours": np.inf, "ffmpeg": np.inf}
        for _ in range(2):
            spent, total, early, late = ours(path, frames)
            other, same = piped(path)
            assert total == same, "the pixels differ"
            best = {"ours": min(best["ours"], spent), "ffmpeg": min(best["ffmpeg"], other)}
            print(f"memory: peak {early:.0f} MB after a tenth, {late:.0f} MB at the end")
        for name, spent in best.items():
            print(f"{name:7} {frames / spent:6.1f} frames per second of CPU time")
        print(f"ratio   {best['ffmpeg'] / best['ours']:.2f}")


if __name__ == "__main__":
    main()
