"""Foreign text made safe to show: names of files, classes and logs can hold anything.

HTML is escaped by the templates; here are the dangers that escaping does not stop: control characters,
text that turns the reading direction, cells that a spreadsheet takes for a formula, and sheer length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
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
UNITS = {
    "mm_h": "mm/h",
    "stops": "stops",
    "mps": "m/s",
    "deg": "°",
    "ev": "EV",
    "mm": "mm",
    "px": "px",
    "m": "m",
    "s": "s",
}
"""Units at the end of an option's name, and how they are written."""
OPTION_WORDS = {"kappa": "blur"}
"""Options that are named after a letter of an equation, in a word."""
SUITES = {"c.": "severity", "t.": "strength"}
"""How mutations of a suite begin, and the option they have in common, by which they are told from others."""
NAMELESS = (
    *("alpha", "channel", "coverage", "fraction", "length_px", "quality", "rate_mm_h", "scale"),
    *("severity", "sigma_px", "stops", "strength", "veiling_ratio", "visibility_m"),
)
"""Options that stand without their name where no other does: the mutation's own says what they are."""
VALUE = r"(?:\([\w., +-]*\)|'[^'()=]*'|[\w.+-]+)"
STEP = re.compile(rf"([^\W\d][\w.]*)(?:\(((?:\w+={VALUE}(?:, |(?=\))))+)\))?")
OPTION = re.compile(rf"(\w+)=({VALUE})")
"""A mutation as ids have it, and an option in it; what does not look so is shown as it is."""
NAME, VALUE_BEGINS = re.compile(r"[^\W\d_]{3,}"), re.compile(r"[+-]?[\d.]")
"""A word of a mutation in words that may be cut, and what a value begins with."""
COHERENT = " @ log"
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


def short_words(text: str, *, longest: int) -> str:
    """Return a mutation in words, cut within its words and never within its values, where that is enough.

    The names of options go first, the last before the others.

    >>> short_words("motion blur length 20 px", longest=21)
    'motion blur le… 20 px'
    >>> short_words("defocus focus 5 m, blur 2.8", longest=23)
    'defocus fo… 5 m, b… 2.8'
    >>> short_words("c.gaussian_noise", longest=9)
    'c.ga…oise'
    """
    words = text.split(" ")
    named = [number for number in range(len(words)) if NAME.fullmatch(words[number])]
    options = [number for number in named if VALUE_BEGINS.match("".join(words[number + 1 : number + 2]))]
    for number in (*reversed(options), *sorted(set(named) - set(options), key=lambda n: -len(words[n]))):
        too_long = len(" ".join(words)) - longest
        if too_long <= 0:
            break
        words[number] = f"{words[number][: max(len(words[number]) - too_long - 1, 1)]}…"
    short = " ".join(words)
    return short if len(short) <= longest else shown(text, longest=longest)


def apart(names: Sequence[str], *, longest: int) -> list[str]:
    """Return names shortened so that no two that differ look the same, by what they differ in.

    >>> apart(["camera-a-of-the-robot", "camera-b-of-the-robot", "hog"], longest=12)
    ['…a-of-the-r…', '…b-of-the-r…', 'hog']
    """
    spelt = [shown(name, longest=None) for name in names]
    short = [short_words(name, longest=longest) for name in spelt]
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
    """Return a setting's id in words, as people read it; an id that we did not write stays as it is.

    >>> setting_text("identity"), setting_text("Any"), setting_text("haze(visibility_m=98)")
    ('clean', 'worst case', 'haze 98 m')
    >>> setting_text("defocus(focus_m=5, kappa=2.8) + gaussian_blur(sigma_px=3)")
    'defocus focus 5 m, blur 2.8 + gaussian blur 3 px'
    >>> setting_text("c.fog(severity=3)")
    'fog severity 3'
    """
    words = {BASELINE: CLEAN, **WORST_CASES}
    text = words.get(str(setting)) or shown(_id_words(str(setting)), longest=None)
    return text if longest is None else short_words(text, longest=longest)


def setting_id(name: str, known: Iterable[str] = ()) -> str:
    """Return the id of a setting that somebody named as it is shown; `known` are the ids it may have.

    >>> setting_id("clean"), setting_id("worst case"), setting_id("Any")
    ('identity', 'Any', 'Any')
    >>> setting_id("haze 98 m", known=["haze(visibility_m=98)"])
    'haze(visibility_m=98)'
    """
    ids = {setting_text(one, longest=None): one for one in known}
    ids |= {CLEAN: BASELINE, **{words: worst for worst, words in WORST_CASES.items()}}
    return ids.get(name, name)


def stem_and_unit(option: str) -> tuple[str, str]:
    """Cut an option's name at its unit; the unit is empty where there is none.

    >>> stem_and_unit("rate_mm_h"), stem_and_unit("stops"), stem_and_unit("alpha")
    (('rate', 'mm_h'), ('', 'stops'), ('alpha', ''))
    """
    unit = next((unit for unit in UNITS if f"_{option}".endswith(f"_{unit}")), "")
    return (option.removesuffix(unit).rstrip("_"), unit) if unit else (option, "")


def option_value(name: str, value: str, *, named: bool) -> str:
    """Return an option of a mutation with its unit, and with its name if that is wanted.

    >>> option_value("focus_m", "5", named=True), option_value("sigma_px", "3", named=False)
    ('focus 5 m', '3 px')
    """
    stem, unit = stem_and_unit(name)
    text = f"{value} {UNITS[unit]}" if unit else value
    return f"{OPTION_WORDS.get(stem, stem).replace('_', ' ')} {text}".strip() if named else text


@lru_cache(maxsize=4096)
def _id_words(setting: str) -> str:
    """Return an id in words. Every option in it is there to the last digit: no two settings read alike."""
    whole = setting.removesuffix(COHERENT)
    inside = whole[1:-1] if whole != setting and whole.startswith("(") and whole.endswith(")") else whole
    steps = [STEP.fullmatch(part) for part in inside.split(" + ")]
    if len(setting) > LONGEST or not all(steps):
        return setting
    words = " + ".join(_step_words(step[1], step[2] or "") for step in steps if step)
    return words if whole == setting else f"{words} (the same over a log)"


def mutation_words(mutation: str) -> tuple[str, str]:
    """Return a mutation's name in words, and the option that must be named beside it; empty as a rule.

    >>> mutation_words("gaussian_blur"), mutation_words("c.gaussian_blur")
    (('gaussian blur', ''), ('gaussian blur', 'severity'))
    """
    option = SUITES.get(mutation[:2], "")
    return (mutation[2:] if option else mutation).replace("_", " "), option


def family_words(family: str) -> str:
    """Return the name of a family of settings as one reads it.

    >>> family_words("gaussian_blur+haze"), family_words("c.fog")
    ('gaussian blur + haze', 'fog (severity)')
    """
    steps = [mutation_words(step) for step in family.split("+")]
    return " + ".join(f"{name} ({option})" if option else name for name, option in steps)


def _step_words(mutation: str, options: str) -> str:
    found = OPTION.findall(options)
    words, option = mutation_words(mutation)
    if option and option not in dict(found):
        return f"{mutation} {options}".strip()
    named = bool(option) or len(found) > 1 or any(name not in NAMELESS for name, _ in found)
    values = ", ".join(option_value(name, value, named=named) for name, value in found)
    return f"{words} {values}".strip()


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
