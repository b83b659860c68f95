"""The good studies that tests of bad input spoil."""

from __future__ import annotations

from pathlib import Path

import pytest

from .good_study import GoodStudy


@pytest.fixture
def coco(tmp_path: Path) -> GoodStudy:
    return GoodStudy(tmp_path / "study", "coco")


@pytest.fixture
def folder(tmp_path: Path) -> GoodStudy:
    return GoodStudy(tmp_path / "study", "folder")
