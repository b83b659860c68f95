"""Strict YAML: plain data only, no key twice, no alias bomb, and the line of every value.

PyYAML's safe loader builds no objects, but it lets the last of two equal keys win, expands aliases
without limit and reads `1e-4` as text. Here the node tree is walked by hand, which mends all three.

From the data of a YAML file to a checked value, with errors that point at the line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from adverse.errors import StudyError, suggestion
from adverse.plain_files import read_plain
from adverse.type_words import lower_first

MAX_BYTES = 4_000_000
MAX_VALUES = 100_000
"""Values in a file after aliases are expanded; far above any real one."""

MAX_DEPTH = 50
PLAIN: dict[type[yaml.Node], tuple[str, ...]] = {
    yaml.MappingNode: ("map",),
    yaml.SequenceNode: ("seq",),
    yaml.ScalarNode: ("null", "bool", "int", "float", "str"),
}
"""The tags of plain data; a date, a set or an object of Python is none."""

MEANT = re.compile(
    r"""[-+]?(0|[1-9][0-9]*|[0-9]+[eE][-+]?[0-9]+|(0|[1-9][0-9]*)?\.[0-9]*([eE][-+]?[0-9]+)?|\.inf|\.nan)""",
    re.IGNORECASE,
)
"""Numbers that mean what they look like; to YAML 1.1 `010` is 8, `1:30` is 90 and `1_000` is 1000."""
Where = tuple[str | int, ...]


@dataclass(frozen=True)
class YamlFile:
    """The data of a YAML file, and the line on which each value stands."""

    path: Path
    data: Any
    lines: dict[Where, int]

    def where(self, place: Where) -> str:
        """Say where a value stands, for an error: `study.yaml, line 7, suts[0].model`."""
        known = place
        while known and known not in self.lines:
            known = known[:-1]
        spot = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        line = self.lines.get(known)
        parts = [str(self.path), f"line {line}" if line else "", spot.lstrip(".")]
        return ", ".join(part for part in parts if part)


def read_yaml(path: Path, *, kind: str = "study", example: str = "README.md shows one") -> YamlFile:
    """Read a YAML file strictly, or raise StudyError naming the line; `kind` is what errors call it."""
    try:
        raw = read_plain(path, MAX_BYTES)
    except OSError as error:
        raise StudyError(
            f"the {kind} file cannot be read",
            where=str(path),
            got=error.strerror or str(error),
            fix=f"Give the path of a {kind} file; {example}.",
        ) from error
    if len(raw) > MAX_BYTES:
        raise StudyError(
            f"the {kind} file is too large",
            where=str(path),
            got=f"{path.stat().st_size} bytes",
            wanted=f"at most {MAX_BYTES} bytes",
            fix=f"Give the path of a {kind} file; {example}.",
        )
    try:
        tree = yaml.compose(raw.decode("utf-8-sig"), Loader=_Loader)
    except UnicodeDecodeError as error:
        raise StudyError(
            f"the {kind} file is not UTF-8 text",
            where=str(path),
            got=f"byte {error.start} is {raw[error.start]:#04x}",
            wanted="UTF-8 text",
            fix=f"Save the file as UTF-8, or give the path of a {kind} file.",
        ) from error
    except RecursionError:  # PyYAML goes down one call for each level
        raise StudyError(
            f"the {kind} is nested too deeply",
            where=str(path),
            got=f"more than {MAX_DEPTH} levels",
            fix="Write plain values: text, numbers, lists and mappings.",
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        raise StudyError(
            f"the {kind} file is not valid YAML",
            where=f"{path}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(path),
            got=str(getattr(error, "problem", None) or error),
            fix="Check indentation, quotes and brackets there.",
        ) from error
    walker = _Walker(path, kind)
    data = walker.value(tree, ()) if tree is not None else {}
    return YamlFile(path, data, walker.lines)


class _Loader(yaml.SafeLoader):
    """The safe loader, reading `1e-4` as the number it is."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


class _Walker:
    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        self.kind = kind
        self.lines: dict[Where, int] = {}
        self.count = 0
        self.scalars = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node, place: Where) -> Any:
        line = node.start_mark.line + 1
        self.lines[place] = line
        self.count += 1
        if len(place) > MAX_DEPTH:
            raise self.error(f"the {self.kind} is nested too deeply", line, f"more than {MAX_DEPTH} levels")
        if self.count > MAX_VALUES:
            raise self.error(f"the {self.kind} expands to too many values", line, f"more than {MAX_VALUES}")
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind not in PLAIN[type(node)]:
            raise self.error(f"the {self.kind} file holds plain data, no tags", line, kind)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
        if kind in ("int", "float") and not MEANT.fullmatch(node.value):
            fix = f"Write the number in plain digits, or '{node.value}' in quotes for text."
            raise self.error("a number that YAML reads otherwise than people do", line, node.value, fix)
        try:
            return self.scalars.construct_object(node)
        except (ValueError, yaml.YAMLError) as error:
            raise self.error("a value cannot be read", line, str(error)) from error

    def mapping(self, node: yaml.MappingNode, place: Where) -> dict[str | int, Any]:
        found: dict[str | int, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.error("a key must be a plain word", line, "a list or mapping as key")
            key = self.value(key_node, (*place, "key"))
            if not isinstance(key, str | int) or isinstance(key, bool):
                key = str(key_node.value)
            if key in found:
                raise self.error("the same key stands twice", line, repr(key), "Delete one of the two.")
            found[key] = self.value(value_node, (*place, key))
            self.lines[*place, key] = line
        return found

    def error(self, what: str, line: int, got: str, fix: str | None = None) -> StudyError:
        fix = fix or "Write plain values: text, numbers, lists and mappings."
        return StudyError(what, where=f"{self.path}, line {line}", got=got, fix=fix)


UNKNOWN = ("extra_forbidden", "invalid_key")
"""What pydantic calls a key that it does not know: told first, as a typo is also a missing key."""
Model = TypeVar("Model", bound=BaseModel)


def validated(
    model: type[Model],
    source: YamlFile,
    data: Mapping[Any, Any],
    *,
    fields_at: Callable[[Where], Sequence[str]],
    page: str,
    kind: str = "study",
) -> Model:
    """Return the data as a model, or raise StudyError for its first mistake.

    `fields_at` names the keys that are known at a place; `page` is where they are explained.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _error(source, error, fields_at, page, kind) from None


def tuples(data: Mapping[Any, Any]) -> dict[Any, Any]:
    """Turn the lists at the top of a YAML file into the tuples that strict, frozen sections hold."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def fields_by_section(
    whole: type[BaseModel], sections: Mapping[str, type[BaseModel]]
) -> Callable[[Where], Sequence[str]]:
    """Return what names the keys at a place: those of the section it is in, else those of the whole."""

    def fields_at(place: Where) -> Sequence[str]:
        section = sections.get(str(place[0]), whole) if place else whole
        return [field.alias or name for name, field in section.model_fields.items()]

    return fields_at


def _follows(place: Where, errors: ValidationError) -> bool:
    """Return whether an error about a list is there because an entry of it is wrong."""
    places = [error["loc"] for error in errors.errors()]
    return any(len(other) > len(place) and other[: len(place)] == place for other in places)


def _error(
    source: YamlFile,
    errors: ValidationError,
    fields_at: Callable[[Where], Sequence[str]],
    page: str,
    kind: str,
) -> StudyError:
    found = [error for error in errors.errors() if not _follows(error["loc"], errors)]
    first = next((one for one in found if one["type"] in UNKNOWN), found[0])
    place: Where = first["loc"]
    key = str(place[-1])
    where = source.where(place)
    more = f" ({len(found) - 1} more after this one)" if len(found) > 1 else ""
    if first["type"] in UNKNOWN:
        known = fields_at(place[:-1])
        return StudyError(f"unknown key {key!r}{more}", where=where, fix=suggestion(key, known))
    what, _, known_ones = str(first.get("ctx", {}).get("error", "")).partition(". ")
    if what.startswith("there is no "):
        return StudyError(f"{what}{more}", where=where, fix=known_ones or f"Change it as {page} says.")
    if first["type"] == "missing":
        given = first["input"] if isinstance(first["input"], Mapping) else {}
        others = [str(name) for name in given if name not in fields_at(place[:-1])]
        close = difflib.get_close_matches(key, others, n=1)
        if close:
            where = source.where((*place[:-1], close[0]))
            fix = f"Did you mean {key!r}? Write {key}: in place of {close[0]}:."
            return StudyError(f"unknown key {close[0]!r}{more}", where=where, fix=fix)
        return StudyError(f"the key {key!r} is missing{more}", where=where, fix=f"Add {key}: to the {kind}.")
    given = first["input"]
    if first["type"] == "model_type":
        named = f"{place[-2]}[{key}]" if len(place) > 1 and isinstance(place[-1], int) else key
        keys = fields_at(place)
        return StudyError(
            f"{named} is not a section{more}",
            where=where,
            got=repr(given),
            wanted=f"keys and their values: {{{keys[0]}: ..., {keys[1]}: ...}}",
            fix=f"Write it as {page} shows.",
        )
    got = repr(list(given) if isinstance(given, tuple) else given)
    return StudyError(
        f"{key} has a value it cannot take{more}",
        where=where,
        got=got if len(got) < 120 else got[:117] + "...",
        wanted=lower_first(first["msg"]),
        fix=f"Change it as {page} says.",
    )
