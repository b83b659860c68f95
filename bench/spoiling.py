"""Ways to spoil a file: any bytes, and for the kinds that have a structure, the values inside it."""

from __future__ import annotations

import io
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image as Pil

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, -(2**63), 2**64, 10**400, 0.5, -0.0, 1e-5, 1e308, -1e308),
    *(
        float("nan"),
        float("inf"),
        "",
        " ",
        "nan",
        "no",
        "=1+1",
        "0x10",
        "person ",
        "Person",
        "../../etc/passwd",
    ),
    *("/etc/passwd", "C:\\x", "a\x00b", "\ud800", "\u202e", "<script>", "x" * 5000, "☃", "{mutation}", "%s"),
    *([], {}, [[]], [None], {"": None}, [1, 2, 3, 4], [1e400] * 4, list(range(3000)), {"a": {"b": {"c": 1}}}),
)
"""Values that a field seldom holds and sooner or later will."""
TOKENS = (
    *("", "0", "-1", "1e400", "nan", "inf", "-inf", "1e-5", "99999999999999999999", "x", "ä", "\x00", "\t"),
    *("\u2028", "../..", "/etc/passwd", "DontCare", "<x>", "&boom;", "&#0;", "]]>", ",", '"', "1,5", "0x1f"),
)
TEXT = (".txt", ".csv", ".xml", ".names", ".data", "")
LOOKS_LIKE = (
    b"<!doctype html><p>404",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff\xe0",
    b"\x93NUMPY\x01\x00",
    b"PK\3\4",
)
KINDS = (
    *(("PNG", mode) for mode in ("L", "LA", "RGBA", "P", "1", "I;16")),
    *(("JPEG", "CMYK"), ("JPEG", "L"), ("GIF", "P"), ("BMP", "RGB"), ("TIFF", "RGB"), ("TIFF", "F")),
    *(("WEBP", "RGB"), ("ICO", "RGB")),
)
"""Formats and modes of images."""
Spoil = Callable[[Path, random.Random], None]


def spoil(path: Path, chance: random.Random) -> str:
    """Spoil a file in some way; return which."""
    kinds: list[Spoil] = [flip, cut, drop, repeat, insert, blank, replace_whole, rename_away]
    own = _own(path)
    way = chance.choice(own if own and chance.random() < 0.7 else kinds)
    try:
        way(path, chance)
    except (ValueError, yaml.YAMLError):  # two names of one file: the other one has spoilt it before
        way = flip
        way(path, chance)
    return way.__name__


def _own(path: Path) -> list[Spoil]:
    if path.suffix == ".json":
        return [json_value, json_value, json_value, text_token, deep]
    if path.suffix in (".yaml", ".yml"):
        return [yaml_value, yaml_value, yaml_value, text_token, deep]
    if path.suffix == ".npy":
        return [npy_values, npy_kind, npy_header]
    if path.suffix in (".png", ".jpg", ".jpeg"):
        return [picture_kind, picture_kind, picture_size]
    return [text_token, text_line] if path.suffix in TEXT else []


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 8, 64)) if data else 0):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def cut(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data) + 1)])


def drop(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    start = chance.randrange(len(data) + 1)
    path.write_bytes(data[:start] + data[start + chance.choice((1, 4, 100)) :])


def repeat(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    start = chance.randrange(len(data) + 1)
    part = data[start : start + chance.choice((1, 16, 4096))]
    path.write_bytes(data[:start] + part * chance.choice((2, 3, 200)) + data[start:])


def insert(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    start = chance.randrange(len(data) + 1)
    path.write_bytes(data[:start] + chance.randbytes(chance.choice((1, 4, 64))) + data[start:])


def blank(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data) + 1)
    stop = min(len(data), start + chance.choice((8, 512, 10**6)))
    data[start:stop] = bytes([chance.choice((0, 255))]) * (stop - start)
    path.write_bytes(data)


def replace_whole(path: Path, chance: random.Random) -> None:
    begin = chance.choice((b"", *LOOKS_LIKE))
    path.write_bytes(begin + chance.randbytes(chance.choice((0, 1, 300))))


def rename_away(path: Path, chance: random.Random) -> None:
    """The file is gone, or something that is no file stands in its place."""
    path.unlink()
    kind = chance.randrange(5)
    if kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(path.name)
    elif kind == 3:
        path.symlink_to("/etc/hostname")
    elif kind == 4:
        os.mkfifo(path)


def json_value(path: Path, chance: random.Random) -> None:
    path.write_text(json.dumps(_odd_somewhere(json.loads(path.read_text()), chance)))


def yaml_value(path: Path, chance: random.Random) -> None:
    value = _odd_somewhere(yaml.safe_load(path.read_text()), chance)
    path.write_text(json.dumps(value) if chance.random() < 0.2 else yaml.safe_dump(value, sort_keys=False))


def deep(path: Path, chance: random.Random) -> None:
    depth = chance.choice((50, 2000, 100_000))
    opening, closing = chance.choice((("[", "]"), ('{"a":', "}")))
    path.write_text(opening * depth + "1" + closing * (depth if chance.random() < 0.7 else 0))


def _odd_somewhere(value: Any, chance: random.Random) -> Any:
    """Change one node of a tree: another value, gone, twice, or by another name."""
    nodes: list[tuple[Any, Any]] = []

    def walk(parent: Any) -> None:
        for key in list(parent) if isinstance(parent, dict) else range(len(parent)):
            nodes.append((parent, key))
            if isinstance(parent[key], dict | list):
                walk(parent[key])

    if not isinstance(value, dict | list) or not value:
        return chance.choice(ODD)
    walk(value)
    for _ in range(chance.choice((1, 1, 1, 3))):
        parent, key = chance.choice(nodes)
        way = chance.randrange(6)
        try:
            if way <= 2:
                parent[key] = chance.choice(ODD)
            elif way == 3:
                del parent[key]
            elif isinstance(parent, dict):
                parent[f"{key}{chance.choice(('s', '_', ' ', 'é'))}"] = parent.pop(key)
            else:
                parent.append(parent[key])
        except (KeyError, IndexError):  # its place was changed already
            continue
    return value


def text_token(path: Path, chance: random.Random) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    tokens = list(re.finditer(r"[\w.+-]+", text)) or list(re.finditer(r"", text))
    for token in sorted(
        chance.sample(tokens, min(len(tokens), chance.choice((1, 1, 5)))), key=lambda t: -t.start()
    ):
        text = text[: token.start()] + chance.choice(TOKENS) + text[token.end() :]
    path.write_bytes(text.encode("utf-8", "replace"))


def text_line(path: Path, chance: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    at = chance.randrange(len(lines))
    way = chance.randrange(4)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines.insert(at, lines[at])
    elif way == 2:
        chance.shuffle(lines)
    else:
        lines[at] = lines[at].strip() + b" " + lines[at]
    path.write_bytes(b"".join(lines))


def npy_values(path: Path, chance: random.Random) -> None:
    array = np.load(path).copy()
    value = chance.choice((np.nan, np.inf, -np.inf, 0, -1, 1e-5, 1e-30, 1e30, 10_000))
    rows = slice(None) if chance.random() < 0.3 else slice(0, chance.randrange(1, len(array) + 1))
    array[rows, : chance.choice((1, 10, 10_000))] = value
    np.save(path, array)


def npy_kind(path: Path, chance: random.Random) -> None:
    array = np.load(path)
    changes: list[Callable[[], np.ndarray[Any, Any]]] = [
        lambda: array.astype(chance.choice(("int8", "uint16", "float64", "complex64", "bool", "U4"))),
        lambda: array[..., None],
        lambda: array[: chance.randrange(len(array) + 1)],
        lambda: np.zeros(()),
        lambda: np.asfortranarray(array),
        lambda: array.astype(">f4"),
        lambda: np.array([{}], dtype=object),
    ]
    with path.open("wb") as file:
        np.save(file, chance.choice(changes)(), allow_pickle=True)


def npy_header(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    old = re.search(rb"\((\d+), (\d+)\)", data)
    new = chance.choice((b"(-1, 64)", b"(9, 9)", b"(99999, 99999)", b"(1e3, 2)", b"((),)", b"(0, 0)"))
    path.write_bytes(
        data if old is None else data[: old.start()] + new.ljust(len(old[0])) + data[old.end() :]
    )


def picture_kind(path: Path, chance: random.Random) -> None:
    image = Pil.open(path).convert("RGB")
    image.load()
    kind, mode = chance.choice(KINDS)
    exif = Pil.Exif()
    if chance.random() < 0.3:
        exif[0x0112] = chance.randrange(10)
    sink = io.BytesIO()
    made = image.convert("L").convert("I").convert(mode) if mode == "I;16" else image.convert(mode)
    more = (
        {"save_all": True, "append_images": [made]}
        if kind in ("GIF", "TIFF") and chance.random() < 0.5
        else {}
    )
    made.save(sink, kind, **({"exif": exif} if kind in ("JPEG", "PNG", "WEBP", "TIFF") else {}), **more)
    path.write_bytes(sink.getvalue())


def picture_size(path: Path, chance: random.Random) -> None:
    size = chance.choice(
        ((1, 1), (1, 48), (64, 1), (2, 2), (63, 48), (65, 49), (128, 96), (48, 64), (20_000, 9_000))
    )
    if size[0] > 10_000:
        made = Pil.new("1", size)
        made.save(path, "PNG")
    else:
        Pil.open(path).convert("RGB").resize(size).save(path, "JPEG" if path.suffix == ".jpg" else "PNG")
