"""How the loops of the renderer are compiled: one switch for all of them.

No fast-math: every operation is rounded as IEEE 754 says, so that a seed gives the same bits every time.
The kernels use only + - * / sqrt and floor, which every machine rounds alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a function on its first call, keep the machine code on disk, and release the GIL in it."""
    return cast("F", numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """Compile a function into those that call it.

    A loop over such calls becomes vector instructions, several pixels at once; a call inside it would not.
    """
    jit = numba.njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
    return cast("F", jit(function))
