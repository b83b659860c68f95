"""Mutations: images changed the way the world changes them. Pure array functions by physical cause.

Use them directly, `mutations.haze(image, depth_m=d, visibility_m=97.8)`, or by canonical id,
`mutations.apply(image, "salt_pepper(fraction=0.02)", seed=7, key="frame id")`.
"""

from adverse.mutations.blur import gaussian_blur
from adverse.mutations.digital import identity
from adverse.mutations.haze import haze
from adverse.mutations.light import alpha_blend, brightness
from adverse.mutations.noise import salt_pepper
from adverse.mutations.settings import apply

__all__ = ["alpha_blend", "apply", "brightness", "gaussian_blur", "haze", "identity", "salt_pepper"]
