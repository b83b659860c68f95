"""What annotation files say of an object besides its class and box: how hidden, cut off or hard to see it is.

Attributes are names and values in words, as slices show them. What is no plain value is left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

MOST_LETTERS = 60
"""Longer texts are notes about one object, and tell no group of them."""


def plain_attributes(values: Mapping[Any, Any]) -> dict[str, str]:
    """Return the values that are a truth, a number or a short text, in words.

    >>> plain_attributes({"occluded": True, "visibility": 0.5, "pose": "Left", "mask": [1], "note": None})
    {'occluded': 'yes', 'visibility': '0.5', 'pose': 'Left'}
    """
    words: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            words[str(name)] = "yes" if value else "no"
        elif isinstance(value, int | float):
            with contextlib.suppress(OverflowError):  # a number that no float can be
                words[str(name)] = f"{value:g}"
        elif isinstance(value, str) and 0 < len(value.strip()) <= MOST_LETTERS:
            words[str(name)] = value.strip()
    return words


def told_attributes(attributes: Sequence[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    """Return the attributes of all objects of an image; nothing where none has any."""
    return tuple(attributes) if any(attributes) else ()
