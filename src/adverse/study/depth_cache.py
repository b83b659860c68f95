"""The cache of computed depth: one file for each map, found by what decides it, and bounded in size.

Maps lie in `adverse/depth` of the user's cache folder, 6 bytes for each pixel. Together they take at most
`ADVERSE_DEPTH_CACHE_GB`, 20 by default. Where they would take more, those are deleted that were not used for
longest; never those that the present run needs, however large it is.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.content import user_cache
from adverse.errors import StudyError
from adverse.types import Depth

LIMIT = "ADVERSE_DEPTH_CACHE_GB"
"""Variable of the environment that bounds the cache, in 10^9 bytes."""
DEFAULT_GB = 20.0
DAMAGED = (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile)
"""What reading an archive raises that is empty, cut or changed."""


class DepthMap(NamedTuple):
    """A map (H,W) in metres, its confidence (H,W) 0..255, its origin (H,W), and the share of each origin."""

    depth_m: Depth
    confidence: NDArray[np.uint8]
    origin: NDArray[np.uint8]
    shares: Mapping[str, float]


class Pruned(NamedTuple):
    """How many maps were deleted, and how many bytes are left."""

    deleted: int
    left: int

    def words(self) -> str:
        """Say what was done.

        >>> Pruned(3, 2_400_000_000).words()
        '3 depth maps that were not used for longest are deleted from the cache; 2.4 GB are left'
        """
        return (
            f"{self.deleted} depth maps that were not used for longest are deleted from the cache; "
            f"{self.left / 1e9:.1f} GB are left"
        )


def file_of(key: str) -> Path:
    """Return where the map of a key is kept."""
    return user_cache("depth") / key[:2] / f"{key}.npz"


def read_map(file: Path) -> DepthMap | None:
    """Read a map from the cache; None where there is none, or it is damaged, or another one's.

    The archive has checksums, and says by which key it was kept.
    """
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            depth, confidence, origin = (archive[name] for name in ("depth_m", "confidence", "origin"))
            shares = json.loads(archive["shares"].tobytes())
            key = archive["key"].tobytes().decode()
    except DAMAGED:
        return None
    whole = depth.ndim == 2 and depth.shape == confidence.shape == origin.shape
    kinds = (depth.dtype, confidence.dtype, origin.dtype) == (np.float32, np.uint8, np.uint8)
    if key != file.stem or not whole or not kinds:
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # when it was last used
    return DepthMap(depth, confidence, origin, shares)


def read_shares(file: Path) -> dict[str, float] | None:
    """Read the share of each origin in a map of the cache."""
    with contextlib.suppress(*DAMAGED), file.open("rb") as opened, np.load(opened) as archive:
        shares: dict[str, float] = json.loads(archive["shares"].tobytes())
        return shares
    return None


def keep_map(file: Path, made: DepthMap) -> None:
    """Write a map into the cache, whole or not at all; a cache that cannot be written is none."""
    shares = np.frombuffer(json.dumps(dict(made.shares)).encode(), np.uint8)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{file.stem}-", suffix=".npz", dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                np.savez(
                    out,
                    depth_m=made.depth_m,
                    confidence=made.confidence,
                    origin=made.origin,
                    shares=shares,
                    key=np.frombuffer(file.stem.encode(), np.uint8),
                )
            Path(name).replace(file)
        finally:
            Path(name).unlink(missing_ok=True)


def limit_bytes() -> int:
    """Return how much the cache may hold, or raise where the environment says no number."""
    text = os.environ.get(LIMIT, "")
    try:
        limit = float(text) if text else DEFAULT_GB
    except ValueError:
        limit = math.nan
    if not 0 <= limit < math.inf:
        raise StudyError(
            "the bound of the depth cache is not a size",
            where=f"the variable {LIMIT}",
            got=repr(text),
            wanted="a number of GB from 0 up",
            fix=f"Set it to one, such as {LIMIT}=20, or unset it.",
        )
    return round(limit * 1e9)


def prune(needed: Collection[Path]) -> Pruned:
    """Delete the maps that were not used for longest, but none that is needed, down to the bound."""
    limit = limit_bytes()
    found: list[tuple[float, str, int]] = []
    for path in user_cache("depth").glob("*/*.npz"):
        with contextlib.suppress(OSError):  # another process may be pruning too
            status = path.stat()
            found.append((status.st_mtime, str(path), status.st_size))
    total, deleted, held = sum(size for _, _, size in found), 0, set(map(str, needed))
    for _, name, size in sorted(found):
        if total <= limit:
            break
        if name not in held:
            with contextlib.suppress(OSError):
                Path(name).unlink()
                deleted += 1
                total -= size
    return Pruned(deleted, total)
