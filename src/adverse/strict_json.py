"""JSON as the standard has it: no duplicate keys, no NaN; errors name file, line and column.

The limits and their messages are those of small and of large files (`json_arrays`) alike.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any, NoReturn

from adverse.errors import DataError

MAX_DEPTH = 500
"""Levels of objects and arrays."""
MAX_DIGITS = 4300
"""Digits of a number before its point; Python reads no more."""
TOO_DEEP = ("objects nested too deeply", f"at most {MAX_DEPTH} levels")
"""What was got and wanted."""
_SURROGATE = re.compile(r"\\\\|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(?P<lone>\\u[dD][89a-fA-F]\w\w)")
"""Escapes that only together are a character: a backslash, a pair, or half a pair alone."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NO_BRACKET = re.compile(r"[^\[\]{}]+")
_LONG_NUMBER = re.compile(rf'"(?:[^"\\]|\\.)*"|(?P<number>(?<![\d.eE+-])-?\d{{{MAX_DIGITS + 1},}})')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')


def parse_json(data: bytes, path: Path, what: str, *, allow_nan: bool = False) -> Any:
    """Read the content of a JSON file, `what` saying in errors what kind of file it is.

    With `allow_nan`, NaN and Infinity are let through. A number too large for a float (1e999) is proper
    JSON and becomes infinite either way.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise broken(path, what, f"byte {error.start} is not UTF-8", "UTF-8 text") from error
    half = next((match for match in _SURROGATE.finditer(text) if match["lone"]), None)
    if half is not None:
        got = f"half a character, {half['lone']}, at {_position(text, half.start())}"
        raise broken(path, what, got, "text that can be written down")
    long = next((match for match in _LONG_NUMBER.finditer(text) if match["number"]), None)
    if long is not None:
        raise broken(path, what, *too_long(_position(text, long.start("number"))))
    finished = _Objects()
    try:
        constant = None if allow_nan else _refuse
        value = json.loads(text, object_pairs_hook=finished.add, parse_constant=constant)
    except json.JSONDecodeError as error:
        got = f"{error.msg} at line {error.lineno} column {error.colno}"
        raise broken(path, what, got, "valid JSON") from error
    except DuplicateKeyError as error:
        got = (
            f"key {error.key!r} twice in the object at {_position(text, _object_start(text, finished.count))}"
        )
        raise broken(path, what, got, "each key once") from error
    except _ConstantError as error:
        got = f"{error.name} at {_position(text, _constant_start(text, error.name))}"
        raise broken(path, what, got, "finite numbers, or null where a value is unknown") from error
    except RecursionError as error:
        raise broken(path, what, *TOO_DEEP) from error
    if _depth(text) > MAX_DEPTH:
        raise broken(path, what, *TOO_DEEP)
    return value


def too_long(place: str) -> tuple[str, str]:
    """Return what was got and wanted where a number has too many digits."""
    return f"a number of more than {MAX_DIGITS} digits at {place}", "numbers of ordinary length"


def _depth(text: str) -> int:
    """Return how deeply a JSON text is nested."""
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    return max(itertools.accumulate(1 if c in "[{" else -1 for c in brackets), default=0)


class DuplicateKeyError(ValueError):
    """An object has a key twice, so that readers differ about what it says."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key {key!r} twice in an object")
        self.key = key


def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object from its pairs, as `object_pairs_hook` of `json.loads`."""
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKeyError(key)
            seen.add(key)
    return made


class _ConstantError(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Objects:
    """Counts the objects that were closed, so that the one with a duplicate key can be found again."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = each_key_once(pairs)
        self.count += 1
        return made


def _refuse(name: str) -> NoReturn:
    raise _ConstantError(name)


def _object_start(text: str, closed_before: int) -> int:
    """Return where the object begins that closes after `closed_before` others."""
    opened: list[int] = []
    closed = 0
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            opened.append(token.start())
        elif token[0] == "}":
            start = opened.pop()
            if closed == closed_before:
                return start
            closed += 1
    return 0


def _constant_start(text: str, name: str) -> int:
    """Return where a number that was refused stands, outside of any string."""
    token = re.compile(rf'"(?:[^"\\]|\\.)*"|{re.escape(name)}')
    return next((t.start() for t in token.finditer(text) if t[0] == name), 0)


def _position(text: str, at: int) -> str:
    place = f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"
    return f"{place} (byte {len(text[:at].encode())})"


def broken(path: Path, what: str, got: str, wanted: str) -> DataError:
    """Return the error about a file that is not JSON, or not JSON that can be trusted."""
    return DataError(
        f"the {what} file is not valid JSON",
        where=str(path),
        got=got,
        wanted=wanted,
        fix="Correct the file at that place, or export it again.",
    )
