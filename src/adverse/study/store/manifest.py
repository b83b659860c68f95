"""The provenance manifest: what a number rests on, down to the bytes.

It names the hash of every file of the run folder that matters and carries a hash of itself, so that
`adverse verify` finds a change of a single byte and says where it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adverse.errors import StoreError
from adverse.hashes import digest, file_sha256
from adverse.study.store.durable import write_file
from adverse.study.store.folder import RunFolder


def write_manifest(folder: RunFolder, manifest: Mapping[str, Any]) -> None:
    """Write the manifest with the hashes of the folder's files and of itself."""
    body = {key: value for key, value in manifest.items() if key not in ("files", "digest")}
    sealed = _sealed_files(folder, running=manifest["status"] == "running")
    body["files"] = {str(path.relative_to(folder.path)): file_sha256(path) for path in sealed}
    body["digest"] = _own_digest(body)
    write_file(folder.manifest, json.dumps(body, indent=2, default=str).encode() + b"\n")


def read_manifest(folder: RunFolder) -> dict[str, Any]:
    """Read the manifest, or say that it is damaged."""
    try:
        manifest = json.loads(folder.manifest.read_bytes())
        if manifest["digest"] == _own_digest({k: v for k, v in manifest.items() if k != "digest"}):
            return dict(manifest)
    except (ValueError, KeyError, TypeError):
        pass
    raise StoreError(
        "the manifest was changed after it was written",
        where=str(folder.manifest),
        fix="Restore it from a copy, or run again with --fresh.",
    )


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words what changed between two runs in one folder; what did not run is not in it."""
    found = []
    for what, path in (
        ("the seed", ("study", "seed")),
        ("the input files", ("data", "fingerprint")),
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
            f"{noun} {name} changed" for name in after if name in before and before[name] != after[name]
        ]
    return found


def _sealed_files(folder: RunFolder, *, running: bool) -> list[Path]:
    """Return the files that will not change any more; while units are done, the journal still grows."""
    files = [folder.study, folder.frames, folder.truth, folder.inputs]
    if not running:
        files += [folder.cells, folder.journal, *sorted(folder.results.rglob("*"))]
    return [path for path in files if path.is_file()]


def _own_digest(body: Mapping[str, Any]) -> str:
    return digest(json.dumps(body, sort_keys=True, default=str))


def _at(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree.get(key, {})
    return tree
