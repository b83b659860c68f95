"""The 15 + 4 corruptions of Michaelis et al. 2019, severity 1 to 5: `c.fog(severity=3)`.

They reproduce the published reference, imagecorruptions 1.1.2, pixel by pixel where it is deterministic and
in distribution where it is random, odd behaviour included, so that numbers can be compared with published
ones: values are truncated to whole levels, not rounded. Two things differ. Gray images stay gray. Frost is
laid on with textures of our own. docs/performance.md has the measured equivalence.
"""

from __future__ import annotations

from typing import Annotated

import cv2
import numpy as np
from pydantic import Field

from adverse.marks import Hazard
from adverse.mutations import blur, digital, light, motion, noise, pixels, weather
from adverse.mutations import weather as ice
from adverse.mutations.hazards import (
    CAMERA_MOVES,
    COMPRESSED,
    ICE_ON_LENS,
    IN_FOG,
    LOW_CONTRAST,
    OUT_OF_FOCUS,
    SENSOR_NOISE,
    TOO_BRIGHT,
)
from adverse.mutations.weather import Flakes, Splash
from adverse.plugins import mutation
from adverse.types import Image

Severity = Annotated[int, Field(ge=1, le=5)]

GAUSSIAN_NOISE = (0.08, 0.12, 0.18, 0.26, 0.38)
SHOT_NOISE = (60, 25, 12, 5, 3)
IMPULSE_NOISE = (0.03, 0.06, 0.09, 0.17, 0.27)
SPECKLE_NOISE = (0.15, 0.2, 0.35, 0.45, 0.6)
GAUSSIAN_BLUR = (1, 2, 3, 4, 6)
DEFOCUS_BLUR = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))
GLASS_BLUR = ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))
MOTION_BLUR = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))
ZOOM_BLUR = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))
SNOW = (
    Flakes(0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    Flakes(0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    Flakes(0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    Flakes(0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    Flakes(0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)
FROST = ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))
FOG = ((1.5, 2), (2.0, 2), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))
BRIGHTNESS = (0.1, 0.2, 0.3, 0.4, 0.5)
CONTRAST = (0.4, 0.3, 0.2, 0.1, 0.05)
ELASTIC = (250 * 0.05, 250 * 0.065, 250 * 0.085, 250 * 0.1, 250 * 0.12)
PIXELATE = (0.6, 0.5, 0.4, 0.3, 0.25)
JPEG = (25, 18, 15, 10, 7)
SPATTER = (
    Splash(0.65, 0.3, 4, 0.69, 0.6, mud=False),
    Splash(0.65, 0.3, 3, 0.68, 0.6, mud=False),
    Splash(0.65, 0.3, 2, 0.68, 0.5, mud=False),
    Splash(0.65, 0.3, 1, 0.65, 1.5, mud=True),
    Splash(0.67, 0.4, 1, 0.65, 1.5, mud=True),
)
SATURATE = ((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2))


@mutation(name="c.gaussian_noise", hazards=(SENSOR_NOISE,))
def gaussian_noise(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Add normal noise, as of a sensor in low light."""
    return noise.gaussian(image, 255 * GAUSSIAN_NOISE[severity - 1], pixels.TRUNCATE, rng)


@mutation(
    name="c.shot_noise",
    hazards=(Hazard("light source", "intensity", "less", "so little light that single photons count"),),
)
def shot_noise(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Count few photons: Poisson noise."""
    return noise.shot(image, SHOT_NOISE[severity - 1], rng)


@mutation(
    name="c.impulse_noise",
    hazards=(Hazard("observer", "transmission", "other than", "bits of the image arrive wrong"),),
)
def impulse_noise(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Set values of single channels to 0 or 255, as bit errors do."""
    return noise.impulse(image, IMPULSE_NOISE[severity - 1], rng)


@mutation(name="c.speckle_noise", hazards=(SENSOR_NOISE,))
def speckle_noise(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Add normal noise in proportion to the signal."""
    return noise.gaussian(image, pixels.LEVELS * SPECKLE_NOISE[severity - 1], pixels.TRUNCATE, rng)


@mutation(name="c.gaussian_blur", hazards=(OUT_OF_FOCUS,))
def gaussian_blur(image: Image, *, severity: Severity) -> Image:
    """Blur with a Gaussian, replicating the border."""
    return blur.blurred(image, GAUSSIAN_BLUR[severity - 1], border=cv2.BORDER_REPLICATE, offset=pixels.HAIR)


@mutation(name="c.defocus_blur", hazards=(OUT_OF_FOCUS,))
def defocus_blur(image: Image, *, severity: Severity) -> Image:
    """Blur with a disc, as a lens out of focus does, the same at all depths."""
    radius, alias_sigma = DEFOCUS_BLUR[severity - 1]
    weight = blur.reference_disc_weight(int(radius), alias_sigma)
    return blur.disc_blur(image, radius_px=int(radius), alias_sigma_px=alias_sigma, weight=weight)


@mutation(
    name="c.glass_blur",
    hazards=(
        Hazard("observer", "glass before the lens", "other than", "the scene is seen through rough glass"),
    ),
)
def glass_blur(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Look through frosted glass: pixels take a neighbour's place."""
    sigma, reach, rounds = GLASS_BLUR[severity - 1]
    return blur.glass(image, sigma_px=sigma, reach_px=int(reach), rounds=int(rounds), rng=rng)


@mutation(name="c.motion_blur", hazards=(CAMERA_MOVES,), stereo="shared")
def motion_blur(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Move the camera sideways while the shutter is open, at an angle within 45 degrees of level."""
    radius, sigma = MOTION_BLUR[severity - 1]
    rows, columns = image.shape[:2]
    path = motion.track(radius, sigma, float(rng.uniform(-45, 45)), (rows, columns))
    return motion.motion_blur(image, path, offset=pixels.HAIR)


@mutation(name="c.zoom_blur", hazards=(CAMERA_MOVES,))
def zoom_blur(image: Image, *, severity: Severity) -> Image:
    """Move the camera forward while the shutter is open."""
    stop, step = ZOOM_BLUR[severity - 1]
    return motion.zoom_blur(image, np.arange(1, stop, step).tolist())


@mutation(
    name="c.snow",
    hazards=(Hazard("medium", "particles", "as well as", "snow falls between the scene and the camera"),),
)
def snow(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Let it snow."""
    return weather.snow(image, SNOW[severity - 1], rng=rng)


@mutation(name="c.frost", hazards=(ICE_ON_LENS,))
def frost(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Cover the lens with ice."""
    weight, frost_weight = FROST[severity - 1]
    texture = ice.texture(int(rng.integers(len(ice.LOOKS))))
    return ice.frost(image, texture=texture, weight=weight, frost_weight=frost_weight, rng=rng)


@mutation(name="c.fog", hazards=(IN_FOG,), stereo="shared")
def fog(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Put clouds of fog before the camera, whatever the depth of the scene."""
    weight, decay = FOG[severity - 1]
    return weather.fog(image, weight=weight, decay=decay, rng=rng)


@mutation(name="c.brightness", hazards=(TOO_BRIGHT,))
def brightness(image: Image, *, severity: Severity) -> Image:
    """Raise the value of HSV."""
    return light.raise_value(image, BRIGHTNESS[severity - 1])


@mutation(name="c.contrast", hazards=(LOW_CONTRAST,))
def contrast(image: Image, *, severity: Severity) -> Image:
    """Move every channel towards its mean."""
    return light.reduce_contrast(image, CONTRAST[severity - 1], offset=pixels.TRUNCATE)


@mutation(
    name="c.elastic_transform",
    hazards=(Hazard("medium", "refraction", "other than", "hot or moving air bends the light"),),
)
def elastic_transform(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Stretch small regions at random."""
    return digital.elastic(image, alpha=ELASTIC[severity - 1], rng=rng)


@mutation(
    name="c.pixelate",
    hazards=(Hazard("observer", "resolution", "less", "the image has fewer pixels than intended"),),
)
def pixelate(image: Image, *, severity: Severity) -> Image:
    """Enlarge a small version of the image."""
    return digital.pixelate(image, PIXELATE[severity - 1])


@mutation(name="c.jpeg_compression", hazards=(COMPRESSED,))
def jpeg_compression(image: Image, *, severity: Severity) -> Image:
    """Compress as JPEG at low quality."""
    return digital.jpeg(image, quality=JPEG[severity - 1])


@mutation(
    name="c.spatter",
    hazards=(
        Hazard(
            "observer", "cleanliness of the lens", "as well as", "drops hang on the lens", "severity", below=4
        ),
        Hazard(
            "observer",
            "cleanliness of the lens",
            "part of",
            "mud hides a part of the view",
            "severity",
            above=3,
        ),
    ),
)
def spatter(image: Image, *, severity: Severity, rng: np.random.Generator) -> Image:
    """Splash water (severity 1 to 3) or mud (4 and 5) on the lens."""
    return weather.spatter(image, SPATTER[severity - 1], rng=rng)


@mutation(
    name="c.saturate",
    hazards=(
        Hazard("observer", "colour", "less", "colours are weaker than they are", "severity", below=3),
        Hazard("observer", "colour", "more", "colours are driven too far", "severity", above=2),
    ),
)
def saturate(image: Image, *, severity: Severity) -> Image:
    """Weaken the colours (severity 1 and 2) or drive them too far (3 to 5)."""
    scale, shift = SATURATE[severity - 1]
    return light.change_saturation(image, scale, shift)
