"""Versions of an image: within the range that was asked for, by bounded tries, told as they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse import plugins
from adverse.errors import MutationError
from adverse.requirements.sampling import VersionInput, VersionSampler, value_of
from adverse.seeds import generator
from adverse.visual import visual_change
from adverse.visual.strength import read_transformation
from pictures import photo

REGISTRY = plugins.load()
IMAGE = photo(64, 72)
LARGE = photo(160, 160)
DEPTH = np.linspace(2, 40, 64 * 72, dtype=np.float32).reshape(64, 72)


def drawing(text: str, low: float, high: float, *, tries: int = 24) -> VersionSampler:
    return VersionSampler(read_transformation(text, REGISTRY), (low, high), tries, "vifp", {})


@pytest.mark.parametrize("text", ["t.contrast", "t.gaussian_noise", "t.jpeg", "haze", "gaussian_blur"])
@pytest.mark.parametrize("key", range(3))
def test_a_version_lies_within_its_range(text: str, key: int) -> None:
    details: dict[str, float] = {}
    rng = generator(key, text)
    version = drawing(text, 0.3, 0.6).draw(VersionInput(IMAGE, rng, REGISTRY, DEPTH, details))
    assert 0.3 <= details["visual_change"] <= 0.6
    assert visual_change(IMAGE, version, backend="vifp") == pytest.approx(details["visual_change"])
    again = drawing(text, 0.3, 0.6).draw(VersionInput(IMAGE, generator(key, text), REGISTRY, DEPTH, {}))
    assert np.array_equal(version, again)


@pytest.mark.parametrize("text", ["t.contrast", "t.gaussian_noise", "t.jpeg", "gaussian_blur"])
def test_versions_cover_the_range_evenly(text: str) -> None:
    """A SUT that fails in a band of visual change falls by that band's share of the range."""
    low, high, count, reached, steps = 0.45, 0.85, 120, [], []
    for key in range(count):
        details: dict[str, float] = {}
        rng = generator(key, text)
        row, column = divmod(9 * key % 1000, 100)  # each image has steps of its own
        image = LARGE[row : row + 48, column : column + 48]
        drawing(text, low, high).draw(VersionInput(image, rng, REGISTRY, None, details))
        reached.append(details["visual_change"])
        steps.append(abs(details["visual_change"] - details["aimed_at"]))
    assert max(steps) <= (0.05 if text == "t.jpeg" else 0.01)  # its quality goes in steps
    ranks = (np.arange(count) + 0.5) / count
    gaps = (np.sort(reached) - low) / (high - low) - ranks
    chance = 1.36 / np.sqrt(count)  # Kolmogorov and Smirnov, 5 %
    assert np.abs(gaps).max() < chance + max(steps) / (high - low)
    band = np.mean((np.array(reached) > 0.6) & (np.array(reached) < 0.72))
    assert band == pytest.approx(0.12 / (high - low), abs=0.09)  # two standard errors


def test_tries_are_bounded_and_told() -> None:
    details: dict[str, float] = {}
    with pytest.raises(MutationError, match="not found in so many tries"):
        drawing("gaussian_blur", 0.3, 0.31, tries=2).draw(
            VersionInput(IMAGE, generator(0, ""), REGISTRY, None, details)
        )
    assert details == {"aimed_at": pytest.approx(0.305, abs=0.005), "tries": 2}


def test_what_no_strength_gives_is_said() -> None:
    with pytest.raises(MutationError, match="never so large") as caught:
        drawing("t.jpeg", 0.999, 1.0).draw(VersionInput(IMAGE, generator(0, ""), REGISTRY, None, {}))
    assert "0.999 to 1.000 by t.jpeg" in str(caught.value.wanted)


def test_draws_that_are_all_too_strong_are_refused() -> None:
    transformation = read_transformation("gaussian_blur", REGISTRY, drawn={"sigma_px": 5.0})
    blind = VersionSampler(transformation, (0, 0.1), 5, "vifp", {"sigma_px": {"uniform": [5, 9]}})
    details: dict[str, float] = {}
    with pytest.raises(MutationError, match="none of the draws"):
        blind.draw(VersionInput(IMAGE, generator(0, ""), REGISTRY, None, details))
    assert details == {"tries": 5}


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.floats(0.01, 1), st.floats(0.01, 5))
def test_options_are_drawn_within_their_distributions(key: int, low: float, width: float) -> None:
    rng = generator(key, "options")
    for kind in ("uniform", "loguniform"):
        assert low * (1 - 1e-9) <= value_of({kind: [low, low + width]}, rng) <= (low + width) * (1 + 1e-9)
    assert value_of({"choice": [1, 2, low]}, rng) in (1, 2, low)
