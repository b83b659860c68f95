"""Ids, batteries, composition, coherence, and direct use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse import mutations, plugins
from adverse.errors import MutationError, StudyError
from adverse.mutations import settings
from adverse.mutations.batteries import BATTERIES, CORRUPTIONS, HOLDOUT, TRANSFORMATIONS
from adverse.types import Noise, Setting
from pictures import photo

REGISTRY = plugins.load()


def expanded(entry: object) -> list[Setting]:
    return settings.expand(entry, REGISTRY, where="mutations[0]")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gaussian_blur( sigma_px = 2.50 )", "gaussian_blur(sigma_px=2.5)"),
        ("haze(visibility_m=inf)", "haze(visibility_m=inf)"),
        ("alpha_blend(color=(205, 208, 211), alpha=1.0)", "alpha_blend(alpha=1)"),
        ("c.fog(severity=3)", "c.fog(severity=3)"),
        ("c.fog(severity=3)+c.snow(severity=1)", "c.fog(severity=3) + c.snow(severity=1)"),
        ("channel_dropout(channel='Cb')", "channel_dropout(channel=Cb)"),
        ("c.fog(severity=3)@log", "c.fog(severity=3) @ log"),
        ("(jpeg(quality=9) + c.fog(severity=3)) @ log", "(jpeg(quality=9) + c.fog(severity=3)) @ log"),
        ("jpeg(quality=9) @ log", "jpeg(quality=9)"),
    ],
)
def test_ids_are_canonical_and_read_back(text: str, wanted: str) -> None:
    once = settings.parse(text, REGISTRY)
    assert once.id == wanted
    again = settings.parse(once.id, REGISTRY)
    assert (again.id, again.group, again.coherent) == (once.id, once.group, once.coherent)


@pytest.mark.parametrize(
    "text",
    [
        "c.fog(3)",
        "c.fog(severity=9)",
        "c.fog(severity=1) @ frame",
        "c.fog(severity=1) @ log @ log",
        "fog(",
        "nosuch",
    ],
)
def test_what_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(StudyError):
        settings.parse(text, REGISTRY)


def test_every_battery_can_be_read_and_holds_what_the_papers_say() -> None:
    sizes = {name: len(expanded(name)) for name in BATTERIES}
    assert sizes == {
        "coco-c": 75,
        "coco-c-holdout": 20,
        "demo": 9,
        "field-2021": 22,
        "first-look": 7,
        "first-look-depth": 3,
        "reliability-2022": 40,
        "riot-2018": 47,
        "weather": 15,
    }
    for name in BATTERIES:
        assert len({setting.id for setting in expanded(name)}) == sizes[name]
    assert (len(CORRUPTIONS), len(HOLDOUT), len(TRANSFORMATIONS)) == (15, 4, 8)


def test_the_battery_of_2018_is_table_four() -> None:
    table = {
        "gaussian_blur(sigma_px={})": (0.5, 1, 1.5, 2, 2.5, 3),
        "alpha_blend(alpha={})": (0.1, 0.25, 0.5, 0.75),
        "jpeg(quality={})": (40, 20, 10),
        "brightness(scale={})": (2, 1.333, 1.143, 0.875, 0.75, 0.5),
        "salt_pepper(fraction={})": (0.01, 0.02, 0.05),
        "channel_dropout(channel={})": ("Cb", "Cr", "R", "G", "B"),
        "signal_noise(psi=0.5, sigma_u=0.5, sigma_w={})": (5, 15),
        "signal_noise(psi=0.7, sigma_u=0.5, sigma_w={})": (5,),
        "signal_noise(psi=0.5, sigma_u={}, sigma_w=5)": (1.5, 2.5),
        "haze(visibility_m={})": (978, 326, 97.8),
        **{f"defocus(focus_m={focus}, kappa={{}})": (2, 2.8, 3.6) for focus in (10, 5, 2, 1)},
    }
    wanted = {text.format(value) for text, values in table.items() for value in values}
    assert {setting.id for setting in expanded("riot-2018")} == wanted


def test_severe_settings_of_the_field_study() -> None:
    severe = {setting.id for setting in expanded("field-2021") if setting.group == "severe"}
    assert severe == {
        "gaussian_blur(sigma_px=2.5)",
        "gaussian_blur(sigma_px=3)",
        "alpha_blend(alpha=0.5)",
        "alpha_blend(alpha=0.75)",
        "haze(visibility_m=97.8)",
        "defocus(focus_m=1, kappa=2)",
        "defocus(focus_m=1, kappa=2.8)",
        *(f"channel_dropout(channel={name})" for name in ("R", "G", "B", "Cb", "Cr")),
    }
    severities = {setting.steps[0].options["severity"]: setting.group for setting in expanded("coco-c")}
    assert severities == {1: "mild", 2: "mild", 3: "severe", 4: "severe", 5: "severe"}


def test_batteries_and_registry_name_the_same_corruptions() -> None:
    named = {plugin.name for plugin in REGISTRY.all("mutation")}
    assert {f"c.{name}" for name in CORRUPTIONS + HOLDOUT} == {name for name in named if name[:2] == "c."}
    assert {f"t.{name}" for name in TRANSFORMATIONS} == {name for name in named if name[:2] == "t."}


def test_a_sweep_gives_every_combination() -> None:
    found = expanded({"defocus": {"focus_m": [1, 2], "kappa": [2, 2.8]}, "group": "mild"})
    assert [setting.id for setting in found] == [
        f"defocus(focus_m={focus}, kappa={kappa})" for focus in (1, 2) for kappa in (2, 2.8)
    ]
    assert {setting.group for setting in found} == {"mild"}


def test_coherent_settings_are_marked() -> None:
    for setting in expanded({"c.spatter": {"severity": [1, 4]}, "coherent": "log"}):
        assert setting.coherent
        assert setting.id.endswith(" @ log")
    assert not expanded({"gaussian_blur": {"sigma_px": 1}, "coherent": "log"})[0].coherent
    still = expanded({"c.spatter": {"severity": 1}, "coherent": "still"})
    assert [setting.id for setting in still] == ["c.spatter(severity=1) @ log"]
    assert settings.parse("c.spatter(severity=1) @ still", REGISTRY).id == still[0].id
    with pytest.raises(StudyError, match="coherent: still or drift"):
        expanded({"c.spatter": {"severity": 1}, "coherent": "frame"})


def test_composition_applies_in_order() -> None:
    image = photo()
    both = mutations.apply(image, "brightness(scale=2) + gaussian_blur(sigma_px=2)")
    wanted = mutations.gaussian_blur(mutations.brightness(image, scale=2), sigma_px=2)
    assert np.array_equal(both, wanted)


def test_pixels_depend_on_seed_key_and_setting_alone() -> None:
    image = photo()

    def made(seed: int = 1, key: str = "a", text: str = "c.fog(severity=3)") -> bytes:
        return mutations.apply(image, text, seed=seed, key=key).tobytes()

    assert made() == made()
    assert len({made(), made(seed=2), made(key="b"), made(text="c.fog(severity=4)")}) == 4


def test_common_noise_is_the_same_field_scaled_and_that_of_a_frame_alone() -> None:
    grey = np.full((40, 50, 3), 128, np.uint8)

    def field(sigma: float, noise: Noise, key: str = "a") -> NDArray[np.float64]:
        setting = settings.parse(f"signal_noise(psi=0, sigma_u=0, sigma_w={sigma})", REGISTRY)
        made = settings.apply_setting(grey, setting, REGISTRY, seed=1, key=key, noise=noise)
        return made.astype(np.float64) - 128

    weak, strong = field(5, "common"), field(20, "common")
    assert np.abs(4 * weak - strong).max() <= 2.5  # both are rounded
    assert not np.array_equal(weak, field(5, "common", key="b"))
    apart = np.corrcoef(field(5, "own").ravel(), field(20, "own").ravel())[0, 1]
    assert abs(apart) < 0.1


def test_a_missing_depth_is_said() -> None:
    with pytest.raises(MutationError, match="haze needs depth"):
        mutations.apply(photo(), "haze(visibility_m=100)", key="row3/000123")


def test_public_names_are_sorted_and_there() -> None:
    assert mutations.__all__ == sorted(mutations.__all__)
    assert all(hasattr(mutations, name) for name in mutations.__all__)


def test_the_stream_of_a_log_is_the_same_for_all_its_frames_and_for_no_other_log() -> None:
    image = photo()
    name = "lens_drops(coverage=0.3)"
    first = mutations.apply(image, name, seed=1, key="row/1", log="row")
    assert np.array_equal(first, mutations.apply(image, name, seed=1, key="row/2", log="row"))
    assert not np.array_equal(first, mutations.apply(image, name, seed=1, key="row/1", log="other"))
    assert not np.array_equal(first, mutations.apply(image, name, seed=2, key="row/1", log="row"))
    alone = mutations.apply(image, name, seed=1, key="row/1")
    assert np.array_equal(alone, mutations.apply(image, name, seed=1, key="row/1", log="row/1"))


def test_in_a_composition_each_part_keeps_its_own_stream() -> None:
    image = np.full((48, 64, 3), 200, np.uint8)
    both = "lens_mud(aperture_mm=0, coverage=0.3) + salt_pepper(fraction=0.1)"
    one, two = (mutations.apply(image, both, key=key, log="row") for key in ("row/1", "row/2"))
    speckled = [(made == 0).all(axis=2) | (made == 255).all(axis=2) for made in (one, two)]
    assert not np.array_equal(*speckled)
    still = ~(speckled[0] | speckled[1])
    assert np.array_equal(one[still], two[still])
    assert 0.2 < (one[still] != 200).any(axis=1).mean() < 0.4


def test_severe_settings_of_the_weather() -> None:
    severe = {setting.id for setting in expanded("weather") if setting.group == "severe"}
    assert severe == {
        *("rain(rate_mm_h=25)", "rain(rate_mm_h=100)"),
        *("lens_drops(coverage=0.15)", "lens_drops(coverage=0.3)"),
        *("lens_mud(coverage=0.1)", "lens_mud(coverage=0.25)"),
        *("glare(veiling_ratio=0.2)", "glare(veiling_ratio=0.5)"),
        *("low_light(stops=6)", "low_light(stops=8)"),
    }


def test_a_sweep_over_nothing_is_refused() -> None:
    registry = plugins.load()
    entry: dict[str, Any] = {"gaussian_blur": {"sigma_px": []}}
    with pytest.raises(StudyError, match="swept over an empty list") as caught:
        settings.expand(entry, registry, where="study.yaml, mutations[0]")
    assert caught.value.where == "study.yaml, mutations[0].gaussian_blur.sigma_px"
    assert caught.value.fix


def test_settings_that_differ_in_one_option_share_a_line() -> None:
    texts = [
        "haze(visibility_m=978)",
        "c.fog(severity=1)",
        "haze(visibility_m=97.8)",
        "c.fog(severity=2) @ log",
    ]
    texts += [
        "defocus(focus_m=5, kappa=2)",
        "defocus(focus_m=1, kappa=3)",
        "jpeg(quality=20) + c.fog(severity=1)",
    ]
    lines = settings.swept([settings.parse(text, REGISTRY) for text in texts])
    assert lines == [
        "haze(visibility_m: 978, 97.8)",
        "c.fog(severity=1)",
        "c.fog(severity=2) @ log",
        "defocus(focus_m=5, kappa=2)",
        "defocus(focus_m=1, kappa=3)",
        "jpeg(quality=20) + c.fog(severity=1)",
    ]
