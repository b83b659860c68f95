"""The decorators that mark a function as a mutation, SUT, data format, level, metric or relation.

A decorator marks its function and changes nothing elsewhere. What a signature cannot say (the hazards of a
mutation, the words of a level) is said in the decorator.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from adverse.errors import MutationError, PluginError, suggestion
from adverse.marks import (
    LEVEL_NEEDS,
    Beside,
    Cost,
    Draw,
    Hazard,
    LevelMark,
    MetricMark,
    Moves,
    RelationMark,
    SimpleMagnitude,
    Strength,
)
from adverse.plugins.options import Option, options_of, valid_option, with_groups
from adverse.plugins.registry import LooksLike, Plugin

P = ParamSpec("P")
R = TypeVar("R")
GIVEN_BY_ENGINE = ("depth_m", "labels", "rng", "log_rng", "registry", "details", "baseline_m", "time_s")
"""Parameters of a mutation that are not options: the engine fills them in, the names say with what.

`rng` is the random stream of the frame, `log_rng` that of its log: the same numbers for all of its frames.
`registry` is for mutations made of others; `details` is a dict that takes numbers worth a record;
`baseline_m` is how far right of the left camera the image was taken: 0, but for the right one of a pair;
`time_s` is when in its log it was: 0 where it stands alone.
"""
PIXEL_LIBRARIES = ("numba", "numpy", "opencv-python-headless", "scipy", "simplejpeg")
"""Distributions whose version can change what a mutation does to a pixel."""


@overload
def mutation(function: Callable[P, R]) -> Callable[P, R]: ...
@overload
def mutation(
    *,
    name: str | None = ...,
    hazards: tuple[Hazard, ...] | None = ...,
    strength: Strength | None = ...,
    simple: SimpleMagnitude | None = ...,
    stereo: Draw | None = ...,
    moves: Moves | None = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def mutation(
    function: Callable[P, R] | None = None,
    *,
    name: str | None = None,
    hazards: tuple[Hazard, ...] | None = None,
    strength: Strength | None = None,
    simple: SimpleMagnitude | None = None,
    stereo: Draw | None = None,
    moves: Moves | None = None,
) -> Any:
    """Mark a pure function `f(image, *, options, depth_m?, labels?, rng?, log_rng?) -> image` as a mutation.

    The function that comes back checks its input first, so the body need not. `hazards` are what it stands
    for, () for none; `strength` is the option that makes it stronger and can be searched; `simple` is what a
    mutation by depth comes to at one depth. `stereo` says how the cameras of a pair draw what is random:
    "shared" (of the world and its light) or "own" (of each camera; the default, but for what goes by depth).
    `moves` undoes that it moves what is in the image: answers are taken back by it before they are kept.
    """

    def mark(plain: Callable[P, R]) -> Callable[P, R]:
        options = options_of(plain, skip=GIVEN_BY_ENGINE)
        call = with_groups(plain)
        first, needs = _mutation_signature(plain)
        title = name or plain.__name__
        _check_marks(title, options, hazards, strength)

        @functools.wraps(plain)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given: dict[str, Any] = dict(kwargs)
            image = args[0] if args else given.get(first)
            _check_image(title, image)
            if "depth_m" in given:
                _check_depth(title, image, given["depth_m"])
            for key, option in options.items():
                if key in given:
                    given[key] = valid_option(title, option, given[key])
            return call(*args, **given)

        libraries = PIXEL_LIBRARIES
        return _marked(
            checked,
            Plugin(
                "mutation",
                title,
                checked,
                options,
                needs,
                libraries,
                hazards=hazards,
                strength=strength,
                simple=simple,
                stereo=stereo,
                moves=moves,
            ),
        )

    return mark if function is None else mark(function)


@overload
def sut(function: Callable[P, R]) -> Callable[P, R]: ...
@overload
def sut(
    *,
    name: str | None = ...,
    libraries: tuple[str, ...] = ...,
    extra_files: Callable[[Mapping[str, Any]], Iterable[Path]] | None = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def sut(
    function: Callable[P, R] | None = None,
    *,
    name: str | None = None,
    libraries: tuple[str, ...] = (),
    extra_files: Callable[[Mapping[str, Any]], Iterable[Path]] | None = None,
) -> Any:
    """Mark a function `f(options) -> Detector` (or Recorded) as a SUT adapter.

    `libraries` are the distributions whose version can change an answer. Files given as Path options are
    part of the fingerprint; `extra_files(options)` names further ones, always in the same order.
    """

    def mark(plain: Callable[P, R]) -> Callable[P, R]:
        title = name or plain.__name__
        options = options_of(plain)
        return _marked(
            plain,
            Plugin("sut", title, with_groups(plain), options, libraries=libraries, extra_files=extra_files),
        )

    return mark if function is None else mark(function)


@overload
def dataset(function: Callable[P, R]) -> Callable[P, R]: ...
@overload
def dataset(
    *, name: str | None = ..., looks_like: LooksLike | None = ...
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def dataset(
    function: Callable[P, R] | None = None, *, name: str | None = None, looks_like: LooksLike | None = None
) -> Any:
    """Mark a function `f(options) -> Dataset` as the reader of a data format.

    `looks_like(path)` recognises the format by its layout: the options to read it with, or None.
    """

    def mark(plain: Callable[P, R]) -> Callable[P, R]:
        title = name or plain.__name__
        options, call = options_of(plain), with_groups(plain)
        return _marked(plain, Plugin("dataset", title, call, options, looks_like=looks_like))

    return mark if function is None else mark(function)


def level(
    *,
    title: str,
    needs: tuple[str, ...] = (),
    sentence: str = "",
    variants: tuple[str, ...] = (),
    hits: str = "found",
    per_log: tuple[str, str] | None = None,
    cost: Cost = "alarms",
    exact: bool = False,
    drives: bool = False,
    safety: str = "",
    efficiency: str = "",
    name: str | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function `f(LevelInput) -> Outcomes` (or Events, or a dict of them by variant) as a level.

    `title` and `sentence` are its words, `needs` some of `LEVEL_NEEDS`; the rest is said by `LevelMark`.
    """
    mark_of_level = LevelMark(
        title, sentence, variants, hits, per_log, cost, exact, drives, safety, efficiency
    )

    def mark(plain: Callable[P, R]) -> Callable[P, R]:
        called = name or plain.__name__
        _check_one_parameter(plain, "LevelInput")
        for need in needs:
            if need not in LEVEL_NEEDS:
                raise PluginError(
                    f"{called}: a level cannot need {need!r}",
                    wanted=", ".join(LEVEL_NEEDS),
                    fix=suggestion(need, LEVEL_NEEDS),
                )
        return _marked(plain, Plugin("level", called, plain, {}, frozenset(needs), level=mark_of_level))

    return mark


def metric(
    *,
    title: str,
    lowest: float = 0.0,
    highest: float = 1.0,
    lower_is_better: bool = False,
    placed: bool = False,
    name: str | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function `f(LevelInput) -> LogScores` as a metric of detections at one threshold.

    Its values lie between `lowest` and `highest`. Where lower is better, as with a delay, tables have the
    difference from clean frames in place of the share of the clean figure that survives. One that is `placed`
    reads where things are: boxes are then located by depth, in data that have it and no annotated places.
    """
    mark_of_metric = MetricMark(title, lowest, highest, lower_is_better, placed)

    def mark(plain: Callable[P, R]) -> Callable[P, R]:
        _check_one_parameter(plain, "LevelInput")
        return _marked(plain, Plugin("metric", name or plain.__name__, plain, {}, metric=mark_of_metric))

    return mark


def relation(
    *,
    title: str,
    mutations: tuple[str, ...] = (),
    clean: bool = False,
    beside: Beside = "clean",
    name: str | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function `f(RelationInput) -> Checks | None` as a metamorphic relation of detections.

    It is called for each setting of the `mutations` it names, () meaning all, and with `clean` also for the
    clean frames. `beside` is what a violation is shown beside: the clean frame, the frame before, or the next
    weaker setting.
    """
    mark_of_relation = RelationMark(title, mutations, clean, beside)

    def mark(plain: Callable[P, R]) -> Callable[P, R]:
        _check_one_parameter(plain, "RelationInput")
        called = name or plain.__name__
        return _marked(plain, Plugin("relation", called, plain, {}, relation=mark_of_relation))

    return mark


def _marked(function: Callable[P, R], plugin: Plugin) -> Callable[P, R]:
    function.__adverse__ = plugin  # type: ignore[attr-defined]
    return function


def _mutation_signature(function: Callable[..., Any]) -> tuple[str, frozenset[str]]:
    parameters = inspect.signature(function).parameters
    if not parameters:
        raise PluginError(f"{function.__name__}: a mutation takes the image as its first parameter")
    return next(iter(parameters)), frozenset(parameters) & frozenset(GIVEN_BY_ENGINE)


def _check_one_parameter(function: Callable[..., Any], wanted: str) -> None:
    parameters = inspect.signature(function).parameters
    if len(parameters) != 1:
        raise PluginError(
            f"{function.__name__}: it takes one parameter, the {wanted}",
            where=inspect.getsourcefile(function),
            got=", ".join(parameters) or "none",
        )


def _check_marks(
    title: str, options: Mapping[str, Option], hazards: object, strength: Strength | None
) -> None:
    if hazards is not None and not (
        isinstance(hazards, tuple) and all(isinstance(hazard, Hazard) for hazard in hazards)
    ):
        raise PluginError(
            f"{title}: the hazards of a mutation are a tuple of Hazard",
            got=repr(hazards),
            fix='Write hazards=(Hazard("medium", "particles", "more", "rain falls"),), or () for none.',
        )
    options_named = [("hazard", hazard.option) for hazard in hazards or ()]
    if strength is not None:
        options_named.append(("strength", strength.option))
    for noun, option in options_named:
        if option is not None and option not in options:
            raise PluginError(
                f"{title}: its {noun} names an option that it does not have",
                got=repr(option),
                wanted=", ".join(options) or "no option: it has none",
                fix=suggestion(option, options),
            )


def _check_image(title: str, image: object) -> None:
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        got = f"{image.dtype} array" if isinstance(image, np.ndarray) else type(image).__name__
        raise MutationError(
            f"{title} works on uint8 images",
            got=got,
            wanted="(rows, columns, 3) RGB, (rows, columns, 1) or (rows, columns), uint8",
            fix="Scale to 0..255 and call .astype(np.uint8).",
        )
    shaped = image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (1, 3))
    if not shaped or image.size == 0:
        raise MutationError(
            f"{title} does not support an array of this shape",
            got=str(image.shape),
            wanted="(rows, columns, 3) RGB, (rows, columns, 1) or (rows, columns)",
        )


def _check_depth(title: str, image: Any, depth: object) -> None:
    if not isinstance(depth, np.ndarray) or depth.shape != image.shape[:2]:
        got = str(depth.shape) if isinstance(depth, np.ndarray) else type(depth).__name__
        raise MutationError(
            f"{title} needs a depth for every pixel",
            got=f"depth {got} for image {image.shape[:2]}",
            wanted="a (rows, columns) array in metres of the image's size",
        )
    if depth.dtype.kind != "f":
        raise MutationError(
            f"{title} needs depth in metres as floats",
            got=str(depth.dtype),
            fix="Scale it to metres and call .astype(np.float32).",
        )
    if not (depth > 0).all():  # NaN is not > 0 either
        raise MutationError(
            f"{title} needs a valid depth at every pixel",
            got=f"{1 - np.count_nonzero(depth > 0) / depth.size:.1%} of pixels are NaN, zero or negative",
            wanted="a distance in metres, or +inf for the sky, at every pixel",
            fix="Fill them with adverse.depth.usable, or leave the frame out.",
        )
