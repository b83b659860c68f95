"""The command line as a test sees it: an exit code and all that was printed."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import adverse
from adverse.cli import main

FIXES = ("fix", "Fix:", "Did you mean", "Run the same command to resume")
"""Words by which an output that is not exit code 0 tells the way out."""


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed, stdout and stderr together."""

    code: int
    text: str

    def expect(self, code: int, *words: str) -> None:
        """Check the exit code, that every word is there, that a fix is told, and that no traceback is."""
        assert self.code == code, self.text
        missing = [word for word in words if word not in self.text]
        assert not missing, f"{missing} not in:\n{self.text}"
        assert "Traceback" not in self.text, self.text
        assert "internal error" not in self.text, self.text
        assert code == 0 or any(fix in self.text for fix in FIXES), f"no fix in:\n{self.text}"


def adverse_here(*args: str | Path) -> Said:
    """Run the command in this process."""
    heard = io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        try:
            main([str(arg) for arg in args])
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int | None)
    return Said(code or 0, heard.getvalue())


@contextlib.contextmanager
def started(*args: str | Path, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """Start Python with these arguments as a process of its own; it is gone when the block ends."""
    source = str(Path(adverse.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": source, **(env or {})},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> Said:
    """Wait for a started process and return what it said."""
    text, _ = process.communicate()
    return Said(process.returncode, text)


def run_alone(*args: str | Path, env: Mapping[str, str] | None = None) -> Said:
    """Run Python in a process of its own, to its end."""
    with started(*args, env=env) as process:
        return ended(process)
