"""Read JSON files strictly: what most readers let pass in silence is an error here, with its place."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from adverse.errors import DataError


def read_json(path: Path, *, allow_nan: bool = False) -> Any:
    """Return the content of a JSON file, or raise DataError that names the file.

    Refused: broken text (with line and column), a key given twice in one object, text that is not UTF-8,
    and, unless `allow_nan`, numbers that are not finite (NaN, Infinity, 1e999).
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        if allow_nan:
            return json.loads(text, object_pairs_hook=_once)
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
    except OSError as error:
        raise DataError(
            "a file cannot be read", where=str(path), got=error.strerror or str(error), fix="Check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise DataError("the file is not text", where=str(path), got=str(error), wanted="UTF-8") from error
    except json.JSONDecodeError as error:
        raise DataError(
            "the file is not JSON",
            where=f"{path}, line {error.lineno}, column {error.colno}",
            got=error.msg,
            fix="Was it written to its end? Write it anew.",
        ) from error
    except RecursionError as error:
        raise DataError("the file is nested too deeply to be meant", where=str(path)) from error
    except _RefusedError as refused:
        raise DataError(refused.what, where=str(path), got=refused.got, fix=refused.fix) from None


class _RefusedError(Exception):
    def __init__(self, what: str, got: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.got = got
        self.fix = fix


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RefusedError(
            "a key is given twice in one object", repr(twice), "Keep one of them; which counts is unclear."
        )
    return found


def _refuse(text: str) -> NoReturn:
    raise _RefusedError("a number is not finite", text, "Write a finite number, or null where none is known.")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        _refuse(text)
    return value
