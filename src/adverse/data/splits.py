"""How a study names the splits of a data set: `split: {validation: val, test: test}`."""

from __future__ import annotations

from collections.abc import Mapping

from adverse.errors import StudyError
from adverse.types import Split

FIELD = "{split}"


def named(split: Mapping[Split, str] | None) -> list[tuple[Split, str | None, str]]:
    """Return (split, its name in the data, prefix of ids); ids need a prefix only among several splits.

    >>> named(None)
    [('test', None, '')]
    >>> named({"validation": "val", "test": "test"})
    [('validation', 'val', 'validation/'), ('test', 'test', 'test/')]
    """
    if split is None:
        return [("test", None, "")]
    if not split or len(set(split.values())) != len(split):
        raise StudyError(
            "each split needs data of its own",
            where="data.split",
            got=str(dict(split)),
            wanted="different names, such as {validation: val, test: test}",
            fix="Give every split its own name, or leave split out.",
        )
    several = len(split) > 1
    return [(kind, name, f"{kind}/" if several else "") for kind, name in split.items()]
