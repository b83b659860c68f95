"""The code that decides which version of an image a requirement is checked with is part of its identity."""

from __future__ import annotations

from adverse.requirements.versions import PLUGIN, SEARCH


def test_the_code_of_visual_change_and_of_the_search_is_named() -> None:
    assert all(path.is_file() for path in (PLUGIN, *SEARCH))
    assert {"change.py", "strength.py", "vif.py", "vifp.py", "marks.py"} <= {path.name for path in SEARCH}
