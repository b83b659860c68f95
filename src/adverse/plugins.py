"""The only registry: mutations, SUTs, data formats, levels and metrics, each a function with a decorator.

A decorator marks its function and changes nothing elsewhere; `load` collects the marked functions of our
own packages, of the entry-point group "adverse" and of the files a study names. What a plug-in can be
told in a study is read from its signature, so there is no second declaration to keep true; what a signature
cannot say (the hazards of a mutation, the words of a level) is said in the decorator. Options that several
plug-ins share are declared once, as the fields of a frozen dataclass: a parameter of that type stands for all
of them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_type_hints, overload

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from adverse.content import digest
from adverse.errors import AdverseError, MutationError, PluginError, StudyError, suggestion
from adverse.marks import LEVEL_NEEDS, Cost, Hazard, LevelMark, MetricMark, SimpleMagnitude, Strength
from adverse.type_words import in_words, lower_first
from adverse.user_files import USERS_FILE, does_not_load, imported_beside, load_python

Kind = Literal["mutation", "sut", "dataset", "level", "metric"]
ENTRY_POINT_GROUP = "adverse"
BUILT_IN: Mapping[Kind, str] = {
    "mutation": "adverse.mutations",
    "sut": "adverse.suts",
    "dataset": "adverse.data",
    "level": "adverse.levels",
}
"""The package of each kind that has built-in plug-ins; imported when the kind is first asked for."""
GIVEN_BY_ENGINE = ("depth_m", "labels", "rng", "registry", "told")
"""Parameters of a mutation that are not options: the engine fills them in, the names say with what.

`registry` is for mutations made of others; `told` is a dict that takes numbers worth a record.
"""

PIXEL_LIBRARIES = ("numba", "numpy", "opencv-python-headless", "scipy")
"""Distributions whose version can change what a mutation does to a pixel."""

NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Colour = tuple[
    Annotated[int, Field(ge=0, le=255)],
    Annotated[int, Field(ge=0, le=255)],
    Annotated[int, Field(ge=0, le=255)],
]

LooksLike = Callable[[Path], Mapping[str, Any] | None]
"""Tells whether a folder (or file) looks like a data format: the options to read it with, or None."""

P = ParamSpec("P")
R = TypeVar("R")


def unchanged_at(value: float) -> Any:
    """Mark an option's type with the value at which the mutation changes nothing; the contract checks it.

    >>> Strength = Annotated[Fraction, unchanged_at(0)]
    """
    return Field(json_schema_extra={"unchanged_at": value})


@dataclass(frozen=True)
class Option:
    """One thing a study can say to a plug-in."""

    name: str
    type: TypeAdapter[Any]
    required: bool
    default: Any

    @property
    def shown_type(self) -> str:
        """What it may be, in words."""
        return in_words(self.type.json_schema())


@dataclass(frozen=True)
class Plugin:
    """A marked function and what its signature says about it."""

    kind: Kind
    name: str
    function: Callable[..., Any]
    options: Mapping[str, Option]
    needs: frozenset[str] = frozenset()
    libraries: tuple[str, ...] = ()
    extra_files: Callable[[Mapping[str, Any]], Iterable[Path]] | None = None
    looks_like: LooksLike | None = None
    hazards: tuple[Hazard, ...] | None = None
    """What a mutation stands for; None where it does not say, () where it stands for none."""
    strength: Strength | None = None
    simple: SimpleMagnitude | None = None
    """What a mutation by depth comes to at one depth."""
    level: LevelMark | None = None
    metric: MetricMark | None = None

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @functools.cached_property
    def code(self) -> str:
        """Hash of the code that decides what the plug-in does, and of the libraries it leans on."""
        sources = sorted(_reachable_sources(inspect.unwrap(self.function).__module__))
        versions = [f"{name} {library_version(name)}" for name in self.libraries]
        return digest(self.name, *versions, *(path.read_bytes() for path in sources))

    def option_names(self) -> list[str]:
        """Return the option names, those that must be given first."""
        return sorted(self.options, key=lambda name: (not self.options[name].required, name))


@dataclass(frozen=True)
class Finding:
    """One check of its contract on one plug-in; `error` is None where it holds."""

    plugin: str
    check: str
    error: AdverseError | None

    @property
    def ok(self) -> bool:
        """Whether the check holds."""
        return self.error is None


class Registry:
    """The plug-ins that a study can name: the given ones and, with `built_in`, our own.

    Our own of a kind are imported when that kind is first asked for, or when a given one is of that kind.
    """

    def __init__(
        self, plugins: Iterable[Plugin], files: tuple[Path, ...] = (), *, built_in: bool = False
    ) -> None:
        self.files = files
        self._built_in = built_in
        self._given = tuple(plugins)
        self._kinds: dict[Kind, dict[str, Plugin]] = {}
        for kind in dict.fromkeys(plugin.kind for plugin in self._given):
            self._of(kind)

    def sources(self) -> list[Path]:
        """Return the files of the user that plug-ins were loaded from, and those beside that they import."""
        beside = {path for file in self.files for path in imported_beside(file)}
        return sorted({path.resolve() for path in {*self.files, *beside}})

    @property
    def given(self) -> tuple[Plugin, ...]:
        """The plug-ins that are not our own."""
        return self._given

    def all(self, kind: Kind) -> list[Plugin]:
        """Return the plug-ins of a kind by name; levels by how much context they need."""
        return sorted(self._of(kind).values(), key=_place_in_list)

    def get(self, kind: Kind, name: str, *, where: str | None = None) -> Plugin:
        """Return one plug-in, or say which ones there are."""
        plugin = self._of(kind).get(name)
        if plugin is None:
            raise StudyError(
                f"there is no {kind} called {name!r}",
                where=where,
                fix=suggestion(name, (p.name for p in self.all(kind))) + f" See: adverse list {kind}s.",
            )
        return plugin

    def _of(self, kind: Kind) -> dict[str, Plugin]:
        if kind not in self._kinds:
            by_name: dict[str, Plugin] = {}
            ours = built_in(kind) if self._built_in else ()
            for plugin in (*ours, *(plugin for plugin in self._given if plugin.kind == kind)):
                other = by_name.get(plugin.name)
                if other is not None and other.function is not plugin.function:
                    raise PluginError(
                        f"two plug-ins are called {plugin.name!r}",
                        got=f"{origin(other)} and {origin(plugin)}",
                        fix="Rename one of them; built-in names cannot be replaced.",
                    )
                by_name[plugin.name] = plugin
            self._kinds[kind] = by_name
        return self._kinds[kind]


def _place_in_list(plugin: Plugin) -> tuple[int, str]:
    return (len(plugin.needs) if plugin.kind == "level" else 0, plugin.name)


@functools.cache
def built_in(kind: Kind) -> tuple[Plugin, ...]:
    """Return our own plug-ins of a kind, in the order in which they are listed."""
    if kind not in BUILT_IN:
        return ()
    modules = _modules_of(BUILT_IN[kind])
    ours = (plugin for module in modules for plugin in marked(module) if plugin.kind == kind)
    return tuple(sorted(ours, key=_place_in_list))


def load(files: Iterable[Path] = ()) -> Registry:
    """Collect our own plug-ins, the installed ones, and those of the given files.

    What needs no file is collected once per process.
    """
    paths = tuple(files)
    if not paths:
        return installed()
    given = (plugin for path in paths for plugin in marked(load_file(path)))
    return Registry((*installed().given, *given), paths, built_in=True)


@functools.cache
def installed() -> Registry:
    """Collect our own plug-ins and those of the entry points; the same registry at every call."""
    modules = []
    for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        try:
            modules.append(importlib.import_module(entry.module))
        except Exception as error:
            raise does_not_load(f"entry point {entry.name!r} ({entry.module})", error) from error
    return Registry((plugin for module in modules for plugin in marked(module)), built_in=True)


def load_file(path: Path) -> ModuleType:
    """Import a plug-in file."""
    module = load_python(path)
    if not marked(module):
        del sys.modules[module.__name__]
        raise PluginError(
            "the file marks no plug-in",
            where=str(path.resolve()),
            wanted="a function under @mutation, @sut, @dataset, @level or @metric",
            fix="from adverse import mutation, and put @mutation above the function.",
        )
    return module


def marked(module: ModuleType) -> list[Plugin]:
    """Return the plug-ins that a module itself defines."""
    found = (getattr(value, "__adverse__", None) for value in vars(module).values())
    return [
        plugin
        for plugin in found
        if isinstance(plugin, Plugin) and plugin.function.__module__ == module.__name__
    ]


@overload
def mutation(function: Callable[P, R]) -> Callable[P, R]: ...
@overload
def mutation(
    *,
    name: str | None = ...,
    hazards: tuple[Hazard, ...] | None = ...,
    strength: Strength | None = ...,
    simple: SimpleMagnitude | None = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def mutation(
    function: Callable[P, R] | None = None,
    *,
    name: str | None = None,
    hazards: tuple[Hazard, ...] | None = None,
    strength: Strength | None = None,
    simple: SimpleMagnitude | None = None,
) -> Any:
    """Mark a pure function `f(image, *, options, depth_m?, labels?, rng?) -> image` as a mutation.

    The function that comes back checks its input first, so the body need not. `hazards` are what it stands
    for, () for none; `strength` is the option that makes it stronger and can be searched; `simple` is what a
    mutation by depth comes to at one depth.
    """

    def mark(plain: Callable[P, R]) -> Callable[P, R]:
        options = _options_of(plain, skip=GIVEN_BY_ENGINE)
        call = _with_groups(plain)
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
                    given[key] = _valid_option(title, option, given[key])
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
        options = _options_of(plain)
        return _marked(
            plain,
            Plugin("sut", title, _with_groups(plain), options, libraries=libraries, extra_files=extra_files),
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
        options, call = _options_of(plain), _with_groups(plain)
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
    name: str | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function `f(LevelInput) -> Outcomes` (or Events, or a dict of them by variant) as a level.

    `title` and `sentence` are its words, `needs` some of `LEVEL_NEEDS`; the rest is said by `LevelMark`.
    """
    mark_of_level = LevelMark(title, sentence, variants, hits, per_log, cost, exact, drives)

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
    *, title: str, lowest: float = 0.0, highest: float = 1.0, name: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function `f(LevelInput) -> LogScores` as a metric of detections at one threshold.

    Its values lie between `lowest` and `highest`.
    """
    mark_of_metric = MetricMark(title, lowest, highest)

    def mark(plain: Callable[P, R]) -> Callable[P, R]:
        _check_one_parameter(plain, "LevelInput")
        return _marked(plain, Plugin("metric", name or plain.__name__, plain, {}, metric=mark_of_metric))

    return mark


def bind(
    plugin: Plugin,
    given: Mapping[str, Any],
    *,
    where: str,
    base: Path | None = None,
    also: Iterable[str] = (),
) -> dict[str, Any]:
    """Check what a study says to a plug-in against its signature; paths become relative to `base`.

    `also` are keys that the section itself knows, so that a misspelt one is recognised.
    """
    for name in given:
        if name not in plugin.options:
            raise StudyError(
                f"{plugin.kind} {plugin.name!r} has no option {name!r}",
                where=f"{where}.{name}",
                fix=suggestion(str(name), [*plugin.options, *also]),
            )
    bound: dict[str, Any] = {}
    for name, option in plugin.options.items():
        if name in given:
            bound[name] = _relative_to(base, _from_yaml(option, given[name], f"{where}.{name}"))
        elif option.required:
            raise StudyError(
                f"{plugin.kind} {plugin.name!r} needs the option {name!r}",
                where=where,
                wanted=f"{name}: {option.shown_type}",
                fix=f"Add {name}: to it.",
            )
    return bound


@functools.cache
def library_version(name: str) -> str:
    """Return the version of an installed distribution, or `absent`."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def origin(plugin: Plugin) -> str:
    """Return the file that a plug-in is written in."""
    return inspect.getsourcefile(inspect.unwrap(plugin.function)) or plugin.function.__module__


def _marked(function: Callable[P, R], plugin: Plugin) -> Callable[P, R]:
    function.__adverse__ = plugin  # type: ignore[attr-defined]
    return function


def _options_of(function: Callable[..., Any], skip: tuple[str, ...] = ()) -> dict[str, Option]:
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


def _with_groups(function: Callable[P, R]) -> Callable[..., R]:
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


def by_options(function: Callable[..., R]) -> Callable[..., R]:
    """Return a marked function as a study calls it: with every option by its own name, groups or not."""
    return function.__adverse__.function  # type: ignore[attr-defined, no-any-return]


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
    said = [("hazard", hazard.option) for hazard in hazards or ()]
    if strength is not None:
        said.append(("strength", strength.option))
    for noun, option in said:
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
            f"{title} cannot work on an array of this shape",
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
            f"{title} cannot work where depth is no distance",
            got=f"{1 - np.count_nonzero(depth > 0) / depth.size:.1%} of pixels are NaN, zero or negative",
            wanted="a distance in metres, or +inf for the sky, at every pixel",
            fix="Fill them with adverse.depth.validity.usable, or leave the frame out.",
        )


def _valid_option(title: str, option: Option, value: Any) -> Any:
    try:
        return option.type.validate_python(value)
    except ValidationError as error:
        raise MutationError(
            f"{title} cannot take this {option.name}",
            got=repr(value),
            wanted=f"{option.shown_type} ({_reason(error)})",
            fix=f"Give {option.name} such a value.",
        ) from error


def _from_yaml(option: Option, value: Any, where: str) -> Any:
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


def _reason(error: ValidationError) -> str:
    return "; ".join(sorted({lower_first(str(item["msg"])) for item in error.errors()}))


def _relative_to(base: Path | None, value: Any) -> Any:
    if base is None:
        return value
    if isinstance(value, Path):
        return base / value.expanduser()
    if isinstance(value, list | tuple):
        return type(value)(_relative_to(base, item) for item in value)
    return value


def _modules_of(package: str) -> list[ModuleType]:
    parent = importlib.import_module(package)
    names = sorted(info.name for info in pkgutil.iter_modules(parent.__path__) if not info.ispkg)
    return [importlib.import_module(f"{package}.{name}") for name in names]


def _reachable_sources(module_name: str) -> set[Path]:
    """Return the source files of a module and of the modules of its own folder that it uses."""
    start = sys.modules[module_name]
    folder = Path(inspect.getsourcefile(start) or "").parent
    found: dict[str, Path] = {}
    queue = [start]
    while queue:
        module = queue.pop()
        file = Path(getattr(module, "__file__", None) or "")
        if module.__name__ in found or file.parent != folder or file.suffix != ".py":
            continue
        found[module.__name__] = file
        for value in vars(module).values():
            used = value if isinstance(value, ModuleType) else inspect.getmodule(value)
            if used is not None:
                queue.append(used)
    beside = imported_beside(Path(start.__file__ or "")) if module_name.startswith(USERS_FILE) else set()
    return {*found.values(), *beside}
