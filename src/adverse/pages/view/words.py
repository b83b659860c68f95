"""The few sentences that the explorer makes from numbers, and foreign text that must not give a path away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

PATH = re.compile(r"(?<![\w.…])(?:[A-Za-z]:)?[\\/](?:[^\\/\s'\";:,()]+[\\/])*([^\\/\s'\";:,()]*)")
"""A path from the root of a disk; its last part is kept."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "miss"), counted(0, "miss"), counted(2, "false alarm")
    ('1 miss', '0 misses', '2 false alarms')
    """
    ending = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{'' if number == 1 else ending}"


def metres(value: Any) -> float | None:
    """Return a distance as JSON can hold it: None where it is not known, or never."""
    return float(value) if np.isfinite(value) else None


def without_paths(text: str, *roots: Path) -> str:
    """Return text in which folders of this machine are left out; the terminal has the whole of it.

    >>> without_paths("no such file; where: /home/ann/my data/a.png", Path("/home/ann/my data"))
    'no such file; where: …/a.png'
    >>> without_paths("test/row3/0001 at 3 m/s is not in /data/truth.json")
    'test/row3/0001 at 3 m/s is not in …/truth.json'
    """
    for root in roots:
        text = text.replace(str(root), "…")
    return PATH.sub(lambda found: f"…/{found[1]}", text)
