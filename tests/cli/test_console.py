"""Progress where nothing is a terminal: a line every few seconds, also while the first unit is under way."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from adverse.cli import console
from adverse.data.rendered import orchard_world


def test_progress_is_told_before_the_first_unit_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("adverse.cli.console.time.monotonic", lambda: now)
    watch = console.ProgressWatcher(console.Console())
    watch.begin(1000, 0)
    for seconds, answered in ((6, 0), (8, 6), (12, 30), (14, 200)):
        now = 100.0 + seconds
        watch.under_way(answered)
    now = 120.0
    watch.advance(Counter(ok=990))
    assert capsys.readouterr().out.splitlines() == [
        "- 0/1000 images, time left not known yet, 0 faults",
        "- 30/1000 images, 6.0/s, about 3 min left, 0 faults",  # 30 - 6 in the 4 s since the first answers
        "- 990/1000 images, 82.0/s, about 0 s left, 0 faults",
    ]


def test_what_cannot_be_counted_is_told_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    enough = threading.Event()

    def say(_console: console.Console, text: str) -> None:
        said.append(text)
        if len(said) == 2:
            enough.set()

    monkeypatch.setattr(console, "PLAIN_EVERY_S", 0.01)
    monkeypatch.setattr(console.Console, "say", say)
    watch = console.ProgressWatcher(console.Console())
    with watch.before_work():
        assert enough.wait(10)
        watch.begin(0, 0)
        before = len(said)
    assert said[0] == "- reading data and SUTs, 0 s so far"
    assert len(said) == before  # the work itself is counted


def test_it_says_how_much_of_a_world_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    heard = threading.Event()

    def say(_console: console.Console, text: str) -> None:
        said.append(text)
        heard.set()

    def rendered(_spec: object, *, workers: int, watch: Callable[[int, int], None]) -> Path:  # noqa: ARG001
        watch(3, 40)
        heard.clear()
        assert heard.wait(10)
        raise FileNotFoundError

    monkeypatch.setattr(console, "PLAIN_EVERY_S", 0.01)
    monkeypatch.setattr(console.Console, "say", say)
    monkeypatch.setattr("adverse.data.worlds.writing.cached_world", rendered)
    with pytest.raises(FileNotFoundError), console.reading(console.Console()):
        orchard_world()
    assert said[-1] == "- reading data and SUTs: 3 of 40 logs rendered, 0 s so far"
