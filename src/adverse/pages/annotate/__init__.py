"""The page to annotate: boxes with ids, and points in both images that tell where people are."""

from adverse.pages.annotate.app import routes_of

__all__ = ["routes_of"]
