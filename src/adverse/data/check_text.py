"""What `check` found out, in plain words of at most 80 columns; only a path may be longer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from adverse.data.check import FROM_PAIRS, ClassCount, DataCheck, DepthFacts, Problem

COLUMNS = 80
LABEL = 11
CLASSES_SHOWN = 12
PROBLEMS_SHOWN = 10
LONGEST_NAME = 23
NEEDS = {"depth_m": "depth", "labels": "labels per pixel"}


def words(checked: DataCheck, title: str, section: Mapping[str, Any] | None) -> list[str]:
    """Return the lines to print; `section` is the study's data section that reads the same data."""
    lines = [title, ""]
    lines += _facts(checked)
    lines += ["", "Can be used for"]
    lines += _abilities(checked)
    lines += ["", *_problems(checked)]
    if section is not None:
        task = ["task: classification"] if checked.classifies else []
        task += [] if checked.labelled else ["truth: clean"]
        task += ["depth: {from: stereo}"] if checked.depth_from_pairs else []
        lines += ["", "In a study:", *task, *data_section(section)]
    return lines


def data_section(section: Mapping[str, Any]) -> list[str]:
    """Return the YAML lines of a study that read the data so.

    >>> data_section({"format": "voc", "root": "VOC2007"})
    ['data:', '  format: voc', '  root: VOC2007']
    """
    text = yaml.safe_dump({"data": dict(section)}, sort_keys=False, allow_unicode=True)
    return text.rstrip().splitlines()


def _facts(checked: DataCheck) -> Iterator[str]:
    lost = f"; {checked.unusable} cannot be used" if checked.unusable else ""
    looked = "all decoded" if checked.decoded == checked.images else f"{checked.decoded} of them decoded"
    yield from _entry("images", f"{checked.images}, {looked}{lost}")
    sizes = [f"{size} ({count})" for size, count in checked.sizes.items()]
    more = f", and {len(sizes) - 6} more sizes" if len(sizes) > 6 else ""
    yield from _entry("sizes", (", ".join(sizes[:6]) or "none known") + more)
    rate = "" if checked.frames_per_s is None else f", {checked.frames_per_s:.3g} frames per second"
    yield from _entry("logs", f"{checked.logs}{rate}")
    splits = [
        f"{split.name} {_many(split.logs, 'log')}, {_many(split.images, 'image')}" for split in checked.splits
    ]
    yield from _entry("splits", "; ".join(splits))
    yield from _entry("depth", _depth(checked.depth, checked.images))
    for noun, count in (
        ("poses", checked.poses),
        ("cameras", checked.cameras),
        ("stereo", checked.stereo),
        ("labels", checked.labels),
    ):
        yield from _entry(noun, _share(count, checked.images))
    if checked.labels and checked.pixel_classes:
        yield from _entry("", f"{checked.pixel_classes} classes, for segmenters")
    if checked.pictured:
        yield from _entry(
            "shown", f"{_share(checked.pictured, checked.images)} tell their class, for classifiers"
        )
    if checked.robot:
        yield from _entry("robot", "its radii are told by the data")
    if checked.classifies:
        yield ""
        yield from _image_table(checked.pictured_classes)
    elif checked.classes:
        yield ""
        yield from _table(checked.classes)
    if checked.notes:
        yield ""
        yield "Seen and accepted"
        for note, count in checked.notes.items():
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
    shown = sorted(classes, key=lambda row: (-row.boxes, -row.ignored, row.name))
    name = min(max(len("class"), *(len(row.name) for row in shown[:CLASSES_SHOWN])), LONGEST_NAME)
    head = ("boxes", "ignored", "positive", "only ignored", "negative logs")
    yield f"{'class':{name}}  " + "  ".join(f"{word:>{max(len(word), 7)}}" for word in head)
    for row in shown[:CLASSES_SHOWN]:
        cells = (f"{value:>{max(len(word), 7)}}" for word, value in zip(head, row[1:], strict=True))
        yield f"{row.name[:name]:{name}}  " + "  ".join(cells)
    if len(shown) > CLASSES_SHOWN:
        rest = shown[CLASSES_SHOWN:]
        yield f"and {len(rest)} more classes with {sum(row.boxes for row in rest)} boxes (--json lists them)"


def _image_table(images: Mapping[str, int]) -> Iterator[str]:
    """Yield how many images show each class, those with fewest last."""
    shown = sorted(images.items(), key=lambda row: (-row[1], row[0]))
    name = min(max(len("class"), *(len(row[0]) for row in shown[:CLASSES_SHOWN])), LONGEST_NAME)
    yield f"{'class':{name}}   images"
    yield from (f"{row[:name]:{name}}  {count:>7}" for row, count in shown[:CLASSES_SHOWN])
    if len(shown) > CLASSES_SHOWN:
        rest = shown[CLASSES_SHOWN:]
        yield f"and {len(rest)} more classes with {sum(count for _, count in rest)} images"


def _abilities(checked: DataCheck) -> Iterator[str]:
    if checked.classifies:
        yield from _entry("task", "classification: top-1 and top-5 accuracy under every mutation")
    elif not checked.labelled:
        yield from _entry("label-free", "agreement of a detector with its clean answers: truth: clean")
    else:
        yield from _level_abilities(checked)
    yield from _mutations(checked)
    if not checked.classifies and not any(split.name == "validation" for split in checked.splits):
        yield from _entry("thresholds", "chosen on the test images: there is no validation split")


def _level_abilities(checked: DataCheck) -> Iterator[str]:
    able = [level for level in checked.levels if level.able]
    yield from _entry("levels", ", ".join(level.name for level in able) or "none")
    for level in able:
        if level.reason:
            yield from _entry("", f"{level.name}: {level.reason}")
    reasons: dict[str, list[str]] = {}
    for level in checked.levels:
        if not level.able:
            reasons.setdefault(level.reason, []).append(level.name)
    for reason, names in reasons.items():
        yield from _entry("", f"not {', '.join(names)}: {reason}")


def _mutations(checked: DataCheck) -> Iterator[str]:
    out = {name for lost in checked.mutations_out.values() for name in lost}
    yield from _entry("mutations", f"{checked.mutations - len(out)} of {checked.mutations}")
    for need, lost in checked.mutations_out.items():
        way = f"; {FROM_PAIRS}" if need == "depth_m" and checked.depth_from_pairs else ""
        yield from _entry("", f"not {', '.join(lost)}: no test frame has {NEEDS[need]}{way}")
    for need, part in checked.mutations_in_part.items():
        listed = ", ".join(part.mutations)
        way = f"; {FROM_PAIRS}" if need == "depth_m" and checked.depth_from_pairs else ""
        with_it = f"the {part.frames} of {part.of} test frames with {NEEDS[need]}"
        yield from _entry("", f"{listed}: on {with_it}{way}")
    if "depth_m" not in checked.mutations_out and (checked.depth.known_share or 1.0) < 1:
        yield from _entry(
            "", "those by depth with invalid_depth: nearest (or far) in the study, or depth: {from: laser}"
        )


def _problems(checked: DataCheck) -> Iterator[str]:
    if not checked.problems:
        yield "No problems."
        return
    stopping = [problem for problem in checked.problems if problem.stops]
    rest = [problem for problem in checked.problems if not problem.stops]
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
