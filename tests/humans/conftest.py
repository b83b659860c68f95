"""What the tests of the experiment share."""

from __future__ import annotations

from human_studies import served

__all__ = ["served"]  # fixtures
