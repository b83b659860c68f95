"""Two campaigns on the same tests: tables for the terminal, and a page with the new failures to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.regression import CHANGES, Change, ComparedTest, SuiteComparison
from adverse.report.fuzz_pictures import VIEWS, FailurePictures, FailureView
from adverse.report.layout import rendered
from adverse.report.table import Cell, Column, Table, columns
from adverse.text import counted, shown

MOST_PICTURES = 24
IN_TERMINAL = 8
LONGEST_WHY = 400
SHOWN: tuple[Change, ...] = ("new", "still failing")
"""What fails by its own answers, of which a campaign keeps the pictures."""


@dataclass(frozen=True)
class PicturedChange:
    """A test that fails in the second campaign, as the page shows it."""

    sut: str
    test: ComparedTest
    views: tuple[FailureView, ...]


def suite_headline(comparisons: Sequence[SuiteComparison], left_out: str = "") -> str:
    """Return the answer, a line for each SUT: what got worse, first; then who was not compared."""
    several = len(comparisons) > 1 or bool(left_out)
    lines = [(f"{_pair(each)}: " if several else "") + _headline(each) for each in comparisons]
    return "\n".join([*lines, *([left_out] if left_out else [])])


def _headline(compared: SuiteComparison) -> str:
    counts = compared.counts()
    new, lost = counts["new"], counts["base lost"]
    worse = "No test that passed before fails now"
    if new:
        worse = f"{counted(new, 'test')} that passed before {'fails' if new == 1 else 'fail'} now"
    if lost:
        worse += f"; {lost} base lost (lacking, mutated or not, what the SUT before had)"
    clean = compared.clean_scores
    scores = (
        "" if clean is None else f" Clean score of the base frames: {clean[0]:.2f} %, now {clean[1]:.2f} %."
    )
    if compared.clean_unanswered:
        scores += f" No answer to {counted(compared.clean_unanswered, 'base frame')} now."
    return f"{worse}; {counts['fixed']} fixed, {counts['still failing']} still failing.{scores}"


def suites_table(comparisons: Sequence[SuiteComparison]) -> Table:
    """Return how many tests changed, for each pair of SUTs."""
    rows = tuple(
        (
            Cell(_pair(one)),
            Cell(len(one.tests)),
            *(Cell(count) for count in one.counts().values()),
            Cell(one.difference.value, details=(one.difference.text("+.1%"),), note=one.difference.why),
        )
        for one in comparisons
    )
    headings = (*columns("SUT", "tests", *CHANGES), Column("failing, difference", "+.1%"))
    title = "The same tests before and after"
    return Table("suites", title, headings, rows, tuple(one.record() for one in comparisons))


def changes_table(comparisons: Sequence[SuiteComparison], *, most: int | None = None) -> Table:
    """Return the tests that fail in either campaign, by SUT: what got worse first, fixed ones last."""
    listed = [(one, test) for change in CHANGES[:-1] for one in comparisons for test in one.of(change)]
    rows = tuple(
        (
            Cell(test.change),
            Cell(_pair(one)),
            Cell(test.after.mutation),
            Cell(test.after.base),
            _why(test),
            Cell(test.after.key[:12]),
        )
        for one, test in listed[:most]
    )
    records = tuple({"sut": _pair(one), **test.record()} for one, test in listed)
    headings = columns("change", "SUT", "mutation", "frame", "why", "recipe", left=6)
    more = "" if most is None or len(listed) <= most else f" (first {most} of {len(listed)})"
    return Table("changes", f"Tests that fail in either, by SUT{more}", headings, rows, records)


def _why(test: ComparedTest) -> Cell:
    """Return why a test is listed; long enough that no number in it is cut."""
    words = test.record()["after"] or test.record()["before"]
    return Cell(words, shown(words, longest=LONGEST_WHY))


def changes_in_terminal(comparisons: Sequence[SuiteComparison]) -> Table:
    """Return the first of them with the columns that a terminal has room for."""
    whose = ("SUT",) if len(comparisons) > 1 else ()
    return changes_table(comparisons, most=IN_TERMINAL).only("change", *whose, "mutation", "why", "recipe")


def suites_page(comparisons: Sequence[SuiteComparison], after: CampaignFolder, left_out: str = "") -> str:
    """Return the page: the answer, the tables, and pictures of what fails now."""
    pictures = FailurePictures(after)
    chosen = [
        (one.after, test)
        for change in SHOWN
        for one in comparisons
        for test in one.of(change)
        if test.after.fault is None
    ][:MOST_PICTURES]
    items = [
        PicturedChange(
            sut,
            test,
            tuple(pictures.view(test.after.key, test.after.base, sut, view) for view in VIEWS),
        )
        for sut, test in chosen
    ]
    return rendered(
        "suites.html",
        title=shown(after.path.name),
        headline=suite_headline(comparisons, left_out),
        tables=[suites_table(comparisons), changes_table(comparisons)],
        items=items,
    )


def _pair(one: SuiteComparison) -> str:
    return shown(one.after if one.before == one.after else f"{one.before} -> {one.after}")
