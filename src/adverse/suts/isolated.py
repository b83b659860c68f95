"""Any adapter in a process of its own: a crash, a hang or a leak then costs one answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from adverse.processes import our_environment, our_module
from adverse.suts.child import Child


def isolated(
    adapter: str,
    options: Mapping[str, Any],
    plugin_files: Iterable[Path] = (),
    *,
    name: str | None = None,
    default_class: str,
    start_timeout_s: float = 120,
    timeout_s: float = 60,
    memory_limit_mb: int | None = None,
    share_mb: int | None = None,
) -> Child:
    """Return a Detector that gives the answers of an adapter, which lives in a child process.

    `options` are those that `plugins.bind` gave. The answers are equal to the bit to those of the
    adapter in this process: images are passed on in the same groups, numbers are not rounded.
    """
    description = {
        "adapter": adapter,
        "options": _plain(options),
        "plugins": [str(path.absolute()) for path in plugin_files],
        "name": name or adapter,
        "default_class": default_class,
    }
    return Child(
        our_module("adverse.suts.serve", json.dumps(description)),
        name=name or adapter,
        env=our_environment(),
        start_timeout_s=start_timeout_s,
        timeout_s=timeout_s,
        memory_limit_mb=memory_limit_mb,
        share_mb=share_mb,
    )


def _plain(value: Any) -> Any:
    """Return bound options as JSON can carry them and `plugins.bind` takes them back."""
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
