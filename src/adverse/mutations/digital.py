"""What happens to the numbers after the sensor: nothing, so far."""

from __future__ import annotations

from adverse.plugins import mutation
from adverse.types import Image


@mutation
def identity(image: Image) -> Image:
    """Change nothing: the baseline that every mutated run is compared with."""
    return image.copy()
