"""What reviewers say about failures: whether a picture shows a world that could be, or the test is wrong.

A vote is kept before it is acknowledged. The last vote of a reviewer on a failure counts. One vote for
`false` makes a failure a false positive, whatever the others say: better to claim too little.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from adverse.curves.interval import Interval, interval_cells, stratified
from adverse.errors import StoreError
from adverse.fuzz.outcome import OBJECTS, CampaignOutcome, Case
from adverse.fuzz.scoring import ALL
from adverse.seeds import generator
from adverse.store.durable import write_file
from adverse.store.journal import Journal
from adverse.store.seal_list import digest_of

Says = Literal["true", "false", "unsure"]
SAYS: tuple[Says, ...] = get_args(Says)
LONGEST_NAME = 60


@dataclass(frozen=True)
class Vote:
    """One reviewer's word on one failure, by the key of its recipe."""

    reviewer: str
    key: str
    says: Says


class Votes(Journal[Vote]):
    """All votes of a campaign, in the order they were given; on the disk before they are acknowledged."""

    what = "file of votes"

    def __init__(self, path: Path, *, mend: bool = True) -> None:
        """Read them, or raise where votes that were acknowledged are not what they were."""
        super().__init__(path)
        self.seal = path.with_name(f"{path.name}.json")
        self._refuse_changed()
        if mend:
            self.mend()

    def append(self, entry: Vote) -> None:
        """Add a vote, and seal all there are; both are on the disk before this returns."""
        super().append(entry)
        data = self.path.read_bytes()
        facts = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        write_file(self.seal, json.dumps(facts | {"digest": digest_of(facts)}).encode() + b"\n")

    def _refuse_changed(self) -> None:
        """Raise unless the file begins as it was sealed; a vote that was not sealed any more may follow."""
        data = self.path.read_bytes() if self.path.exists() else b""
        if not self.seal.exists() and not self.seal.is_symlink() and not self.path.is_symlink():
            if len(self.entries) <= 1:  # the first vote was given, and its seal never written
                return
            raise self._changed(self.seal, "no such file")
        try:
            raw = self.seal.read_bytes()
            facts = {key: value for key, value in json.loads(raw).items() if key != "digest"}
            whole = raw == json.dumps(facts | {"digest": digest_of(facts)}).encode() + b"\n"
            begin = data[: facts["bytes"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._changed(self.seal, "another file") from error
        if not whole or self.seal.is_symlink():
            raise self._changed(self.seal, "another file")
        found = hashlib.sha256(begin).hexdigest()
        if len(begin) != facts["bytes"] or found != facts["sha256"] or self.path.is_symlink():
            raise self._changed(self.path, f"{len(data)} bytes, sha256 of the first {len(begin)} {found}")

    def _changed(self, path: Path, got: str) -> StoreError:
        return StoreError(
            "the votes were changed after they were given",
            where=str(path),
            got=got,
            wanted="what was sealed with the last vote",
            fix=f"Restore {self.path.name} and {self.seal.name} from a copy.",
        )

    def parse(self, data: Any) -> Vote:
        """Return the vote that a line holds."""
        return Vote(**data)

    def plain(self, entry: Vote) -> dict[str, Any]:
        """Return what a line holds of a vote."""
        return asdict(entry)

    def add(self, vote: Vote) -> None:
        """Keep a vote; on the disk before this returns."""
        name = vote.reviewer.strip()
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise StoreError(
                "a reviewer needs a name",
                got=repr(vote.reviewer[:LONGEST_NAME]),
                wanted=f"1 to {LONGEST_NAME} characters that can be seen",
            )
        if vote.says not in SAYS:
            raise StoreError("a vote is true, false or unsure", got=repr(vote.says))
        self.append(vote)

    def latest(self) -> dict[str, dict[str, Says]]:
        """Return what each reviewer says last, by failure: {key: {reviewer: says}}."""
        words: dict[str, dict[str, Says]] = {}
        for vote in self.entries:
            words.setdefault(vote.key, {})[vote.reviewer] = vote.says
        return words


def verdict(votes: Mapping[str, Says]) -> Says | None:
    """Return what reviewers together say: one `false` decides; unsure only where nobody is sure.

    >>> verdict({"a": "true", "b": "false"}), verdict({"a": "true", "b": "unsure"}), verdict({})
    ('false', 'true', None)
    """
    opinions = set(votes.values())
    return next((word for word in ("false", "true", "unsure") if word in opinions), None)


@dataclass(frozen=True)
class ReviewedBin:
    """What reviewers say about the failures of one SUT in one bin, or in all."""

    sut: str
    bin: str
    failures: int
    votes: Mapping[Says | None, int]
    """Failures by what reviewers together say; None: not reviewed."""
    false_positive_rate: Interval

    def record(self) -> dict[str, Any]:
        """Return the review as CSV and JSON hold it."""
        return {
            "sut": self.sut,
            "bin": self.bin,
            "failures": self.failures,
            **{says: self.votes[says] for says in SAYS},
            "not_reviewed": self.votes[None],
            "false_positive_rate": self.false_positive_rate.value,
            **interval_cells("false_positive_rate", self.false_positive_rate.plain()),
        }


def false_positives(outcome: CampaignOutcome, votes: Votes) -> list[ReviewedBin]:
    """Return the false-positive rate for each SUT and bin, among the failures that somebody was sure about.

    Reviewers see the worst failures first, so a sample of all failures has too many extreme ones. The rate is
    therefore taken in each part of the review (the bin in which it shows a failure) and weighted by how many
    failures of the SUT are in that part. There is none while a part is not looked at. The interval is Korn
    and Graubard's over logs: failures in frames of one log are alike.
    """
    latest = votes.latest()
    worst = _worst_bins(outcome)
    bins = [*outcome.campaign.bins, OBJECTS]
    rows = []
    for sut in outcome.suts:
        for name in (*bins, ALL):
            failed = [test for test in outcome.tests[sut] if test.failed and name in (ALL, part_of(test))]
            verdicts = {test.key: verdict(latest.get(test.key, {})) for test in failed}
            counts = Counter(verdicts.values())
            sure = [test for test in failed if verdicts[test.key] in ("true", "false")]
            trials = Counter((test.log, worst[test.key]) for test in sure)
            wrong = Counter((test.log, worst[test.key]) for test in sure if verdicts[test.key] == "false")
            logs = sorted({test.log for test in failed})
            sizes = Counter(worst[test.key] for test in failed)
            interval = stratified(
                np.array([[wrong[log, part] for part in bins] for log in logs]).reshape(-1, len(bins)),
                np.array([[trials[log, part] for part in bins] for log in logs]).reshape(-1, len(bins)),
                [sizes[part] for part in bins],
            )
            rows.append(ReviewedBin(sut, name, len(failed), counts, interval))
    return rows


def part_of(test: Case) -> str:
    """Return the part of the review that a failure is in: its bin, or that of objects alone."""
    return test.bin or OBJECTS


def review_order(outcome: CampaignOutcome) -> list[str]:
    """Return the keys of all failures: extreme ones first, each bin shuffled; those of objects alone last.

    So a review that stops early has seen a fair sample of the bin it stopped in.
    """
    worst = _worst_bins(outcome)
    order: list[str] = []
    for name in [OBJECTS, *outcome.campaign.bins][::-1]:
        keys = sorted(key for key, worst_bin in worst.items() if worst_bin == name)
        rng = generator(outcome.campaign.seed, "review", name)
        order += [keys[place] for place in rng.permutation(len(keys)).tolist()]
    return order


def _worst_bins(outcome: CampaignOutcome) -> dict[str, str]:
    """Return for each failure the worst bin that it has with any SUT: where the review shows it."""
    worst: dict[str, str] = {}
    rank = {name: place for place, name in enumerate((OBJECTS, *outcome.campaign.bins))}
    for sut in outcome.suts:
        for test in outcome.tests[sut]:
            if test.failed and rank[part_of(test)] >= rank.get(worst.get(test.key, ""), -1):
                worst[test.key] = part_of(test)
    return worst


def failing(outcome: CampaignOutcome, key: str) -> Sequence[tuple[str, Case]]:
    """Return the SUTs that a test fails, and the test as each of them saw it."""
    cases = []
    for sut in outcome.suts:
        cases += [(sut, test) for test in outcome.tests[sut] if test.key == key and test.failed]
    return cases
