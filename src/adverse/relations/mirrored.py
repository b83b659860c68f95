"""Mirrored boxes under a mirror: what is there does not depend on which side it is on."""

from __future__ import annotations

from adverse.plugins import relation
from adverse.relations.pairs import kept_objects
from adverse.relations.relation import Checks, RelationInput


@relation(title="objects that are not the same in a mirror", mutations=("mirror",))
def mirrored(given: RelationInput) -> Checks:
    """Check that the boxes in the mirrored image, mirrored back, are those of the clean frame."""
    return kept_objects(given)
