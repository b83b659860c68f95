"""What `check` found out, in plain words of at most 80 columns; only a path may be longer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from adverse.data.check import Checked, ClassCount, DepthFacts, Problem

COLUMNS = 80
LABEL = 11
CLASSES_SHOWN = 12
PROBLEMS_SHOWN = 10
LONGEST_NAME = 23
NEEDS = {"depth_m": "depth", "labels": "labels per pixel"}


def words(found: Checked, title: str, section: Mapping[str, Any] | None) -> list[str]:
    """Return the lines to print; `section` is the study's data section that reads the same data."""
    lines = [title, ""]
    lines += _facts(found)
    lines += ["", "Can be used for"]
    lines += _abilities(found)
    lines += ["", *_problems(found)]
    if section is not None:
        lines += ["", "In a study:", *data_section(section)]
    return lines


def data_section(section: Mapping[str, Any]) -> list[str]:
    """Return the YAML lines of a study that read the data so.

    >>> data_section({"format": "voc", "root": "VOC2007"})
    ['data:', '  format: voc', '  root: VOC2007']
    """
    text = yaml.safe_dump({"data": dict(section)}, sort_keys=False, allow_unicode=True)
    return text.rstrip().splitlines()


def _facts(found: Checked) -> Iterator[str]:
    lost = f"; {found.unusable} cannot be used" if found.unusable else ""
    looked = "all decoded" if found.decoded == found.images else f"{found.decoded} of them decoded"
    yield from _entry("images", f"{found.images}, {looked}{lost}")
    sizes = [f"{size} ({count})" for size, count in found.sizes.items()]
    more = f", and {len(sizes) - 6} more sizes" if len(sizes) > 6 else ""
    yield from _entry("sizes", (", ".join(sizes[:6]) or "none known") + more)
    rate = "" if found.frames_per_s is None else f", {found.frames_per_s:.3g} frames per second"
    yield from _entry("logs", f"{found.logs}{rate}")
    splits = [f"{one.name} {_many(one.logs, 'log')}, {_many(one.images, 'image')}" for one in found.splits]
    yield from _entry("splits", "; ".join(splits))
    yield from _entry("depth", _depth(found.depth, found.images))
    for noun, count in (
        ("poses", found.poses),
        ("cameras", found.cameras),
        ("stereo", found.stereo),
        ("labels", found.labels),
    ):
        yield from _entry(noun, _share(count, found.images))
    if found.labels and found.pixel_classes:
        yield from _entry("", f"{found.pixel_classes} classes, for segmenters")
    if found.pictured:
        yield from _entry(
            "shown", f"{_share(found.pictured, found.images)} tell their class, for classifiers"
        )
    if found.robot:
        yield from _entry("robot", "its radii are told by the data")
    if found.classes:
        yield ""
        yield from _table(found.classes)
    if found.notes:
        yield ""
        yield "Seen and accepted"
        for note, count in found.notes.items():
            yield from _wrapped(f"{count} x {note}", "  ")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _depth(depth: DepthFacts, images: int) -> str:
    text = _share(depth.frames, images)
    if depth.known_share is not None:
        text += f"; {depth.known_share:.1%} of the pixels have one"
    if depth.nearest_m is not None and depth.farthest_m is not None:
        text += f", {depth.nearest_m:.3g} to {depth.farthest_m:.3g} m"
    return text


def _share(count: int, of: int) -> str:
    return "none" if count == 0 else ("all frames" if count == of else f"{count} of {of} frames")


def _table(classes: Sequence[ClassCount]) -> Iterator[str]:
    shown = sorted(classes, key=lambda one: (-one.boxes, -one.ignored, one.name))
    name = min(max(len("class"), *(len(one.name) for one in shown[:CLASSES_SHOWN])), LONGEST_NAME)
    head = ("boxes", "ignored", "positive", "only ignored", "negative logs")
    yield f"{'class':{name}}  " + "  ".join(f"{word:>{max(len(word), 7)}}" for word in head)
    for one in shown[:CLASSES_SHOWN]:
        cells = (f"{value:>{max(len(word), 7)}}" for word, value in zip(head, one[1:], strict=True))
        yield f"{one.name[:name]:{name}}  " + "  ".join(cells)
    if len(shown) > CLASSES_SHOWN:
        rest = shown[CLASSES_SHOWN:]
        yield f"and {len(rest)} more classes with {sum(one.boxes for one in rest)} boxes (--json lists them)"


def _abilities(found: Checked) -> Iterator[str]:
    able = [level for level in found.levels if level.able]
    yield from _entry("levels", ", ".join(level.name for level in able) or "none")
    for level in able:
        if level.reason:
            yield from _entry("", f"{level.name}: {level.reason}")
    reasons: dict[str, list[str]] = {}
    for level in found.levels:
        if not level.able:
            reasons.setdefault(level.reason, []).append(level.name)
    for reason, names in reasons.items():
        yield from _entry("", f"not {', '.join(names)}: {reason}")
    out = {name for lost in found.mutations_out.values() for name in lost}
    yield from _entry("mutations", f"{found.mutations - len(out)} of {found.mutations}")
    for need, lost in found.mutations_out.items():
        yield from _entry("", f"not {', '.join(lost)}: not every test frame has {NEEDS[need]}")
    if "depth_m" not in found.mutations_out and (found.depth.known_share or 1.0) < 1:
        yield from _entry("", "those by depth with invalid_depth: nearest (or far) in the study")
    if not any(one.name == "validation" for one in found.splits):
        yield from _entry("thresholds", "chosen on the test images: there is no validation split")


def _problems(found: Checked) -> Iterator[str]:
    if not found.problems:
        yield "No problems."
        return
    stopping = [problem for problem in found.problems if problem.stops]
    rest = [problem for problem in found.problems if not problem.stops]
    for heading, some in (("Problems that would stop a study", stopping), ("Problems", rest)):
        if some:
            yield heading
        for problem in some[:PROBLEMS_SHOWN]:
            yield from _problem(problem)
        if len(some) > PROBLEMS_SHOWN:
            yield f"and {len(some) - PROBLEMS_SHOWN} more (--json lists them)"


def _problem(problem: Problem) -> Iterator[str]:
    times = "" if problem.stops else f"{problem.times} x "
    yield from _wrapped(f"{times}{problem.what}", "- ", "  ")
    yield f"  {'first' if problem.times > 1 else 'where'}: {problem.where}"  # in one piece, to be copied
    if problem.got:
        yield from _wrapped(f"got:   {problem.got}", "  ", "         ")
    if problem.fix:
        yield from _wrapped(f"fix:   {problem.fix}", "  ", "         ")


def _entry(label: str, text: str) -> Iterator[str]:
    return _wrapped(text, f"  {label:{LABEL}}", " " * (LABEL + 2))


def _wrapped(text: str, first: str, after: str | None = None) -> Iterator[str]:
    later = " " * len(first) if after is None else after
    yield from textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
