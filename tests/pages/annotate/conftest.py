"""A short orchard log to annotate, rendered once."""

from __future__ import annotations

import pytest

from annotation_scenes import Scene, orchard_times_s, write_orchard

PART = slice(6, 24)
"""Of the 50 frames of the drive: from 10.8 m away up to 5.7 m."""


@pytest.fixture(scope="package")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return write_orchard(tmp_path_factory.mktemp("orchard"), orchard_times_s(50)[PART])
