"""The registry: built once in a process; options that plug-ins share are declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from adverse import mutations, plugins
from adverse.errors import PluginError, StudyError
from adverse.plugins import Positive, registry


def test_the_registry_is_built_once_and_an_id_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    image = np.full((2, 2), 100, np.uint8)
    first = mutations.apply(image, "brightness(scale=0.37)")
    assert plugins.load() is plugins.load()

    def unexpected(*_: object, **__: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(registry, "_modules_of", unexpected)
    monkeypatch.setattr(plugins, "bind", unexpected)
    assert first.tolist() == mutations.apply(image, "brightness(scale=0.37)").tolist() == [[37, 37], [37, 37]]


@dataclass(frozen=True)
class Shape:
    """Options that several plug-ins share."""

    size: Positive = 2.0
    colour: Literal["red", "green"] = "red"


BLUNT = Shape(colour="green")


@plugins.sut(name="grouped")
def grouped(weights: str, *, shape: Shape = BLUNT, again: int = 1) -> object:
    """Return what it was given."""
    return weights, shape, again


@pytest.fixture
def plugin() -> plugins.Plugin:
    return grouped.__adverse__  # type: ignore[attr-defined, no-any-return]


def test_a_group_is_expanded_into_its_options(plugin: plugins.Plugin) -> None:
    defaults = {name: option.default for name, option in plugin.options.items()}
    assert defaults == {"weights": None, "size": 2.0, "colour": "green", "again": 1}
    assert plugin.option_names()[0] == "weights"
    given = plugins.bind(plugin, {"weights": "w", "size": 3}, where="suts")
    assert plugin.function(**given) == ("w", Shape(3.0, "green"), 1)
    assert plugins.by_options(grouped)("w", colour="red") == ("w", Shape(2.0, "red"), 1)
    assert plugins.by_options(grouped)("w", shape=Shape(5.0)) == ("w", Shape(5.0), 1)


@pytest.mark.parametrize(("given", "words"), [({"sise": 1}, "size"), ({"size": 0}, "greater than 0")])
def test_options_of_a_group_are_checked_like_others(
    plugin: plugins.Plugin, given: dict[str, object], words: str
) -> None:
    with pytest.raises(StudyError, match=words):
        plugins.bind(plugin, {"weights": "w", **given}, where="suts")


def test_an_option_that_a_group_has_too_is_refused() -> None:
    def twice(size: float, *, shape: Shape = BLUNT) -> None:
        """Do nothing."""

    with pytest.raises(PluginError, match="two of its options are called 'size'"):
        plugins.sut(twice)
