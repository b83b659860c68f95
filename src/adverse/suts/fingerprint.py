"""What identifies a system under test: its adapter's code, its settings and the content of its files.

Results are kept under this key, so it must change with anything that can change an answer, and with
nothing else: moving the weights to another folder or writing the options in another order keeps it.
A text that names a file stands for its content too, as nobody can see from outside what an adapter does
with it. No model is loaded; what its code opens by itself is noted when it runs (`file_access`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adverse.content import digest, file_sha256
from adverse.errors import StudyError
from adverse.plugins import Plugin, library_version, origin
from adverse.remote_files import named_path
from adverse.suts import predictions

NOT_IDENTITY = frozenset({"cwd"})
"""Path options that say where a program runs, not what it is."""
LONGEST_NAME = 4096
"""Characters; no text that is longer names a file."""


@dataclass(frozen=True)
class HashedFile:
    """A file that a system depends on: where it is, which is no part of the fingerprint, and its content."""

    path: str
    sha256: str


def fingerprint(plugin: Plugin, options: Mapping[str, Any]) -> str:
    """Return the key of a system under test, from the options as `plugins.bind` gives them."""
    return fingerprint_of(described(plugin, options))


def fingerprint_of(form: Mapping[str, Any]) -> str:
    """Return the key of a system from what `described` says it is made of."""
    content = {label: file["sha256"] for label, file in form["files"].items()}
    return digest(form["adapter"], form["code"], _canonical(form["options"]), _canonical(content))


def described(plugin: Plugin, options: Mapping[str, Any], files: Iterable[Path] = ()) -> dict[str, Any]:
    """Return what the fingerprint is made of, as plain data for the manifest.

    `files` are further files and folders that decide the answers, as a study names them.
    """
    settings, hashed = _identity(plugin, options)
    for number, path in enumerate(files):
        hashed.update(_contents(f"files[{number}]", path))
    return {
        "adapter": plugin.name,
        "code": plugin.code,
        "options": settings,
        "files": {label: asdict(file) for label, file in hashed.items()},
        "libraries": {name: library_version(name) for name in plugin.libraries},
    }


def hashes_of(form: Mapping[str, Any]) -> dict[Path, str]:
    """Return the hash of each file that a system is made of, by its path."""
    return {named_path(file["path"]): file["sha256"] for file in form["files"].values()}


def _identity(plugin: Plugin, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, HashedFile]]:
    settings: dict[str, Any] = {}
    files: dict[str, HashedFile] = {}
    defaults = {name: option.default for name, option in plugin.options.items() if not option.required}
    for name, value in sorted({**defaults, **options}.items()):
        if name not in NOT_IDENTITY:
            settings[name] = _settled(name, value, files)
            files.update(_named_in_text(name, value, Path(origin(plugin)).parent))
    extra = plugin.extra_files(options) if plugin.extra_files else ()
    files.update({f"extra[{number}]": _hashed("extra_files", path) for number, path in enumerate(extra)})
    return settings, files


def _settled(label: str, value: Any, files: dict[str, HashedFile]) -> Any:
    """Return an option as plain data, each path in it replaced by a mark, its content put into `files`."""
    if isinstance(value, Path):
        contents = dict(_contents(label, value))
        files.update(contents)
        return {"files": sorted(contents)}
    if isinstance(value, Mapping):
        return {str(key): _settled(f"{label}.{key}", item, files) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_settled(f"{label}[{number}]", item, files) for number, item in enumerate(value)]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def _named_in_text(label: str, value: Any, home: Path) -> Iterator[tuple[str, HashedFile]]:
    """Give the files that texts in an option name: from here, or from the folder of the adapter."""
    if isinstance(value, str) and 0 < len(value) < LONGEST_NAME:
        for path in (Path(value).expanduser() if value.startswith("~") else Path(value), home / value):
            if os.path.isfile(path):  # noqa: PTH113 - texts no path can have are no files
                yield label, _hashed(label, path)
                return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _named_in_text(f"{label}.{key}", item, home)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _named_in_text(f"{label}[{number}]", item, home)


def _contents(label: str, path: Path) -> Iterator[tuple[str, HashedFile]]:
    """Give the files behind one path option: itself, those of a template, or all those of a folder."""
    if predictions.is_template(path):
        for setting, file in predictions.files_of(path).items():
            yield f"{label}[{setting}]", _hashed(label, file)
    elif path.is_dir():
        for file in _files_below(path):
            yield f"{label}/{file.relative_to(path).as_posix()}", _hashed(label, file)
    else:
        yield label, _hashed(label, path)


def _files_below(folder: Path) -> Iterable[Path]:
    """Return all files below a folder but those that Python writes beside its sources."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__")


def _hashed(label: str, path: Path) -> HashedFile:
    try:
        return HashedFile(str(named_path(path).absolute()), file_sha256(named_path(path)))
    except OSError as error:
        raise StudyError(
            "a file of the system under test cannot be read",
            where=f"option {label!r}",
            got=f"{path}: {error.strerror or error}",
            wanted="a file that exists and may be read",
            fix="Check the path; in a study it is relative to the study file.",
        ) from error


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
