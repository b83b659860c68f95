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
DERIVED = re.compile(
    r"(results|verdicts|report_tables)/\w[\w.-]*|(report|requirements|fuzz)\.html|requirements\.csv"
    r"|report_film\.webp|signature\.dsse\.json"
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
        "the list of results was changed after it was written",
        where=str(folder.seals),
        fix=f"Restore it, or delete it and run {folder.recomputed_by}: results are computed again.",
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
