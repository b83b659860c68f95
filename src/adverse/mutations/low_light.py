"""Low light as a sensor sees it: fewer photons, and electronics that turn the gain up.

A pixel of the image stands for a number of electrons, its linear light times the full well. When so many
stops of light are missing, each of those electrons would have been set free with a chance of 2^-stops: a
binomial number is left, which is what photon shot noise is (a Poisson number thinned is Poisson). Read noise
is added up to its full strength, gain turned up as far as the camera can, and the sum is digitised.
"""

from __future__ import annotations

import functools
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from adverse.marks import Hazard, Strength
from adverse.mutations import pixel_kernels, pixels
from adverse.mutations.linear_light import levels_of, light_of
from adverse.mutations.pixels import LEVELS
from adverse.plugins import NonNegative, Positive, mutation, unchanged_at
from adverse.types import Image

EXACT_UP_TO_E = 4096
"""White of at most so many electrons is counted one by one; more of them are a normal number."""

TAIL_SIGMA = 8.0


@mutation(
    hazards=(Hazard("light source", "intensity", "less", "there is too little light"),),
    strength=Strength("stops", 0, 14),
)
def low_light(
    image: Image,
    *,
    stops: Annotated[NonNegative, Field(le=20), unchanged_at(0)],
    gain_stops: NonNegative = 4.0,
    full_well_e: Annotated[Positive, Field(le=1e6)] = 10000.0,
    read_noise_e: NonNegative = 3.0,
    bits: Annotated[int, Field(ge=8, le=16)] = 12,
    rng: np.random.Generator,
) -> Image:
    """Expose with `stops` stops less light: shot noise, read noise, gain and digitising, in linear light.

    White of the image fills the full well of `full_well_e` electrons; 2^-stops of the light is left. The
    camera makes up for it by gain, up to `gain_stops` (4 are 24 dB): below that the picture is as bright as
    before and noisy, beyond it also dark. `read_noise_e` is in electrons, `bits` those of the converter.
    Every value is independent of its neighbours, as before demosaicing. From illuminances, stops are
    log2(lux before / lux).

    >>> low_light(np.full((1, 3), 100, np.uint8), stops=0, rng=np.random.default_rng(0))
    array([[100, 100, 100]], dtype=uint8)
    """
    if not stops:
        return image.copy()
    flat = np.ascontiguousarray(image).reshape(-1)
    out = np.empty_like(flat)
    tables = _tables(stops, min(stops, gain_stops), full_well_e, read_noise_e, bits)
    pixel_kernels.replace_levels(flat, tables, pixels.stream(rng), out)
    return out.reshape(image.shape)


@functools.lru_cache(maxsize=16)
def _tables(
    stops: float, gain_stops: float, full_well_e: float, read_noise_e: float, bits: int
) -> NDArray[np.uint32]:
    """Return alias tables of what each level becomes: 256 outcomes for each of 256 levels."""
    tables = np.empty((256, 256), np.uint32)
    pixel_kernels.alias_tables(chances(stops, gain_stops, full_well_e, read_noise_e, bits), tables)
    flat = tables.reshape(-1)
    flat.flags.writeable = False
    return flat


def chances(
    stops: float, gain_stops: float, full_well_e: float, read_noise_e: float, bits: int
) -> NDArray[np.float64]:
    """Return the chance of each level (columns) to come out of each level (rows), by the whole chain.

    The image already has the noise of its own exposure, so what is added is the difference: of shot noise the
    binomial part, of read noise what is missing of its variance.

    >>> chances(4, 4, 10000, 3, 12).sum(axis=1).round(9).min()
    np.float64(1.0)
    """
    from scipy import special  # noqa: PLC0415 - slow to import, and most mutations need none of it

    kept = 2.0**-stops
    electrons = np.rint(light_of(LEVELS) * full_well_e)[:, None]
    noise_e = read_noise_e * np.sqrt(1 - kept**2)
    upper_e = _upper_electrons(gain_stops, full_well_e, bits)
    if full_well_e * kept > EXACT_UP_TO_E:
        deviation = np.sqrt(electrons * kept * (1 - kept) + noise_e**2)
        below = special.ndtr((upper_e - electrons * kept) / np.maximum(deviation, 1e-6))
    else:
        mean = full_well_e * kept
        most = min(full_well_e, mean + TAIL_SIGMA * np.sqrt(mean) + TAIL_SIGMA)
        count = np.arange(np.ceil(most) + 1)
        share = special.xlogy(count, kept) + special.xlog1py(electrons - count, -kept)
        share += special.gammaln(electrons + 1) - special.gammaln(count + 1)
        share -= special.gammaln(np.maximum(electrons - count, 0) + 1)
        number = np.where(count <= electrons, np.exp(share), 0)
        number /= number.sum(axis=1, keepdims=True)
        below = number @ special.ndtr((upper_e - count[:, None]) / max(noise_e, 1e-6))
    below[:, -1] = 1
    table: NDArray[np.float64] = np.clip(np.diff(below, axis=1, prepend=0), 0, 1)
    return table


def _upper_electrons(gain_stops: float, full_well_e: float, bits: int) -> NDArray[np.float64]:
    """Return, for each level, the number of electrons above which the next one is shown."""
    steps = 2**bits - 1
    shown = np.rint(levels_of(np.arange(steps + 1) / steps))
    last = np.searchsorted(shown, LEVELS, side="right") - 1  # the highest step that is shown as this level
    upper: NDArray[np.float64] = (last + 0.5) / steps * full_well_e / 2.0**gain_stops
    return upper
