"""SUTs that take their process down: one study holds them all, beside a good one that must not notice."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from .cases import CANNOT_RUN, PASS
from .command import Said
from .good_study import GoodStudy

AT = 2
SUTS: dict[str, dict[str, Any]] = {
    "good": {},
    "segfault": {},
    "os exit": {},
    "hang": {"timeout_s": 2},
    "leak": {"memory_limit_mb": 400},
    "noise": {"memory_limit_mb": 4000},
}
"""What the study says about each; a memory limit puts the SUT in a process of its own from the start."""


class Ran:
    """The study after its run."""

    def __init__(self, folder: Path) -> None:
        self.study = GoodStudy(folder, "coco")
        self.study.study.pop("mutations")
        self.study.study["suts"] = [
            {"name": mood, "adapter": "probe", "mood": mood, "at": AT, **options}
            for mood, options in SUTS.items()
        ]
        self.said: Said = self.study.adverse("run", "--tables", workers=1)
        self.areas = {row["sut"]: row["area"] for row in self.study.rows()}
        self.counts = self.study.summary()["counts"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran(tmp_path_factory.mktemp("crashes") / "study")


@pytest.mark.fault(35, 36, 37)
@pytest.mark.parametrize(
    ("sut", "words"),
    [
        ("segfault", ("the program died", "SIGSEGV")),
        ("os exit", ("the program died", "exit code 3")),
        ("hang", ("the program hung", "it has not answered after 2 s", "Raise timeout_s")),
        ("leak", ("the program uses too much memory", "at most 400 MB", "Raise memory_limit_mb")),
    ],
)
def test_a_crash_costs_one_image(ran: Ran, sut: str, words: tuple[str, ...]) -> None:
    failed = f"- {sut}: failed on 1 of 8 images; they count as nothing detected"
    ran.said.expect(PASS, failed, f"  frame '{AT}' under clean: {words[0]}", *words)
    assert ran.counts[sut]["fault"] == 1
    assert ran.areas[sut] == 0.75


@pytest.mark.fault(35, 36, 37, 39)
@pytest.mark.parametrize("sut", ["good", "noise"])
def test_others_do_not_notice(ran: Ran, sut: str) -> None:
    assert ran.counts[sut] == {**ran.counts[sut], "ok": 8, "fault": 0, "quarantined": 0}
    assert ran.areas[sut] == 1.0


def test_the_user_hears_of_it_at_once(ran: Ran) -> None:
    died = f"a worker died (signal SIGSEGV) while asking SUT 'segfault', frame '{AT}', under clean"
    alone = [f"SUT '{name}' died alone too; it runs in a process" for name in ("segfault", "os exit")]
    ran.said.expect(PASS, f"{died}; every SUT is tried in a process of its own", *alone)
    assert not any(f"SUT '{name}' died" in ran.said.text for name in ("good", "noise", "leak"))


def test_what_a_crash_leaves_behind_is_kept(ran: Ran) -> None:
    log = (ran.study.run / "logs" / "sut-segfault.log").read_text()
    assert "Fatal Python error: Segmentation fault" in log
    assert "in <lambda>" in log
    ran.said.expect(PASS, "see logs/sut-segfault.log")


def test_every_fault_has_a_fix(ran: Ran) -> None:
    reasons = [row["reason"] for row in ran.study.summary()["troubles"]]
    assert len(reasons) == 4
    assert all("Fix:" in reason for reason in reasons), reasons


def test_nothing_is_run_twice(ran: Ran) -> None:
    ran.study.adverse("plan").expect(PASS, "48 images to judge, 48 done, 0 to do")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("broken", ("cannot be built", "version 9", "Check the options")),
        ("deadly", ("ended before it was ready", "SIGSEGV", "while loading SUT 'probe'")),
    ],
)
def test_a_model_that_cannot_be_loaded_stops_the_run(
    coco: GoodStudy, content: str, words: tuple[str, ...]
) -> None:
    (coco.folder / "model.bin").write_text(content)
    coco.adverse(workers=1).expect(CANNOT_RUN, "probe", *words)


def test_a_program_that_ends_at_its_start_is_quoted(coco: GoodStudy) -> None:
    words = "import sys; print('no weights\\nin here', file=sys.stderr); sys.exit(7)"
    coco.study["suts"] = [{"name": "mine", "adapter": "command", "argv": [sys.executable, "-c", words]}]
    said = coco.adverse()
    said.expect(CANNOT_RUN, "ended before it was ready", "SUT 'mine'", "exit code 7", "by hand")
    assert "its stderr ends: no weights\n          in here\n" in said.text
