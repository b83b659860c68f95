"""Where commands print: a console that no name can steer, errors in one shape, and the progress of a run."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text

from adverse.errors import AdverseError
from adverse.text import counted, duration, seen


def say(text: str, *, err: bool = False) -> None:
    """Print text that may hold foreign names: what would act on a terminal is spelt out."""
    print(seen(text), file=sys.stderr if err else sys.stdout)


def show_error(error: AdverseError) -> None:
    """Print an error: what, then where, got, wanted and fix, each below the other."""
    say(f"error: {error.what}", err=True)
    for label, text in error.details():
        lines = text.replace("\n", "\n" + " " * 10)  # such as the end of a program's stderr
        say(f"  {label:7} {lines}", err=True)


class Console(RichConsole):
    """Falls silent when whoever read its output is gone (`| head`), so that the work goes on to its end.

    Names of files, classes and logs can hold anything: escape sequences that colour or move, text that turns
    the reading direction, `[red]`. None of it reaches the terminal as more than letters.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)
        self.push_render_hook(_SpeltOut())

    def say(self, text: str) -> None:
        """Print a line of plain text, however long."""
        self.print(text, highlight=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Send what is left to nowhere."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _SpeltOut(RenderHook):
    """Spells out, in all that is printed, what would act on the terminal instead of being read."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Harmless(renderable) for renderable in renderables]


class _Harmless:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self.inner = inner

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.inner, options):
            if segment.control:
                yield segment  # ours: the cursor of a progress bar
            else:
                yield Segment(seen(segment.text), segment.style)


PLAIN_EVERY_S, FIRST_MINUTE_S = 5.0, 60.0


class ProgressWatcher:
    """Shows done/total, rate, time left and what went wrong; notes are printed above."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live: Progress | None = None
        self.statuses = Counter[str]()
        self.total = 0
        self.done = 0
        self.before = 0
        self.started = time.monotonic()
        self.warm: tuple[float, int] | None = None
        """When the first answers were there, and how many: what is loaded before them is done once."""
        self.last_note_s = 0.0
        self.preparing = ExitStack()

    @contextmanager
    def before_work(self) -> Iterator[None]:
        """Say every few seconds that work is being prepared, until it begins."""
        with self.preparing:
            self.preparing.enter_context(reading(self.console))
            yield

    def note(self, text: str) -> None:
        """Print a line."""
        self.console.say(f"- {text}")

    def begin(self, total: int, done: int) -> None:
        """Start showing."""
        self.preparing.close()
        self.total, self.done, self.before = total, done, done
        self.started = self.last_note_s = time.monotonic()
        self.warm = None
        if done:
            self.note(f"{done} of {total} images were done before; resuming")
        if total > done and self.console.is_terminal:
            self.live = Progress(
                TextColumn("running"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                _Rate(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[wrong]}"),
                console=self.console,
            )
            self.live.add_task("", total=total, completed=done, wrong="")
            self.live.start()

    def advance(self, statuses: Counter[str]) -> None:
        """Count what was finished."""
        self.done += statuses.total()
        self.statuses += statuses
        self.under_way(0)

    def under_way(self, answered: int) -> None:
        """Show what is done, with what is answered in unfinished units."""
        so_far = min(self.done + answered, self.total)
        if self.warm is None and so_far > self.before:
            self.warm = time.monotonic(), so_far
        if self.live is not None:
            self.live.update(self.live.task_ids[0], completed=so_far, wrong=wrong(self.statuses))
        elif time.monotonic() - self.last_note_s > PLAIN_EVERY_S:
            self.last_note_s = time.monotonic()
            since, first = self.warm or (self.last_note_s, so_far)
            rate = (so_far - first) / max(self.last_note_s - since, 1e-9)
            pace = (
                f"{rate:.1f}/s, about {duration((self.total - so_far) / rate)} left"
                if so_far > first
                else "time left not known yet"
            )
            self.note(f"{so_far}/{self.total} images, {pace}, {wrong(self.statuses)}")

    def end(self) -> None:
        """Stop showing."""
        if self.live is not None:
            self.live.stop()
            self.live = None
        spent = time.monotonic() - self.started
        if self.done > self.before:
            rate = (self.done - self.before) / max(spent, 1e-9)
            self.note(
                f"{self.done}/{self.total} images done, {rate:.1f}/s in {spent:.0f} s, {wrong(self.statuses)}"
            )


def wrong(statuses: Counter[str]) -> str:
    """Say what went wrong: faults are a SUT's, an image that could not be made is not.

    >>> wrong(Counter(ok=5, fault=1, quarantined=2))
    '1 fault, 2 without an image'
    >>> wrong(Counter(ok=5, retried=1))
    '0 faults, 1 retried'
    """
    words = {"retried": "retried", "quarantined": "without an image"}
    more = (f", {statuses[status]} {text}" for status, text in words.items() if statuses[status])
    return f"{counted(statuses['fault'], 'fault')}{''.join(more)}"


@contextmanager
def under_way(console: Console, text: str) -> Iterator[Callable[[str], None]]:
    """Show that something goes on which cannot be counted; nothing is shown of what takes no time.

    Give what changes the text. After a minute there is a line less often.
    """
    over, started, texts = threading.Event(), time.monotonic(), [text]

    def tell() -> None:
        spent = 0.0
        while not over.wait(PLAIN_EVERY_S if spent < FIRST_MINUTE_S else 6 * PLAIN_EVERY_S):
            spent = time.monotonic() - started
            console.say(f"- {texts[-1]}, {duration(spent)} so far")

    if console.is_terminal:
        with console.status(text) as status:
            yield status.update
        return
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield texts.append
    finally:
        over.set()
        teller.join()


@contextmanager
def reading(console: Console) -> Iterator[None]:
    """Show that data and SUTs are read, and how much of a world is rendered for that."""
    from adverse.data.rendered import watched_rendering

    text = "reading data and SUTs"
    with under_way(console, text) as tell:

        def rendered(done: int, total: int) -> None:
            tell(text if done == total else f"{text}: {done} of {total} logs rendered")

        with watched_rendering(rendered):
            yield


@contextmanager
def rendering(console: Console, text: str = "rendered {} of {} logs") -> Iterator[Callable[[int, int], None]]:
    """Give what shows how many of how many are done; nothing is shown of what takes no time."""
    last = time.monotonic()
    with console.status("starting") as status:

        def show(done: int, total: int) -> None:
            nonlocal last
            status.update(text.format(done, total))
            if not console.is_terminal and time.monotonic() - last > PLAIN_EVERY_S:
                last = time.monotonic()
                console.print(f"- {text.format(done, total)}", highlight=False)

        yield show


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "")
