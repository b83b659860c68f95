"""What the mutations of a run say about one that it does not have: the worst-case area to be expected.

One mutation at a time is left out, with all its strengths, and its worst-case area predicted from those of
the others; how often the intervals hold what was measured is their measured coverage. A system under a
mutation that only others were run under can be predicted from how far it is from them elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.curves.interval import korn_graubard
from adverse.curves.unseen import CONFIDENCE, LEAST_CONDITIONS, SAYS_NOTHING, left_out, predict_next

ALONE, BESIDE = "its own figures", "other systems under it"
"""What a prediction rests on."""
Row = Mapping[str, Any]


def unseen_rows(rows: Sequence[Row], families: Sequence[Row], baseline: str) -> list[dict[str, Any]]:
    """Return for each level, SUT and basis what is to be expected of an untested mutation.

    `rows` are those of settings, `families` the worst cases over all strengths of each mutation. Nothing
    where there are too few mutations. `told` is False where the interval leaves out next to nothing, or was
    measured to hold less often than it should.
    """
    clean = {(row["level"], row["sut"]): row["area"] for row in rows if row["setting"] == baseline}
    worst = {(row["level"], row["sut"], row["family"]): row["robust_area"] for row in families}
    found: list[dict[str, Any]] = []
    for level in dict.fromkeys(level for level, _ in clean):
        suts = [sut for one, sut in clean if one == level and clean[level, sut]]
        names = [
            family
            for family in dict.fromkeys(row["family"] for row in families)
            if all(worst.get((level, sut, family)) is not None for sut in suts)
        ]
        if len(names) <= LEAST_CONDITIONS or not suts:
            continue
        shares = np.array([[worst[level, sut, name] / clean[level, sut] for name in names] for sut in suts])
        found += _level_rows(level, suts, shares, [float(clean[level, sut]) for sut in suts])
    return found


def _level_rows(
    level: str, suts: Sequence[str], shares: NDArray[np.float64], clean: Sequence[float]
) -> list[dict[str, Any]]:
    """Return the rows of a level; `shares` (S, F) of the clean area survive each mutation."""
    found = []
    for basis in (ALONE, BESIDE) if len(suts) > 1 else (ALONE,):
        inside = np.zeros(shares.shape, np.bool_)
        widths = np.zeros(shares.shape)
        for sut in range(len(suts)):
            others = np.delete(shares, sut, axis=0).mean(axis=0) if basis == BESIDE else None
            for number, one in enumerate(left_out(shares[sut], others)):
                if one is not None:
                    inside[sut, number] = one.low <= shares[sut, number] <= one.high
                    widths[sut, number] = one.high - one.low
        # mutations are the independent units here: systems are alike under each
        coverage = korn_graubard(inside.sum(axis=0), np.full(shares.shape[1], float(len(suts))))
        holds = coverage.high is None or coverage.high >= CONFIDENCE
        for sut, name in enumerate(suts):
            wide = float(np.median(widths[sut]))
            expected = predict_next(shares[sut]) if basis == ALONE else None
            told = holds and (expected.says_something if expected is not None else wide < SAYS_NOTHING)
            found.append(
                {
                    "level": level,
                    "sut": name,
                    "basis": basis,
                    "mutations": int(shares.shape[1]),
                    "clean_area": clean[sut],
                    "confidence": CONFIDENCE,
                    "expected_area": _area(expected and expected.share, clean[sut]),
                    "expected_low": _area(expected and expected.low, clean[sut]),
                    "expected_high": _area(expected and expected.high, clean[sut]),
                    "typical_width": wide * clean[sut],
                    "inside": int(inside.sum()),
                    "left_out": int(inside.size),
                    "coverage": coverage.value,
                    "coverage_low": coverage.low,
                    "coverage_high": coverage.high,
                    "told": bool(told),
                }
            )
    return found


def _area(share: float | None, clean: float) -> float | None:
    return None if share is None else share * clean
