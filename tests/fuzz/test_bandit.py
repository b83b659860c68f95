"""The bandit learns what fails, is reproducible, and leaves out what is never possible."""

from __future__ import annotations

import itertools
from collections import Counter

from adverse.fuzz.bandit import EXPLORE, HOPELESS, SIZES, Arm, Bandit
from adverse.seeds import generator

CLASSES = {"change_color": ("car", "bus"), "add_car": ()}


def _rewarded(bandit: Bandit, rounds: int = 12, size: int = 64) -> Counter[str]:
    """Play a game in which add_car at the left, in the second size, nearly always fails a SUT."""
    chosen: Counter[str] = Counter()
    for number in range(rounds):
        draws = range(number * size, (number + 1) * size)
        arms = [bandit.choose(draw) for draw in draws]  # all of a round before any of it is learnt
        for draw, arm in zip(draws, arms, strict=True):
            good = arm.mutation == "add_car" and arm.position in ((0, 0), (0, 1)) and arm.size == 1
            bandit.learn(
                arm, tested=True, worth=float(generator(9, str(draw)).random() < (0.9 if good else 0.05))
            )
            if number >= rounds - 3:
                chosen["good" if good else "other"] += 1
    return chosen


def test_it_finds_what_fails() -> None:
    chosen = _rewarded(Bandit(CLASSES, seed=1))
    share = chosen["good"] / chosen.total()
    assert 1 - 3 * EXPLORE < share < 1


def test_the_same_history_makes_the_same_choices() -> None:
    first, second, other = (Bandit(CLASSES, seed=seed) for seed in (4, 4, 5))
    draws = range(900, 950)
    forwards = [first.choose(draw) for draw in draws]
    assert forwards == [second.choose(draw) for draw in reversed(draws)][::-1]
    assert forwards != [other.choose(draw) for draw in draws]
    assert _rewarded(first) == _rewarded(second)
    assert [first.choose(draw) for draw in draws] == [second.choose(draw) for draw in draws] != forwards


def test_what_is_always_refused_is_left_out() -> None:
    bandit = Bandit({"add_car": ()}, seed=1)
    for _ in range(HOPELESS):
        bandit.learn(Arm("add_car", None, (0, 0), 0), tested=False)
    arms = [bandit.choose(draw) for draw in range(300)]
    assert not any(arm.position == (0, 0) or arm.size == 0 for arm in arms)
    assert {arm.size for arm in arms if arm.size is not None} == set(range(1, len(SIZES)))


def test_sizes_cover_all_lengths_once() -> None:
    ranges = [Arm("add_car", size=size).size_px(2048) for size in range(len(SIZES))]
    assert ranges[0] == (0.0, 0.05 * 2048)
    assert all(a is not None and b is not None and a[1] == b[0] for a, b in itertools.pairwise(ranges))
    assert ranges[-1] is not None
    assert ranges[-1][1] == float("inf")
