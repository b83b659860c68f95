"""The registry: what a plug-in is, and which ones a study can name.

`load` collects the marked functions of our own packages, of the entry-point group "adverse" and of the files
that a study names; `bind` checks what a study says to one of them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

from adverse.content import digest
from adverse.errors import AdverseError, PluginError, StudyError, suggestion
from adverse.marks import (
    Draw,
    Hazard,
    LevelMark,
    MetricMark,
    Moves,
    RelationMark,
    SimpleMagnitude,
    Strength,
)
from adverse.plugins.options import Option, from_yaml, relative_to
from adverse.process_settings import settings_of
from adverse.user_files import USERS_FILE, does_not_load, imported_beside, load_python

R = TypeVar("R")
Kind = Literal["mutation", "sut", "dataset", "level", "metric", "relation"]
ENTRY_POINT_GROUP = "adverse"
BUILT_IN: Mapping[Kind, str] = {
    "mutation": "adverse.mutations",
    "sut": "adverse.suts",
    "dataset": "adverse.data",
    "level": "adverse.levels",
    "metric": "adverse.levels",
    "relation": "adverse.relations",
}
"""The package of each kind that has built-in plug-ins; imported when the kind is first asked for."""
LooksLike = Callable[[Path], Mapping[str, Any] | None]
"""Whether a folder (or file) looks like a data format: the options to read it with, or None."""


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
    stereo: Draw | None = None
    """How a mutation draws for a stereo pair, where it says so."""
    moves: Moves | None = None
    """How to undo that a mutation moves what is in the image; None: everything stays where it is."""
    level: LevelMark | None = None
    metric: MetricMark | None = None
    relation: RelationMark | None = None

    @property
    def ours(self) -> bool:
        """Whether it is built in."""
        return self.function.__module__.startswith("adverse.")

    @property
    def draw(self) -> Draw:
        """How a mutation draws for a stereo pair; what goes by depth is of the world unless it says so."""
        return self.stereo or ("shared" if "depth_m" in self.needs else "own")

    @property
    def searchable(self) -> Strength | None:
        """The strength of a mutation: what it says, or what its signature says, or none."""
        if self.strength is not None:
            return self.strength
        for name, option in self.options.items():
            schema = option.type.json_schema()
            most = schema.get("maximum", 0)
            if schema.get("type") == "number" and schema.get("unchanged_at") == 0 and most > 0:
                return Strength(name, 0, float(most))
        return None

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @functools.cached_property
    def code(self) -> str:
        """Hash of the code that decides what the plug-in does, and of the libraries it leans on."""
        sources = sorted(reachable_sources(inspect.unwrap(self.function).__module__))
        versions = [f"{name} {library_version(name)}" for name in self.libraries]
        return digest(self.name, *versions, *(path.read_bytes() for path in sources))

    def option_names(self) -> list[str]:
        """Return the option names, those that must be given first."""
        return sorted(self.options, key=lambda name: (not self.options[name].required, name))


@dataclass(frozen=True)
class ContractFinding:
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
            with settings_of(entry.module, begin=""):
                modules.append(importlib.import_module(entry.module))
        except Exception as error:
            raise does_not_load(f"entry point {entry.name!r} ({entry.module})", error) from error
    return Registry((plugin for module in modules for plugin in marked(module)), built_in=True)


@functools.cache
def built_in(kind: Kind) -> tuple[Plugin, ...]:
    """Return our own plug-ins of a kind, in the order in which they are listed."""
    if kind not in BUILT_IN:
        return ()
    modules = _modules_of(BUILT_IN[kind])
    ours = (plugin for module in modules for plugin in marked(module) if plugin.kind == kind)
    return tuple(sorted(ours, key=_place_in_list))


def load_file(path: Path) -> ModuleType:
    """Import a plug-in file."""
    module = load_python(path)
    if not marked(module):
        del sys.modules[module.__name__]
        raise PluginError(
            "the file marks no plug-in",
            where=str(path.resolve()),
            wanted="a function under @mutation, @sut, @dataset, @level, @metric or @relation",
            fix="from adverse import mutation, and put @mutation above the function.",
        )
    return module


def marked(module: ModuleType) -> list[Plugin]:
    """Return the plug-ins that a module itself defines."""
    marks = (getattr(value, "__adverse__", None) for value in vars(module).values())
    return [
        plugin
        for plugin in marks
        if isinstance(plugin, Plugin) and plugin.function.__module__ == module.__name__
    ]


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
            bound[name] = relative_to(base, from_yaml(option, given[name], f"{where}.{name}"))
        elif option.required:
            raise StudyError(
                f"{plugin.kind} {plugin.name!r} needs the option {name!r}",
                where=where,
                wanted=f"{name}: {option.shown_type}",
                fix=f"Add {name}: to it.",
            )
    return bound


def by_options(function: Callable[..., R]) -> Callable[..., R]:
    """Return a marked function as a study calls it: with every option by its own name, groups or not."""
    return function.__adverse__.function  # type: ignore[attr-defined, no-any-return]


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


def _place_in_list(plugin: Plugin) -> tuple[int, str]:
    return (len(plugin.needs) if plugin.kind == "level" else 0, plugin.name)


def _modules_of(package: str) -> list[ModuleType]:
    parent = importlib.import_module(package)
    names = sorted(info.name for info in pkgutil.iter_modules(parent.__path__) if not info.ispkg)
    return [importlib.import_module(f"{package}.{name}") for name in names]


def reachable_sources(module_name: str) -> set[Path]:
    """Return the source files of a module and of the modules of its own folder that it uses."""
    start = sys.modules[module_name]
    folder = Path(inspect.getsourcefile(start) or "").parent
    files: dict[str, Path] = {}
    queue = [start]
    while queue:
        module = queue.pop()
        file = Path(getattr(module, "__file__", None) or "")
        if module.__name__ in files or file.parent != folder or file.suffix != ".py":
            continue
        files[module.__name__] = file
        for value in vars(module).values():
            used = value if isinstance(value, ModuleType) else inspect.getmodule(value)
            if used is not None:
                queue.append(used)
    beside = imported_beside(Path(start.__file__ or "")) if module_name.startswith(USERS_FILE) else set()
    return {*files.values(), *beside}
