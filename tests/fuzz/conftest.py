"""The campaign that several files look at, and a cache of resource sets for all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuzz.whole_campaign import TESTS, fuzz
from small_campaign import write_campaign


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_campaign(tmp_path_factory.mktemp("campaign"))


@pytest.fixture(scope="session")
def plain(study: Path) -> Path:
    """An unguided campaign done in this process."""
    ran = fuzz(study, study.parent / "plain")
    assert (ran.status, ran.tests) == ("complete", TESTS)
    return ran.folder.path
