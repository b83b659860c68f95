"""What can be chosen about mutations: sizes, checks, extensions, and where to look (for guided fuzzing)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adverse.errors import MutationError, suggestion

PAPER_CHECKS = ("size", "unoccluded", "whole", "frame", "perspective", "road", "light")
"""The conformity checks of the paper, in the order they are made."""
DEPTH_CHECKS = ("apart", "visible")
"""Checks that need depth, made when `occlusion` is on."""


@dataclass(frozen=True)
class Cell:
    """Where a guided campaign wants a mutation; a field that is None asks for nothing.

    `position` is (column, row) of a `grid` of columns x rows laid over the image, and holds the middle of
    the box of what is added or changed; `size_px` is the range [low, high) of its longest side.
    """

    donor_class: str | None = None
    position: tuple[int, int] | None = None
    grid: tuple[int, int] = (4, 2)
    size_px: tuple[float, float] | None = None


@dataclass(frozen=True)
class Options:
    """How mutations are proposed. The defaults are the paper's; `off` names checks to leave out.

    `min_side_px` is the least longest side of the box of a donor, by class. `least_in_one_piece` is the share
    of its pixels that must hang together. `vanishing_grid` is columns x rows.
    `light_within` is the greatest difference of median HSV values. `tries` bounds the candidates that are
    looked at pixel by pixel.

    The extensions: `occlusion` lets what is nearer hide what is added, and refuses what would be in the same
    place (needs depth). `shadow` darkens the ground under it, `feather_px` blends its edge inwards,
    `harmonise` fits its colours to the new surroundings: these three change the image alone. `moves` lets it
    stand elsewhere, scaled by the ground plane (needs depth or a horizon).
    """

    min_side_px: Mapping[str, int] = field(default_factory=lambda: {"car": 100, "person": 50})
    least_in_one_piece: float = 1.0
    vanishing_grid: tuple[int, int] = (2, 2)
    light_within: float = 5.0
    off: frozenset[str] = frozenset()
    tries: int = 200
    occlusion: bool = False
    least_visible: float = 0.25
    shadow: bool = False
    feather_px: int = 0
    harmonise: bool = False
    moves: bool = False
    recoloured: tuple[str, ...] = ("car",)
    removed: tuple[str, ...] = ("car", "person")

    def __post_init__(self) -> None:
        known = (*PAPER_CHECKS, *DEPTH_CHECKS)
        for name in sorted(self.off):
            if name not in known:
                raise MutationError(
                    "there is no such check to turn off", got=repr(name), fix=suggestion(name, known)
                )
        if min(self.vanishing_grid) < 1 or self.tries < 1 or self.feather_px < 0:
            got = f"vanishing_grid {self.vanishing_grid}, tries {self.tries}, feather_px {self.feather_px}"
            raise MutationError("an option is out of range", got=got, wanted="at least 1, 1 and 0")
