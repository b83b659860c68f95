"""From the data of a YAML file to a checked value, with errors that point at the line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from adverse.errors import StudyError, suggestion
from adverse.study.yamlfile import Where, YamlFile
from adverse.type_words import lower_first

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
        return list((sections.get(str(place[0]), whole) if place else whole).model_fields)

    return fields_at


def _error(
    source: YamlFile,
    errors: ValidationError,
    fields_at: Callable[[Where], Sequence[str]],
    page: str,
    kind: str,
) -> StudyError:
    found = errors.errors()
    first = next((one for one in found if one["type"] in UNKNOWN), found[0])
    place: Where = first["loc"]
    key = str(place[-1])
    where = source.where(place)
    more = f" ({errors.error_count() - 1} more after this one)" if errors.error_count() > 1 else ""
    if first["type"] in UNKNOWN:
        known = fields_at(place[:-1])
        return StudyError(f"unknown key {key!r}{more}", where=where, fix=suggestion(key, known))
    if first["type"] == "missing":
        return StudyError(f"the key {key!r} is missing{more}", where=where, fix=f"Add {key}: to the {kind}.")
    given = first["input"]
    got = repr(list(given) if isinstance(given, tuple) else given)
    return StudyError(
        f"{key} has a value it cannot take{more}",
        where=where,
        got=got if len(got) < 120 else got[:117] + "...",
        wanted=lower_first(first["msg"]),
        fix=f"Change it as {page} says.",
    )
