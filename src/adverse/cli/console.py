"""Where a command prints to: a console that outlives its reader."""

from __future__ import annotations

import os
import sys

from rich.console import Console as RichConsole


class Console(RichConsole):
    """Falls silent when whoever read its output is gone (`| head`), so that the work goes on to its end."""

    def on_broken_pipe(self) -> None:
        """Send what is left to nowhere."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
