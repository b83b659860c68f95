"""Paths with {mutation} in them: one file for each setting of a study."""

from __future__ import annotations

import glob
import re
from pathlib import Path

PLACEHOLDER = "{mutation}"


def is_template(path: Path) -> bool:
    """Tell whether a path stands for one file per setting."""
    return PLACEHOLDER in str(path)


def path_for(template: Path, setting: str) -> Path:
    """Return the file of one setting.

    >>> path_for(Path("vendor/{mutation}.json"), "blur(sigma_px=2)").as_posix()
    'vendor/blur(sigma_px=2).json'
    """
    return Path(str(template).replace(PLACEHOLDER, setting))


def files_of(template: Path) -> dict[str, Path]:
    """Return the files that exist for a template, by setting id."""
    parts = str(template).split(PLACEHOLDER)
    pattern = re.compile(re.escape(parts[0]) + "(.*)" + r"\1".join(map(re.escape, parts[1:])))
    found = {}
    for name in glob.glob("*".join(map(glob.escape, parts))):  # noqa: PTH207 - Path.glob does not escape
        match = pattern.fullmatch(name)
        if match and Path(name).is_file():
            found[match.group(1)] = Path(name)
    return dict(sorted(found.items()))
