"""Named sets of settings, and which settings count as severe.

Strengths and groups come from the papers (000 Table IV, 001). A battery here holds the settings whose
mutations exist; the lists grow with the library.
"""

from __future__ import annotations

from collections.abc import Mapping

from adverse.types import Group, Step

BATTERIES: Mapping[str, tuple[tuple[str, Group], ...]] = {
    "first-look": (
        ("gaussian_blur(sigma_px=1.5)", "mild"),
        ("gaussian_blur(sigma_px=3)", "severe"),
        ("brightness(scale=0.5)", "mild"),
        ("brightness(scale=2)", "mild"),
        ("alpha_blend(alpha=0.25)", "mild"),
        ("alpha_blend(alpha=0.75)", "severe"),
        ("salt_pepper(fraction=0.05)", "mild"),
    ),
    "first-look-depth": (
        ("haze(visibility_m=978)", "mild"),
        ("haze(visibility_m=326)", "mild"),
        ("haze(visibility_m=97.8)", "severe"),
    ),
}


def usual_group(step: Step) -> Group:
    """Return the group a setting has when a study gives none: the rule of 001; what it does not name is mild.

    >>> usual_group(Step("gaussian_blur", {"sigma_px": 2.5}))
    'severe'
    """
    value = step.options.get
    severe = {
        "gaussian_blur": value("sigma_px", 0) >= 2.5,
        "alpha_blend": value("alpha", 0) >= 0.5,
        "haze": (value("visibility_m") or 3.912 / (value("beta") or 0.001)) <= 97.8,
        "channel_dropout": True,
        "defocus": value("focus_m", 10) <= 1,
    }
    return "severe" if severe.get(step.mutation, False) else "mild"
