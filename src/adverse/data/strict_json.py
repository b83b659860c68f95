"""The JSON files of a data set, read strictly into checked values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from adverse.data.files import read_bytes
from adverse.errors import DataError
from adverse.strict_json import parse_json

T = TypeVar("T")


def read_json(path: Path, what: str) -> Any:
    """Read a JSON file, `what` saying in errors what kind of file it is."""
    return parse_json(read_bytes(path, what=what), path, what)


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
