"""The contract that every mutation keeps, as a list of checks that can be run on any of them.

A plug-in author sees it through `adverse check-plugin FILE`; our own tests run it on the whole registry, so
no mutation can be forgotten. Options are chosen from their types: the middle of a range, the first of a
choice. Where a type does not say enough, it can carry an example,
`Annotated[str, Field(examples=["night"])]`; where a value means "no change", it can say so with
`unchanged_at`, and then that is checked too; so is the strength that a mutation says it has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adverse import plugins
from adverse.errors import AdverseError, MutationError, PluginError, one_line
from adverse.marks import Strength
from adverse.plugins import ContractFinding, Option, Plugin, Registry
from adverse.seeds import generator
from adverse.types import Depth, Image

SIZE = (24, 36)
"""Rows and columns of the trial image: not square, and big enough for randomness to show."""

LAYOUTS: Mapping[str, Callable[[Image], Image]] = {
    "every second column": lambda image: np.repeat(image, 2, axis=1)[:, ::2],
    "mirrored": lambda image: np.ascontiguousarray(image[:, ::-1])[:, ::-1],
    "column by column": np.asfortranarray,
}


@dataclass(frozen=True)
class _Trial:
    plugin: Plugin
    options: Mapping[str, Any]

    def run(self, image: Image, *, key: str = "one", options: Mapping[str, Any] | None = None) -> Image:
        needed = self.needed(image, _depth(image), key=key)
        chosen = self.options if options is None else options
        out: Image = self.plugin.function(image, **chosen, **needed)
        return out

    def needed(self, image: Image, depth_m: Depth, *, key: str = "one") -> dict[str, Any]:
        """Return what the engine would fill in."""
        given: dict[str, Any] = {
            "rng": generator(0, key, self.plugin.name),
            "log_rng": generator(0, key, self.plugin.name, "log"),
            "depth_m": depth_m,
            "labels": _labels(image),
            "registry": Registry([self.plugin]),
            "details": {},
            "baseline_m": 0.0,
            "time_s": 0.0,
        }
        return {name: given[name] for name in self.plugin.needs}

    def called(self, options: Mapping[str, Any] | None = None) -> str:
        chosen = self.options if options is None else options
        return f"{self.plugin.name}({', '.join(f'{name}={value}' for name, value in chosen.items())})"


def check(plugin: Plugin) -> list[ContractFinding]:
    """Run every check that applies to a mutation; never raises for what the mutation does wrong.

    >>> from adverse.mutations import gaussian_blur
    >>> all(finding.ok for finding in check(gaussian_blur.__adverse__))
    True
    """
    title = "options can be chosen"
    try:
        trial = _Trial(plugin, example_options(plugin))
    except AdverseError as error:
        return [ContractFinding(plugin.name, title, error)]
    findings = [ContractFinding(plugin.name, title, None)]
    for name, holds in _checks(trial):
        findings.append(ContractFinding(plugin.name, name, _verdict(trial, holds)))
    return findings


def example_options(plugin: Plugin) -> dict[str, Any]:
    """Return options that the mutation accepts: the required ones, and one optional one if it must have it.

    >>> from adverse.mutations import haze
    >>> example_options(haze.__adverse__)
    {'visibility_m': 1.0}
    """
    required = {name: _example(option) for name, option in plugin.options.items() if option.required}
    tries = [required]
    for name, option in plugin.options.items():
        if not option.required and option.default is None:
            tries.append({**required, name: _example(option)})
    refused: Exception | None = None
    for options in tries:
        if any(value is None for value in options.values()):
            continue
        try:
            bound = plugins.bind(plugin, options, where=plugin.name)
            _Trial(plugin, bound).run(_picture(*SIZE))
        except AdverseError as error:
            refused = refused or error
        except Exception:  # noqa: BLE001 - the options are accepted; the checks will report the crash
            return bound
        else:
            return bound
    unknown = ", ".join(name for name, value in required.items() if value is None)
    raise PluginError(
        f"no options could be chosen for {plugin.name}",
        got=one_line(refused) if refused else f"no example for {unknown}",
        wanted="options whose types say which values they take",
        fix="Give an example: Annotated[str, Field(examples=['night'])].",
    )


def _checks(trial: _Trial) -> Iterator[tuple[str, Callable[[_Trial], None]]]:
    yield "same shape and type, a new array", _keeps_shape
    yield "the input stays untouched", _leaves_input
    yield "gray stays gray, as (rows, columns) and (rows, columns, 1)", _keeps_gray
    yield "works from 1x1 up, or names the size it cannot work on", _takes_any_size
    yield "any memory layout gives the same pixels", _ignores_layout
    yield "the same seed gives the same bytes", _repeats
    if trial.plugin.needs & {"rng", "log_rng"}:
        yield "another key gives other bytes", _differs_by_key
    if "depth_m" in trial.plugin.needs:
        yield "takes depth of +inf", _takes_sky
    if next(_zero_strengths(trial), None) is not None:
        yield "zero strength changes nothing", _is_identity_at_zero
    if trial.plugin.strength is not None:
        grows = functools.partial(_grows, strength=trial.plugin.strength)
        yield "full strength changes more than zero strength", grows


def _verdict(trial: _Trial, holds: Callable[[_Trial], None]) -> AdverseError | None:
    try:
        holds(trial)
    except PluginError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever a plug-in raises is a finding, not our failure
        return PluginError("the mutation raises an error", where=trial.called(), got=one_line(error))
    return None


def _keeps_shape(trial: _Trial) -> None:
    image = _picture(*SIZE)
    _same_kind(trial, image, trial.run(image))


def _leaves_input(trial: _Trial) -> None:
    image = _picture(*SIZE)
    before = image.copy()
    trial.run(image)
    if not np.array_equal(image, before):
        raise PluginError(
            "the mutation writes into its input",
            where=trial.called(),
            got=f"{int((image != before).sum())} values changed",
            fix="Start with image.copy().",
        )
    image.flags.writeable = False
    trial.run(image)


def _keeps_gray(trial: _Trial) -> None:
    gray = _picture(*SIZE)[..., 1].copy()
    flat = trial.run(gray)
    _same_kind(trial, gray, flat)
    deep = trial.run(gray[..., None])
    _same_kind(trial, gray[..., None], deep)
    if not np.array_equal(flat, deep[..., 0]):
        raise PluginError(
            "(rows, columns) and (rows, columns, 1) give different pixels", where=trial.called()
        )


def _takes_any_size(trial: _Trial) -> None:
    for rows, columns in ((1, 1), (1, 7), (7, 1), (2, 2), (3, 50), (50, 3)):
        for image in (_picture(rows, columns), _picture(rows, columns)[..., 0].copy()):
            try:
                out = trial.run(image)
            except MutationError as error:
                if f"{rows}x{columns}" not in str(error).replace(" ", ""):
                    raise PluginError(
                        "an image is refused without naming its size",
                        where=f"{trial.called()} on {rows}x{columns}",
                        got=str(error),
                        wanted=f"a MutationError that says {rows}x{columns}",
                    ) from error
            else:
                _same_kind(trial, image, out)


def _ignores_layout(trial: _Trial) -> None:
    image = _picture(*SIZE)
    wanted = trial.run(image)
    for name, laid in LAYOUTS.items():
        if not np.array_equal(trial.run(laid(image)), wanted):
            raise PluginError(
                "the pixels depend on how the image lies in memory",
                where=f"{trial.called()} on an image stored {name}",
                fix="Start with np.ascontiguousarray(image).",
            )


def _repeats(trial: _Trial) -> None:
    image = _picture(*SIZE)
    if not np.array_equal(trial.run(image.copy()), trial.run(image.copy())):  # it may return its input
        raise PluginError(
            "two calls with the same seed differ",
            where=trial.called(),
            wanted="randomness only from the parameter rng",
            fix="Take rng: np.random.Generator as a parameter and draw from it alone.",
        )


def _differs_by_key(trial: _Trial) -> None:
    image = _picture(*SIZE)
    if np.array_equal(trial.run(image, key="one"), trial.run(image, key="two")):
        raise PluginError(
            "a mutation that takes rng gives the same pixels for different frames",
            where=trial.called(),
            fix="Draw from rng, or leave it out of the signature.",
        )


def _takes_sky(trial: _Trial) -> None:
    image = _picture(*SIZE)
    depth = np.full(image.shape[:2], np.inf, np.float32)
    needed = trial.needed(image, depth)
    _same_kind(trial, image, trial.plugin.function(image, **trial.options, **needed))


def _is_identity_at_zero(trial: _Trial) -> None:
    for options in _zero_strengths(trial):
        for image in (_picture(*SIZE), _picture(*SIZE)[..., 0].copy()):
            out = trial.run(image, options=options)
            _same_kind(trial, image, out)
            if not np.array_equal(out, image):
                gap = int(np.abs(out.astype(np.int16) - image).max())
                raise PluginError(
                    "zero strength changes the image",
                    where=trial.called(options),
                    got=f"a difference of up to {gap} levels",
                )


def _grows(trial: _Trial, *, strength: Strength) -> None:
    image = _picture(*SIZE)
    at_zero, at_full = (_at_strength(trial, strength, value) for value in (0.0, 1.0))
    before, after = (_gap(image, trial.run(image, options=options)) for options in (at_zero, at_full))
    if after <= before:
        raise PluginError(
            "full strength changes the image no more than zero strength",
            where=f"{trial.called(at_full)} and {trial.called(at_zero)}",
            got=f"a mean difference of {after:.3g} and {before:.3g} levels",
            wanted="a Strength whose `none` leaves the image as it is, and whose `most` is its end",
        )


def _gap(image: Image, out: Image) -> float:
    return float(np.abs(out.astype(np.int16) - image).mean())


def _at_strength(trial: _Trial, strength: Strength, value: float) -> dict[str, Any]:
    """Return the required options, whatever else could change the image at zero, and the strength."""
    zeros = _unchanged_at(trial.plugin)
    required = {
        name: zeros.get(name, chosen)
        for name, chosen in trial.options.items()
        if trial.plugin.options[name].required
    }
    return {**required, strength.option: strength.value(value)}


def _unchanged_at(plugin: Plugin) -> dict[str, Any]:
    return {
        name: schema["unchanged_at"]
        for name, option in plugin.options.items()
        for schema in _alternatives(option)
        if "unchanged_at" in schema
    }


def _zero_strengths(trial: _Trial) -> Iterator[dict[str, Any]]:
    """Yield options under which nothing may change: all required strengths at zero, or one optional one.

    And the strength that the mutation says it has, at zero.
    """
    strength = trial.plugin.strength
    if strength is not None and strength.exact:
        yield _at_strength(trial, strength, 0)
    zeros = _unchanged_at(trial.plugin)
    required = {name: value for name, value in zeros.items() if trial.plugin.options[name].required}
    if required:
        yield {**trial.options, **required}
        return
    others = {name: trial.options[name] for name in trial.options if name not in zeros}
    for name, value in zeros.items():
        yield {**others, name: value}


def _same_kind(trial: _Trial, image: Image, out: object) -> None:
    where = f"{trial.called()} on {'x'.join(map(str, image.shape))}"
    if not isinstance(out, np.ndarray):
        raise PluginError("the mutation returns no array", where=where, got=type(out).__name__)
    if out.shape != image.shape or out.dtype != np.uint8:
        raise PluginError(
            "the mutation changes the shape or the type of the image",
            where=where,
            got=f"{out.shape} {out.dtype}",
            wanted=f"{image.shape} uint8",
        )
    if np.shares_memory(out, image):
        raise PluginError(
            "the mutation returns its input", where=where, wanted="a new array", fix="Return image.copy()."
        )


def _example(option: Option) -> Any:
    """Return a value the option takes, or None where its type does not say."""
    for schema in _alternatives(option):
        value = _example_of(schema)
        if value is not None:
            return value
    return None


def _alternatives(option: Option) -> list[dict[str, Any]]:
    schema = option.type.json_schema()
    named = schema.get("$defs", {})
    alternatives = schema.get("anyOf", [schema])
    return [named.get(str(part.get("$ref", "")).rpartition("/")[2], part) for part in alternatives]


def _example_of(schema: Mapping[str, Any]) -> Any:
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return _middle(schema, whole=kind == "integer")
    if kind == "boolean":
        return True
    if kind == "array":
        parts = schema.get("prefixItems") or [schema.get("items", {})] * max(schema.get("minItems", 1), 1)
        values = [_example_of(part) for part in parts]
        return None if None in values else values
    return None


def _middle(schema: Mapping[str, Any], *, whole: bool) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is None:
        value = 1 if high is None else high - 1
    else:
        value = low + 1 if high is None else (low + high) / 2
    return int(value) if whole else float(value)


def _picture(rows: int, columns: int) -> Image:
    """Draw a colour ramp under fine texture, away from black and white, so that any change can show."""
    row, column = np.mgrid[:rows, :columns]
    ramp = 70 + 90 * (column + 1) / (columns + 1)
    texture = generator(0, "contract", "picture").integers(-25, 26, (rows, columns, 3))
    tint = np.array([10, 0, -15]) + 20 * (row[..., None] % 8 < 4)
    image: Image = (ramp[..., None] + tint + texture).astype(np.uint8)
    return image


def _depth(image: Image) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a floor that rises from 2 m to 40 m, with sky above."""
    rows, columns = image.shape[:2]
    depth = np.linspace(40, 2, rows, dtype=np.float32)[:, None].repeat(columns, axis=1)
    depth[: rows // 4] = np.inf
    return depth


def _labels(image: Image) -> Image:
    rows, columns = image.shape[:2]
    return ((np.arange(rows)[:, None] // 8 + np.arange(columns) // 8) % 4).astype(np.uint8)
