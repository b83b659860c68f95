"""Same objects in brighter and darker light: what is there does not depend on how bright the image is."""

from __future__ import annotations

from adverse.plugins import relation
from adverse.relations.pairs import kept_objects
from adverse.relations.relation import Checks, RelationInput

OF_LIGHT = ("brightness", "c.brightness", "c.contrast", "c.saturate", "t.brightness", "t.contrast")
"""Mutations that change how bright the image is, and nothing of what is in it."""


@relation(title="objects that are not the same in other light", mutations=OF_LIGHT)
def same_objects(given: RelationInput) -> Checks:
    """Check that the objects found in other light are those found on the clean frame."""
    return kept_objects(given)
