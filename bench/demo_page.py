"""Fill docs/demo.md with the tables of a run of `adverse demo --full`, beside the findings of the paper.

    adverse demo --full --out demo-full
    python bench/demo_page.py demo-full/run

The findings are those of Pezzementi et al. 2021, section 9. Each is held against the areas of the run: point
estimates, so that "agrees" means that they point the same way. A finding that the run cannot speak of, for
lack of a level, a mutation or a family of detectors, or because two areas are equal, is undecided. `--check`
only says whether the page is current.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from adverse.analysis.choices import best_sut
from adverse.analysis.headline import setting_words, stop_costs
from adverse.analysis.results import Summary, read_summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.curves.ranking import percent
from adverse.store.finished_run import finished
from adverse.store.run import Run

PAGE = Path(__file__).parents[1] / "docs" / "demo.md"
BEGIN, END = "<!-- full demo: begin -->", "<!-- full demo: end -->"
TWO_STAGE, ONE_STAGE = ("two-stage",), ("anchor", "centre")
CLOSE = 0.05
"""Areas that differ by less than this are called about the same."""
Verdict = bool | None


@dataclass(frozen=True)
class Finding:
    """What the paper found, what the run shows, and whether the two agree (None: it cannot say)."""

    paper: str
    here: str
    agrees: Verdict


class Areas:
    """The areas of a run by level, SUT and setting."""

    def __init__(self, summary: Summary, run: Run) -> None:
        self.summary, self.run = summary, run
        self.areas = {
            (str(row["level"]), str(row["sut"]), str(row["setting"])): row["area"] for row in summary.rows
        }
        self.levels = list(dict.fromkeys(level for level, _, _ in self.areas))
        self.suts = [sut.name for sut in run.suts]
        self.clean = run.baseline.id

    def of(self, level: str, sut: str, setting: str) -> float:
        """Return an area; NaN where it is not defined."""
        area = self.areas.get((level, sut, setting))
        return math.nan if area is None else float(area)

    def mean(self, level: str, setting: str, suts: Sequence[str] | None = None) -> float:
        """Return the mean area of some SUTs."""
        known = [self.of(level, sut, setting) for sut in suts or self.suts]
        return sum(known) / len(known)

    def share(self, level: str, setting: str, suts: Sequence[str] | None = None) -> float:
        """Return the mean share of the clean area that is left under a condition; NaN where one has none."""
        shares = []
        for sut in suts or self.suts:
            clean = self.of(level, sut, self.clean)
            shares.append(self.of(level, sut, setting) / clean if clean else math.nan)
        return sum(shares) / len(shares)

    def main_levels(self) -> list[str]:
        """Return one level of each kind: ROC_A of the image, and the first kind of truth of the others."""
        first: dict[str, str] = {}
        for level in self.levels:
            first.setdefault(level.partition("/")[0], level)
        return list(first.values())

    def spread(self, level: str) -> float:
        """Return how far apart the clean areas of the SUTs are."""
        known = [self.of(level, sut, self.clean) for sut in self.suts]
        return max(known) - min(known)

    def order(self, level: str, setting: str) -> list[str]:
        """Return the SUTs, the largest area first."""
        return sorted(self.suts, key=lambda sut: -self.of(level, sut, setting))


def findings(areas: Areas) -> list[Finding]:
    """Return the findings of the paper, each beside what the run shows."""
    checks: tuple[Callable[[Areas], Finding], ...] = (
        _later_in_the_sequence,
        _context_helps,
        _context_brings_together,
        _context_makes_robust,
        _kinds_of_truth,
        _channels,
        _two_stages,
        _mild_haze,
        _choice_changes,
    )
    return [check(areas) for check in checks]


def _later_in_the_sequence(areas: Areas) -> Finding:
    paper = "ROC_B, which is more forgiving than ROC_A, gives slightly larger areas in much the same order"
    wanted = ("image/ROC_A", "image/ROC_B")
    if not set(wanted) <= set(areas.levels):
        return Finding(paper, "not evaluated", None)
    strict, lenient = (areas.mean(level, areas.clean) for level in wanted)
    same = areas.order(wanted[0], areas.clean) == areas.order(wanted[1], areas.clean)
    here = f"mean area {strict:.3f} and {lenient:.3f}, {'the same' if same else 'another'} order"
    return Finding(paper, here, _all(lenient >= strict, same, values=(strict, lenient)))


def _context_helps(areas: Areas) -> Finding:
    means = [areas.mean(level, areas.clean) for level in areas.main_levels()]
    here = " → ".join(f"{mean:.3f}" for mean in means)
    rising = all(a <= b for a, b in itertools.pairwise(means))
    return Finding(
        "Clean areas rise with context, from image to closed loop",
        f"mean area {here}",
        _all(rising, values=means) if len(means) > 1 else None,
    )


def _context_brings_together(areas: Areas) -> Finding:
    levels = areas.main_levels()
    spreads = [areas.spread(levels[0]), areas.spread(levels[-1])]
    return Finding(
        "Clean areas of the detectors come closer together with context",
        f"largest difference {spreads[0]:.3f} at {levels[0]}, {spreads[1]:.3f} at {levels[-1]}",
        _less(spreads[1], spreads[0]),
    )


def _context_makes_robust(areas: Areas) -> Finding:
    levels = areas.main_levels()
    shares = [areas.share(level, ANY_MILD) for level in (levels[0], levels[-1])]
    return Finding(
        "More of the clean area survives with context",
        f"the worst mild case leaves {shares[0]:.0%} at {levels[0]}, {shares[1]:.0%} at {levels[-1]}",
        _less(shares[0], shares[1]),
    )


def _kinds_of_truth(areas: Areas) -> Finding:
    paper = "Placing the true people by their boxes or by their positions makes little difference"
    pairs = [
        (level, f"{level.partition('/')[0]}/localized")
        for level in areas.levels
        if level.endswith("/annotated") and f"{level.partition('/')[0]}/localized" in areas.levels
    ]
    if not pairs:
        return Finding(paper, "one kind of truth only", None)
    gaps = [abs(areas.mean(a, areas.clean) - areas.mean(b, areas.clean)) for a, b in pairs]
    return Finding(paper, f"mean areas differ by up to {max(gaps):.3f}", _all(max(gaps) < CLOSE, values=gaps))


def _channels(areas: Areas) -> Finding:
    paper = "The one-stage detectors collapse when a colour channel is lost"
    dropped = [one.id for one in areas.run.mutations if one.family == "channel_dropout"]
    suts = [sut for sut in ONE_STAGE if sut in areas.suts]
    if not dropped or not suts:
        return Finding(paper, "not tried", None)
    level = areas.main_levels()[-1]
    shares = [min((areas.share(level, one, [sut]) for one in dropped), default=math.nan) for sut in suts]
    here = ", ".join(f"{sut} keeps {share:.0%}" for sut, share in zip(suts, shares, strict=True))
    return Finding(paper, f"at {level}, at worst {here}", _all(max(shares) < 0.5, values=shares))


def _two_stages(areas: Areas) -> Finding:
    paper = "Two-stage detectors are more robust than one-stage detectors"
    groups = [[sut for sut in group if sut in areas.suts] for group in (TWO_STAGE, ONE_STAGE)]
    if not all(groups):
        return Finding(paper, "not both kinds", None)
    level = areas.main_levels()[-1]
    two, one = (areas.share(level, ANY, group) for group in groups)
    here = f"at {level} the worst case leaves {two:.0%} and {one:.0%}"
    return Finding(paper, here, _less(one, two))


def _mild_haze(areas: Areas) -> Finding:
    paper = "Haze with a visibility of 326 m and more costs little"
    mild = [one.id for one in areas.run.mutations if one.family == "haze" and one.group == "mild"]
    if not mild:
        return Finding(paper, "not tried", None)
    level = areas.main_levels()[-1]
    least = min(areas.share(level, one) for one in mild)
    return Finding(paper, f"at {level} {least:.0%} are left", _all(least > 1 - 2 * CLOSE, values=(least,)))


def _choice_changes(areas: Areas) -> Finding:
    paper = "Which detector is best changes when robustness counts"
    level = areas.main_levels()[-1]
    best = [best_sut(areas.summary, level, setting) for setting in (areas.clean, ANY)]
    if best[0] is None or best[1] is None or len(areas.suts) < 2:
        return Finding(paper, "nobody to compare", None)
    words = [f"{one.sut} ({'unknown' if one.chance is None else percent(one.chance)})" for one in best if one]
    here = f"at {level} clean {words[0]}, in the worst case {words[1]}"
    tied = len(best[0].equals) > 1 or len(best[1].equals) > 1
    return Finding(paper, here, None if tied else best[0].sut != best[1].sut)


def _all(*claims: bool, values: Sequence[float]) -> Verdict:
    """Return whether all claims hold; None where they rest on a figure that is not defined."""
    return None if any(math.isnan(value) for value in values) else all(claims)


def _less(low: float, high: float) -> Verdict:
    """Return whether one is less than the other; None where they are equal or not defined."""
    return None if math.isnan(low + high) or math.isclose(low, high, abs_tol=5e-4) else low < high


def page_text(summary: Summary, run: Run) -> str:
    """Return what stands between the two marks of the page."""
    areas = Areas(summary, run)
    mutations, frames = len(run.mutations), run.data.frames.get("test", 0)
    parts = [
        f"{run.data.logs} logs, {frames:,} test frames, {mutations} mutations, {len(run.suts)} detectors.",
        _areas_table(areas),
        _settings_table(areas),
        _stops_table(summary, run),
        "### What the paper found, and what stands here\n\n" + _findings_table(findings(areas)),
    ]
    return "\n\n".join(part for part in parts if part)


def _areas_table(areas: Areas) -> str:
    conditions = ((areas.clean, "clean"), (ANY_MILD, "worst mild case"), (ANY, "worst case"))
    rows = [
        [level, words, *(_number(areas.of(level, sut, setting)) for sut in areas.suts)]
        for level in areas.levels
        for setting, words in conditions
    ]
    return "### Areas\n\n" + _markdown(["level", "condition", *areas.suts], rows)


def _settings_table(areas: Areas) -> str:
    level = areas.levels[-1]
    rows = [
        [
            setting_words(setting),
            setting.group,
            *(_percent(areas.share(level, setting.id, [sut])) for sut in areas.suts),
        ]
        for setting in areas.run.mutations
    ]
    head = f"### What is left of the clean area at level {level}\n\n"
    return head + _markdown(["mutation", "group", *areas.suts], rows)


def _stops_table(summary: Summary, run: Run) -> str:
    costs = stop_costs(summary, run)
    if not costs:
        return ""
    lost = {one.sut: {cost.words: cost.lost for cost in one.costs} for one in costs}
    words = [setting_words(setting) for setting in run.mutations]
    rows = [["clean", *(f"{one.stopped} of {one.logs}" for one in costs)]]
    rows += [[name, *(_lost(lost[one.sut].get(name)) for one in costs)] for name in words]
    at = f"at {costs[0].sensitivity:.2g} false alarms per image"
    head = f"### Stops in time, {at}, and what each mutation costs\n\n"
    return head + _markdown(["mutation", *(one.sut for one in costs)], rows)


def _lost(count: int | None) -> str:
    return "-" if count is None else f"{-count:+d}" if count else "0"


def _findings_table(known: Sequence[Finding]) -> str:
    said = {True: "agrees", False: "**does not**", None: "undecided"}
    return _markdown(["the paper", "here", ""], [[one.paper, one.here, said[one.agrees]] for one in known])


def _number(value: float) -> str:
    return "insufficient" if math.isnan(value) else f"{value:.3f}"


def _percent(value: float) -> str:
    return "insufficient" if math.isnan(value) else f"{value:.0%}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(page: str, text: str) -> str:
    """Return the page with the text between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        sys.exit(f"the page lacks its marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main() -> None:
    """Fill the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="the run folder of adverse demo --full")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page differs")
    given = parser.parse_args()
    store = finished(given.run)
    page = given.page.read_text()
    text = filled(page, page_text(read_summary(store), store.run))
    if given.check:
        sys.exit(0 if text == page else f"{given.page} is not what the run says")
    given.page.write_text(text)


if __name__ == "__main__":
    main()
