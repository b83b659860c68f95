"""The provenance manifest: what a number rests on, down to the bytes.

It names the hash of every file that results are made from and carries a hash of itself, so that every reader
finds a change of a single byte and says where it is. What is worked out from them is sealed apart (`seals`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adverse.content import file_sha256
from adverse.store.folder import RunFolder

NAMED = 3
"""Files that are named when many changed."""


FORMAT = 3
"""Of the run folder; raised when what is in it changes its meaning."""


def write_manifest(folder: RunFolder, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a run with the hashes of the files that results are made from."""
    sealed = _sealed_files(folder, running=manifest["status"] == "running")
    files = {str(path.relative_to(folder.path)): file_sha256(path) for path in sealed}
    body = {key: value for key, value in manifest.items() if key != "files"}
    folder.write_manifest({**body, "format": FORMAT, "files": files})


def read_inputs(folder: RunFolder) -> dict[str, str]:
    """Return the hash of every input file by its path; nothing where the table cannot be read."""
    try:
        table = pq.read_table(folder.inputs).to_pydict()
    except (OSError, pa.ArrowException):
        return {}
    return dict(zip(table["path"], table["sha256"], strict=True))


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words what changed between two runs in one folder; what did not run is not in it."""
    found = []
    for what, path in (
        ("the seed", ("study", "seed")),
        ("the annotations", ("data", "annotations")),
        ("the data options", ("data", "options")),
        ("the statistics settings", ("statistics",)),
        ("library versions", ("environment", "libraries")),
    ):
        if _at(old, path) != _at(new, path):
            found.append(f"{what} changed")
    for noun, key in (("SUT", "suts"), ("mutation", "settings")):
        before, after = old.get(key, {}), new.get(key, {})
        found += [f"{noun} {name} is new" for name in after if name not in before]
        found += [f"{noun} {name} is gone" for name in before if name not in after]
        found += [
            f"{noun} {name} changed"
            for name in after
            if name in before and _without_names(before[name]) != _without_names(after[name])
        ]
    return found


def input_differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Say which input files are not what they were, by the hash of each path.

    >>> input_differences({"a.png": "1", "b.png": "2"}, {"a.png": "3", "c.png": "4"})
    ['1 input file changed: a.png', '1 input file is new: c.png', '1 input file is gone: b.png']
    """
    groups = (
        ("changed", sorted(path for path in new if path in old and old[path] != new[path])),
        ("new", sorted(new.keys() - old.keys())),
        ("gone", sorted(old.keys() - new.keys())),
    )
    lines = []
    for what, paths in groups:
        if paths:
            many = len(paths) > 1
            verb = "" if what == "changed" else "are " if many else "is "
            listed = ", ".join(paths[:NAMED]) + (", ..." if len(paths) > NAMED else "")
            lines.append(f"{len(paths)} input file{'s' if many else ''} {verb}{what}: {listed}")
    return lines


def _without_names(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what the files of a SUT are called: their content decides, and it is in the fingerprint."""
    return {key: value for key, value in entry.items() if key != "files"}


def _sealed_files(folder: RunFolder, *, running: bool) -> list[Path]:
    """Return the files that results are made from; while units are done, the journal still grows."""
    files = [folder.study, folder.frames, folder.truth, folder.inputs]
    if not running:
        files += [folder.cells, folder.journal]
    return [path for path in files if path.is_file()]


def _at(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree.get(key, {})
    return tree
