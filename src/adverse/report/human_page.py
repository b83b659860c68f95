"""The page of a human study: its thresholds in words, as a table, and as pictures."""

from __future__ import annotations

from collections.abc import Sequence

from adverse.reliability.estimate import Estimate, Options
from adverse.reliability.estimates_file import counts_in_words
from adverse.reliability.judgments import Judgments
from adverse.reliability.reuse import Reuse
from adverse.report.human_curves import threshold_svg
from adverse.report.human_words import in_words, threshold_table
from adverse.report.sheet import rendered
from adverse.report.words import shown


def thresholds_page(
    judgments: Judgments, estimates: Sequence[Estimate], agreement: Sequence[Reuse], options: Options
) -> str:
    """Return one self-contained HTML page."""
    return rendered(
        "human_thresholds.html",
        counts=counts_in_words(judgments),
        words=[in_words(found) for found in estimates],
        table=threshold_table(estimates),
        figures=[threshold_svg(found, options.alpha) for found in estimates],
        reuse=[shown(found.words, longest=400) for found in agreement],
        alpha=options.alpha,
        consecutive=options.consecutive,
    )
