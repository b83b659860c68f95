"""MP4 and MOV files as cameras and phones write them, box by box, around frames that FFmpeg encoded.

Layouts: ISO/IEC 14496-12 and 14496-15, and Apple's QuickTime File Format Specification.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from pathlib import Path

from films import av

HZ, MOVIE_HZ, STEP = 25_000, 600, 1000
"""Units of a second of the track and of the movie, and the length of a frame."""
UPRIGHT = (1, 0, 0, 1)


def box(kind: bytes, *parts: bytes, wide: bool = False) -> bytes:
    """Return a box; with `wide` its size has 64 bits."""
    body = b"".join(parts)
    if wide:
        return struct.pack(">I4sQ", 1, kind, 16 + len(body)) + body
    return struct.pack(">I4s", 8 + len(body), kind) + body


def full(kind: bytes, *parts: bytes, version: int = 0, flags: int = 0) -> bytes:
    """Return a box with a version and flags."""
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def words(*numbers: int) -> bytes:
    """Return numbers of 32 bits."""
    return b"".join(struct.pack(">I", number & 0xFFFFFFFF) for number in numbers)


@dataclass(frozen=True)
class Coded:
    """A track's frames: bytes, time of showing less time of decoding in frames, and which are keyframes."""

    samples: list[bytes]
    shifts: list[int]
    keys: list[bool]
    width: int
    height: int
    entry: bytes
    """The codec's own boxes in its description."""


def coded(path: Path, rate: int = 25) -> Coded:
    """Take the frames of a video."""
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        packets = [packet for packet in file.demux(stream) if packet.size]
        step = int(1 / (rate * stream.time_base))
        first = packets[0].dts
        shifts = [(packet.pts - first) // step - number for number, packet in enumerate(packets)]
        extra, name = bytes(stream.codec_context.extradata or b""), stream.codec_context.name
        kind = {"h264": b"avcC", "hevc": b"hvcC"}.get(name)
        return Coded(
            [bytes(packet) for packet in packets],
            shifts,
            [packet.is_keyframe for packet in packets],
            stream.width,
            stream.height,
            b"" if kind is None else box(kind, extra),
        )


@dataclass(frozen=True)
class Layout:
    """What a camera chooses; the defaults are those of FFmpeg."""

    brand: bytes = b"isom"
    version: int = 0
    """Of mvhd, tkhd, mdhd and elst."""
    tag: bytes = b"avc1"
    before: tuple[bytes, ...] = ()
    """Boxes after ftyp."""
    after: tuple[bytes, ...] = ()
    """Boxes or bytes at the end of the file."""
    in_movie: tuple[bytes, ...] = ()
    in_track: tuple[bytes, ...] = ()
    header_first: bool = False
    wide_data: bool = False
    open_data: bool = False
    """mdat of size 0: to the end of the file."""
    long_offsets: bool = False
    per_chunk: tuple[int, ...] = (1,)
    """Frames in a chunk, by turns."""
    long_runs: bool = True
    """Runs of equal steps in stts and ctts, in place of an entry for each frame."""
    signed: bool = False
    """ctts of version 1, in place of 0."""
    early: bool = False
    """Shifts that are negative where they must be, so that the first frame is shown at 0."""
    edits: tuple[tuple[int, int], ...] | None = None
    """Length in units of the movie and begin in those of the track."""
    track_length: int | None = None
    uniform: bool = False
    """One size for all frames in stsz."""
    matrix: tuple[int, int, int, int] = UPRIGHT
    others: tuple[bytes, ...] = ()
    """Handlers of tracks before the pictures: soun, meta, tmcd."""
    others_after: tuple[bytes, ...] = ()
    quicktime: bool = False
    """Handlers have names as in Pascal, data a handler of their own."""
    steps: tuple[int, ...] = field(default=(STEP,))
    """Length of the frames, by turns."""

    def lengths(self, count: int) -> list[int]:
        """Return the length of each of so many frames."""
        return [self.steps[at % len(self.steps)] for at in range(count)]


def write(path: Path, frames: Coded, layout: Layout) -> Path:
    """Write a file with its frames in one mdat."""
    tracks = [*layout.others, b"vide", *layout.others_after]
    for_others = {kind: bytes(64) for kind in tracks if kind != b"vide"}
    head = box(b"ftyp", layout.brand, words(0x200), layout.brand, b"mp41") + b"".join(layout.before)
    body = b"".join(frames.samples)
    data = b"".join(for_others.values()) + body

    def movie(data_at: int) -> bytes:
        parts, at = [_mvhd(layout, len(frames.samples), len(tracks) + 1)], data_at
        video_at = data_at + 64 * len(for_others)
        for number, kind in enumerate(tracks, start=1):
            if kind == b"vide":
                parts.append(_video_track(frames, layout, number, video_at))
            else:
                parts.append(_other_track(layout, kind, number, at, len(frames.samples)))
                at += 64
        return box(b"moov", *parts, *layout.in_movie)

    if layout.open_data:
        data_box = struct.pack(">I4s", 0, b"mdat") + data
    else:
        data_box = box(b"mdat", data, wide=layout.wide_data)
    inside = len(data_box) - len(data)
    if layout.header_first:
        header = movie(0)
        out = head + movie(len(head) + len(header) + inside) + data_box
    else:
        out = head + data_box + movie(len(head) + inside)
    path.write_bytes(out + b"".join(layout.after))
    return path


def write_fragments(path: Path, frames: Coded, layout: Layout, *, extra: tuple[bytes, ...] = ()) -> Path:
    """Write a file in fragments of a group each, with `extra` boxes after each; sound has a part in each."""
    sound = b"soun" in layout.others
    head = box(b"ftyp", layout.brand, words(0x200), layout.brand, b"iso5") + b"".join(layout.before)
    none = Coded([], [], [], frames.width, frames.height, frames.entry)
    tracks = [_video_track(none, layout, 1, 0)] + ([_other_track(layout, b"soun", 2, 0, 0)] if sound else [])
    defaults = [full(b"trex", words(number, 1, 0, 0, 0)) for number in range(1, len(tracks) + 1)]
    movie = box(b"moov", _mvhd(layout, 0, 3), *tracks, box(b"mvex", *defaults), *layout.in_movie)
    out = [head, movie]
    begins = [at for at, key in enumerate(frames.keys) if key]
    for number, (begin, end) in enumerate(zip(begins, [*begins[1:], len(frames.samples)], strict=True), 1):
        part = frames.samples[begin:end]

        def moof(data_at: int, number: int = number, begin: int = begin, end: int = end) -> bytes:
            runs = b"".join(
                words(STEP, len(frames.samples[at]), 0x2000000 if frames.keys[at] else 0x1010000)
                + words(frames.shifts[at] * STEP)
                for at in range(begin, end)
            )
            pictures = box(
                b"traf",
                full(b"tfhd", words(1), flags=0x20000),
                full(b"tfdt", struct.pack(">Q", begin * STEP), version=1),
                full(b"trun", words(end - begin, data_at), runs, version=1, flags=0xF01),
            )
            heard = box(
                b"traf",
                full(b"tfhd", words(2, STEP, 64), flags=0x20018),
                full(b"tfdt", words(begin * STEP)),
                full(b"trun", words(1, data_at + len(b"".join(frames.samples[begin:end]))), flags=0x1),
            )
            return box(b"moof", full(b"mfhd", words(number)), pictures, *([heard] if sound else []))

        out += [moof(len(moof(0)) + 8), box(b"mdat", *part, bytes(64) if sound else b""), *extra]
    path.write_bytes(b"".join(out) + b"".join(layout.after))
    return path


def _long(layout: Layout, *numbers: int) -> bytes:
    """Return times and lengths, of 64 bits in version 1."""
    return b"".join(struct.pack(">Q" if layout.version else ">I", number) for number in numbers)


def _mvhd(layout: Layout, frames: int, following: int) -> bytes:
    length = _movie_length(layout, frames)
    return full(
        b"mvhd",
        _long(layout, 0, 0) + words(MOVIE_HZ) + _long(layout, length),
        words(0x10000) + struct.pack(">HHII", 0x100, 0, 0, 0),
        words(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000),
        bytes(24) + words(following),
        version=layout.version,
    )


def _movie_length(layout: Layout, frames: int) -> int:
    return round(sum(layout.lengths(frames)) * MOVIE_HZ / HZ)


def _tkhd(layout: Layout, number: int, frames: int, width: int, height: int, *, turned: bool) -> bytes:
    length = _movie_length(layout, frames) if layout.track_length is None else layout.track_length
    a, b, c, d = layout.matrix if turned else UPRIGHT
    x, y = (width if a + c < 0 else 0), (height if b + d < 0 else 0)
    one = 0x10000
    return full(
        b"tkhd",
        _long(layout, 0, 0) + words(number, 0) + _long(layout, length),
        bytes(8) + struct.pack(">HHHH", 0, 0, 0, 0),
        words(a * one, b * one, 0, c * one, d * one, 0, x * one, y * one, 0x40000000),
        words(width * one, height * one),
        version=layout.version,
        flags=0xF,
    )


def _media(layout: Layout, kind: bytes, hz: int, length: int, head: bytes, table: bytes) -> bytes:
    name = b"\x10Core Media Video" if layout.quicktime else b"VideoHandler\0"
    handlers = [full(b"hdlr", b"mhlr" if layout.quicktime else bytes(4), kind, bytes(12), name)]
    if layout.quicktime:
        inner = [full(b"hdlr", b"dhlr", b"url ", b"appl", bytes(8), b"\x17Core Media Data Handler")]
    else:
        inner = []
    refer = box(b"dinf", full(b"dref", words(1), full(b"url ", flags=1)))
    timing = _long(layout, 0, 0) + words(hz) + _long(layout, length) + struct.pack(">HH", 0x55C4, 0)
    return box(
        b"mdia",
        full(b"mdhd", timing, version=layout.version),
        *handlers,
        box(b"minf", head, *inner, refer, table),
    )


def _video_track(frames: Coded, layout: Layout, number: int, at: int) -> bytes:
    count = len(frames.samples)
    steps = layout.lengths(count)
    times = _runs(steps, together=layout.long_runs)
    description = full(
        b"stsd",
        words(1),
        box(
            layout.tag,
            bytes(6) + struct.pack(">H", 1) + bytes(16),
            struct.pack(">HHIIIH", frames.width, frames.height, 0x480000, 0x480000, 0, 1),
            bytes(32) + struct.pack(">Hh", 24, -1),
            frames.entry,
        ),
    )
    tables = [description, full(b"stts", words(len(times)), *[words(*run) for run in times])]
    if any(frames.shifts):
        shifts = _runs(_shifts(frames, steps, early=layout.early), together=layout.long_runs)
        version = 1 if layout.signed else 0
        tables.append(full(b"ctts", words(len(shifts)), *[words(*run) for run in shifts], version=version))
    keys = [at + 1 for at, key in enumerate(frames.keys) if key]
    if len(keys) < count:
        tables.append(full(b"stss", words(len(keys), *keys)))
    sizes = [len(sample) for sample in frames.samples]
    chunks = _chunks(count, layout.per_chunk)
    runs, first = [], 1
    for held, group in groupby(chunks):
        runs.append((first, held, 1))
        first += len(list(group))
    tables.append(full(b"stsc", words(len(runs)), *[words(*run) for run in runs]))
    if layout.uniform:
        tables.append(full(b"stsz", words(sizes[0], count)))
    else:
        tables.append(full(b"stsz", words(0, count, *sizes)))
    places = [0, *accumulate(sizes)]
    starts = [at + places[sample] for sample in [0, *accumulate(chunks)][:-1]]
    if layout.long_offsets:
        tables.append(full(b"co64", words(len(starts)), *[struct.pack(">Q", start) for start in starts]))
    else:
        tables.append(full(b"stco", words(len(starts), *starts)))
    edits = []
    if layout.edits is not None:
        form = ">QqI" if layout.version else ">IiI"
        listed = [struct.pack(form, *edit, 0x10000) for edit in layout.edits]
        edits = [box(b"edts", full(b"elst", words(len(listed)), *listed, version=layout.version))]
    head = full(b"vmhd", bytes(8), flags=1)
    return box(
        b"trak",
        _tkhd(layout, number, count, frames.width, frames.height, turned=True),
        *edits,
        *layout.in_track,
        _media(layout, b"vide", HZ, sum(steps), head, box(b"stbl", *tables)),
    )


def shown_at(frames: Coded, steps: list[int]) -> list[int]:
    """Return when each frame is shown from the first on, in the order of decoding."""
    order = sorted(range(len(steps)), key=lambda at: at + frames.shifts[at])
    begin = [0, *accumulate(steps)]
    times = [0] * len(steps)
    for place, at in enumerate(order):
        times[at] = begin[place]
    return times


def _shifts(frames: Coded, steps: list[int], *, early: bool) -> list[int]:
    begin, times = [0, *accumulate(steps)], shown_at(frames, steps)
    moved = [time - decoded for time, decoded in zip(times, begin, strict=False)]
    return moved if early else [shift - min(moved) for shift in moved]


def _chunks(count: int, turns: tuple[int, ...]) -> list[int]:
    """Return how many frames each chunk holds."""
    held: list[int] = []
    while sum(held) < count:
        held.append(min(turns[len(held) % len(turns)], count - sum(held)))
    return held


def _runs(values: list[int], *, together: bool) -> list[tuple[int, int]]:
    if not together:
        return [(1, value) for value in values]
    return [(len(list(group)), value) for value, group in groupby(values)]


def _other_track(layout: Layout, kind: bytes, number: int, at: int, frames: int) -> bytes:
    """Return a track of one sample of 64 bytes, or of none: sound, timed metadata or a time code."""
    count = 1 if frames else 0
    entries = {
        b"soun": box(b"sowt", bytes(6) + struct.pack(">HHHIHHHHI", 1, 0, 0, 0, 2, 16, 0, 0, 8000 << 16)),
        b"meta": box(b"mebx", bytes(6) + struct.pack(">H", 1), box(b"keys", words(0))),
        b"tmcd": box(b"tmcd", bytes(6) + struct.pack(">HIIIIBB", 1, 0, 0, HZ, STEP, 25, 0)),
    }
    head = full(b"smhd", words(0)) if kind == b"soun" else box(b"gmhd", full(b"gmin", bytes(12)))
    table = box(
        b"stbl",
        full(b"stsd", words(1), entries[kind]),
        full(b"stts", words(count), *([words(1, STEP)] if count else [])),
        full(b"stsc", words(count), *([words(1, 1, 1)] if count else [])),
        full(b"stsz", words(64 if count else 0, count)),
        full(b"stco", words(count, *([at] if count else []))),
    )
    header = _tkhd(layout, number, frames, 0, 0, turned=False)
    return box(b"trak", header, _media(layout, kind, HZ, STEP * count, head, table))
