"""Named sets of settings, and which settings count as severe.

`riot-2018` is Table IV of Pezzementi et al. 2018, and `field-2021` the mutations of Pezzementi et al. 2021,
which also says which ones are severe. `coco-c` and `coco-c-holdout` are the corruptions of Michaelis et al.
2019, `reliability-2022` the transformations of Hu et al. 2022. `demo` and `weather` are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adverse.types import Group, Step

CORRUPTIONS = (
    *("gaussian_noise", "shot_noise", "impulse_noise"),
    *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness"),
    *("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
)
HOLDOUT = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
TRANSFORMATIONS = (
    *("rgb_shift", "contrast", "defocus_blur", "brightness"),
    *("frost", "color_jitter", "jpeg", "gaussian_noise"),
)
CHANNELS = ("Cb", "Cr", "R", "G", "B")
HAZE_M = (978, 326, 97.8)
SEVERE_SEVERITY = 3
"""Corruptions from this severity on are severe. Michaelis et al. have no groups; the rule is ours."""

SEVERE_STRENGTH = 0.6
"""Transformations from this strength on are severe; also ours."""

SEVERE_WEATHER = {
    "rain": ("rate_mm_h", 25),
    "snow": ("rate_mm_h", 3),
    "lens_drops": ("coverage", 0.15),
    "lens_mud": ("coverage", 0.1),
    "glare": ("veiling_ratio", 0.2),
    "low_light": ("stops", 6),
}
"""Option and value from which on weather with physical parameters is severe; ours again."""


def usual_group(step: Step) -> Group:
    """Return the group of a setting whose study gives none, by Pezzementi et al. 2021; the rest is mild.

    >>> usual_group(Step("gaussian_blur", {"sigma_px": 2.5}))
    'severe'
    >>> usual_group(Step("c.fog", {"severity": 2}))
    'mild'
    """
    value = step.options.get
    severe = {
        "gaussian_blur": value("sigma_px", 0) >= 2.5,
        "alpha_blend": value("alpha", 0) >= 0.5,
        "haze": (value("visibility_m") or 3.912 / (value("beta") or 0.001)) <= 97.8,
        "channel_dropout": True,
        "defocus": value("focus_m", 10) <= 1,
        **{name: value(option, 0) >= least for name, (option, least) in SEVERE_WEATHER.items()},
    }
    if step.mutation.startswith("c."):
        return "severe" if value("severity", 0) >= SEVERE_SEVERITY else "mild"
    if step.mutation.startswith("t."):
        return "severe" if value("strength", 0) >= SEVERE_STRENGTH else "mild"
    return "severe" if severe.get(step.mutation, False) else "mild"


def _riot_2018() -> Iterator[Step]:
    yield from _each("gaussian_blur", sigma_px=(0.5, 1, 1.5, 2, 2.5, 3))
    yield from _each("alpha_blend", alpha=(0.1, 0.25, 0.5, 0.75))
    yield from _each("jpeg", quality=(40, 20, 10))
    yield from _each("brightness", scale=(2, 1.333, 1.143, 0.875, 0.75, 0.5))
    yield from _each("salt_pepper", fraction=(0.01, 0.02, 0.05))
    yield from _each("channel_dropout", channel=CHANNELS)
    for sigma_w, sigma_u, psi in ((5, 0.5, 0.5), (5, 0.5, 0.7), (5, 1.5, 0.5), (15, 0.5, 0.5), (5, 2.5, 0.5)):
        yield Step("signal_noise", {"psi": psi, "sigma_u": sigma_u, "sigma_w": sigma_w})
    yield from _each("haze", visibility_m=HAZE_M)
    for focus_m in (10, 5, 2, 1):
        for kappa in (2, 2.8, 3.6):
            yield Step("defocus", {"focus_m": focus_m, "kappa": kappa})


def _field_2021() -> Iterator[Step]:
    yield from _each("gaussian_blur", sigma_px=(1.5, 2, 2.5, 3))
    yield from _each("alpha_blend", alpha=(0.1, 0.25, 0.5, 0.75))
    yield from _each("channel_dropout", channel=CHANNELS)
    yield from _each("haze", visibility_m=HAZE_M)
    for focus_m in (5, 2, 1):
        for kappa in (2, 2.8):
            yield Step("defocus", {"focus_m": focus_m, "kappa": kappa})


def _corruptions(names: tuple[str, ...]) -> Iterator[Step]:
    for name in names:
        yield from _each(f"c.{name}", severity=range(1, 6))


def _reliability_2022() -> Iterator[Step]:
    for name in TRANSFORMATIONS:
        yield from _each(f"t.{name}", strength=(0.1, 0.2, 0.4, 0.6, 0.8))


def _weather() -> Iterator[Step]:
    yield from _each("rain", rate_mm_h=(5, 25, 100))
    yield from _each("lens_drops", coverage=(0.05, 0.15, 0.3))
    yield from _each("lens_mud", coverage=(0.03, 0.1, 0.25))
    yield from _each("glare", veiling_ratio=(0.05, 0.2, 0.5))
    yield from _each("low_light", stops=(4, 6, 8))


def _demo() -> Iterator[Step]:
    """Yield what everybody has seen a camera do."""
    for focus_m in (5, 1):
        yield Step("defocus", {"focus_m": focus_m, "kappa": 2.8})
    yield from _each("haze", visibility_m=HAZE_M[1:])
    yield from _each("gaussian_blur", sigma_px=(2,))
    yield from _each("salt_pepper", fraction=(0.02,))
    yield from _each("low_light", stops=(6,))
    yield from _each("channel_dropout", channel=("G",))
    yield from _each("lens_mud", coverage=(0.1,))


def _first_look() -> Iterator[Step]:
    yield from _each("gaussian_blur", sigma_px=(1.5, 3))
    yield from _each("brightness", scale=(0.5, 2))
    yield from _each("alpha_blend", alpha=(0.25, 0.75))
    yield from _each("salt_pepper", fraction=(0.05,))


def _each(mutation: str, **options: Any) -> Iterator[Step]:
    ((name, values),) = options.items()
    for value in values:
        yield Step(mutation, {name: value})


def _battery(steps: Iterator[Step]) -> tuple[tuple[str, Group], ...]:
    return tuple(
        (f"{step.mutation}({', '.join(f'{k}={v}' for k, v in step.options.items())})", usual_group(step))
        for step in steps
    )


BATTERIES: Mapping[str, tuple[tuple[str, Group], ...]] = {
    "coco-c": _battery(_corruptions(CORRUPTIONS)),
    "coco-c-holdout": _battery(_corruptions(HOLDOUT)),
    "demo": _battery(_demo()),
    "field-2021": _battery(_field_2021()),
    "first-look": _battery(_first_look()),
    "first-look-depth": _battery(_each("haze", visibility_m=HAZE_M)),
    "reliability-2022": _battery(_reliability_2022()),
    "riot-2018": _battery(_riot_2018()),
    "weather": _battery(_weather()),
}
"""Settings in any spelling, each with its group."""
