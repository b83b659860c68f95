"""The image of a frame that no test may look at."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn


class NoImage:
    """Has a place and no pixels: checks of recorded predictions go by boxes alone."""

    recipe = "none"

    def __init__(self, name: str = "none.png") -> None:
        self.path = Path(name)

    def __call__(self) -> NoReturn:
        """Fail: nothing here needs pixels."""
        raise AssertionError(f"{self.path} was read")
