"""Whole campaigns for tests: run, watched, and all of their content as hashes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

from adverse.fuzz.outcome import read_outcome
from adverse.fuzz.run import CampaignRun, run_campaign
from adverse.report.fuzz_page import write_fuzz_page
from adverse.study.engines import Engine, Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.spec import read_study

TESTS = 64
TIMES = re.compile(rb'<section id="times">.*?</section>', re.DOTALL)


class Quiet:
    """Watches, and can ask for a stop after some units were kept."""

    def __init__(self, stop: Stop | None = None, *, at: int = 0) -> None:
        self.notes: list[str] = []
        self.stop, self.at, self.done, self.testing = stop, at, 0, False
        self.before = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def under_way(self, answered: int) -> None:
        pass

    def begin(self, total: int, done: int) -> None:
        assert done < total
        self.testing = total >= TESTS
        self.before = done

    def advance(self, statuses: Counter[str]) -> None:
        self.done += statuses.total() if self.testing else 0
        if self.stop is not None and self.done >= self.at:
            self.stop.soft = True

    def end(self) -> None:
        pass


def fuzz(
    study: Path,
    out: Path,
    *,
    tests: int = TESTS,
    engine: Engine | None = None,
    watch: Quiet | None = None,
    guided: bool = False,
    seed: int | None = None,
) -> CampaignRun:
    watch = watch or Quiet()
    ran = run_campaign(
        read_study(study),
        out,
        engine or InlineEngine(),
        tests=tests,
        watch=watch,
        stop=watch.stop or Stop(),
        guided=guided,
        seed=seed,
    )
    if ran.status != "interrupted":
        write_fuzz_page(ran.folder, read_outcome(ran.folder))
    return ran


def content(folder: Path) -> dict[str, str]:
    """Everything that must not depend on how a campaign was run: all but the times on its page."""
    kept = [folder / "fuzz.html", folder / "manifest.json"]
    kept += [path for name in ("results", "failures", "bases") for path in sorted((folder / name).rglob("*"))]
    return {
        str(path.relative_to(folder)): hashlib.sha256(TIMES.sub(b"", path.read_bytes())).hexdigest()
        for path in kept
        if path.is_file()
    }
