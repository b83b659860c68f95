"""JSON as the standard has it: no duplicate keys, no NaN; errors name file, line and column."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from adverse.data.files import read_bytes
from adverse.errors import DataError

T = TypeVar("T")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|-?Infinity|NaN')


def read_json(path: Path, what: str) -> Any:
    """Read a JSON file, `what` saying in errors what kind of file it is."""
    data = read_bytes(path, what=what)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _broken(path, what, f"byte {error.start} is not UTF-8", "UTF-8 text") from error
    finished = _Objects()
    try:
        return json.loads(text, object_pairs_hook=finished.add, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        got = f"{error.msg} at line {error.lineno} column {error.colno}"
        raise _broken(path, what, got, "valid JSON") from error
    except _DuplicateKeyError as error:
        got = (
            f"key {error.key!r} twice in the object at {_position(text, _object_start(text, finished.count))}"
        )
        raise _broken(path, what, got, "each key once") from error
    except _ConstantError as error:
        got = f"{error.name} at {_position(text, _constant_start(text))}"
        raise _broken(path, what, got, "finite numbers, or null where a value is unknown") from error
    except RecursionError as error:
        raise _broken(path, what, "objects nested too deeply", "plain data") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise _broken(path, what, " ".join(str(error).split()), "numbers of ordinary length") from error


def read_model(path: Path, what: str, model: type[T]) -> T:
    """Read a JSON file into a pydantic model; errors name the field: `annotations[17].bbox`."""
    data = read_json(path, what)
    try:
        return TypeAdapter(model).validate_python(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        missing = first["type"] == "missing"
        raise DataError(
            f"the {what} file has a field that is {'missing' if missing else 'wrong'}",
            where=f"{path}, field {_field(first['loc'])}",
            got="nothing" if missing else _shown(first["input"]),
            wanted="a value" if missing else first["msg"],
            fix=f"{'Add' if missing else 'Correct'} the field ({error.error_count()} problem(s) in all).",
        ) from error


class _DuplicateKeyError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class _ConstantError(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Objects:
    """Counts the objects that were closed, so that the one with a duplicate key can be found again."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise _DuplicateKeyError(key)
                seen.add(key)
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


def _constant_start(text: str) -> int:
    return next((t.start() for t in _TOKEN.finditer(text) if t[0][0] in "-IN"), 0)


def _position(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"


def _field(loc: tuple[int | str, ...]) -> str:
    """Write a pydantic location as a path.

    >>> _field(("annotations", 17, "bbox"))
    'annotations[17].bbox'
    """
    return (
        "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".") or "(top)"
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _broken(path: Path, what: str, got: str, wanted: str) -> DataError:
    return DataError(
        f"the {what} file is not valid JSON",
        where=str(path),
        got=got,
        wanted=wanted,
        fix="Correct the file at that place, or export it again.",
    )
