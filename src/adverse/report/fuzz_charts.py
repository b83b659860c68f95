"""The charts of a fuzz campaign: what was found when, and how much of it, by SUT and by mutation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from adverse.fuzz.outcome import OBJECTS, CampaignOutcome
from adverse.fuzz.scoring import ALL, bin_range
from adverse.report.chart import COLOURS, Axis, Bars, Chart, Line, Panel, time_panel
from adverse.text import shown

DISCOVERED = {"bases": "frames", "objects": "objects"}
FLOOR = 0.5
"""Where the upright axis of counts begins: below 1, so that 1 can be seen."""
OF_A_GROUP = 0.8
"""The share of its room that a group of bars takes."""


def discovery_chart(outcome: CampaignOutcome) -> Chart:
    """Return the discovery curves: distinct failing frames and objects, by how badly they fail.

    Severities that nothing reached are left out, but for the mildest. (Figure 13 of the paper plots every
    failing test, whose number over tests is but the rate.)
    """
    data = outcome.discovery()
    panels = []
    for number, severity in enumerate((*outcome.campaign.bins, OBJECTS)):
        for kind, words in DISCOVERED.items():
            lines, most = [], 0.0
            for sut in outcome.suts:
                facts = {"sut": sut, "of": kind, "severity": severity}
                mine = [row for row in data if facts.items() <= row.items()]
                curve = [row["expected"] for row in mine]
                lines.append(Line(shown(sut), [row["tests"] for row in mine], curve))
                most = max(most, *curve)
            if most or not number:
                how = "verdicts about objects" if severity == OBJECTS else f"{shown(severity)} or worse"
                title = f"distinct {words} that fail, {how}: mean over all orders"
                panels.append(time_panel(title, "tests", lines))
    return Chart("Discovery", panels)


def counts_chart(outcome: CampaignOutcome) -> Chart:
    """Return how many tests fail, on logarithmic axes.

    By SUT for each severity (figure 11 of the paper), and by mutation for each SUT (figure 15); both with the
    tests that have a wrong object, which the paper does not know.
    """
    rows = {(row.sut, row.mutation): row for row in outcome.counts()}
    wrong = {(row.sut, row.mutation): row.failed for row in outcome.object_counts()}
    suts, mutations, bins = outcome.suts, outcome.campaign.mutations, outcome.campaign.bins
    severities = {
        f"{name} {bin_range(name, bins)}": [rows[sut, ALL].bins[name] for sut in suts] for name in bins
    }
    severities["wrong object"] = [sum(wrong[sut, mutation] for mutation in mutations) for sut in suts]
    failing = {
        shown(sut): [
            sum(test.failed for test in outcome.tests[sut] if test.mutation == mutation)
            for mutation in mutations
        ]
        for sut in suts
    }
    return Chart(
        "Tests that fail",
        [
            bars_panel("by SUT and severity", [shown(sut) for sut in suts], severities),
            bars_panel("by mutation and SUT", list(mutations), failing),
        ],
    )


def bars_panel(title: str, groups: Sequence[str], series: Mapping[str, Sequence[int]]) -> Panel:
    """Return counts as bars beside each other, group by group, on a logarithmic axis; none for 0."""
    most = max((count for counts in series.values() for count in counts), default=1)
    top = 10.0 ** math.ceil(math.log10(max(most, 2)))
    ticks = tuple(10.0**power for power in range(round(math.log10(top)) + 1))
    across = Axis(
        "", (0, len(groups)), tuple(number + 0.5 for number in range(len(groups))), names=tuple(groups)
    )
    wide = OF_A_GROUP / len(series)
    bars = [
        Bars(
            name,
            tuple(group + (1 - OF_A_GROUP) / 2 + (number + 0.5) * wide for group in range(len(groups))),
            tuple(counts),
            wide,
            COLOURS[number % len(COLOURS)],
        )
        for number, (name, counts) in enumerate(series.items())
    ]
    return Panel(title, across, Axis("tests", (FLOOR, top), ticks, log=True), (), bars=bars)
