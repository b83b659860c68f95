"""The contract on every registered mutation, and broken mutations that it must catch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import Field

from adverse import plugins
from adverse.errors import MutationError
from adverse.marks import Strength
from adverse.mutations.contract import check
from adverse.plugins import Fraction, Plugin, mutation, unchanged_at
from adverse.types import Image

ALL = plugins.load().all("mutation")


@pytest.mark.fault(9)
@pytest.mark.parametrize("plugin", ALL, ids=lambda plugin: plugin.name)
def test_every_registered_mutation_keeps_the_contract(plugin: Plugin) -> None:
    findings = check(plugin)
    assert len(findings) >= 7
    assert not [str(finding.error) for finding in findings if not finding.ok]


def writes_input(image: Image) -> Image:
    image[0] = 0
    return image.copy()


def returns_input(image: Image) -> Image:
    return image


def unseeded_in_place(image: Image) -> Image:
    image[:] = np.random.default_rng().integers(0, 256, image.shape)
    return image


def floats(image: Image) -> Image:
    return image / 255.0  # type: ignore[return-value]


def makes_colour(image: Image) -> Image:
    return np.stack([image] * 3, axis=-1) if image.ndim == 2 else image.copy()


def unseeded(image: Image) -> Image:
    return np.random.default_rng().integers(0, 256, image.shape).astype(np.uint8)


def ignores_rng(image: Image, *, rng: np.random.Generator) -> Image:  # noqa: ARG001
    return image.copy()


def crashes_when_small(image: Image) -> Image:
    return np.asarray(np.pad(image, 1, mode="reflect")[1:-1, 1:-1] if image.shape[0] > 1 else 1 / 0)


def refuses_vaguely(image: Image) -> Image:
    if min(image.shape[:2]) < 5:
        raise MutationError("too small")
    return image.copy()


def reads_memory_order(image: Image) -> Image:
    return image + np.uint8(image.flags.c_contiguous)


def never_still(image: Image, *, strength: Annotated[Fraction, unchanged_at(0)]) -> Image:
    return image + np.uint8(1 + strength)


@mutation(strength=Strength("amount", 0, 1))
def stirs_at_none(image: Image, *, amount: float) -> Image:
    return image + np.uint8(1 + 9 * amount)


@mutation(strength=Strength("amount", 0, 1))
def ends_as_it_began(image: Image, *, amount: float) -> Image:
    return image + np.uint8(40 * amount * (1 - amount))


@mutation(strength=Strength("amount", 0, 9))
def refuses_its_end(image: Image, *, amount: Fraction) -> Image:
    return image + np.uint8(9 * amount)


@mutation(strength=Strength("quality", 9, 1, exact=False))
def codec(image: Image, *, quality: int) -> Image:
    return image + np.uint8(10 - quality)


def needs_a_word(image: Image, *, word: str) -> Image:
    return image + np.uint8(len(word))


def fears_the_sky(image: Image, *, depth_m: np.ndarray[Any, Any]) -> Image:
    if np.isinf(depth_m).all():
        raise ValueError("no ground")
    return image.copy()


@pytest.mark.parametrize(
    ("broken", "caught"),
    [
        (writes_input, "the input stays untouched"),
        (returns_input, "same shape and type, a new array"),
        (floats, "same shape and type, a new array"),
        (makes_colour, "gray stays gray, as (rows, columns) and (rows, columns, 1)"),
        (unseeded, "the same seed gives the same bytes"),
        (unseeded_in_place, "the same seed gives the same bytes"),
        (ignores_rng, "another key gives other bytes"),
        (crashes_when_small, "works from 1x1 up, or names the size it cannot work on"),
        (refuses_vaguely, "works from 1x1 up, or names the size it cannot work on"),
        (reads_memory_order, "any memory layout gives the same pixels"),
        (never_still, "zero strength changes nothing"),
        (stirs_at_none, "zero strength changes nothing"),
        (ends_as_it_began, "full strength changes more than zero strength"),
        (refuses_its_end, "full strength changes more than zero strength"),
        (needs_a_word, "options can be chosen"),
        (fears_the_sky, "takes depth of +inf"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_mutation_is_caught(broken: Callable[..., Image], caught: str) -> None:
    findings = {finding.check: finding for finding in check(_plugin(broken))}
    assert not findings[caught].ok
    assert str(findings[caught].error)


def test_refusing_a_size_by_name_is_allowed() -> None:
    def picky(image: Image) -> Image:
        if min(image.shape[:2]) < 5:
            raise MutationError("too small", got=f"{image.shape[0]}x{image.shape[1]}")
        return image.copy()

    assert all(finding.ok for finding in check(_plugin(picky)))


def test_an_example_in_the_type_is_used() -> None:
    def greet(image: Image, *, word: Annotated[str, Field(examples=["hello"])]) -> Image:
        return image + np.uint8(len(word))

    assert all(finding.ok for finding in check(_plugin(greet)))


def test_a_codec_may_say_that_even_its_best_quality_changes_pixels() -> None:
    findings = {finding.check: finding.ok for finding in check(_plugin(codec))}
    assert findings["full strength changes more than zero strength"]
    assert "zero strength changes nothing" not in findings
    assert all(findings.values())


def _plugin(function: Callable[..., Image]) -> Plugin:
    marked = function if hasattr(function, "__adverse__") else mutation(function)
    plugin = marked.__adverse__  # type: ignore[attr-defined]
    assert isinstance(plugin, Plugin)
    return plugin
