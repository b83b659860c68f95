"""Worlds rendered once: kept in the user's cache, by all that decides a pixel of them.

Rendering goes into a folder of its own that is renamed when it is complete, so an interrupted one is never
taken for whole, and two processes that both start do the work twice but get the same result.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from adverse.data.worlds.writing import Watch, WorldSpec, write_world
from adverse.errors import DataError
from adverse.hashes import digest
from adverse.plugins import library_version
from adverse.user_cache import user_cache

LIBRARIES = ("numba", "llvmlite", "numpy", "opencv-python-headless")
"""Distributions whose version might change a pixel."""


def cache_folder() -> Path:
    """Return where data sets are kept: $XDG_CACHE_HOME/adverse/worlds, ~/.cache/adverse/worlds by default."""
    return user_cache("worlds")


def cached_world(spec: WorldSpec, *, workers: int = 1, watch: Watch | None = None) -> Path:
    """Return the folder of a rendered data set; render it first if it is not there."""
    final = cache_folder() / f"{spec.world}-{key(spec)}"
    if final.is_dir():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    except OSError as error:
        raise _cannot_write(final.parent, error) from error
    try:
        write_world(making, spec, workers=workers, watch=watch)
        with contextlib.suppress(OSError):  # another process was first; its result is the same
            making.rename(final)
    except OSError as error:
        raise _cannot_write(making, error) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    if not final.is_dir():
        raise _cannot_write(final, OSError("the finished folder could not be renamed"))
    return final


def key(spec: WorldSpec) -> str:
    """Return the hash of all that decides a data set: its spec, our code, the libraries."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    versions = [f"{name} {library_version(name)}" for name in LIBRARIES]
    return digest(repr(spec), *versions, *(source.read_bytes() for source in sources), size=8)


def _cannot_write(where: Path, error: OSError) -> DataError:
    return DataError(
        "the rendered world cannot be kept",
        where=str(where),
        got=error.strerror or str(error),
        wanted="a folder that can be written, with room for the data set",
        fix="Set XDG_CACHE_HOME to such a folder, or render with `adverse world` and read it as `folder`.",
    )
