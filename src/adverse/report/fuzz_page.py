"""The page of a fuzz campaign: what it says, its tables, and failures to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse.fuzz.causes import Cause, causes_of
from adverse.fuzz.compare import GuidedGain
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import CampaignOutcome, Case
from adverse.fuzz.votes import Votes, failing, review_order, verdict
from adverse.report.fuzz import points_words, summary_words, tables_of, times_table, write_results
from adverse.report.fuzz_charts import counts_chart, discovery_chart
from adverse.report.fuzz_pictures import VIEWS, FailurePictures, FailureView
from adverse.report.layout import rendered
from adverse.report.table import Table
from adverse.text import shown

FILE = "fuzz.html"
HEADS = {
    "counts": "What fails",
    "objects": "Objects",
    "causes": "Causes",
    "discovery": "How fast it was found",
    "refusals": "What was refused",
    "overlap": "Failures that SUTs share",
    "guided": "Guided and unguided",
    "review": "What reviewers say",
    "times": "How long it took",
}
MOST_FAILURES = 36
"""Failures on the page; all of them are in the folder and on the review page."""


@dataclass(frozen=True)
class PicturedCause:
    """A cause as the page shows it: its sentence, and one failure."""

    cause: Cause
    views: tuple[FailureView, ...]


@dataclass(frozen=True)
class PicturedFailure:
    """A failure as the page shows it."""

    sut: str
    test: Case
    views: tuple[FailureView, ...]


EXAMPLES = 5
"""True and false positives that are shown, of each as many as in figure 14 of the paper."""


def reviewed_examples(folder: CampaignFolder, outcome: CampaignOutcome) -> dict[str, list[PicturedFailure]]:
    """Return failures that reviewers call true, and false ones, with their pictures; none before a review."""
    latest = Votes(folder.votes).latest()
    pictures = FailurePictures(folder)
    examples: dict[str, list[PicturedFailure]] = {"true": [], "false": []}
    for key in review_order(outcome):
        says = verdict(latest.get(key, {}))
        if says in examples and len(examples[says]) < EXAMPLES:
            sut, test = failing(outcome, key)[0]
            views = tuple(pictures.view(key, test.base, sut, view) for view in VIEWS)
            examples[says].append(PicturedFailure(sut, test, views))
    return examples if any(examples.values()) else {}


def write_fuzz_page(
    folder: CampaignFolder,
    outcome: CampaignOutcome,
    *,
    comparison: Sequence[GuidedGain] | None = None,
    reviewed: Table | None = None,
) -> Path:
    """Write the page and the tables beside it; return the page's path."""
    tables = tables_of(outcome, comparison) + ([reviewed] if reviewed else [])
    write_results(folder, outcome, tables)
    times = times_table(folder)
    chosen = in_turns(outcome, MOST_FAILURES)
    pictures = FailurePictures(folder)
    items = [
        PicturedFailure(sut, test, tuple(pictures.view(test.key, test.base, sut, view) for view in VIEWS))
        for sut, test in chosen
    ]
    every = [cause for sut in outcome.suts for cause in causes_of(outcome, sut).causes]
    causes = [
        PicturedCause(
            cause,
            tuple(pictures.view(cause.example.key, cause.example.base, cause.sut, view) for view in VIEWS),
        )
        for cause in every
    ]
    page = rendered(
        "fuzz.html",
        causes=causes,
        examples=reviewed_examples(folder, outcome) if reviewed is not None else {},
        title=shown(outcome.campaign.study),
        words=summary_words(outcome),
        tables=tables + ([times] if times else []),
        heads=HEADS,
        charts={"counts": counts_chart(outcome).svg(), "discovery": discovery_chart(outcome).svg()},
        items=items,
        points=points_words(outcome.campaign.bins),
        total=sum(any(test.failed for test in tests) for tests in zip(*outcome.tests.values(), strict=True)),
        legend=pictures.legend([(test.key, sut) for sut, test in chosen]),
        facts=_facts(outcome),
    )
    return folder.write_derived({FILE: page.encode()})[0]


def in_turns(outcome: CampaignOutcome, count: int) -> list[tuple[str, Case]]:
    """Return failures to look at: SUTs and mutations take turns, each with its worst first."""
    turns: list[tuple[int, int, str, Case]] = []
    for order, sut in enumerate(outcome.suts):
        for mutation in outcome.campaign.mutations:
            mine = [test for test in outcome.tests[sut] if test.failed and test.mutation == mutation]
            mine.sort(key=lambda test: (-(test.drop or 0.0), test.number))
            turns += [(turn, order, sut, test) for turn, test in enumerate(_various(mine))]
    turns.sort(key=lambda entry: (entry[0], entry[1], entry[3].mutation, entry[3].number))
    return [(sut, test) for _, _, sut, test in turns[:count]]


def _various(tests: Sequence[Case]) -> list[Case]:
    """Return one test of each frame; those with an object that was shown before come last."""
    frames: set[str] = set()
    things: set[str] = set()
    first: list[Case] = []
    later: list[Case] = []
    for test in tests:
        if test.base not in frames:
            (later if test.thing in things else first).append(test)
            frames.add(test.base)
            things.add(test.thing)
    return [*first, *later]


def _facts(outcome: CampaignOutcome) -> list[tuple[str, str]]:
    campaign = outcome.campaign
    facts: list[tuple[str, Any]] = [
        ("adverse", campaign.made_by),
        ("data", f"{campaign.data}, {campaign.frames} frames"),
        ("seed", campaign.seed),
        ("scorer", campaign.scorer),
        ("choice of tests", "guided" if campaign.guided else "unguided"),
        ("resource set", campaign.resources),
        ("campaign", campaign.key),
        *((f"SUT {name}", f"fingerprint {print_[:16]}") for name, print_ in campaign.suts.items()),
    ]
    return [(shown(name), shown(value)) for name, value in facts]
