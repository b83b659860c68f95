"""The only registry: mutations, SUTs, data formats, levels, metrics and relations, each a marked function.

The options that a study can give to a plug-in are read from its signature, so there is no second declaration
to keep true.
"""

from adverse.plugins.decorators import PIXEL_LIBRARIES, dataset, level, metric, mutation, relation, sut
from adverse.plugins.options import Colour, Fraction, NonNegative, Option, Positive, unchanged_at
from adverse.plugins.registry import (
    ENTRY_POINT_GROUP,
    ContractFinding,
    Kind,
    LooksLike,
    Plugin,
    Registry,
    bind,
    built_in,
    by_options,
    installed,
    library_version,
    load,
    load_file,
    marked,
    origin,
)

__all__ = [
    "ENTRY_POINT_GROUP",
    "PIXEL_LIBRARIES",
    "Colour",
    "ContractFinding",
    "Fraction",
    "Kind",
    "LooksLike",
    "NonNegative",
    "Option",
    "Plugin",
    "Positive",
    "Registry",
    "bind",
    "built_in",
    "by_options",
    "dataset",
    "installed",
    "level",
    "library_version",
    "load",
    "load_file",
    "marked",
    "metric",
    "mutation",
    "origin",
    "relation",
    "sut",
    "unchanged_at",
]
