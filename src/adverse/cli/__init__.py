"""The command line: parse, call, print. No logic lives here."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from threading import current_thread, main_thread
from typing import Any

from adverse.errors import EXIT_CANNOT_RUN, EXIT_INTERRUPTED, AdverseError
from adverse.text import shown

DEBUG = "ADVERSE_DEBUG"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the `adverse` command (`argv`: its arguments); every error leaves in one shape, not a traceback."""
    from adverse.cli.console import show_error

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character gets its number
            stream.reconfigure(errors="backslashreplace")
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and current_thread() is main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill is a Ctrl-C, everywhere
    try:
        _command()(argv)
    except AdverseError as error:
        show_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the last line of defence
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:  # as a user gave it
            show_error(
                AdverseError(
                    "a name is too long for a file",
                    got=f"{len(str(error.filename))} characters, {shown(str(error.filename))}",
                    fix="Check the paths and names on the command line, in the study and in the data.",
                )
            )
            sys.exit(EXIT_CANNOT_RUN)
        if os.environ.get(DEBUG):
            traceback.print_exc()
        show_error(
            AdverseError(
                "internal error",
                got=f"{type(error).__name__}: {error}",
                fix=f"Set {DEBUG}=1, run it again, and report what it prints.",
            )
        )
        sys.exit(EXIT_CANNOT_RUN)


@cache
def _command() -> Callable[..., Any]:
    """Return all commands, put together once: a program that gives several has no need to do it again."""
    from typer.main import get_command

    from adverse.cli.app import app

    return get_command(app)
