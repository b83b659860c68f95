"""Progress where nothing is a terminal: a line every few seconds, also while the first unit is under way."""

from __future__ import annotations

from collections import Counter

import pytest

from adverse.cli import console


def test_progress_is_told_before_the_first_unit_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("adverse.cli.console.time.monotonic", lambda: now)
    watch = console.ProgressWatcher(console.Console())
    watch.begin(100, 0)
    for seconds, answered in ((3, 6), (6, 0), (8, 16), (12, 30), (14, 200)):
        now = 100.0 + seconds
        watch.under_way(answered)
    now = 120.0
    watch.advance(Counter(ok=40))
    assert capsys.readouterr().out.splitlines() == [
        "- 0/100 images, 0.0/s, no answer yet, 0 faults",
        "- 30/100 images, 2.5/s, 28 s left, 0 faults",
        "- 40/100 images, 2.0/s, 30 s left, 0 faults",
    ]
