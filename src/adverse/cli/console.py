"""Where a command prints to: a console that outlives its reader, and obeys no name it is shown."""

from __future__ import annotations

import os
import sys
from typing import Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from adverse.report.words import seen


class Console(RichConsole):
    """Falls silent when whoever read its output is gone (`| head`), so that the work goes on to its end.

    Names of files, classes and logs can hold anything: escape sequences that colour or move, text that turns
    the reading direction, `[red]`. None of it reaches the terminal as more than letters.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)
        self.push_render_hook(_SpeltOut())

    def on_broken_pipe(self) -> None:
        """Send what is left to nowhere."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _SpeltOut(RenderHook):
    """Spells out, in all that is printed, what would act on the terminal instead of being read."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Shown(one) for one in renderables]


class _Shown:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self.inner = inner

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.inner, options):
            if segment.control:
                yield segment  # ours: the cursor of a progress bar
            else:
                yield Segment(seen(segment.text), segment.style)
