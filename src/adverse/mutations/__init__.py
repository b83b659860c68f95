"""Mutations: images changed the way the world changes them. Pure array functions by physical cause.

Use them directly, `mutations.haze(image, depth_m=d, visibility_m=97.8)`, with the benchmark's corruptions
under `c` and the continuous transformations under `t`, `mutations.c.fog(image, severity=3, rng=rng)`; or by
canonical id, `mutations.apply(image, "c.fog(severity=3)", seed=7, key="frame id")`.
"""

from adverse.mutations import corruptions as c
from adverse.mutations import transformations as t
from adverse.mutations.blur import gaussian_blur
from adverse.mutations.contact_sheets import contact_sheet
from adverse.mutations.defocus import camera_constant, defocus
from adverse.mutations.digital import channel_dropout, identity, jpeg
from adverse.mutations.glare import glare
from adverse.mutations.haze import haze
from adverse.mutations.lens_drops import lens_drops
from adverse.mutations.lens_mud import lens_mud
from adverse.mutations.light import alpha_blend, brightness
from adverse.mutations.low_light import low_light
from adverse.mutations.motion import steady_motion_blur as motion_blur
from adverse.mutations.noise import salt_pepper, signal_noise
from adverse.mutations.rain import rain
from adverse.mutations.settings import apply
from adverse.mutations.snow import snow

__all__ = [
    "alpha_blend",
    "apply",
    "brightness",
    "c",
    "camera_constant",
    "channel_dropout",
    "contact_sheet",
    "defocus",
    "gaussian_blur",
    "glare",
    "haze",
    "identity",
    "jpeg",
    "lens_drops",
    "lens_mud",
    "low_light",
    "motion_blur",
    "rain",
    "salt_pepper",
    "signal_noise",
    "snow",
    "t",
]
