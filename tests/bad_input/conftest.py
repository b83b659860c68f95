"""The good studies that tests of bad input spoil."""

from __future__ import annotations

from pathlib import Path

import pytest

from .good_study import FinishedStudy, GoodStudy


@pytest.fixture
def coco(tmp_path: Path) -> GoodStudy:
    return GoodStudy(tmp_path / "study", "coco")


@pytest.fixture(scope="session")
def finished_coco(tmp_path_factory: pytest.TempPathFactory) -> FinishedStudy:
    return FinishedStudy(GoodStudy(tmp_path_factory.mktemp("finished") / "study", "coco"))


@pytest.fixture
def done(finished_coco: FinishedStudy) -> GoodStudy:
    """As `coco`, and run."""
    return finished_coco.put_back()


@pytest.fixture
def folder(tmp_path: Path) -> GoodStudy:
    return GoodStudy(tmp_path / "study", "folder")
