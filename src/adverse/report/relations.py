"""Metamorphic relations, shown: how often each is violated, and what that looks like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adverse.analysis.headline import setting_words
from adverse.analysis.results import Summary
from adverse.analysis.tables import flat_row
from adverse.errors import AdverseError
from adverse.report.intervals import interval_or_reason, interval_text
from adverse.report.pictures import Looker, Mark, Picture, close_up, picture
from adverse.report.run_tables import marked_name
from adverse.report.table import Cell, Column, Row, Table, setting_cell
from adverse.store.read import Store
from adverse.store.run import Run
from adverse.store.tables import Answers
from adverse.study.moved_back import way_back
from adverse.text import CLEAN, shown

MOST_SHOWN = 3
"""Violations of each relation that the page shows."""
WIDEST = 640


def relation_tables(summary: Summary) -> list[Table]:
    """Return mutations x SUTs for every relation that the study names: the share of checks that fail."""
    tables = []
    for name, title in summary.data.get("relation_titles", {}).items():
        rows = [row for row in summary.data.get("relations", ()) if row["relation"] == name]
        suts = list(dict.fromkeys(str(row["sut"]) for row in rows))
        by_place = {(row["sut"], row["setting"]): row for row in rows}
        lines = tuple(
            (setting_cell(setting), *(_violated(by_place.get((sut, setting))) for sut in suts))
            for setting in dict.fromkeys(str(row["setting"]) for row in rows)
        )
        heads = (Column("mutation", align="left"), *(Column(marked_name(summary, sut)) for sut in suts))
        caption = "" if rows else "Nothing to check: it is not about these mutations or frames."
        records = tuple(map(flat_row, rows))
        tables.append(
            Table(name, f"{name.replace('_', ' ')}: {title}", heads, lines, records, caption=caption)
        )
    return tables


def _violated(row: Row | None) -> Cell:
    """Return the share of violations, with its interval and the counts behind it."""
    if row is None:
        return Cell(None, note="not checked")
    if row["relation_violations"] is None:
        return Cell(None, "insufficient", note="nothing could be checked", tone="soft")
    counts = f"{row['violated']} of {row['checks']}"
    details = (interval_or_reason(_percent(row.get("relation_violations_interval")), ".1f", " %"), counts)
    marks = "?" if row["status"] == "incomplete" else ""
    return Cell(
        row["relation_violations"], f"{100 * row['relation_violations']:.1f} %", details=details, marks=marks
    )


def _percent(interval: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if not interval or interval["low"] is None:
        return interval
    return {**interval, "low": 100 * interval["low"], "high": 100 * interval["high"]}


def relation_lines(summary: Summary, run: Run) -> list[str]:
    """Return for each relation where it is violated most, a line each; nothing where none is named."""
    lines = []
    settings = {setting.id: setting for setting in run.settings}
    for name in summary.data.get("relation_titles", {}):
        rows = [
            row
            for row in summary.data.get("relations", ())
            if row["relation"] == name and row["relation_violations"] is not None
        ]
        if not rows:
            lines.append(f"- {name}: insufficient, nothing could be checked")
            continue
        worst = max(rows, key=lambda row: row["relation_violations"])
        ends = _percent(worst.get("relation_violations_interval")) or {
            "low": None,
            "high": None,
            "status": "",
        }
        text = interval_text(ends["low"], ends["high"], ".0f", status=str(ends["status"]))
        words = f" ({text} %)" if text else ""
        clean = worst["setting"] == run.baseline.id
        under = CLEAN if clean else setting_words(settings[worst["setting"]])
        where = f"{shown(worst['sut'])}, {shown(under)}"
        share = f"{100 * worst['relation_violations']:.1f} % of checks{words}"
        lines.append(f"- {name}: violated in {share} at worst: {where}")
    return lines


@dataclass(frozen=True)
class Violation:
    """A violation of a relation: what it is beside, and itself, each whole and close up where small."""

    row: Mapping[str, Any]
    where: str
    """On clean frames, or under which mutation."""
    shots: tuple[tuple[str, Picture, Picture | None], ...]


def violations(summary: Summary, looker: Looker) -> list[Violation]:
    """Return the violations that can be shown, the surest of each relation, with their pictures."""
    answers = _Detected(looker.store)
    shown_of: dict[str, list[Violation]] = {}
    rows = sorted(summary.data.get("violations", ()), key=lambda row: (-row["weight"], row["frame"]))
    for row in _apart(rows):
        mine = shown_of.setdefault(row["relation"], [])
        if len(mine) < MOST_SHOWN and (drawn := _drawn(row, looker, answers)) is not None:
            mine.append(drawn)
    return [one for name in summary.data.get("relation_titles", {}) for one in shown_of.get(name, ())]


def _apart(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield violations, first one of each relation, SUT and setting, then the others."""
    seen: set[tuple[str, ...]] = set()
    later = []
    for row in rows:
        key = (row["relation"], row["sut"], row["setting"])
        if key in seen:
            later.append(row)
        else:
            seen.add(key)
            yield row
    yield from later


def _drawn(row: Mapping[str, Any], looker: Looker, answers: _Detected) -> Violation | None:
    settings = {setting.id: setting for setting in looker.store.run.settings}
    shots = []
    for frame, name in ((row["beside_frame"], row["beside_setting"]), (row["frame"], row["setting"])):
        try:
            image = looker.image(frame, name)
        except AdverseError:
            return None
        meant = Mark("meant", *row["box"])
        marks = [meant, *answers.marks(row, frame, name)]  # within the pink box, if it is reported
        region = close_up(meant, image)
        close = None if region is None else picture(image, marks, region=region, widest=WIDEST)
        clean = name == looker.store.run.baseline.id
        words = CLEAN if clean else f"under {shown(setting_words(settings[name]))}"
        if way_back(settings[name], looker.registry, image.shape[:2]) is not None:
            words += " (turned back)"
        if row["beside_frame"] != row["frame"]:
            words = f"{'the frame before' if frame != row['frame'] else 'this frame'}, {words}"
        shots.append((words, picture(image, marks, widest=WIDEST), close))
    setting = settings[row["setting"]]
    clean = setting.id == looker.store.run.baseline.id
    where = "on clean frames" if clean else f"under {shown(setting_words(setting))}"
    return Violation(row, where, tuple(shots))


class _Detected:
    """The detections of SUTs on frames; each SUT's answers are read once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._answers: dict[str, dict[str, Answers]] = {}
        self._index = {frame: number for number, frame in enumerate(store.frames.ids)}

    def marks(self, row: Mapping[str, Any], frame: str, setting: str) -> list[Mark]:
        """Return the detections that count on a frame under a setting."""
        sut = str(row["sut"])
        if sut not in self._answers:
            self._answers[sut] = self.store.answers(sut)
        answers = self._answers[sut][setting]
        threshold = -np.inf if row["threshold"] is None else np.float32(row["threshold"])
        return [
            Mark("found", *answers.boxes[at].tolist())
            for place in np.flatnonzero(answers.frame == self._index[frame]).tolist()
            for at in range(int(answers.offsets[place]), int(answers.offsets[place + 1]))
            if answers.scores[at] >= threshold
        ]
