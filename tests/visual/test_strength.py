"""Strengths that give a wanted visual change, and ranges covered evenly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse import plugins
from adverse.errors import MutationError, StudyError
from adverse.marks import Strength
from adverse.mutations import alpha_blend, motion_blur
from adverse.mutations.batteries import TRANSFORMATIONS
from adverse.visual import visual_change
from adverse.visual.strength import TOLERANCE, Searchable, cover, find_strength
from visual.photos import drawn, needs_photos, photo

DEPTH = np.tile(np.linspace(3, 60, 120, dtype=np.float32), (96, 1))
OPTIONS: dict[str, dict[str, Any]] = {
    "defocus": {"focus_m": 2.0},
    "signal_noise": {"psi": 0.5, "sigma_u": 0.0},
}
REGISTRY = plugins.load()
STRENGTHS = {
    **dict.fromkeys((f"t.{name}" for name in TRANSFORMATIONS), Strength("strength", 0, 1)),
    "alpha_blend": Strength("alpha", 0, 1),
    "brightness": Strength("scale", 1, 0),
    "defocus": Strength("kappa", 0, 100, power=2),
    "gaussian_blur": Strength("sigma_px", 0, 40, power=2),
    "glare": Strength("veiling_ratio", 0, 3, power=2),
    "haze": Strength("beta", 0, 3.912, power=4),
    "jpeg": Strength("quality", 100, 1, whole=True, exact=False),
    "lens_drops": Strength("coverage", 0, 0.9),
    "lens_mud": Strength("coverage", 0, 0.9),
    "low_light": Strength("stops", 0, 14),
    "motion_blur": Strength("length_px", 0, 100, power=2),
    "rain": Strength("rate_mm_h", 0, 1000, power=3),
    "salt_pepper": Strength("fraction", 0, 1, power=2),
    "signal_noise": Strength("sigma_w", 0, 255, power=2),
    "snow": Strength("rate_mm_h", 0, 10, power=3),
}
"""What every built-in mutation says, itself or by its signature; haze ends at a visibility of one metre."""

FAINT = """
from typing import Annotated
import numpy as np
from adverse import mutation
from adverse.plugins import Fraction, unchanged_at
@mutation
def faint(image, *, amount: Annotated[Fraction, unchanged_at(0)]):
    "Darken a little."
    return (image * (1 - 0.2 * amount)).astype(np.uint8)
"""


@pytest.mark.parametrize("mutation", sorted(STRENGTHS))
def test_every_strength_leaves_the_image_at_0_and_changes_it_most_at_1(mutation: str) -> None:
    one = Searchable(
        drawn(), mutation, options=OPTIONS.get(mutation), depth_m=DEPTH, backend="vifp", registry=REGISTRY
    )
    assert (one.at(0) == drawn()).all()
    assert one.change(1) > 0.45


@pytest.mark.parametrize("mutation", sorted(STRENGTHS))
def test_a_wanted_change_is_found(mutation: str) -> None:
    how: dict[str, Any] = {
        "options": OPTIONS.get(mutation),
        "depth_m": DEPTH,
        "backend": "vifp",
        "registry": REGISTRY,
    }
    for wanted in (0.35, 0.6):
        found = find_strength(drawn(), mutation, wanted, **how)
        if found.reached:
            assert abs(found.visual_change - wanted) <= TOLERANCE
            assert visual_change(drawn(), found.image, backend="vifp") == found.visual_change
        else:
            assert found.reason is not None
            why = {
                "jpeg": "jumps",
                "t.jpeg": "jumps",
                "rain": "even rate_mm_h 1000",
                "snow": "even rate_mm_h 10",
            }  # whole qualities; thin air
            assert mutation in why, found.reason
            assert why[mutation] in found.reason


@needs_photos
@pytest.mark.parametrize(
    "mutation", ["t.contrast", "t.frost", "t.gaussian_noise", "gaussian_blur", "alpha_blend"]
)
def test_a_wanted_change_is_found_on_a_photo(mutation: str) -> None:
    found = find_strength(photo(3), mutation, 0.5, registry=REGISTRY)
    assert found.reached
    assert found.tries <= 16


@settings(max_examples=25)
@given(st.floats(0, 1), st.sampled_from(["t.contrast", "gaussian_blur", "t.rgb_shift"]))
def test_what_is_found_is_the_nearest_or_says_why(wanted: float, mutation: str) -> None:
    searchable = Searchable(drawn(), mutation, backend="vifp", registry=REGISTRY)
    found = searchable.find(wanted)
    assert found.tries <= 24
    assert found.reached == (abs(found.visual_change - wanted) <= TOLERANCE)
    assert (found.reason is None) == found.reached
    again = searchable.find(wanted)
    assert (again.value, again.reached) == (found.value, found.reached)


def test_the_found_value_is_the_option_itself() -> None:
    found = find_strength(drawn(), "alpha_blend", 0.4, backend="vifp", registry=REGISTRY)
    assert (alpha_blend(drawn(), alpha=found.value) == found.image).all()
    found = find_strength(
        drawn(), "motion_blur", 0.4, options={"angle_deg": 45.0}, backend="vifp", registry=REGISTRY
    )
    assert (motion_blur(drawn(), length_px=found.value, angle_deg=45) == found.image).all()


def test_random_ones_draw_the_same_at_every_strength() -> None:
    one = Searchable(drawn(), "t.gaussian_noise", seed=4, key="a", registry=REGISTRY)
    weak, strong = (one.at(s).astype(float) - drawn() for s in (0.02, 0.04))
    assert np.corrcoef(weak.ravel(), strong.ravel())[0, 1] > 0.95
    other = Searchable(drawn(), "t.gaussian_noise", seed=4, key="b", registry=REGISTRY)
    assert abs(np.corrcoef(weak.ravel(), (other.at(0.02).astype(float) - drawn()).ravel())[0, 1]) < 0.1


def test_what_cannot_be_reached_is_said_with_the_nearest() -> None:
    weak = find_strength(drawn(), "brightness", 0.999, backend="vifp", registry=REGISTRY)
    assert weak.visual_change > 0.9
    invisible = find_strength(drawn(), "t.jpeg", 0.003, backend="vifp", registry=REGISTRY)
    assert not invisible.reached or invisible.visual_change <= 0.013
    few = Searchable(drawn(), "gaussian_blur", backend="vifp", registry=REGISTRY).find(0.5, tries=2)
    assert (few.reached, few.reason) == (False, "not within 2 tries")
    assert few.tries == 2


def test_the_top_of_a_weak_mutation_is_named(tmp_path: Path) -> None:
    file = tmp_path / "weak.py"
    file.write_text(FAINT)
    registry = plugins.load([file])
    found = find_strength(drawn(), "faint", 0.7, backend="vifp", registry=registry)
    assert not found.reached
    assert found.reason is not None
    assert found.reason.startswith("even amount 1 changes no more than 0.")
    assert found.value == 1


@pytest.mark.parametrize("mutation", ["t.contrast", "gaussian_blur", "t.gaussian_noise"])
def test_a_range_is_covered_evenly(mutation: str) -> None:
    covered = cover(drawn(), mutation, 0.6, 12, backend="vifp", registry=REGISTRY)
    parts = [int(one.visual_change / 0.05) for one in covered.found]
    assert len(set(parts)) == len(parts) >= 10
    assert len(covered.found) + len(covered.missed) == 12
    assert covered.tries == covered.rejected + sum(one.visual_change > 0 for one in covered.found)
    assert covered.tries < 120
    assert all(one.reason for one in covered.missed)


def test_covering_is_keyed() -> None:
    how: dict[str, Any] = {"backend": "vifp", "registry": REGISTRY}
    one, same = (cover(drawn(), "t.contrast", 0.5, 4, seed=1, **how) for _ in range(2))
    other = cover(drawn(), "t.contrast", 0.5, 4, seed=2, **how)
    values = [[found.value for found in coverage.found] for coverage in (one, same, other)]
    assert values[0] == values[1] != values[2]


def test_wrong_questions_are_refused() -> None:
    with pytest.raises(MutationError, match="between 0 and 1"):
        find_strength(drawn(), "t.contrast", 1.2, registry=REGISTRY)
    with pytest.raises(StudyError, match="has no searchable strength"):
        find_strength(drawn(), "c.fog", 0.2, registry=REGISTRY)
    with pytest.raises(StudyError, match="is what is searched for"):
        find_strength(drawn(), "gaussian_blur", 0.2, options={"sigma_px": 2.0}, registry=REGISTRY)
    with pytest.raises(MutationError, match="needs depth"):
        find_strength(drawn(), "haze", 0.2, registry=REGISTRY)
    with pytest.raises(StudyError, match="needs the option 'focus_m'"):
        find_strength(drawn(), "defocus", 0.2, depth_m=DEPTH, registry=REGISTRY)
    with pytest.raises(StudyError, match="at least 1"):
        cover(drawn(), "t.contrast", 0.5, 0, registry=REGISTRY)


def test_mutations_have_the_strengths_they_say_and_the_ends_are_values_they_take() -> None:
    found = {plugin.name: plugin.searchable for plugin in REGISTRY.all("mutation")}
    assert {name: strength for name, strength in found.items() if strength} == STRENGTHS
    for name, strength in STRENGTHS.items():
        plugin = REGISTRY.get("mutation", name)
        plugins.bind(plugin, {strength.option: strength.most, **OPTIONS.get(name, {})}, where=name)
