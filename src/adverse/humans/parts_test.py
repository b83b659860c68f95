"""How often two parts of the answers differ as much by chance: what two parts of the images are judged by.

If images do not matter, then among the answers in one bin the successes may fall on any of them, whichever
image they are on. So they are dealt out anew within every bin (and within the base), many times; bins,
parts and what the parts share stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adverse.humans.answers import EDGES, Array, Judgments, count_answers
from adverse.humans.drop_test import BaseRate
from adverse.humans.estimate import EstimateOptions, Fit, fit
from adverse.humans.thresholds import Kind
from adverse.seeds import generator

DEALS = 199
SHARES = ("both", "first", "second", "neither")
"""To which of two parts that overlap an answer belongs."""


def chance_of_parts(
    judgments: Judgments,
    kind: Kind,
    parts: tuple[NDArray[np.str_], NDArray[np.str_]],
    options: EstimateOptions,
    *key: str,
) -> float:
    """Return p of two parts of the images being as far apart, in thresholds or in curves, by chance."""
    first, second = (np.isin(judgments.image, part) for part in parts)
    share = np.select([first & second, first, second], SHARES[:3], SHARES[3])
    counted = count_answers(replace(judgments, participant=share), kind, options.baseline_quantile)
    rows = [counted.names.index(name) if name in counted.names else -1 for name in SHARES]

    def by_share(values: Array) -> Array:
        return np.stack([values[row] if row >= 0 else np.zeros_like(values[0]) for row in rows])

    rng = generator(options.seed, "parts", *key)
    answers = by_share(counted.answers)
    fits = [
        fit(*each, options)
        for each in zip(
            _in_parts(answers[None]).repeat(DEALS + 1, axis=1),
            _in_parts(_dealt(answers, by_share(counted.successes), rng)),
            _bases(by_share(counted.base_answers), by_share(counted.base_successes), rng),
            strict=True,
        )
    ]
    p = [_share_as_large(measure) for measure in (_apart(*fits), _unlike(*fits))]
    return min(1.0, len(p) * min(p))


def _dealt(answers: Array, successes: Array, rng: np.random.Generator) -> Array:
    """Return (1 + DEALS, 4, ...) successes: as they are, then dealt out anew among the answers."""
    left, right = answers.sum(axis=0), successes.sum(axis=0)
    left, right = (np.broadcast_to(each, (DEALS, *each.shape)).astype(np.int64) for each in (left, right))
    hands = []
    for number in answers.astype(np.int64):
        hand = rng.hypergeometric(right, left - right, number)
        left, right = left - number, right - hand
        hands.append(hand)
    return np.concatenate([successes[None], np.stack(hands, axis=1).astype(np.float64)])


def _in_parts(by_share: Array) -> Array:
    """Return (2, R, ...) what the first and the second part have, given (R, 4, ...)."""
    both, first, second, _ = np.moveaxis(by_share, 1, 0)
    return np.stack([both + first, both + second])


def _bases(answers: Array, successes: Array, rng: np.random.Generator) -> list[BaseRate]:
    asked = _in_parts(answers[None])
    right = _in_parts(_dealt(answers, successes, rng))
    return [BaseRate(r / n, n.repeat(DEALS + 1)) for n, r in zip(asked, right, strict=True)]


def _apart(first: Fit, second: Fit) -> Array:
    """Return how far the thresholds of two parts lie apart; without one, the last bin ends the range."""
    ends = []
    for each in (first, second):
        last = each.fitted.shape[1] - np.isfinite(each.fitted)[:, ::-1].argmax(axis=1)
        ends.append(EDGES[np.where(each.first < 0, last, each.first)])
    apart: Array = np.abs(ends[0] - ends[1])
    return apart


def _unlike(first: Fit, second: Fit) -> Array:
    unlike: Array = np.nansum((first.fitted - second.fitted) ** 2, axis=1)
    return unlike


def _share_as_large(measure: Array) -> float:
    """Return the share of the deals, with the data as one of them, that are at least as large as the data."""
    return float((measure >= measure[0] - 1e-9).mean())
