"""What is known about an image before its pixels are read, and the one way to say that it is damaged."""

from __future__ import annotations

from dataclasses import dataclass

from adverse.errors import DataError

COPY_AGAIN = "Copy the file again from its source, or take it out of the data set."


@dataclass(frozen=True)
class Header:
    """Size as stored (before any EXIF rotation), bits per channel, frames, and how pixels become RGB.

    `notes` names the normalisation: gray, palette, rgba, cmyk. `orientation` is the EXIF value 1..8, or
    None where there is EXIF data that cannot be read.
    """

    format: str
    width: int
    height: int
    notes: tuple[str, ...] = ()
    bits: int = 8
    frames: int = 1
    orientation: int | None = 1


def damaged(name: str, *, got: str | BaseException, wanted: str, where: str) -> DataError:
    """Return the error for a file that is of a known format but not whole."""
    text = got if isinstance(got, str) else f"{type(got).__name__}: {got}"
    return DataError(
        f"the {name} is truncated or corrupt",
        where=where,
        got=" ".join(text.split()),
        wanted=wanted,
        fix=COPY_AGAIN,
    )
