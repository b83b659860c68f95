"""Ids of settings in words: no two read alike, and what we did not write stays as it is."""

from __future__ import annotations

import pytest

from adverse import plugins
from adverse.mutations.batteries import BATTERIES
from adverse.mutations.settings import parse
from adverse.text import setting_id, setting_text


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("gaussian_blur(sigma_px=3)", "gaussian blur 3 px"),
        ("c.fog(severity=3)", "fog severity 3"),
        ("t.jpeg(strength=0.3) @ log", "jpeg strength 0.3 (the same over a log)"),
        ("c.fog(level=3)", "c.fog level=3"),
        ("haze(beta=0.1)", "haze beta 0.1"),
        ("haze(color=(1, 2, 3), visibility_m=98)", "haze color (1, 2, 3), visibility 98 m"),
        ("mine(near_m=5)", "mine near 5 m"),
        ("(rain(rate_mm_h=10) + mirror) @ log", "rain 10 mm/h + mirror (the same over a log)"),
        ("a(b=<i>)", "a(b=<i>)"),
        ("a(b=1", "a(b=1"),
        ("a(b=((1)))", "a(b=((1)))"),
        ("a + ", "a + "),
        ("b\u202e(c=1)", "b\\u202e(c=1)"),
    ],
)
def test_a_setting_reads_as_words(setting: str, words: str) -> None:
    assert setting_text(setting) == words


def test_settings_of_all_batteries_read_differently_and_are_found_by_their_words() -> None:
    registry = plugins.load()
    ids = list(dict.fromkeys(parse(text, registry).id for known in BATTERIES.values() for text, _ in known))
    words = [setting_text(name) for name in ids]
    assert len(set(words)) == len(ids)
    assert not any("(" in text for text in words)
    assert [setting_id(text, ids) for text in words] == ids
