"""Files of a data set, read strictly: whole files, JSON, and text whose lines are numbers.

Every path that data names is kept inside its folder, and every error names the file and, in text, the line.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from adverse import content
from adverse.errors import DataError
from adverse.plain_files import read_plain
from adverse.strict_json import parse_json

PICTURES = ("image", "depth", "label")
PIXELS = ", what the pixel limit needs uncompressed"
TEXT_LIMIT_BYTES = 2**28
"""Far above any list or label file; more than that is something else."""
JSON_LIMIT_BYTES = 2**26
"""The largest JSON file that is held in memory as a tree, which takes 10 to 70 times its bytes."""


def read_bytes(path: Path, *, what: str, limit: int | None = None) -> bytes:
    """Read a whole file of at most `limit` bytes (None: any size), or say in one line why not.

    Where the work was planned, the very bytes that are returned are compared with the plan.
    """
    plan = content.reading()
    try:
        data = _read(path, what, limit)
    except DataError:
        if plan is not None:
            plan.failed(path, limit)
        raise
    if plan is not None:
        plan.took(path, data)
    return data


def _read(path: Path, what: str, limit: int | None) -> bytes:
    where = f"{what} file {path}"
    try:
        problem = absent(path, what)
        if problem is not None:
            raise problem
        size = path.stat().st_size
        if limit is not None and size > limit:
            raise DataError(
                f"the {what} file is too large",
                where=where,
                got=f"{size} bytes",
                wanted=f"at most {limit} bytes" + (PIXELS if what in PICTURES else ""),
                fix="Raise max_megapixels in the study's data section, or take the file out."
                if what in PICTURES
                else "Find out what is in it, or take the file out.",
            )
        return read_plain(path)
    except OSError as error:
        raise DataError(
            f"the {what} file cannot be read",
            where=where,
            got=error.strerror or str(error),
            fix="Check the file's permissions and the disk, or take its entry out of the data set.",
        ) from error


def read_text(path: Path, *, what: str) -> str:
    """Read a whole text file in UTF-8."""
    data = read_bytes(path, what=what, limit=TEXT_LIMIT_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"the {what} file is not text",
            where=f"{what} file {path}",
            got=f"byte {error.start} is not UTF-8",
            wanted="UTF-8 text",
            fix="Write the file again as UTF-8.",
        ) from error


def absent(path: Path, what: str) -> DataError | None:
    """Return the error that reading would raise because there is no such file, or None."""
    if path.is_file():
        return None
    return DataError(
        f"the {what} file {'is not a plain file' if path.exists() else 'is missing'}",
        where=f"{what} file {path}",
        wanted="a readable file",
        fix="Put the file there, or take its entry out of the data set.",
    )


def inside(root: Path, relative: str, *, where: str) -> Path:
    """Return `root/relative`, refusing whatever would lead out of root: `..`, absolute paths, symlinks.

    The file need not exist. `where` names the entry that holds the path, for the error.
    """
    if not relative or "\0" in relative:
        raise _leaves("the path is empty or holds a NUL character", relative, where)
    path = Path(relative)
    if path.is_absolute() or relative.startswith("~"):
        raise _leaves("the path is absolute", relative, where)
    if ".." in path.parts:
        raise _leaves("the path leaves its folder", relative, where)
    full = root / path
    try:
        relative.encode()
        target = full.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        target = full.resolve()
    except (OSError, RuntimeError, UnicodeEncodeError) as error:  # too long, symlink loop, not UTF-8
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            "the path cannot be used",
            where=where,
            got=f"{_short(relative)} ({reason})",
            wanted="a path the file system accepts",
            fix="Rename the file and its entry.",
        ) from error
    if not target.is_relative_to(_resolved(root)):
        raise _leaves("the path leaves its folder through a symlink", relative, where)
    return full


@functools.lru_cache(maxsize=64)
def _resolved(root: Path) -> Path:
    """Return a folder without symlinks; looked up once, as thousands of its files are asked for."""
    return root.resolve()


def _leaves(what: str, relative: str, where: str) -> DataError:
    return DataError(
        what,
        where=where,
        got=_short(relative),
        wanted="a path below the data set's folder, such as 'row3/000123.png'",
        fix="Write the path relative to the data set's folder and keep the files in it.",
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)")


T = TypeVar("T")


def read_json(path: Path, what: str) -> Any:
    """Read a JSON file, `what` saying in errors what kind of file it is; large ones have `json_arrays`."""
    return parse_json(read_bytes(path, what=what, limit=JSON_LIMIT_BYTES), path, what)


def read_model(path: Path, what: str, model: type[T]) -> T:
    """Read a JSON file into a pydantic model; errors name the field: `annotations[17].bbox`."""
    return validated(read_json(path, what), path, what, model)


def validated(
    data: Any, path: Path, what: str, model: type[T], *, array: str | None = None, first: int = 0
) -> T:
    """Return the data of a JSON file as a model; it may be the elements of an array, from number `first`."""
    try:
        return TypeAdapter(model).validate_python(data, strict=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        missing = wrong["type"] == "missing"
        loc = wrong["loc"]
        if array is not None:
            loc = (array, first + int(loc[0]), *loc[1:])
        raise DataError(
            f"the {what} file has a field that is {'missing' if missing else 'wrong'}",
            where=f"{path}, field {_field(loc)}",
            got="nothing" if missing else _shown(wrong["input"]),
            wanted="a value" if missing else wrong["msg"],
            fix=f"{'Add' if missing else 'Correct'} the field ({error.error_count()} problem(s) like it).",
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


class Line(NamedTuple):
    """A line that is not blank: where it stands, and its words."""

    where: str
    words: list[str]


def lines_of(path: Path, what: str) -> Iterator[Line]:
    """Yield the lines of a text file that are not blank."""
    for number, line in enumerate(read_text(path, what=what).splitlines(), start=1):
        if line.strip():
            yield Line(f"{path}, line {number}", line.split())


def numbers(words: list[str], count: int | None, where: str, what: str) -> list[float]:
    """Return words as finite numbers, `count` of them."""
    if count is not None and len(words) != count:
        raise wrong_line(where, what, f"{len(words)} numbers", f"{count} numbers")
    values = []
    for word in words:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise wrong_line(where, what, repr(word[:40]), "finite numbers")
        values.append(value)
    return values


def wrong_line(where: str, what: str, got: str, wanted: str) -> DataError:
    """Return the error for a line that says what it must not."""
    return DataError(
        f"the {what} file is wrong",
        where=where,
        got=got,
        wanted=wanted,
        fix="Correct the line; docs/data-formats.md describes it.",
    )
