"""What holds for all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

from browsing import browser, driven, run
from compiled_loops import compile_loops

__all__ = ["browser", "driven", "run"]  # fixtures

settings.register_profile("no clocks", deadline=None, max_examples=50)  # others than last time, each time
settings.load_profile("no clocks")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Spare each worker of `pytest -n` what can be done once."""
    compile_loops()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let reports say which rows of the reliability matrix a test shows (`docs/reliability_matrix.py`)."""
    for item in items:
        case = getattr(getattr(item, "callspec", None), "id", "")
        marks = item.iter_markers("fault")
        rows = [row for mark in marks if case in mark.kwargs.get("cases", [case]) for row in mark.args]
        if rows:
            item.user_properties.append(("faults", rows))
