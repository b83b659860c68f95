"""The code that decides which version of an image a requirement is checked with is part of its identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adverse import plugins
from adverse.mutations.settings import apply_setting, drawn_by, expand
from adverse.requirements.versions import PLUGIN, SEARCH
from adverse.types import Setting, Step


def test_the_code_of_visual_change_and_of_the_search_is_named() -> None:
    assert all(path.is_file() for path in (PLUGIN, *SEARCH))
    assert {"change.py", "strength.py", "vif.py", "vifp.py", "marks.py"} <= {path.name for path in SEARCH}


@pytest.mark.parametrize(
    ("change", "same"),
    [({"made_by": "another"}, True), ({"highest": 0.61}, False), ({"version": 1}, False)],
)
def test_what_is_drawn_depends_on_what_is_asked_for_not_on_the_release(
    change: dict[str, Any], *, same: bool
) -> None:
    registry = plugins.load([PLUGIN])
    image = np.random.default_rng(0).integers(0, 256, (48, 48, 3)).astype(np.uint8)
    options = {
        "transformation": "t.contrast",
        "lowest": 0.0,
        "highest": 0.6,
        "tries": 20,
        "made_by": "abc",
        "backend": "vifp",
    }
    settings = [expand({"up_to": each}, registry, where="")[0] for each in (options, options | change)]
    details: list[dict[str, float]] = [{}, {}]
    made = [
        apply_setting(image, setting, registry, seed=7, key="frame", details=said)
        for setting, said in zip(settings, details, strict=True)
    ]
    assert settings[0].id != settings[1].id  # so that the cache holds them apart
    assert (details[0] == details[1]) is same
    assert np.array_equal(made[0], made[1]) is same
    assert "made_by" not in drawn_by(settings[0])


def test_a_record_leaves_no_trace_wherever_it_stands() -> None:
    steps = (
        Step("a", {"made_by": "x"}),
        Step("b", {"aim": 1, "made_by": "x"}),
        Step("c", {"made_by": "y z"}),
    )
    setting = Setting(
        "a(made_by=x) + b(aim=1, made_by=x) + c(made_by='y z', w=2)", steps, "mild", frozenset()
    )
    assert drawn_by(setting) == "a + b(aim=1) + c(w=2)"
