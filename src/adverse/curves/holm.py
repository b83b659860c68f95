"""Many comparisons at once: which of them still say something (Holm, Scand. J. Statist. 6, 1979).

Of a hundred comparisons at 95 % about five find a difference where there is none. Holm's procedure bounds
the chance that any of those it names is such a one, whatever they have to do with each other.
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float], *, alpha: float = 0.05) -> list[bool]:
    """Tell for each p-value whether its comparison may be named.

    >>> holm([0.04, 0.01, 0.02])
    [True, True, True]
    >>> holm([0.04, 0.03, 0.01])
    [False, False, True]
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    named = [False] * len(p_values)
    for passed, index in enumerate(order):
        if p_values[index] > alpha / (len(order) - passed):
            break
        named[index] = True
    return named
