"""What two runs have in common, so that a difference between them is one of the SUTs and of nothing else.

A log counts as common when its frames, their truth and the images that could be used are the same in both;
an equal name is not enough.

One figure before and after a change, and what may be said about it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow.compute as pc
import pyarrow.parquet as pq

from adverse.content import digest
from adverse.curves.interval import Interval, interval_cells
from adverse.errors import DataError, StudyError, suggestion
from adverse.levels.outcomes import positive_logs
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.store.run import Run

MUST_AGREE = {
    "targets": "the classes that count",
    "fpr_max": "the highest rate of false positives",
    "robot": "the robot",
    "sensitivity": "the sensitivity levels",
}
DATA_CHANGES = ("the annotations changed", "the data options changed")
"""What is not so where only the place of the files changed."""
NAMED = 3


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two runs and what of them can be compared.

    `suts` pairs the SUT before with the one after; `settings` are in both, the baseline first, with the group
    they have in both (None: not the same); `whole` says that no test log of either run is left out.
    """

    first: Store
    second: Store
    suts: tuple[tuple[str, str], ...]
    settings: Mapping[str, str | None]
    logs: tuple[str, ...]
    positive: tuple[bool, ...]
    whole: bool
    only: tuple[str, ...]
    """What is in one of the runs alone, in words."""
    notes: tuple[str, ...]
    """What else differs between the runs, in words."""
    basis: tuple[str, ...] = ()
    """What the figures of both runs rest on, in words; empty for annotated, whole recordings."""

    @property
    def task(self) -> str:
        """What the SUTs of both runs do."""
        return self.first.task


def pair(first: Path, second: Path, suts: Mapping[str, str]) -> Pairing:
    """Open two finished runs and find what is common; `suts` pairs SUTs with different names."""
    before, after = (finished(path) for path in (first, second))
    _refuse_other_questions(before, after)
    _refuse_other_images(before, after)
    pairs, only = _sut_pairs(before, after, suts)
    logs, left_out = _common_logs(before, after)
    settings = _common_settings(before, after)
    positive = dict(zip(before.frames.logs, positive_logs(before.truth, before.frames).tolist(), strict=True))
    return Pairing(
        before,
        after,
        pairs,
        settings,
        logs,
        tuple(positive[log] for log in logs),
        not left_out,
        (*only, *_only_settings(before, after), *left_out),
        tuple(_notes(before, after, settings, pairs)),
        tuple(_basis(before.run)),
    )


def _refuse_other_questions(first: Store, second: Store) -> None:
    """Raise where the figures of the runs answer different questions."""
    if first.task != second.task:
        raise StudyError(
            "the runs are of different tasks",
            where=f"{first.folder.path} and {second.folder.path}",
            got=f"{first.task} and {second.task}",
            fix="Compare runs of the same task.",
        )
    if first.task != "detection":
        return
    if (first.run.truth is None) != (second.run.truth is None):
        raise StudyError(
            "one of the runs is label-free: recall and agreement are different things",
            where=f"{first.folder.path} and {second.folder.path}",
            got=" and ".join(_reference_words(store) for store in (first, second)),
            wanted="both compared with annotations, or both with clean answers",
            fix="Run both studies with truth:, or both without.",
        )
    if first.run.truth is not None and _reference(first) != _reference(second):
        raise StudyError(
            "the runs are label-free, each against clean answers of its own",
            where=f"{first.folder.path} and {second.folder.path}",
            got=" and ".join(_reference_words(store) for store in (first, second)),
            wanted="the same answers in both: a system that sees less has less to lose and would look better",
            fix="Give both studies one reference, the same model with the same score: truth: {from: NAME, "
            "score: 0.5}. Or put both systems into one study with it.",
        )
    for key, words in MUST_AGREE.items():
        asked = [getattr(store.run, key) for store in (first, second)]
        if None not in asked and asked[0] != asked[1]:  # what has neither depth nor robot is compared without
            raise StudyError(
                f"the runs cannot be compared: {words} differ",
                where=f"{key} of {first.folder.path} and {second.folder.path}",
                got=f"{_short(asked[0])} and {_short(asked[1])}",
                wanted="the same in both",
                fix=f"Give both studies the same {key}: and run one of them again; only results are redone.",
            )


def _reference(store: Store) -> tuple[str, float] | None:
    """Return what the clean answers of a label-free run are: whose, and from which score on."""
    truth = store.run.truth
    return None if truth is None else (store.run.sut(truth.sut).fingerprint, truth.score)


def _reference_words(store: Store) -> str:
    truth = store.run.truth
    if truth is None:
        return "annotations"
    return f"{truth.name} (version {store.run.sut(truth.sut).fingerprint[:12]})"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _refuse_other_images(first: Store, second: Store) -> None:
    """Raise where a file that both runs read is not the same file any more."""
    before, after = first.folder.read_inputs(), second.folder.read_inputs()
    if {*before.values()} <= {*after.values()} or {*after.values()} <= {*before.values()}:
        return
    changed = sorted(path for path in before.keys() & after.keys() if before[path] != after[path])
    if changed:
        raise DataError(
            "the runs did not see the same images",
            where=", ".join(changed[:NAMED]) + (", ..." if len(changed) > NAMED else ""),
            got=f"{len(changed)} input files changed between the runs",
            wanted="the same files in both, so that only the SUT differs",
            fix="Run one of the studies again on the same data.",
        )


def _sut_pairs(
    first: Store, second: Store, told: Mapping[str, str]
) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    for given, store in ((told.keys(), first), (told.values(), second)):
        for name in given:
            if name not in store.suts:
                raise StudyError(
                    f"the run has no SUT {name!r}",
                    where=f"--sut, run {store.folder.path}",
                    fix=suggestion(name, store.suts),
                )
    pairs = tuple(told.items()) if told else tuple((s, s) for s in first.suts if s in second.suts)
    if not pairs:
        raise StudyError(
            "no SUT is in both runs",
            where=f"{first.folder.path} and {second.folder.path}",
            got=f"{', '.join(first.suts)} and {', '.join(second.suts)}",
            fix=f"Say which belong together, for example --sut '{first.suts[0]}={second.suts[0]}'.",
        )
    if told:
        return pairs, []
    return pairs, [
        f"SUT {name} is only in {where}"
        for mine, other, where in ((first, second, "the first run"), (second, first, "the second run"))
        for name in mine.suts
        if name not in other.suts
    ]


def _common_settings(first: Store, second: Store) -> dict[str, str | None]:
    return {
        name: group if second.groups[name] == group else None
        for name, group in first.groups.items()
        if name in second.groups
    }


def _only_settings(first: Store, second: Store) -> list[str]:
    return [
        f"mutation {name} is only in {where}"
        for mine, other, where in ((first, second, "the first run"), (second, first, "the second run"))
        for name in mine.groups
        if name not in other.groups
    ]


def _common_logs(first: Store, second: Store) -> tuple[tuple[str, ...], list[str]]:
    """Return the test logs that are the same in both, by name, and words on those that are not."""
    before, after = _contents(first), _contents(second)
    words = {
        "only in the first run": sorted(before.keys() - after.keys()),
        "only in the second run": sorted(after.keys() - before.keys()),
        "not the same in both: frames, truth or usable images differ": sorted(
            log for log in before.keys() & after.keys() if before[log] != after[log]
        ),
    }
    common = tuple(sorted(log for log in before.keys() & after.keys() if before[log] == after[log]))
    if not common:
        raise DataError(
            "the runs have no log in common",
            where=f"{first.folder.path} and {second.folder.path}",
            got="; ".join(f"{len(logs)} {why}" for why, logs in words.items() if logs),
            wanted="the same data in both, at least in part",
            fix="Compare runs over the same data.",
        )
    left = [f"{len(logs)} test logs are {why}: {_named(logs)}" for why, logs in words.items() if logs]
    return common, left


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _contents(store: Store) -> dict[str, str]:
    """Return a hash of all that a test log holds: frames, truth, and what of it could not be used."""
    frames = pq.read_table(store.folder.frames)
    frames = frames.filter(pc.equal(frames["split"], "test"))
    log_of = dict(zip(frames["frame"].to_pylist(), frames["log"].to_pylist(), strict=True))
    parts: dict[str, list[str]] = {log: [] for log in log_of.values()}
    troubles = store.troubles()
    refused = troubles.filter(pc.equal(troubles["status"], "quarantined")).select(["frame", "setting"])
    for table in (frames, store.truth_rows, refused):
        for row in table.to_pylist():
            if row["frame"] in log_of:
                parts[log_of[row["frame"]]].append(repr(row))
    return {log: digest(*sorted(set(rows))) for log, rows in parts.items()}


def failed_everywhere(store: Store) -> set[str]:
    """Return the SUTs that answered no image: that they find nothing is no result."""
    return set(store.suts) - {row["sut"] for row in store.counts() if row["status"] == "ok"}


def _notes(
    first: Store, second: Store, settings: Mapping[str, str | None], suts: Sequence[tuple[str, str]]
) -> list[str]:
    same_data = first.same_data(second)
    words = [
        change
        for change in second.changes_since(first)
        if not change.endswith((" is new", " is gone"))
        and change != "the statistics settings changed"
        and not (change in DATA_CHANGES and same_data)
    ]
    words += _evaluated_otherwise(first.run, second.run, suts)
    for place, (which, store) in enumerate((("first", first), ("second", second))):
        failed = failed_everywhere(store)
        words += [
            f"{names[place]} failed on every image of the {which} run, so nothing of it is compared"
            for names in suts
            if names[place] in failed
        ]
    read = {store.run.localizer for store in (first, second)} - {None}
    if len(read) > 1:
        words.append(f"the depth of boxes was read in different ways: {' and '.join(sorted(map(str, read)))}")
    pairs = {store.run.localize_on for store in (first, second)} - {None}
    if len(pairs) > 1:
        words.append("one locates detections on the clean images and the other on the mutated ones")
    if first.run.provenance.version != second.run.provenance.version:
        words.append("the version of adverse changed")
    regrouped = [name for name, group in settings.items() if group is None]
    if regrouped:
        words.append(f"not in the same group in both, so in no worst mild case: {_named(regrouped)}")
    if any(change == "the seed changed" for change in words):
        words.append("mutations that draw at random drew differently, which adds to every difference")
    return words


def _basis(run: Run) -> Iterator[str]:
    if run.truth is not None:
        yield f"Label-free: both runs are compared with {run.truth.name}, not with annotations."
    if run.alike_logs is not None:
        yield f"Of the first run {run.alike_logs}."


def _evaluated_otherwise(first: Run, second: Run, suts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield where the same answers are evaluated differently: then not only the SUT changed."""
    for before, after in suts:
        points = first.operating_points.get(before), second.operating_points.get(after)
        if points[0] and points[1] and points[0] != points[1]:
            yield (
                f"the operating point of {after} changed, {points[0]} -> {points[1]}: its recall, precision "
                "and false positives are of other thresholds"
            )
    if first.quarantine_budget != second.quarantine_budget:
        budgets = f"{first.quarantine_budget:g} -> {second.quarantine_budget:g}"
        yield f"the share of frames that may be lost (quarantine_budget) changed, {budgets}"


Said = Literal["regression", "not told", "improvement", "unchanged"]
ALONE = 0.05
"""A comparison alone counts from this p-value on."""
MATTERS = 0.05
"""A loss of more than this is not passed over in silence because it cannot be told from chance."""
CHANCE = "alone it would count as {}, but among {} comparisons some do by chance"


@dataclass(frozen=True)
class Change:
    """A figure of one SUT before and after; `difference` is after less before, over the same logs.

    `p` is None where there is no interval. `identical`: every log came to the same in both runs. `repeats`:
    in either run every log came to what it is on clean frames, so it is the comparison of those once more.
    """

    before_sut: str
    after_sut: str
    level: str
    """A level of context, or of a score its name."""
    setting: str
    figure: str
    before: float | None = None
    after: float | None = None
    difference: Interval | None = None
    p: float | None = None
    identical: bool = False
    repeats: bool = False
    robustness_before: float | None = None
    robustness_after: float | None = None
    robustness: Interval | None = None
    lower_is_better: bool = False
    outcome: Said = "not told"
    why: str = ""

    @property
    def size(self) -> float:
        """The gain, for sorting: the worst loss first, what is not known last."""
        known = self.difference.value if self.difference else None
        if known is None:
            return math.inf
        return -known if self.lower_is_better else known

    @property
    def may_have_fallen(self) -> bool:
        """Whether a loss that matters can be neither shown nor ruled out."""
        found = self.difference
        if self.outcome != "not told" or found is None or found.value is None:
            return False
        worst = found.high if self.lower_is_better else found.low
        if worst is None:
            return self.size < 0
        loss = worst if self.lower_is_better else -worst
        return loss > MATTERS * (100 if self.figure in ("P", "mPC", "rPC") else 1)

    def decided(self, *, sure: bool, among: int) -> Change:
        """Say what this is, knowing whether it stands among so many comparisons."""
        found = self.difference
        if self.identical:
            return replace(self, outcome="unchanged", why="every log came to the same")
        if found is None or found.value is None:
            return replace(self, outcome="not told", why="insufficient: not defined on these logs")
        if found.low is None or found.high is None:
            return replace(self, outcome="not told", why=f"no interval: {found.why}")
        direction: Said = "regression" if self.size < 0 else "improvement"
        if sure:
            return replace(self, outcome=direction)
        if self.p is not None and self.p < ALONE:
            return replace(
                self, outcome="not told", why=CHANCE.format(f"a{'n' * (self.size > 0)} {direction}", among)
            )
        return replace(self, outcome="not told")

    def plain(self) -> dict[str, Any]:
        """Return the change as one flat row."""
        return {
            "outcome": self.outcome,
            "before_sut": self.before_sut,
            "after_sut": self.after_sut,
            "level": self.level,
            "setting": self.setting,
            "figure": self.figure,
            "before": self.before,
            "after": self.after,
            "difference": self.difference.value if self.difference else None,
            **interval_cells("difference", self.difference.plain() if self.difference else None),
            "p": self.p,
            "robustness_before": self.robustness_before,
            "robustness_after": self.robustness_after,
            "robustness_difference": self.robustness.value if self.robustness else None,
            **interval_cells("robustness_difference", self.robustness.plain() if self.robustness else None),
            "why": self.why,
        }
