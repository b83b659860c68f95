"""The options of a plug-in, read from its signature: their types, their groups, and the values they take.

Options that several plug-ins share are declared once, as the fields of a frozen dataclass: a parameter of
that type stands for all of them.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from adverse.errors import MutationError, PluginError, StudyError
from adverse.remote_files import RemotePath, named_path
from adverse.type_words import in_words, lower_first

NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Colour = tuple[
    Annotated[int, Field(ge=0, le=255)],
    Annotated[int, Field(ge=0, le=255)],
    Annotated[int, Field(ge=0, le=255)],
]

P = ParamSpec("P")
R = TypeVar("R")


def unchanged_at(value: float) -> Any:
    """Mark an option's type with the value at which the mutation changes nothing; the contract checks it.

    >>> Strength = Annotated[Fraction, unchanged_at(0)]
    """
    return Field(json_schema_extra={"unchanged_at": value})


@dataclass(frozen=True)
class Option:
    """One option that a study can give to a plug-in."""

    name: str
    type: TypeAdapter[Any]
    required: bool
    default: Any

    @property
    def shown_type(self) -> str:
        """What it may be, in words."""
        return in_words(self.type.json_schema())


def options_of(function: Callable[..., Any], skip: tuple[str, ...] = ()) -> dict[str, Option]:
    """Read the options of a function from its signature; parameters in `skip` are none."""
    hints = get_type_hints(function, include_extras=True)
    options: dict[str, Option] = {}
    parameters = list(inspect.signature(function).parameters.values())
    if skip:  # a mutation: its first parameter is the image
        parameters = parameters[1:]
    for parameter in parameters:
        name = parameter.name
        if name in skip:
            continue
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or name not in hints:
            raise PluginError(
                f"{function.__name__}: the parameter {name!r} cannot be read from a study",
                where=inspect.getsourcefile(function),
                wanted="named parameters with a type, no *args or **kwargs",
                fix=f"Write {name}: float (or int, str, Path, ...).",
            )
        required = parameter.default is parameter.empty
        default = None if required else parameter.default
        new = _group_options(hints[name], default) if _is_group(hints[name]) else []
        for option in new or [Option(name, TypeAdapter(hints[name]), required, default)]:
            if option.name in options:
                raise PluginError(f"{function.__name__}: two of its options are called {option.name!r}")
            options[option.name] = option
    return options


def with_groups(function: Callable[P, R]) -> Callable[..., R]:
    """Return a function that takes the options of its groups one by one, as a study gives them."""
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    defaults = {
        parameter.name: hints[parameter.name]() if parameter.default is parameter.empty else parameter.default
        for parameter in parameters
        if _is_group(hints.get(parameter.name))
    }
    if not defaults:
        return function

    @functools.wraps(function)
    def flat(*args: Any, **options: Any) -> R:
        for name, default in defaults.items():
            given = {f.name: options.pop(f.name) for f in fields(default) if f.name in options}
            options.setdefault(name, replace(default, **given))
        return function(*args, **options)

    return flat


def valid_option(title: str, option: Option, value: Any) -> Any:
    """Return a value that a caller from Python gives to an option of a mutation, checked."""
    try:
        return option.type.validate_python(value)
    except ValidationError as error:
        raise MutationError(
            f"{title} cannot take this {option.name}",
            got=repr(value),
            wanted=f"{option.shown_type} ({_reason(error)})",
            fix=f"Give {option.name} such a value.",
        ) from error


def from_yaml(option: Option, value: Any, where: str) -> Any:
    """Check a YAML value as strictly as JSON: a list may be a tuple, "3" is not a number."""
    try:
        return option.type.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise StudyError(
            f"{option.name} has a value it cannot take",
            where=where,
            got=repr(value),
            wanted=f"{option.shown_type} ({_reason(error)})",
            fix=f"Give {option.name} such a value, or leave it out."
            if not option.required
            else f"Give {option.name} such a value.",
        ) from error
    except TypeError as error:
        raise StudyError(
            f"{option.name} is not plain data",
            where=where,
            got=str(error),
            fix="Write plain values: text, numbers, lists and mappings.",
        ) from error


def relative_to(base: Path | None, value: Any) -> Any:
    """Return a value with every path in it taken relative to a folder, if there is one; URLs are remote."""
    if isinstance(value, Path):
        named = named_path(value)
        return named if base is None or isinstance(named, RemotePath) else base / named.expanduser()
    if isinstance(value, list | tuple):
        return type(value)(relative_to(base, item) for item in value)
    return value


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _group_options(group: Any, default: Any) -> list[Option]:
    """Return the fields of an option group as options; their defaults are those of the group's default."""
    given = group() if default is None else default
    hints = get_type_hints(group, include_extras=True)
    names = [field.name for field in fields(group)]
    return [
        Option(name, TypeAdapter(hints[name]), required=False, default=getattr(given, name)) for name in names
    ]


def _reason(error: ValidationError) -> str:
    return "; ".join(sorted({lower_first(str(item["msg"])) for item in error.errors()}))
