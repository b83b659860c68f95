"""The registry: built once in a process."""

from __future__ import annotations

import numpy as np
import pytest

from adverse import mutations, plugins


def test_the_registry_is_built_once_and_an_id_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    image = np.full((2, 2), 100, np.uint8)
    first = mutations.apply(image, "brightness(scale=0.37)")
    assert plugins.load() is plugins.load()

    def unexpected(*_: object, **__: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(plugins, "_modules_of", unexpected)
    monkeypatch.setattr(plugins, "bind", unexpected)
    assert first.tolist() == mutations.apply(image, "brightness(scale=0.37)").tolist() == [[37, 37], [37, 37]]
