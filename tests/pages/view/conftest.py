"""The explorer of the small runs, asked without a network, as one who was given the address."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from adverse.pages.view.app import routes
from adverse.pages.view.session import ExploredRun
from adverse.serving import Door, application

DOOR = Door("127.0.0.1", 8123, "secret-token")


@pytest.fixture(scope="session")
def guest_of() -> Callable[[Path], TestClient]:
    def guest(run: Path) -> TestClient:
        client = TestClient(application(DOOR, routes(ExploredRun(run))), base_url="http://127.0.0.1:8123")
        client.cookies.set(DOOR.cookie, DOOR.token)
        return client

    return guest


@pytest.fixture(scope="session")
def guest(run: Path, guest_of: Callable[[Path], TestClient]) -> TestClient:
    return guest_of(run)


@pytest.fixture(scope="session")
def driver(driven: Path, guest_of: Callable[[Path], TestClient]) -> TestClient:
    return guest_of(driven)
