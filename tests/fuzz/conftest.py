"""One small campaign that tests look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.campaigns import TESTS, fuzz
from small_campaign import write_campaign


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_campaign(tmp_path_factory.mktemp("campaign"))


@pytest.fixture(scope="session")
def plain(study: Path) -> Path:
    """An unguided campaign done in this process."""
    ran = fuzz(study, study.parent / "plain")
    assert (ran.status, ran.tests) == ("complete", TESTS)
    return ran.folder.path
