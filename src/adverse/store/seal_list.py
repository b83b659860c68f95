"""seals.json: the hash of every file that was computed from a folder, and the state it was computed from.

The list holds a hash of itself and is read only byte by byte as it was written, so that a space that became
a tab is seen too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from adverse.errors import StoreError
from adverse.store.durable import write_file

if TYPE_CHECKING:
    from adverse.store.owned_folder import OwnedFolder

from adverse.content import digest

SIGNATURE = "signature.dsse.json"
"""The signed statement of what was tested; of whatever state it was signed in."""
ANALYSIS = "analysis"
"""The sub-folder of the results of each SUT, each by a name that says what they were made from."""
PLACES = ("results", ANALYSIS, "verdicts", "report_tables")
"""The sub-folders that hold nothing but sealed files."""
DERIVED = re.compile(
    r"(results|analysis|verdicts|report_tables)/\w[\w.-]*|(report|requirements|fuzz|until)\.html|requirements\.csv"
    r"|until\.(csv|json)|report_film\.webp|signature\.dsse\.json"
)
"""The files that are computed from others; nothing else is deleted because a list says so."""
BASE = re.compile(r"study\.yaml|log|times\.jsonl|logs/\w[\w.-]*")
"""Files of a campaign that are sealed too: unlike its manifest they differ with the number of workers."""


class Seal(NamedTuple):
    """The hash of a file, and the state of the run that it was made from."""

    sha256: str
    state: str


def read_seals(folder: OwnedFolder) -> dict[str, Seal]:
    """Return the seals by path below the folder; none where nothing was computed yet."""
    try:
        seals = _parsed(folder.seals.read_bytes())
        if seals is not None:
            return dict(seals)
    except FileNotFoundError:
        if not folder.seals.is_symlink():
            return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise StoreError(
        "the list of results was changed after it was written", where=str(folder.seals), fix=_fix(folder)
    )


def lost_list(folder: OwnedFolder) -> StoreError:
    """Return the error for results without the list that they were written with."""
    return StoreError(
        "the list of results is missing", where=str(folder.seals), got="no such file", fix=_fix(folder)
    )


def _fix(folder: OwnedFolder) -> str:
    """Say how to get from results that nobody can vouch for to new ones."""
    there = [path.name for path in sorted(folder.path.iterdir()) if DERIVED.fullmatch(path.name)]
    there += [name for name in PLACES if (folder.path / name).is_dir()]
    listed = ", ".join([folder.seals.name, *there])
    verdicts = "; saved verdicts by adverse check --save" if "verdicts" in there else ""
    return (
        f"Restore it from a copy. Or delete what was computed from the {folder.kind} ({listed}) and have it "
        f"computed again: {folder.recomputed_by}{verdicts}."
    )


@lru_cache(maxsize=2)
def _parsed(raw: bytes) -> Mapping[str, Seal] | None:
    """Return the seals of a list that is as we write it; one command reads the same list many times."""
    files = json.loads(raw)["files"]
    if all(DERIVED.fullmatch(name) or BASE.fullmatch(name) for name in files) and raw == _listed(files):
        return {name: Seal(*map(str, entry)) for name, entry in files.items()}
    return None


def write_seals(folder: OwnedFolder, seals: Mapping[str, Seal]) -> None:
    """Write the list in place of the one before."""
    write_file(folder.seals, _listed({name: list(seals[name]) for name in sorted(seals)}))


def _listed(files: Mapping[str, Any]) -> bytes:
    return json.dumps({"files": files, "digest": digest_of(files)}, indent=1).encode() + b"\n"


def digest_of(body: Mapping[str, Any]) -> str:
    """Return the hash by which a JSON file shows that it was changed."""
    return digest(json.dumps(body, sort_keys=True, default=str))
