"""Every mutation says which hazard it stands for, and a run's hazards are those of its settings."""

from __future__ import annotations

import pytest

from adverse import plugins
from adverse.mutations.batteries import BATTERIES
from adverse.mutations.hazards import HazardCoverage, hazard_coverage, hazard_words, mutations_of

REGISTRY = plugins.load()


def exercised_by(*settings: str) -> HazardCoverage:
    return hazard_coverage(settings, REGISTRY)


def test_every_mutation_of_ours_says_its_hazards_and_only_the_baseline_has_none() -> None:
    said = {plugin.name: plugin.hazards for plugin in REGISTRY.all("mutation")}
    assert [name for name, hazards in said.items() if not hazards] == ["identity"]
    assert said["identity"] == ()
    assert all(hazard.words for hazards in said.values() for hazard in hazards or ())


def test_options_decide_where_a_mutation_goes_both_ways() -> None:
    def words(setting: str) -> list[str]:
        return [row.guide_word for row in exercised_by(setting).exercised]

    assert words("brightness(scale=0.5)") == ["less"]
    assert words("brightness(scale=2)") == ["more"]
    assert words("brightness(scale=1)") == []
    assert words("c.saturate(severity=1)") == ["less"]
    assert words("c.saturate(severity=5)") == ["more"]
    assert words("identity") == []


@pytest.mark.parametrize("battery", sorted(BATTERIES))
def test_a_battery_exercises_something_and_every_setting_counts_once(battery: str) -> None:
    settings = [text for text, _ in BATTERIES[battery]]
    coverage = exercised_by(*settings, *settings)
    assert coverage.exercised
    assert not coverage.not_said
    named = [name for row in coverage.exercised for name in row.settings]
    assert set(named) == set(settings)
    assert len(named) == len(set(named))


def test_what_was_not_exercised_is_said() -> None:
    coverage = exercised_by("identity", "haze(visibility_m=97.8)", "my_rain(drops=3) + jpeg(quality=20)")
    said = " ".join(coverage.sentences())
    assert "No hazard of these places was exercised: light source, object, objects, algorithm." in said
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
    brightness, identity = (REGISTRY.get("mutation", name) for name in ("brightness", "identity"))
    assert hazard_words(brightness) == "light source / intensity / less; light source / intensity / more"
    assert hazard_words(identity) == "none"
