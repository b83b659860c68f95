"""Python files of users: each imported once, with the modules that lie beside it and none of another folder.

What such a file imports from its own folder decides what it does, so those files are found by their text and
belong to its fingerprint.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from adverse.content import digest
from adverse.errors import PluginError
from adverse.file_access import access_of_plugin
from adverse.process_settings import settings_of

USERS_FILE = "adverse_plugin_"
"""How the names begin under which users' files are imported."""
HOME = "__adverse_folder__"
"""Under this name a module beside a plug-in holds the folder that it was imported from."""


def load_python(path: Path) -> ModuleType:
    """Import a user's Python file; one file is imported once, under a name made from its path.

    It may import what lies beside it while it is loaded. The standard library and installed packages come
    first, so nothing there takes the place of a module that we use.
    """
    path = path.resolve()
    name = f"{USERS_FILE}{path.stem}_{digest(str(path), size=4)}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise PluginError(
            "the plug-in file does not exist", where=str(path), fix="Check the path under plugins:."
        )
    loader = SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or path.suffix != ".py":
        raise PluginError("a plug-in must be a .py file", where=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _beside(path.parent), access_of_plugin(path).noted(), settings_of(name, begin=""):
            loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise does_not_load(str(path), error, path) from error
    return module


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Let modules of a folder be imported, after all others; those of another plug-in's folder stay there.

    What is imported is marked with its folder, also when the plug-in fails to load: another plug-in may have
    a module of the same name.
    """
    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        others = getattr(module, "__dict__", {}).get(HOME, folder) != folder
        if others and ((folder / f"{top}.py").is_file() or (folder / top).is_dir()):
            del sys.modules[name]
    before = set(sys.modules)
    sys.path.append(str(folder))
    sys.path_importer_cache.pop(str(folder), None)
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = Path(getattr(sys.modules[name], "__file__", None) or "")
            if not name.startswith(USERS_FILE) and _search_folder(name, file) == folder:
                vars(sys.modules[name])[HOME] = folder


def _search_folder(name: str, file: Path) -> Path | None:
    """Return the folder in which a module of this name was looked up: the one of its outermost package."""
    depth = name.count(".") + (file.name == "__init__.py")
    return file.parents[depth] if depth < len(file.parents) else None


def imported_beside(file: Path) -> set[Path]:
    """Return the files beside a user's file that it imports, and those that they import, by their text.

    What is imported is looked up there last, so some of them may not be used; then they count in vain.
    """
    return {path for name in _imports(file) for path in module_files(file.parent, name)}


def module_files(folder: Path, name: str) -> set[Path]:
    """Return the files of a module in a folder, and those there that it imports; none if it is elsewhere."""
    found: set[Path] = set()
    waiting = [name]
    while waiting:
        top = folder / waiting.pop().partition(".")[0]
        there = {path for path in (top.with_name(f"{top.name}.py"), *top.rglob("*.py")) if path.is_file()}
        waiting += sorted({name for path in there - found for name in _imports(path)})
        found |= there
    return found


def _imports(file: Path) -> frozenset[str]:
    """Return the modules that a file imports, by their outermost name."""
    return _imported_names(file.read_bytes())


@lru_cache(maxsize=100)
def _imported_names(source: bytes) -> frozenset[str]:
    """Return the modules that source code imports; the same files are asked about again and again."""
    names: list[str] = []
    for node in _nodes(source):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
    return frozenset(name.partition(".")[0] for name in names if name)


def _nodes(source: bytes) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):  # then nothing is imported by it either
        return []


def does_not_load(where: str, error: BaseException, file: Path | None = None) -> PluginError:
    """Return the error to raise, with the last line of the file that was reached, not of what it called."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if file is None or frame.filename == str(file)
    ]
    line = f", line {frames[-1].lineno}" if frames else ""
    if isinstance(error, SyntaxError):
        line = f", line {error.lineno}"
    return PluginError(
        "a plug-in does not load",
        where=f"{where}{line}",
        got=f"{type(error).__name__}: {error}",
        fix="Mend the file, or take it out of plugins:.",
    )
