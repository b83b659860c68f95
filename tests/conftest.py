"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

from browsing import browser, driven, run

__all__ = ["browser", "driven", "run"]  # fixtures

settings.register_profile("no clocks", deadline=None)
settings.load_profile("no clocks")
