"""A short orchard log to annotate, rendered once."""

from __future__ import annotations

import pytest

from annotation_scenes import Scene, orchard_times_s, write_orchard

FRAMES = 10
"""From 11 m away up to 6 m."""


@pytest.fixture(scope="package")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return write_orchard(tmp_path_factory.mktemp("orchard"), orchard_times_s(39)[6 : 6 + FRAMES])
