"""The reliability matrix: 58 faults, what is promised about each, the tests that show it, and how they ended.

Tests name the rows that they show: `@pytest.mark.fault(12)`, or with `cases=[...]` for some of a test's
parameters. `make matrix` runs those tests and writes `reliability-matrix.md`; the test suite checks that
every row has a test and that the page lists the tests as they are marked.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parents[1] / "tests"
PAGE = Path(__file__).with_name("reliability-matrix.md")
ROWS: tuple[tuple[str, str], ...] = (
    ("Truncated JPEG or PNG", "The frame is left out and listed; no pixel of it is ever made up."),
    (
        "Flipped bits in an image",
        "A decoder's warning leaves the frame out; a hash that is not that of SHA256SUMS is refused.",
    ),
    (
        "Empty file, web page or text named .jpg",
        "The frame is left out, and what was found instead is named.",
    ),
    ("Extension that is not the content", "Decoded by content, counted in the report."),
    ("16-bit image", "Needs `scale_16bit:`; a value beyond white leaves the frame out, nothing is clipped."),
    ("Gray, alpha, palette or 1-bit image", "Turned into RGB and counted; alpha is dropped, colours stay."),
    ("CMYK JPEG", "Turned into RGB and counted."),
    ("EXIF orientation", "Left out until the study says which way boxes are drawn (`exif:`)."),
    ("Images of 1 pixel, 1 row, odd sizes", "Every mutation runs on them or refuses the size by name."),
    ("Image of 30,000 x 30,000 pixels", "Refused by its header; its pixels are never read into memory."),
    ("Several pictures in one file", "The frame is left out, with the number of pictures."),
    ("Image size other than annotated", "The frame is left out; both sizes are named."),
    (
        "Depth that is NaN, infinite, 0 or negative",
        "Left out for mutations that need depth, or filled as the study says and counted; infinite is sky.",
    ),
    (
        "Depth of another size or unit",
        "Left out unless resampling is declared; PNG depth needs its scale; a factor of 1,000 is warned of.",
    ),
    (
        "Missing image or depth",
        "A missing image costs its frame; missing depth costs it under mutations by depth only.",
    ),
    ("Image without annotations", "Kept: what is detected there is a false positive."),
    ("No positives at all", "The figure is `insufficient`, exit code 3; never 0, 1 or -1."),
    ("Box outside the image", "Clipped and counted where it is partly outside; else the frame is left out."),
    (
        "Box without size or of NaN",
        "The frame is left out with the annotation's id; NaN literals are refused.",
    ),
    ("Id 0, duplicate ids", "Ids are ours inside, so 0 is an id like others; duplicates are refused."),
    (
        "Duplicate image id or file name",
        "Refused, with both places, however the name is spelt; the same picture twice is warned of.",
    ),
    ("Crowd and ignore regions", "Neither hit nor miss; counted. Without `iscrowd` it is 0, and counted."),
    ("Unknown category", "Refused, with the names there are."),
    (
        "Path that leads out of the data",
        "Refused by field before anything is opened, symbolic links included.",
    ),
    ("Odd file names", "Unicode, spaces and line breaks work; what cannot be a name is refused by field."),
    (
        "Damaged, hostile or huge JSON",
        "Refused with line and column; keys twice, NaN and deep nesting too; memory is bounded.",
    ),
    (
        "YAML tags, alias bombs, `no` for False",
        "Plain values only, aliases are bounded; refused with the line.",
    ),
    ("Misspelt key or option", "Refused before any work, with the nearest name."),
    (
        "Times and poses that cannot be",
        "Refused with file and line; logs with long gaps are not driven in closed loop.",
    ),
    ("SUT answers NaN", "A fault that stays in the denominator: an all-NaN detector scores 0, not 1."),
    ("SUT answers in a wrong shape, order or class", "Refused before the run where it shows; else a fault."),
    ("SUT gives equal scores", "The order of boxes and rows changes no figure."),
    ("SUT detects nothing", "A valid answer, and no fault."),
    (
        "SUT raises an exception",
        "A fault with its reason, its traceback kept in logs/; the next image is asked.",
    ),
    (
        "SUT crashes its process",
        "The suspect image is asked again alone; only then it is a fault. Others live.",
    ),
    ("SUT hangs", "Ended with all it started at `timeout_s`; a fault. Others live."),
    ("SUT eats the memory", "Ended at its limit; a fault. Others live."),
    (
        "SUT is nondeterministic",
        "At least 20 images all over the data are asked again after others; the SUT is flagged.",
    ),
    ("SUT prints, changes folder, seeds, settings", "Results are the same to the byte."),
    (
        "HTTP SUT that is slow, fails, resets, babbles or redirects",
        "Bounded retries, then a fault; outages are no answer and are asked again; redirects are refused.",
    ),
    ("Pickled model or array", "Refused: no reader of ours unpickles."),
    ("Full disk", "Exit code 3; all that was acknowledged stays, the same command resumes."),
    ("Folder that cannot be written", "Refused at the start; lost later, the same command resumes."),
    ("kill -9 at any moment", "Nothing acknowledged is lost; the resumed run is the same to the byte."),
    ("Power cut", "Each file is old or new, never half; the resumed run is the same to the byte."),
    ("Ctrl-C once or twice", "Finishes what is under way, or stops at once; exit code 130, resumes."),
    (
        "Two runs on one folder",
        "The second is refused with process and host; a dead one's lock is taken over.",
    ),
    (
        "Resume after a change",
        "What changed is listed, files that a SUT opens by itself too; only what it touches is run again.",
    ),
    (
        "Resume elsewhere or with other workers",
        "The same results to the byte; other CPU features or builds are named.",
    ),
    ("Old format, damaged file", "Refused with the command that makes it again; sound parts are kept."),
    ("Clock that jumps", "No figure, order or limit reads the wall clock."),
    ("Names that are markup or formulas", "Shown as text everywhere; pages run nothing but our own script."),
    ("Strangers at the local server", "Loopback only by default, token, Host list, no foreign posts."),
    ("URL traversal, large bodies, slow clients", "404, 413; connections that say nothing are closed."),
    (
        "Participant reloads, doubles, goes offline",
        "One row for each trial, and on at the trial that is next.",
    ),
    ("Participant's privacy", "Random id, nothing of browser or address; one person can be erased."),
    ("Report or gate on an unfinished run", "Refused with exit code 3, or marked as incomplete; never 0."),
    (
        "Changed byte in a run",
        "`verify` names the file, every command refuses it; verdicts are computed again.",
    ),
)
"""The fault and the promise of row 1, 2, and so on."""
HEAD = """# Reliability matrix

What may go wrong, what is promised then, the tests that show it (below `tests/`), and how they ended. Made by
`make matrix`, which runs these tests; the marks stand at the tests (`@pytest.mark.fault(row)`).

Frames that are left out are counted and listed with their reason; more than `quarantine_budget` allows
make the run incomplete (exit code 3). A fault of a SUT counts as nothing detected, and the figures without
the faults stand beside.

The sweep over every file operation of a run (kill, half write, power cut, full disk, I/O error, no access)
is a test, `tests/store/test_every_operation.py`. Two more sweeps run outside the test suite:
`bench/kill_resume.py --kills 1000` (kill -9 of the run and of its workers) and
`bench/bad_inputs.py --cases 10000` (spoilt studies, data sets, predictions, rules and run folders). Both were
run to their end. After 1,000 kills (seed 7; 500 of the run, 500 of its workers) nothing acknowledged was
lost, no traceback, no hang, 172 of 172 finished runs equal to the byte. Of 10,000 bad inputs (seed 3), two
hung and one ended in an internal error, all among the first 2,000; they were mended, and none did since.

| # | fault | promise | shown by | result |
|---|---|---|---|---|
"""


class Shown(NamedTuple):
    """A test that shows a row, or some of its cases."""

    file: str
    test: str
    cases: tuple[str, ...]


def marked_tests() -> dict[int, list[Shown]]:
    """Return the tests of every row by their marks, read from the text of the tests."""
    found: dict[int, list[Shown]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        if "mark.fault" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                for rows, cases in _marks(node):
                    for row in rows:
                        shown = Shown(str(path.relative_to(TESTS)), node.name, cases)
                        found.setdefault(row, []).append(shown)
    return found


def _marks(test: ast.FunctionDef) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
            cases = [ast.literal_eval(word.value) for word in mark.keywords if word.arg == "cases"]
            yield tuple(ast.literal_eval(row) for row in mark.args), tuple(cases[0]) if cases else ()


def lines(shown: Mapping[int, list[Shown]]) -> list[str]:
    """Return the rows of the page but for their results."""
    made = []
    for number, (fault, promise) in enumerate(ROWS, 1):
        files: dict[str, list[str]] = {}
        for test in shown.get(number, []):
            cases = f" ({'; '.join(test.cases)})" if test.cases else ""
            files.setdefault(test.file, []).append(f"`{test.test}`{cases}")
        cell = "<br>".join(f"{file}: {', '.join(tests)}" for file, tests in files.items())
        made.append(f"| {number} | {fault} | {promise} | {cell} |")
    return made


class Results:
    """A plug-in of pytest that counts how the tests of each row ended."""

    def __init__(self) -> None:
        self.counts: dict[int, Counter[str]] = {}
        self.failed: dict[int, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a report; one test has several, of which its call, or what kept it from that, counts."""
        if report.when != "call" and report.outcome == "passed":
            return
        for name, rows in report.user_properties:
            for row in rows if name == "faults" and isinstance(rows, list) else ():
                self.counts.setdefault(row, Counter())[report.outcome] += 1
                if report.outcome == "failed":
                    self.failed.setdefault(row, []).append(report.nodeid.rpartition("::")[2])

    def words(self, row: int) -> str:
        """Return the result of a row."""
        if row in self.failed:
            return f"FAILS: {', '.join(self.failed[row])}"
        counts = self.counts.get(row, Counter())
        skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
        return f"holds, {counts['passed']} passed{skipped}" if counts["passed"] else "not run"

    def page(self) -> str:
        """Return the whole page."""
        rows = [f"{line} {self.words(row)} |" for row, line in enumerate(lines(marked_tests()), 1)]
        return HEAD + "\n".join(rows) + "\n"


def renamed(page: str) -> str:
    """Return the page with the tests as they are marked now, each row with its result of the last run."""
    old = [line for line in page.splitlines() if line[:2] == "| " and line[2].isdigit()]
    results = [line.rsplit(" | ", 1)[1] for line in old]
    rows = [f"{line} {result}" for line, result in zip(lines(marked_tests()), results, strict=True)]
    return HEAD + "\n".join(rows) + "\n"


def main() -> None:
    """Run the tests that show the rows, and write the page; with --names, only list the tests anew."""
    if sys.argv[1:] == ["--names"]:
        PAGE.write_text(renamed(PAGE.read_text()))
        return
    results = Results()
    options = ["-n", "2", "--dist", "worksteal", "-m", "fault", *(sys.argv[1:] or [str(TESTS)])]
    pytest.main(options, plugins=[results])
    PAGE.write_text(results.page())
    holds = sum(results.words(row).startswith("holds") for row in range(1, len(ROWS) + 1))
    print(f"{PAGE.name}: {holds} of {len(ROWS)} rows hold")
    sys.exit(0 if holds == len(ROWS) else 1)


if __name__ == "__main__":
    main()
