"""Videos that cannot be used as they are, one of each kind, and what `adverse data check` says of them.

    python bench/bad_videos.py

The videos are made by the program ffmpeg. Prints one line for each: kind, exit code, and what was said.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from adverse.cli import main as adverse

SIZE, SECONDS = "320x240", 2
KEY = "76a6c65c5ea762046bd749a2e632ccbb"


def ffmpeg(out: Path, *options: str, source: str = "testsrc2", size: str = SIZE, rate: str = "25") -> Path:
    """Write a video of moving shapes."""
    made = f"{source}=size={size}:rate={rate}:duration={SECONDS}"
    command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", made, *options, str(out)]
    subprocess.run(command, check=True)
    return out


def empty(folder: Path) -> Path:
    path = folder / "empty.mp4"
    path.write_bytes(b"")
    return path


def truncated(folder: Path) -> Path:
    path = ffmpeg(folder / "truncated.mp4", "-c:v", "libx264")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def cut_off(folder: Path) -> Path:
    path = ffmpeg(folder / "cut-off.mkv", "-c:v", "libx264")
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    return path


def encrypted(folder: Path) -> Path:
    scheme = ("-encryption_scheme", "cenc-aes-ctr", "-encryption_key", KEY, "-encryption_kid", KEY)
    return ffmpeg(folder / "encrypted.mp4", "-c:v", "libx264", *scheme)


def audio_only(folder: Path) -> Path:
    path = folder / "audio.mp4"
    sound = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", f"sine=duration={SECONDS}", str(path)]
    subprocess.run(sound, check=True)
    return path


def no_rate(folder: Path) -> Path:
    """Write 0 frames a second into the header of the video stream."""
    path = ffmpeg(folder / "0fps.avi", "-c:v", "mjpeg")
    data = bytearray(path.read_bytes())
    at = data.find(b"strh")
    data[at + 32 : at + 36] = bytes(4)
    path.write_bytes(data)
    return path


def fast(folder: Path) -> Path:
    """Give each frame a millionth of a second."""
    frames = ("-frames:v", "40", "-c:v", "libx264", "-video_track_timescale", "1000000")
    return ffmpeg(folder / "million.mp4", *frames, rate="1000000")


def changing_size(folder: Path) -> Path:
    """Join two pieces of a stream that stands by itself, of different sizes."""
    path = folder / "sizes.mkv"
    pieces = [ffmpeg(folder / f"{size}.mjpeg", "-c:v", "mjpeg", size=size) for size in (SIZE, "160x120")]
    joined = folder / "joined.mjpeg"
    joined.write_bytes(b"".join(piece.read_bytes() for piece in pieces))
    copy = ["ffmpeg", "-v", "error", "-y", "-f", "mjpeg", "-i", str(joined), "-c", "copy", str(path)]
    subprocess.run(copy, check=True)
    return path


def deep(folder: Path) -> Path:
    return ffmpeg(folder / "16bit.mkv", "-c:v", "ffv1", "-pix_fmt", "rgb48le")


def hdr(folder: Path) -> Path:
    tagged = ("-color_primaries", "bt2020", "-color_trc", "smpte2084", "-colorspace", "bt2020nc")
    return ffmpeg(
        folder / "hdr.mp4",
        "-c:v",
        "libx265",
        "-x265-params",
        "log-level=none",
        "-pix_fmt",
        "yuv420p10le",
        *tagged,
    )


def text(folder: Path) -> Path:
    path = folder / "notes.mp4"
    path.write_text("These are notes, and no video.\n" * 20)
    return path


KINDS: dict[str, Callable[[Path], Path]] = {
    "empty": empty,
    "truncated MP4": truncated,
    "truncated MKV": cut_off,
    "encrypted": encrypted,
    "audio only": audio_only,
    "0 fps": no_rate,
    "10^6 fps": fast,
    "changing size": changing_size,
    "16 bits": deep,
    "HDR": hdr,
    "text called .mp4": text,
}


def said(path: Path) -> tuple[int, str]:
    """Return the exit code of `adverse data check --all`, and its error or its problems in one line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            adverse(["data", "check", str(path), "--all"])
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
    lines = [line.strip() for line in (err.getvalue() or out.getvalue()).splitlines() if line.strip()]
    wanted = lines if err.getvalue() else [line for line in lines if "frame" in line or "fault" in line]
    return code, "; ".join(" ".join(line.split()) for line in wanted).replace(f"{path.parent}/", "")


def main() -> None:
    """Make them and print the table."""
    if shutil.which("ffmpeg") is None:
        sys.exit("ffmpeg is not installed")
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in KINDS.items():
            code, words = said(make(Path(folder)))
            print(f"{kind:17} {code}  {words}", flush=True)


if __name__ == "__main__":
    main()
