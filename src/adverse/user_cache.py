"""Where things are kept between runs that can be made or fetched again at any time."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache(kind: str) -> Path:
    """Return the folder of one kind of thing: adverse/KIND in $XDG_CACHE_HOME, ~/.cache by default."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "adverse" / kind
