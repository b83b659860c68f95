"""Settings: a mutation at one strength, its canonical id, and how to apply it.

Ids look like calls, `gaussian_blur(sigma_px=2.5)`: options in sorted order, defaults left out, numbers in
their shortest form. Whatever way a setting is written, equal settings get equal ids. `a + b` applies a,
then b. `a @ log` is coherent: its random numbers are the same for all frames of a log, so that drops on the
lens or a pattern of noise do not flicker. `a @ drift` changes its strength smoothly over a log.
"""

from __future__ import annotations

import ast
import copy
import functools
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from adverse import plugins
from adverse.errors import AdverseError, MutationError, StudyError, one_line, suggestion
from adverse.mutations.batteries import BATTERIES, usual_group
from adverse.mutations.drift import drift, drift_words, drifting_option, steps_at
from adverse.mutations.setting_text import DRIFT, LOG, STILL, call, over_log, shortest, terms
from adverse.plugins import Option, Plugin, Registry
from adverse.process_settings import settings_of
from adverse.seeds import generator
from adverse.text import BASELINE as CLEAN_ID
from adverse.types import Depth, Drift, Group, Image, Noise, Setting, Step

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

BASELINE = CLEAN_ID
GROUPS: tuple[Group, ...] = ("mild", "severe")
RIGHT = "right"
"""The purpose of streams of the right camera of a pair, for what it draws by itself."""
RECORD = "made_by"
"""An option that records which code made a version. It is part of the id, so that other code makes it anew,
but not of what is drawn: the numbers of a study stay what they are from one release to the next.
"""
Streams = Mapping[str, np.random.Generator]
"""Random streams by the names under which mutations ask for them."""
BARE_NAME = re.compile(r"[\w.-]+")
SEE_LIST = "See: adverse list mutations, adverse list batteries."


def parse(text: str, registry: Registry, *, where: str = "mutation", group: Group | None = None) -> Setting:
    """Read one setting from its id, in any spelling.

    >>> parse("haze(visibility_m=97.80)", plugins.load()).id
    'haze(visibility_m=97.8)'
    """
    try:
        tree = ast.parse(text, mode="eval").body
        tree, kept = over_log(tree)
        calls = [call(node) for node in terms(tree)]
    except (SyntaxError, ValueError) as error:
        raise _unreadable(text, where) from error
    steps = []
    for name, options in calls:
        plugin = registry.get("mutation", name, where=where)
        steps.append(Step(name, plugins.bind(plugin, options, where=f"{where} {name}")))
    return _setting(tuple(steps), registry, where, group, kept)


def call_of(text: str, *, where: str = "mutation") -> tuple[str, dict[str, Any]]:
    """Return the name and the options of one mutation as it is written, without checking either.

    >>> call_of("defocus(focus_m=2)")
    ('defocus', {'focus_m': 2})
    """
    try:
        return call(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError) as error:
        raise _unreadable(text, where) from error


def expand(entry: object, registry: Registry, *, where: str) -> list[Setting]:
    """Return the settings that one line of a study means: a battery, an id, or options to sweep."""
    if isinstance(entry, str):
        if entry in BATTERIES:
            return [parse(text, registry, where=entry, group=group) for text, group in BATTERIES[entry]]
        names = [plugin.name for plugin in registry.all("mutation")]
        if BARE_NAME.fullmatch(entry) and entry not in names:
            raise StudyError(
                f"there is no mutation or battery called {entry!r}",
                where=where,
                fix=f"{suggestion(entry, [*names, *BATTERIES])} {SEE_LIST}",
            )
        return [parse(entry, registry, where=where)]
    if not isinstance(entry, Mapping):
        raise StudyError(
            "a mutation cannot be read",
            where=where,
            got=repr(entry),
            wanted="a name, an id, or {name: {option: value or list}}",
            fix=SEE_LIST,
        )
    rest = {key: value for key, value in entry.items() if key not in ("group", "coherent")}
    group, coherent = entry.get("group"), entry.get("coherent")
    kept = _kept(coherent)
    if len(rest) != 1 or group not in (None, *GROUPS) or kept is None:
        raise StudyError(
            "a mutation is one name with its options, and perhaps a group and coherent: still or drift",
            where=where,
            got=str(dict(entry)),
            wanted="{haze: {visibility_m: 200}, group: mild}",
            fix="Give each mutation its own line; the group is mild or severe.",
        )
    name, options = next(iter(rest.items()))
    if options is None:
        options = {}
    if not isinstance(options, Mapping):
        raise StudyError(
            f"the options of {name} must be a mapping",
            where=where,
            got=repr(options),
            wanted=f"{{{name}: {{option: value}}}}",
            fix=SEE_LIST,
        )
    plugin = registry.get("mutation", str(name), where=where)
    return [
        _setting(
            (Step(plugin.name, plugins.bind(plugin, chosen, where=f"{where}.{name}")),),
            registry,
            where,
            group,
            kept,
        )
        for chosen in _sweep(plugin, options, f"{where}.{name}")
    ]


def swept(settings: Iterable[Setting]) -> list[str]:
    """Return the settings in few lines: those of a mutation that differ in one option share one."""
    families: dict[tuple[str, bool, Drift | None], list[Setting]] = {}
    for setting in settings:
        families.setdefault((setting.family, setting.coherent, setting.drift), []).append(setting)
    return [line for family in families.values() for line in _sweep_lines(family)]


def _sweep_lines(family: list[Setting]) -> list[str]:
    ids = [setting.id for setting in family]
    options = [setting.steps[0].options for setting in family]
    differing = [name for name in options[0] if any(one[name] != options[0][name] for one in options)]
    if len(family[0].steps) > 1 or len(differing) != 1:
        return ids
    values = [shortest(one[differing[0]]) for one in options]
    line = ids[0].replace(f"{differing[0]}={values[0]}", f"{differing[0]}: {', '.join(values)}")
    return ids if line == ids[0] else [line]


def apply_setting(
    image: Image,
    setting: Setting,
    registry: Registry,
    *,
    seed: int,
    key: str,
    log: str | None = None,
    time_s: float = 0.0,
    depth_m: Depth | None = None,
    labels: Image | None = None,
    details: dict[str, float] | None = None,
    draws: list[Streams] | None = None,
    noise: Noise = "own",
) -> Image:
    """Apply a setting to an image; random ones draw from the stream of (seed, key, setting id).

    With `noise` common they draw from that of (seed, key, names of the mutations): the same numbers at every
    strength.

    The key is the id of the frame, or of its log where the setting is coherent. `log` is the id of the log,
    None where the image stands alone: what lies on the lens stays in its place over a log, and what drifts
    has the strength that belongs to `time_s`. `details` takes
    numbers that a mutation reports about what it did; `draws` the streams as each step found them, so that
    `apply_to_right` can draw the same again.
    """
    streams = _streams(setting, seed, key, log, noise=noise)
    given: dict[str, Any] = {
        "depth_m": depth_m,
        "labels": labels,
        "registry": registry,
        "details": {} if details is None else details,
        "time_s": time_s,
        **streams,
    }
    for step in _steps(setting, registry, seed, key, log, time_s, details):
        if draws is not None:
            draws.append(copy.deepcopy(streams))
        image = apply_step(image, registry.get("mutation", step.mutation), step.options, given, frame=key)
    return image


def apply_to_right(
    image: Image,
    setting: Setting,
    registry: Registry,
    draws: Sequence[Streams],
    *,
    seed: int,
    key: str,
    log: str | None,
    time_s: float = 0.0,
    depth_m: Depth | None,
    baseline_m: float,
    noise: Noise = "own",
) -> Image:
    """Apply a setting to the right image of a pair whose left one drew from `draws`.

    What is of the world and its light is drawn as for the left camera, and placed by the depth of this image;
    what is of the camera is drawn anew.
    """
    own = _streams(setting, seed, key, log, RIGHT, noise=noise)
    steps = _steps(setting, registry, seed, key, log, time_s)
    for step, left in zip(steps, draws, strict=True):
        plugin = registry.get("mutation", step.mutation)
        given: dict[str, Any] = {
            "depth_m": depth_m,
            "details": {},
            "baseline_m": baseline_m,
            "time_s": time_s,
            **(copy.deepcopy(left) if plugin.draw == "shared" else own),
        }
        image = apply_step(image, plugin, step.options, given, frame=key)
    return image


def _steps(
    setting: Setting,
    registry: Registry,
    seed: int,
    key: str,
    log: str | None,
    time_s: float,
    details: dict[str, float] | None = None,
) -> tuple[Step, ...]:
    of = key if log is None else log
    return steps_at(setting, registry, seed=seed, log=of, time_s=time_s, details=details)


def _streams(
    setting: Setting, seed: int, key: str, log: str | None, *camera: str, noise: Noise = "own"
) -> Streams:
    """Return the random streams that a setting needs, of the left camera or of another."""
    drawn = drawn_by(setting) if noise == "own" else " + ".join(step.mutation for step in setting.steps)
    names = {"rng": (key, drawn), "log_rng": (key if log is None else log, drawn, LOG)}
    return {name: generator(seed, *parts, *camera) for name, parts in names.items() if name in setting.needs}


def refuse_moving(settings: Iterable[Setting], registry: Registry) -> None:
    """Raise where a setting moves what is in the image: boxes and labels beside it would no longer fit."""
    for setting in settings:
        if any(registry.get("mutation", step.mutation).moves is not None for step in setting.steps):
            raise MutationError(
                f"{setting.id} moves what is in the image, and here its boxes or labels would stay",
                wanted="a mutation that leaves everything where it is",
                fix="Use it in a study, which takes the answers back, or move boxes and labels yourself.",
            )


def drawn_by(setting: Setting) -> str:
    """Return the name that random streams have: the id, without the record of what made it."""
    records = [step.options[RECORD] for step in setting.steps if RECORD in step.options]
    name = setting.id
    for record in records:
        written = f"{RECORD}={shortest(record)}"
        name = name.replace(f"{written}, ", "").replace(f", {written}", "").replace(f"({written})", "")
    return name


def apply_step(
    image: Image, plugin: Plugin, options: Mapping[str, Any], given: Mapping[str, Any], *, frame: str
) -> Image:
    """Apply one mutation; `given` is what the engine has for it, None where the frame has none.

    Without a baseline the camera is the left or the only one, without a time the image stands alone. Users'
    code gets copies, and its result is copied: neither what it writes into its input nor what it keeps of its
    output reaches other images.
    """
    where = f"frame {frame!r}"
    there = {"baseline_m": 0.0, "time_s": 0.0, **given}
    extras = {name: there[name] for name in plugin.needs}
    for name, value in extras.items():
        if value is None:
            noun = name.removesuffix("_m")
            raise MutationError(
                f"{plugin.name} needs {noun}",
                where=where,
                got=f"no {noun}",
                fix=f"Add a {noun} folder to the data set (adverse mutate: --{noun}), or leave "
                f"{plugin.name} out.",
            )
    try:
        if plugin.ours:
            changed: Image = plugin.function(image, **options, **extras)
        else:
            copies = {name: _own_copy(value) for name, value in extras.items()}
            with settings_of(plugin.function.__module__):
                changed = plugin.function(_own_copy(image), **options, **copies)
    except AdverseError:
        raise
    except Exception as error:
        raise MutationError(
            f"the mutation {plugin.name} failed",
            where=where,
            got=one_line(error),
            fix=f"Fix it in {plugins.origin(plugin)}; adverse check-plugin may show why.",
        ) from error
    if not isinstance(changed, np.ndarray) or (changed.shape, changed.dtype) != (image.shape, image.dtype):
        raise MutationError(
            f"{plugin.name} did not return an image like the one it was given",
            where=where,
            got=f"{getattr(changed, 'shape', type(changed).__name__)} {getattr(changed, 'dtype', '')}",
            wanted=f"{image.shape} {image.dtype}",
            fix="Run adverse check-plugin on its file.",
        )
    return changed if plugin.ours else changed.copy()


def _own_copy(value: Any) -> Any:
    """Return a copy of an array, to be written to only if that one is; anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    own = value.copy()
    own.flags.writeable = value.flags.writeable
    return own


@overload
def apply(
    image: Image,
    mutation: str,
    *,
    seed: int = ...,
    key: str = ...,
    log: str | None = ...,
    time_s: float = ...,
    depth_m: Depth | None = ...,
) -> Image: ...
@overload
def apply(
    image: PillowImage,
    mutation: str,
    *,
    seed: int = ...,
    key: str = ...,
    log: str | None = ...,
    time_s: float = ...,
    depth_m: Depth | None = ...,
) -> PillowImage: ...
def apply(
    image: Image | PillowImage,
    mutation: str,
    *,
    seed: int = 0,
    key: str = "",
    log: str | None = None,
    time_s: float = 0.0,
    depth_m: Depth | None = None,
) -> Image | PillowImage:
    """Apply a mutation given by its id to one image, outside any study.

    The image is (row, column, channel) RGB uint8, or a Pillow image of mode RGB; what comes back is of the
    same kind. The same (seed, key, mutation) always gives the same pixels, here and in a study whose frame id
    is `key`; a mutation that keeps something in place over a log, such as drops on the lens, takes it from
    (seed, log, mutation), and one that drifts has the strength of `time_s` in the log.
    """
    registry = plugins.load()
    setting = _parsed(mutation, registry)
    given: dict[str, Any] = {"seed": seed, "key": key, "log": log, "time_s": time_s, "depth_m": depth_m}
    if isinstance(image, np.ndarray):
        return apply_setting(image, setting, registry, **given)
    pillow = _pillow_of_rgb(image)
    changed = apply_setting(np.array(image), setting, registry, **given)
    result: PillowImage = pillow.fromarray(changed)
    result.info = dict(image.info)
    return result


def _pillow_of_rgb(image: object) -> Any:
    """Return PIL.Image for an RGB image of its own; how to convert another mode is the caller's choice."""
    pillow = sys.modules.get("PIL.Image")  # whoever has such an image has imported it
    is_pillow = pillow is not None and isinstance(image, pillow.Image)
    mode = getattr(image, "mode", None)
    if is_pillow and mode == "RGB":
        return pillow
    convert = 'image.convert("RGB")' if is_pillow else "numpy.asarray(image)"
    raise MutationError(
        "the image is not RGB",
        got=f"a Pillow image of mode {mode}" if is_pillow else type(image).__name__,
        wanted="a numpy array (height, width, 3) of uint8, or a Pillow image of mode RGB",
        fix=f"Convert it first: {convert}.",
    )


@functools.lru_cache(maxsize=1024)
def _parsed(text: str, registry: Registry) -> Setting:
    """Read a setting once; it never leaves this module, so that nobody can change what is remembered."""
    return parse(text, registry)


def _unreadable(text: str, where: str) -> StudyError:
    return StudyError(
        "a mutation cannot be read",
        where=where,
        got=repr(text),
        wanted="name(option=value, ...), as in gaussian_blur(sigma_px=2)",
        fix=SEE_LIST,
    )


def _setting(
    steps: tuple[Step, ...], registry: Registry, where: str, group: Group | None, kept: Mapping[str, Any]
) -> Setting:
    plugins = [registry.get("mutation", step.mutation, where=where) for step in steps]
    names = [_id(plugin, step.options) for plugin, step in zip(plugins, steps, strict=True)]
    needs = frozenset[str]().union(*(plugin.needs for plugin in plugins))
    groups = [usual_group(step) for step in steps]
    if [step.mutation for step in steps] == [BASELINE]:
        chosen: Group = "baseline"
    else:
        chosen = group or ("severe" if "severe" in groups else "mild")
    name = " + ".join(names)
    coherent = LOG in kept and "rng" in needs  # without randomness there is nothing to keep
    drifts = drift(kept[DRIFT], where=where) if DRIFT in kept else None
    if drifts is not None:
        for plugin, step in zip(plugins, steps, strict=True):
            drifting_option(plugin, dict(step.options), where=where)
    over = LOG if coherent else "" if drifts is None else drift_words(drifts)
    if over:
        name = f"({name}) @ {over}" if len(names) > 1 else f"{name} @ {over}"
    return Setting(name, steps, chosen, needs, coherent, drifts)


def _id(plugin: Plugin, options: Mapping[str, Any]) -> str:
    named = {
        name: value
        for name, value in sorted(options.items())
        if plugin.options[name].required or value != plugin.options[name].default
    }
    inside = ", ".join(f"{name}={shortest(value)}" for name, value in named.items())
    return f"{plugin.name}({inside})" if inside else plugin.name


def _kept(coherent: Any) -> dict[str, Any] | None:
    """Return what `coherent:` of a study means, as what follows @; None where it means nothing."""
    if coherent is None:
        return {}
    if coherent in (LOG, STILL, DRIFT):
        return {DRIFT if coherent == DRIFT else LOG: {}}
    if isinstance(coherent, Mapping) and list(coherent) == [DRIFT] and isinstance(coherent[DRIFT], Mapping):
        return {DRIFT: dict(coherent[DRIFT])}
    return None


def _sweep(plugin: Plugin, options: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """Yield every combination of the listed values; a list that IS a value (a colour) is not a sweep."""
    for name, value in options.items():
        if value == [] and not _is_value(plugin.options.get(name), value):
            raise StudyError(
                f"{plugin.name} is swept over an empty list, so nothing would run",
                where=f"{where}.{name}",
                got=f"{name}: []",
                wanted="a value, or a list of at least one",
                fix=f"Give {name} a value, or drop {plugin.name}.",
            )
    choices = [
        value if isinstance(value, list) and not _is_value(plugin.options.get(name), value) else [value]
        for name, value in options.items()
    ]
    for combination in itertools.product(*choices):
        yield dict(zip(options, combination, strict=True))


def _is_value(option: Option | None, value: list[Any]) -> bool:
    if option is None:
        return True
    try:
        option.type.validate_python(tuple(value))
    except ValueError:
        return False
    return True
