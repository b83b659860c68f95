"""What a value may be, in words that need no Python: from a JSON schema, as pydantic gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BOUNDS = (("exclusiveMinimum", ">"), ("minimum", ">="), ("exclusiveMaximum", "<"), ("maximum", "<="))
_WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}


def in_words(schema: Mapping[str, Any]) -> str:
    """Say what a schema allows.

    >>> in_words({"type": "number", "minimum": 0, "maximum": 1})
    'number >= 0, <= 1'
    >>> in_words({"anyOf": [{"type": "string", "format": "path"}, {"type": "null"}]})
    'path or null'
    >>> in_words({"type": "array", "prefixItems": [{"type": "integer"}] * 3})
    'list of 3: whole number'
    """
    if "anyOf" in schema:
        return " or ".join(in_words(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(str(value) for value in schema["enum"])
    kind = str(schema.get("type", "value"))
    if kind == "array":
        fixed = schema.get("prefixItems", ())
        count = f" of {len(fixed)}" if fixed else ""
        item = fixed[0] if fixed else schema.get("items", {})
        return f"list{count}: {in_words(item)}"
    word = str(schema.get("format") or _WORDS.get(kind, kind))
    bounds = [f"{sign} {schema[key]:g}" for key, sign in _BOUNDS if key in schema]
    return f"{word} {', '.join(bounds)}" if bounds else word


def lower_first(message: str) -> str:
    """Return a sentence of pydantic as part of one of ours.

    >>> lower_first("Tuple should have at least 1 item after validation, not 0")
    'list should have at least 1 item, not 0'
    """
    words = message.removeprefix("Value error, ").replace(" after validation", "")
    words = words[:1].lower() + words[1:]
    return words.replace("tuple", "list").replace("dictionary", "mapping")
