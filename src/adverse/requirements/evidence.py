"""The evidence of one SUT: its answers on the frames as they are and on changed versions, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.requirements.batches import values_of_logs
from adverse.requirements.decision import Decision, SamplingPlan
from adverse.requirements.measures import Array, Evidence, MeasureTally, Ratio, Rows, Side, TaskAnswers
from adverse.requirements.ranking import RankingScores
from adverse.requirements.verdicts import Outcome
from adverse.requirements.versions import Versions
from adverse.store.read import Store
from adverse.store.tables import FAULT, OK
from adverse.visual.strength import TOLERANCE

CURVE_BINS = 20
"""How many bins of visual change a SUT's curve has."""
WORST = 3
"""Versions that are named as the worst of a requirement."""
ENOUGH_IMAGES = 40
"""So many images make a part of the range one that can be decided by itself."""
MOST_UNREACHED = 0.1
"""A PASS of the whole range may leave at most this share of it unchecked."""
ROUNDED = 1e-6
"""Ends of a range are rounded to this in the id of a setting."""
FEWEST_IN_BIN = 5
"""A bin with fewer informative versions says nothing."""


@dataclass(frozen=True)
class CurvePoint:
    """What a SUT does on versions of one bin of visual change."""

    low: float
    high: float
    value: float
    versions: int


@dataclass(frozen=True)
class WorstVersion:
    """A version that people tolerate and on which a SUT fell: from what, to what, at which visual change."""

    frame: str
    setting: str
    visual_change: float
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class VersionStats:
    """How making versions went: how many there are, their visual change, and what was refused and why.

    `aimed` is how many places were drawn in the range, `missed` those of them that have no version, or one
    whose visual change lies above the range.
    Places are drawn evenly, so the share of them that was missed is that of the range that was not checked.
    """

    versions: int
    tries: int
    visual_change: NDArray[np.float64]
    refused: Counter[str] = field(default_factory=Counter)
    aimed: int = 0
    missed: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @property
    def rejections(self) -> int:
        """Versions that could not be made."""
        return self.refused.total()

    @property
    def unreached(self) -> float:
        """The share of the range that was not reached, over all images; 0 where options were drawn."""
        return len(self.missed) / self.aimed if self.aimed else 0.0

    @property
    def most(self) -> float | None:
        """The largest visual change that was reached."""
        return float(self.visual_change.max()) if len(self.visual_change) else None

    @property
    def usual_most(self) -> float:
        """The visual change that one version in twenty exceeds: a few outliers do not cover a range."""
        return float(np.quantile(self.visual_change, 0.95)) if len(self.visual_change) else 0.0

    def unreached_words(self, limit: float) -> str:
        """Say which part of a range could not be reached; empty where all of it was.

        >>> seen = np.array([0.2, 0.7])
        >>> VersionStats(2, 9, seen, aimed=3, missed=np.array([0.88])).unreached_words(0.71)
        '33 % of the range was not reached (1 of 3 versions, meant for 0.88)'
        """
        if not len(self.missed):
            return ""
        ends = [f"{end:.2f}" for end in (self.missed.min(), self.missed.max())]
        place = " to ".join(dict.fromkeys(ends))
        words = f"{100 * self.unreached:.0f} % of the range was not reached "
        words += f"({len(self.missed)} of {self.aimed} versions, meant for {place})"
        if self.most is not None and self.most < limit - TOLERANCE:
            words += f"; the largest change is {self.most:.2f}, not {limit:g}"
        return words


def within_reach(found: Decision, made: VersionStats, limit: float) -> Decision:
    """Return the decision once the part of the range that was not reached is counted.

    Nobody saw the SUT there, so where that part is large, a PASS is not one of the whole range.
    """
    if not made.aimed:
        return _within_drawn(found, made.usual_most, limit)
    words = made.unreached_words(limit)
    if not words:
        return found
    most = made.most or 0.0
    if found.outcome is not Outcome.PASS or made.unreached <= MOST_UNREACHED:
        passed = found.outcome is Outcome.PASS and most < limit - TOLERANCE
        so_far = f"PASS up to {most:.2f}, the largest change that was reached" if passed else ""
        return replace(found, reason="; ".join(filter(None, (so_far, found.reason, words))))
    if made.missed.min() > most - TOLERANCE:
        sure, fix = f"PASS up to {most:.2f}", "a threshold: that can be reached would decide it"
    else:
        sure, fix = "PASS on what was reached", "parameters: would check only changes that exist"
    return replace(found, outcome=Outcome.INCONCLUSIVE, reason=f"{sure}, but {words}; {fix}")


def _within_drawn(found: Decision, most: float, limit: float) -> Decision:
    """Return the decision once it is counted how far options drawn from `parameters:` reached."""
    if found.outcome is not Outcome.PASS or most >= (1 - MOST_UNREACHED) * limit:
        return found
    lower = f", or threshold: {most:.3g}," if most >= TOLERANCE else ""  # 0 would be no requirement
    return replace(
        found,
        outcome=Outcome.INCONCLUSIVE,
        reason=f"PASS up to {most:.3g}, but the requirement goes up to {limit:g}, and only 1 in 20 versions "
        f"of parameters: lies beyond; wider parameters:{lower} would decide it",
    )


def stats_of(rows: Sequence[Mapping[str, Any]], *, highest: float = 1.0) -> VersionStats:
    """Return how making versions went, given a row of status, reason and details for each.

    A place for which there is no version was not reached, whyever: no strength came near, or the mutation
    raised an error. Nor was one whose version is changed by more than `highest`: the least that there is.
    """
    records = [(row["status"] != "quarantined", dict(row["details"] or ())) for row in rows]
    refused = Counter(_kind_of(str(row["reason"])) for row in rows if row["status"] == "quarantined")
    reached = [record["visual_change"] for made, record in records if made and "visual_change" in record]
    missed = [
        record["aimed_at"]
        for made, record in records
        if "aimed_at" in record and not (made and record.get("visual_change", 0.0) <= highest + ROUNDED)
    ]
    return VersionStats(
        versions=len(rows) - refused.total(),
        tries=sum(int(record.get("tries", 0)) for _, record in records),
        visual_change=np.array(reached, np.float64),
        refused=refused,
        aimed=sum("aimed_at" in record for _, record in records),
        missed=np.array(missed, np.float64),
    )


class SutEvidence:
    """The evidence of one SUT in the run of a check: its answers by setting."""

    def __init__(self, store: Store, sut: str, answers: TaskAnswers) -> None:
        self.store = store
        self.sut = sut
        self.answers = answers
        self.baseline = store.run.baseline.id

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """The test frames (a mask over all) that could be used as they are."""
        return self.store.frames.test & self._ran(self.baseline)

    def family(self, setting: str) -> str:
        """Return the mutation of a setting of the run."""
        return next(entry.family for entry in self.store.run.settings if entry.id == setting)

    def evidence(
        self, kind: str, measure: str, versions: Versions, *, up_to: float | None = None
    ) -> Evidence:
        """Return what is required and what is measured, row by row; `up_to` some visual change, or all."""
        within = self._rows(versions.within)
        if up_to is not None:
            seen = self._visual_change(within)
            within = Rows(within.frame[seen <= up_to], within.setting[seen <= up_to], within.settings)
        if kind == "correctness":
            measured = self.answers.correct(measure, within)
            originals = np.unique(within.frame)
            plain = Rows(originals, np.zeros(len(originals), np.int64), (self.baseline,))
            return self._paired(self.answers.correct(measure, plain), plain, measured, within)
        barely = self._rows(versions.barely)
        return self._paired(self.answers.alike(barely), barely, self.answers.alike(within), within)

    def least_decidable(self, versions: Versions, end: float) -> float | None:
        """Return the least visual change from `end` on within which enough images have a version."""
        within = self._rows(versions.within)
        least = np.full(len(self.store.frames.ids), np.inf)
        np.fmin.at(least, within.frame, self._visual_change(within))
        ordered = np.sort(least)
        if len(ordered) < ENOUGH_IMAGES or not np.isfinite(ordered[ENOUGH_IMAGES - 1]):
            return None
        return max(end, float(ordered[ENOUGH_IMAGES - 1]))

    def curve(self, kind: str, measure: str, versions: Versions) -> tuple[CurvePoint, ...]:
        """Return the measure in bins of visual change; those with too few versions are left out."""
        within = self._rows(versions.within)
        tally = self.answers.correct(measure, within) if kind == "correctness" else self.answers.alike(within)
        seen = self._visual_change(within)
        place = np.minimum(np.floor(seen * CURVE_BINS), CURVE_BINS - 1)
        inside = place == np.arange(CURVE_BINS)[:, None]
        count = inside[:, tally.size > 0].sum(axis=1)
        values = tally.under(inside.astype(np.float64))
        return tuple(
            CurvePoint(b / CURVE_BINS, (b + 1) / CURVE_BINS, float(values[b]), int(count[b]))
            for b in np.flatnonzero((count >= FEWEST_IN_BIN) & np.isfinite(values)).tolist()
        )

    def worst(self, kind: str, measure: str, versions: Versions) -> tuple[WorstVersion, ...]:
        """Return the versions on which the SUT fell the most, of these the least changed ones first.

        None for measures that single images do not have, such as average precision.
        """
        within = self._rows(versions.within)
        before = np.ones(len(within.frame))
        if kind == "correctness":
            plain = Rows(within.frame, np.zeros(len(within.frame), np.int64), (self.baseline,))
            required, measured = self.answers.correct(measure, plain), self.answers.correct(measure, within)
            before = _by_row(required)
        else:
            measured = self.answers.alike(within)
        after = _by_row(measured)
        if not len(after):
            return ()
        seen = self._visual_change(within)
        fell = np.where(np.isfinite(before - after) & np.isfinite(seen), before - after, 0)
        order = np.lexsort((seen, -fell))
        return tuple(
            WorstVersion(
                self.store.frames.ids[within.frame[row]],
                within.settings[within.setting[row]],
                float(seen[row]),
                float(before[row]),
                float(after[row]),
            )
            for row in order[:WORST].tolist()
            if fell[row] > 0
        )

    def battery_mean(self, measure: str, settings: tuple[str, ...]) -> float | None:
        """Return the mean of a measure over settings, each over all usable frames; None: not defined."""
        values = [
            float(side.tally.under(np.ones((1, len(side.image))))[0])
            for side in self._battery(measure, settings)
        ]
        return float(np.mean(values)) if values and np.isfinite(values).all() else None

    def ranking_scores(
        self,
        evidence: Evidence,
        distance: float,
        accuracy: tuple[str, tuple[str, ...], float],
        plan: SamplingPlan,
    ) -> RankingScores:
        """Return what the SUT is ranked by: its distance, and its `accuracy` (measure, settings, mean)."""
        measure, settings, mean = accuracy
        sides = (evidence.required, evidence.measured)

        def drawn(sides: tuple[Side, ...], log: NDArray[np.int64]) -> list[Array]:
            return values_of_logs(sides, log, plan.batches, len(log), seed=plan.seed, run=0)

        required, measured = drawn(sides, evidence.log)
        log = self.store.frames.log[self.usable]
        accuracies = np.mean(drawn(self._battery(measure, settings), log), axis=0)
        both = np.concatenate([evidence.log, log])
        return RankingScores(distance, mean, required - measured, accuracies, both, evidence.logs)

    def _battery(self, measure: str, settings: tuple[str, ...]) -> tuple[Side, ...]:
        frames = np.flatnonzero(self.usable)
        rows = [self._rows((setting,)) for setting in settings]
        return tuple(
            Side(self.answers.correct(measure, each), np.searchsorted(frames, each.frame)) for each in rows
        )

    def _visual_change(self, rows: Rows) -> Array:
        """Return the visual change of each row, as it was recorded when the version was made."""
        places = {frame: number for number, frame in enumerate(self.store.frames.ids)}
        seen = np.full((len(places), len(rows.settings)), np.nan)
        for record in self.store.mutation_details(self.sut, rows.settings).to_pylist():
            change = dict(record["details"] or ()).get("visual_change")
            if change is not None and record["frame"] in places:
                seen[places[record["frame"]], rows.settings.index(record["setting"])] = change
        return seen[rows.frame, rows.setting]

    def version_stats(self, settings: tuple[str, ...], *, highest: float = 1.0) -> VersionStats:
        """Return how making the versions went, of which each should be changed by `highest` at most."""
        table = self.store.mutation_details(self.sut, settings).to_pylist()
        frames = set(np.array(self.store.frames.ids)[self.usable].tolist())
        return stats_of([row for row in table if row["frame"] in frames], highest=highest)

    def fault_share(self, settings: tuple[str, ...]) -> float:
        """Return the share of versions that the SUT failed on, or on whose image as it is."""
        rows = self._rows(settings)
        if not len(rows.frame):
            return 0.0
        plain = self._in(self.baseline, FAULT)
        versions = np.array([self._in(setting, FAULT) for setting in settings])
        return float((plain[rows.frame] | versions[rows.setting, rows.frame]).mean())

    def _rows(self, settings: tuple[str, ...]) -> Rows:
        """Return a row for every usable frame and setting that could be had, frame by frame."""
        ran = np.array([self.usable & self._ran(setting) for setting in settings])
        frame, setting = np.nonzero(ran.T)
        return Rows(frame, setting, settings)

    def _paired(self, required: MeasureTally, first: Rows, measured: MeasureTally, second: Rows) -> Evidence:
        """Number the frames that take part from 0."""
        frames = np.unique(np.concatenate([first.frame, second.frame]))
        return Evidence(
            Side(required, np.searchsorted(frames, first.frame)),
            Side(measured, np.searchsorted(frames, second.frame)),
            self.store.frames.log[frames],
        )

    def _ran(self, setting: str) -> NDArray[np.bool_]:
        return self._in(setting, OK) | self._in(setting, FAULT)

    def _in(self, setting: str, wanted: int) -> NDArray[np.bool_]:
        """Return the frames (a mask over all) that ended so."""
        frame, status = self.answers.status(setting)
        mask = np.zeros(len(self.store.frames.ids), np.bool_)
        mask[frame[status == wanted]] = True
        return mask


def _by_row(tally: MeasureTally) -> Array:
    """Return the measure of each row by itself, NaN where it has none; empty where no single row has one."""
    if not isinstance(tally, Ratio):
        return np.empty(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        values: Array = tally.part / tally.whole
    return values


def _kind_of(reason: str) -> str:
    """Return why a version was refused without what differs from frame to frame.

    >>> _kind_of("the visual change cannot be reached; got: 0.31; wanted: 0.4 to 0.5. Fix: Raise tries:.")
    'the visual change cannot be reached'
    >>> _kind_of("the mutation up_to failed; where: frame 'a'; got: ValueError: no. Fix: Mend it.")
    'the mutation up_to failed: ValueError: no'
    """
    summary, *details = reason.partition(". Fix: ")[0].split("; ")
    got = next((text.removeprefix("got: ") for text in details if text.startswith("got: ")), "")
    return f"{summary}: {got}" if "failed" in summary else summary
