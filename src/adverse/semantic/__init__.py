"""Semantic mutation: change what is in a scene and its interpretation together, so that the answer is known.

`scenes` is what is changed, `resources` what can be put in, `recipes` what was decided, `propose` decides and
`apply` does it. Nothing here reads a file but `resources` and the sources of a frame.
"""

from adverse.semantic.applying import Mutated, apply, removal_mask
from adverse.semantic.checks import PRESETS, Cell, Options
from adverse.semantic.proposing import KINDS, propose
from adverse.semantic.recipes import Recipe, Rejected, added_class
from adverse.semantic.resources import Entity, Resources
from adverse.semantic.scenes import Scene, Thing, scene_of

__all__ = [
    "KINDS",
    "PRESETS",
    "Cell",
    "Entity",
    "Mutated",
    "Options",
    "Recipe",
    "Rejected",
    "Resources",
    "Scene",
    "Thing",
    "added_class",
    "apply",
    "propose",
    "removal_mask",
    "scene_of",
]
