"""Large JSON files in bounded memory: checked as a whole, then handed out a block of an array at a time.

A file is the bytes it has on disk plus one block of its elements; nobody builds a tree of it. Where a block
is what the caller expects it is decoded straight into objects with fields (msgspec); where it is not, or the
file is small, its elements come as plain values, so that errors can say what is wrong with which.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from adverse.strict_json import MAX_DEPTH, MAX_DIGITS, TOO_DEEP, broken, parse_json, too_long

SMALL_BYTES = 2**21
"""Up to here a file is parsed as a whole: loading the compiled scan would take longer."""
LIMIT_BYTES = 2**32
"""The largest file that is read, into memory as it is."""
TEXT_BYTES = 2**23
"""How much is checked to be UTF-8 at a time."""
_WORDS = tuple(np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null", b"NaN", b"Infinity"))
_BOM = codecs.BOM_UTF8
Entry = TypeVar("Entry")


class Block(NamedTuple, Generic[Entry]):
    """Some elements of an array, from number `first` on: as entries, or, where they do not fit, as values."""

    first: int
    entries: list[Entry] | None
    values: list[Any]


class JsonArrays:
    """The arrays of a JSON file: those of its outermost object by their keys, or itself under ``None``."""

    def __init__(self, data: bytes, path: Path, what: str, *, allow_nan: bool = False) -> None:
        self._data, self._path, self._what, self._nan = data, path, what, allow_nan
        self._whole: Any = None
        self._arrays: dict[str | None, list[tuple[int, int, int]]] = {}
        self._others: dict[str | None, tuple[int, int]] = {}
        if len(data) <= SMALL_BYTES:
            self._whole = parse_json(data, path, what, allow_nan=allow_nan)
        else:
            self._scan()

    def blocks(self, name: str | None, entry: msgspec.json.Decoder[list[Entry]]) -> Iterator[Block[Entry]]:
        """Yield the elements of an array; `entry` decodes a list of them."""
        if len(self._data) <= SMALL_BYTES:
            yield Block(0, None, self._whole if name is None else self._whole[name])
            return
        for first, start, stop in self._arrays[name]:
            text = b"[%b]" % self._data[start:stop].rstrip(b", \n\r\t")
            try:
                yield Block(first, entry.decode(text), [])
            except msgspec.MsgspecError:
                yield Block(first, None, parse_json(text, self._path, self._what, allow_nan=self._nan))

    def first(self, name: str | None) -> Any:
        """Return the first element of an array, or None where it has none."""
        anything: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[Any])
        block = next(self.blocks(name, anything), Block(0, None, []))
        elements = block.values if block.entries is None else block.entries
        return elements[0] if elements else None

    def outline(self) -> Any:
        """Return the file as it is, but with every array of its outermost level empty."""
        if len(self._data) <= SMALL_BYTES:
            if isinstance(self._whole, dict):
                return {key: [] if isinstance(value, list) else value for key, value in self._whole.items()}
            return [] if isinstance(self._whole, list) else self._whole
        if None in self._arrays:
            return []
        if None in self._others:
            return self._value(None)
        arrays: dict[Any, Any] = {name: [] for name in self._arrays}
        return arrays | {name: self._value(name) for name in self._others}

    def _value(self, name: str | None) -> Any:
        start, stop = self._others[name]
        return parse_json(self._data[start:stop], self._path, self._what, allow_nan=self._nan)

    def _scan(self) -> None:
        from adverse import json_scan  # noqa: PLC0415 - numba is slow to import, and small files need none

        skipped = len(_BOM) if self._data.startswith(_BOM) else 0
        self._check_text()
        view = np.frombuffer(self._data, np.uint8)[skipped:]
        keys = np.zeros((json_scan.MAX_KEYS, 5), np.int64)
        marks = np.zeros((len(view) // (2 * json_scan.BLOCK) + json_scan.MAX_KEYS, 3), np.int64)
        wrong, at, start, found, marked = json_scan.scan(
            view, _WORDS, self._nan, keys, marks, MAX_DEPTH, MAX_DIGITS
        )
        if wrong != json_scan.WELL:
            self._refuse(int(wrong), int(at) + skipped, int(start) + skipped)
        if not found:
            self._others[None] = (skipped, len(self._data))
        marks = marks[:marked]
        keys[:, :4] += skipped
        marks[:, 2] += skipped
        for row, (key, key_end, begin, end, count) in enumerate(keys[:found].tolist()):
            name = None if key < skipped else str(msgspec.json.decode(self._data[key:key_end]))
            if count >= 0:
                self._arrays[name] = _spans(marks[marks[:, 0] == row], end - 1)
            else:
                self._others[name] = (begin, end)

    def _check_text(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        view = memoryview(self._data)
        for start in range(0, len(view), TEXT_BYTES):
            pending = len(decoder.getstate()[0])
            last = start + TEXT_BYTES >= len(view)
            try:
                decoder.decode(view[start : start + TEXT_BYTES], final=last)
            except UnicodeDecodeError as error:
                at = start - pending + error.start
                raise broken(self._path, self._what, f"byte {at} is not UTF-8", "UTF-8 text") from error

    def _refuse(self, wrong: int, at: int, start: int) -> NoReturn:
        from adverse import json_scan as scan  # noqa: PLC0415 - as above

        place, character = self._place(at), repr(chr(self._data[at])) if at < len(self._data) else ""
        words = {
            scan.UNEXPECTED: (f"an unexpected {character} at {place}", "valid JSON"),
            scan.ENDS: (f"the end of the file, too early, at {place}", "valid JSON"),
            scan.DEEP: TOO_DEEP,
            scan.SURROGATE: (f"half a character at {place}", "text that can be written down"),
            scan.CONTROL: (f"a control character at {place}", "valid JSON"),
            scan.ESCAPE: (f"an unknown escape at {place}", "valid JSON"),
            scan.DIGITS: too_long(place),
            scan.EXTRA: (f"something after the end of the data at {place}", "one value"),
            scan.KEYS: (f"more than {scan.MAX_KEYS} keys at {place}", "the keys of COCO"),
        }
        if wrong == scan.DUPLICATE:
            key = self._data[at : self._data.index(b'"', at + 1) + 1].decode(errors="replace").strip('"')
            words[wrong] = (f"key {key!r} twice in the object at {self._place(start)}", "each key once")
        elif wrong == scan.CONSTANT:
            name = next(n for n in (b"NaN", b"Infinity", b"-Infinity") if self._data.startswith(n, at))
            wanted = "finite numbers, or null where a value is unknown"
            words[wrong] = (f"{name.decode()} at {place}", wanted)
        raise broken(self._path, self._what, *words[wrong])

    def _place(self, at: int) -> str:
        line = self._data.count(b"\n", 0, at) + 1
        column = at - self._data.rfind(b"\n", 0, at)
        return f"line {line} column {column} (byte {at})"


def _spans(marks: NDArray[np.int64], end: int) -> list[tuple[int, int, int]]:
    """Return the number of the first element of each block, and where its text begins and ends."""
    starts = marks[:, 2].tolist()
    return list(zip(marks[:, 1].tolist(), starts, [*starts[1:], end], strict=bool(starts)))
