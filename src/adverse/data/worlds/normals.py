"""Normal numbers as numpy draws them from a Philox stream, to the bit, in less than half the time.

The ziggurat of Marsaglia and Tsang (2000) with 256 layers, as in numpy's `standard_normal` for float32.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled

LAYERS = 256
EDGE = 3.6541528853610088
"""Where the tail begins that the lowest layer holds."""
STEPS = 1 << 23
"""Each word gives 8 bits of layer, a sign, and a place in the layer in so many steps."""
BLOCK = 24576
"""How many words of 32 bits are drawn at once: few enough to stay in a core's cache."""
Words = NDArray[np.uint32]
Singles = NDArray[np.float32]


def standard_normal(rng: np.random.Generator, count: int) -> Singles:
    """Return `rng.standard_normal(count, np.float32)`; what is drawn from `rng` afterwards is another matter.

    >>> from adverse.seeds import generator
    >>> one, two = generator(1, "a"), generator(1, "a")
    >>> bool((standard_normal(one, 1000) == two.standard_normal(1000, np.float32)).all())
    True
    """
    stream = rng.bit_generator
    if not isinstance(stream, np.random.Philox) or stream.state["has_uint32"]:
        return rng.standard_normal(count, np.float32)
    numbers, filled = np.empty(count, np.float32), 0
    words = np.empty(0, np.uint32)
    while filled < count:
        more = stream.random_raw(min(count - filled, BLOCK) // 2 + 8).astype("<u8", copy=False).view("<u4")
        words = np.concatenate([words, more]) if len(words) else more
        filled, used = _drawn(words, *TABLES, numbers, filled)
        words = words[used:]
    return numbers


def _tables() -> tuple[Words, Singles, Singles]:
    """Return for each layer how many steps lie under the curve, the size of a step, the curve's height."""
    x, height = np.empty(LAYERS), math.exp(-EDGE * EDGE / 2)
    area = EDGE * height + math.sqrt(math.pi / 2) * math.erfc(EDGE / math.sqrt(2))
    x[0], x[-1] = area / height, EDGE
    for layer in range(LAYERS - 2, 0, -1):
        x[layer] = math.sqrt(-2 * math.log(area / x[layer + 1] + math.exp(-(x[layer + 1] ** 2) / 2)))
    inner = np.concatenate([[EDGE / x[0], 0.0], x[1:-1] / x[2:]])
    curve = np.concatenate([[1.0], np.exp(-(x[1:] ** 2) / 2)])
    steps = np.concatenate([x, -x]) / STEPS  # the bit after that of the layer is the sign
    return np.rint(inner * STEPS).astype(np.uint32), steps.astype(np.float32), curve.astype(np.float32)


TABLES = _tables()


@compiled
def _drawn(
    words: Words, inner: Words, step: Singles, curve: Singles, numbers: Singles, filled: int
) -> tuple[int, int]:
    """Go on filling in normal numbers; return how many there are, and how many words they took."""
    at, used = 0, 0
    while filled < len(numbers) and at < len(words):
        word = words[at]
        at += 1
        layer, place = word & np.uint32(0xFF), np.uint32(word >> np.uint32(9))
        x = np.float32(place) * step[word & np.uint32(0x1FF)]
        if place >= inner[layer]:  # not surely under the curve
            if layer == 0:
                x, at = _tail(words, at, place & np.uint32(0x100))
                if at > len(words):
                    break
            elif at == len(words):
                break
            else:
                share = _uniform(words[at])
                at += 1
                if (curve[layer - 1] - curve[layer]) * share + curve[layer] >= math.exp(-0.5 * x * x):
                    used = at
                    continue
        numbers[filled] = x
        filled += 1
        used = at
    return filled, used


@compiled
def _tail(words: Words, at: int, negative: np.uint32) -> tuple[np.float32, int]:
    """Return a number beyond the edge, and the word after its last, past the end if there are too few."""
    while at + 1 < len(words):
        beyond = -np.float32(1 / EDGE) * np.float32(math.log1p(-_uniform(words[at])))
        under = -np.float32(math.log1p(-_uniform(words[at + 1])))
        at += 2
        if under + under > beyond * beyond:
            x = np.float32(EDGE) + beyond
            return -x if negative else x, at
    return np.float32(0), len(words) + 1


@compiled
def _uniform(word: np.uint32) -> np.float32:
    return np.float32(np.uint32(word >> np.uint32(8)) * np.float32(1 / 16777216))
