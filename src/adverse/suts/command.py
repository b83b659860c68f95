"""A program in any language as a system under test; the protocol is in docs/command-protocol.md."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from adverse.plugins import Positive, sut
from adverse.suts.child import Child
from adverse.user_files import imported_beside, module_files


def _files_in_argv(options: Mapping[str, Any]) -> list[Path]:
    """Return the words of argv that are files of the user: the program itself, its scripts, its weights.

    A word such as --weights=w.bin may end in one. What a Python script imports from its own folder counts
    too, and a module that is named after -m. A program found on the PATH belongs to the system, like a
    library, and is not looked into.
    """
    folder = options.get("cwd") or Path()
    words = [part for word in options["argv"] for part in (word, word.partition("=")[2]) if part]
    ours = [folder / word for word in words if os.sep in word or not shutil.which(word)]
    named = [path for path in ours if os.path.isfile(path)]  # noqa: PTH113 - words no path can have are False
    imported = {path for file in named if file.suffix == ".py" for path in imported_beside(file)}
    for option, module in itertools.pairwise(options["argv"]):
        if option == "-m" and module.replace(".", "").isidentifier():
            imported |= module_files(folder, module)
    return [*named, *sorted(imported - set(named))]


@sut(name="command", extra_files=_files_in_argv)
def command(
    argv: Annotated[list[str], Field(min_length=1)],
    *,
    cwd: Path | None = None,
    files: list[Path] | None = None,  # noqa: ARG001 - part of the fingerprint, which reads the options
    start_timeout_s: Positive = 60,
    timeout_s: Positive = 60,
    memory_limit_mb: Annotated[int, Field(gt=0)] | None = None,
) -> Child:
    """Ask a long-lived program over pipes; it may crash, hang or reply with garbage without harm to the run.

    `argv` is the program and its arguments, run in the folder `cwd`. `files` names further files that
    decide its answers (weights, settings), so that results are kept apart when they change. `timeout_s`
    is for one request, which holds the images that are asked about at once.
    """
    program = argv[0]
    if cwd is not None and os.sep in program:
        program = str((cwd / program).absolute())
    return Child(
        [program, *argv[1:]],
        name="command",
        cwd=cwd,
        start_timeout_s=start_timeout_s,
        timeout_s=timeout_s,
        memory_limit_mb=memory_limit_mb,
    )
