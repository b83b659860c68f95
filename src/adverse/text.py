"""Foreign text made safe to show: names of files, classes and logs can hold anything.

HTML is escaped by the templates; here are the dangers that escaping does not stop: control characters,
text that turns the reading direction, cells that a spreadsheet takes for a formula, and sheer length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

LONGEST = 120
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
SCORE_WORDS = {"mean_iou": "mean IoU", "top1": "top-1 accuracy"}
"""What the scores of segmenters and classifiers are called."""
BASELINE, CLEAN = "identity", "clean"
"""The id of the setting without a mutation, as files have it, and what people read for it."""
WORST_CASES = {"AnyMild": "worst mild case", "Any": "worst case"}
"""The ids of the worst cases over all mild and over all mutations, and what people read for them."""
OVER_ALL = {"AnyMild": "the worst case of all mild mutations", "Any": "the worst case of all mutations"}
"""The same in a sentence."""
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode categories that are invisible or act on what stands around them."""


def shown(text: object, *, longest: int | None = LONGEST) -> str:
    r"""Return text with what cannot be seen written out, and its middle left out if it is long.

    >>> shown("row\u202e3")
    'row\\u202e3'
    >>> shown("a" * 9, longest=5)
    'aa…aa'
    """
    spelt = _in_one_line(str(text))
    if longest is None or len(spelt) <= longest:
        return spelt
    half = (longest - 1) // 2
    return f"{spelt[:half]}…{spelt[len(spelt) - (longest - 1 - half) :]}"


def apart(names: Sequence[str], *, longest: int) -> list[str]:
    """Return names shortened so that no two that differ look the same, by what they differ in.

    >>> apart(["camera-a-of-the-robot", "camera-b-of-the-robot", "hog"], longest=12)
    ['…a-of-the-r…', '…b-of-the-r…', 'hog']
    """
    spelt = [shown(name, longest=None) for name in names]
    short = [shown(name, longest=longest) for name in spelt]
    for text in dict.fromkeys(short):
        alike = list(dict.fromkeys(name for name, cut in zip(spelt, short, strict=True) if cut == text))
        if len(alike) > 1:
            clear = _by_their_difference(alike, longest)
            short = [clear.get(name, cut) for name, cut in zip(spelt, short, strict=True)]
    if len(set(short)) < len(set(spelt)):  # they differ in more than one place
        return [f"{number}. {shown(name, longest=longest - 4)}" for number, name in enumerate(spelt, 1)]
    return short


def _by_their_difference(names: Sequence[str], longest: int) -> dict[str, str]:
    """Return names from the word on in which they begin to differ."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    start = len(re.sub(r"[^\W_]*$", "", "".join(letters[0] for letters in same)))
    ends = {name: name[start:] for name in names}
    return {
        name: f"…{end}" if len(end) < longest else f"…{end[: longest - 2]}…" for name, end in ends.items()
    }


def setting_text(setting: object, *, longest: int | None = LONGEST) -> str:
    """Return a setting's id as people read it: clean without a mutation, and the worst cases in words.

    >>> setting_text("identity"), setting_text("Any"), setting_text("haze(visibility_m=98)")
    ('clean', 'worst case', 'haze(visibility_m=98)')
    """
    words = {BASELINE: CLEAN, **WORST_CASES}
    return words.get(str(setting)) or shown(setting, longest=longest)


def setting_id(name: str) -> str:
    """Return the id of a setting that somebody named as it is shown.

    >>> setting_id("clean"), setting_id("worst case"), setting_id("Any")
    ('identity', 'Any', 'Any')
    """
    ids = {CLEAN: BASELINE, **{words: worst for worst, words in WORST_CASES.items()}}
    return ids.get(name, name)


def seen(text: str) -> str:
    r"""Return text of any number of lines with what cannot be seen written out, whole.

    >>> print(seen("a\x1b[31m\nb"))
    a\x1b[31m
    b
    """
    return "\n".join(map(_in_one_line, text.split("\n")))


def cell(value: object) -> str:
    """Return a value for a CSV file: text that looks like a formula gets a quote in front.

    >>> cell("=cmd()"), cell(-0.5), cell(None)
    ("'=cmd()", '-0.5', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    text = shown(value, longest=None)
    return f"'{text}" if text.startswith(FORMULA) else text


def _in_one_line(text: str) -> str:
    """Return text with all that cannot be seen written out, line ends too."""
    return text if text.isprintable() else "".join(map(_spelt, text))


def _spelt(char: str) -> str:
    if unicodedata.category(char) not in HIDDEN:
        return char
    return char.encode("unicode_escape").decode()


PATH = re.compile(r"(?<![\w.…])(?:[A-Za-z]:)?[\\/](?:[^\\/\s'\";:,()]+[\\/])*([^\\/\s'\";:,()]*)")
"""A path from the root of a disk; its last part is kept."""


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> duration(99), duration(734), duration(4000)
    ('99 s', '12 min', '1 h 07 min')
    """
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{seconds:.0f} s" if seconds < 100 else f"{minutes} min"


def plain_number(text: str) -> float:
    """Return a number as people and tables write it, NaN for anything else: float() takes 0_1 for 1.

    >>> plain_number("0.5"), plain_number("1e-3"), plain_number("0_1"), plain_number("inf")
    (0.5, 0.001, nan, nan)
    """
    return float(text) if NUMBER.fullmatch(text) else float("nan")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "miss"), counted(0, "miss"), counted(2, "false alarm")
    ('1 miss', '0 misses', '2 false alarms')
    """
    ending = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{'' if number == 1 else ending}"


def without_paths(text: str, *roots: Path) -> str:
    """Return text in which folders of this machine are left out; the terminal has the whole of it.

    >>> without_paths("no such file; where: /home/ann/my data/a.png", Path("/home/ann/my data"))
    'no such file; where: …/a.png'
    >>> without_paths("test/row3/0001 at 3 m/s is not in /data/truth.json")
    'test/row3/0001 at 3 m/s is not in …/truth.json'
    """
    for root in roots:
        text = text.replace(str(root), "…")
    return PATH.sub(lambda found: f"…/{found[1]}", text)
