"""Every mutation says which hazard it stands for, and a run's hazards are those of its settings."""

from __future__ import annotations

import pytest

from adverse import plugins
from adverse.mutations.batteries import BATTERIES
from adverse.reliability.hazards import (
    GUIDE_WORDS,
    HAZARDS,
    LOCATIONS,
    hazard_coverage,
    hazard_words,
    mutations_of,
)


def test_every_mutation_of_ours_has_its_hazard_and_none_is_made_up() -> None:
    assert {plugin.name for plugin in plugins.load().all("mutation")} == set(HAZARDS)


def test_entries_are_of_the_known_places_and_guide_words() -> None:
    for hazards in HAZARDS.values():
        for hazard in hazards:
            assert hazard.location in LOCATIONS
            assert hazard.guide_word in GUIDE_WORDS
            assert hazard.words


def test_options_decide_where_a_mutation_goes_both_ways() -> None:
    def words(setting: str) -> list[str]:
        return [row.guide_word for row in hazard_coverage([setting]).exercised]

    assert words("brightness(scale=0.5)") == ["less"]
    assert words("brightness(scale=2)") == ["more"]
    assert words("brightness(scale=1)") == []
    assert words("c.saturate(severity=1)") == ["less"]
    assert words("c.saturate(severity=5)") == ["more"]
    assert words("identity") == []


@pytest.mark.parametrize("battery", sorted(BATTERIES))
def test_a_battery_exercises_something_and_every_setting_counts_once(battery: str) -> None:
    settings = [text for text, _ in BATTERIES[battery]]
    coverage = hazard_coverage([*settings, *settings])
    assert coverage.exercised
    assert not coverage.not_said
    named = [name for row in coverage.exercised for name in row.settings]
    assert set(named) == set(settings)
    assert len(named) == len(set(named))


def test_what_was_not_exercised_is_said() -> None:
    coverage = hazard_coverage(["identity", "haze(visibility_m=97.8)", "my_rain(drops=3) + jpeg(quality=20)"])
    said = " ".join(coverage.sentences())
    assert "Hazards of the light source and the object were not exercised." in said
    assert "no, less, as well as, part of, reverse, other than, where else" in said
    assert "not said: my_rain" in said
    assert {row.entry for row in coverage.exercised} == {
        ("medium", "particles", "more"),
        ("observer", "compression", "more"),
    }
    idle = next(row for row in coverage.rows if row.entry == ("observer", "motion", "more"))
    assert idle.mutations == ("c.motion_blur", "c.zoom_blur", "motion_blur")


def test_composed_and_coherent_settings_are_read() -> None:
    assert [name for name, _ in mutations_of("c.spatter(severity=2) @ log")] == ["c.spatter"]
    found = dict(mutations_of("alpha_blend(alpha=0.5, color=(1, 2, 3)) + channel_dropout(channel=Cb)"))
    assert found == {"alpha_blend": {"alpha": 0.5, "color": (1, 2, 3)}, "channel_dropout": {"channel": "Cb"}}


def test_hazards_in_a_line() -> None:
    assert hazard_words("brightness") == "light source / intensity / less; light source / intensity / more"
    assert hazard_words("identity") == "none"
