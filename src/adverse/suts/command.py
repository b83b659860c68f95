"""A program in any language as a system under test; the protocol is in docs/command-protocol.md."""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from adverse.file_access.hook import note_variable
from adverse.file_access.identity import NO_INPUT_VARIABLE
from adverse.plugins import Positive, sut
from adverse.suts.child import Child
from adverse.user_files import imported_beside, module_files

HANDED_ON = (
    *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_NUMERIC", "TZ", "LD_PRELOAD", "PYTHONHASHSEED"),
    *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HF_HOME", "TORCH_HOME"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE"),
)
"""Variables that every program gets, and whose values count."""
WORDS = re.compile(r"[^\s'\"`;&|<>()=,:]+")
QUOTED = re.compile(r"'[^']+'|\"[^\"]+\"")
"""The words of a shell line, or of a word of argv."""
SYSTEM_PROGRAMS = re.compile(r"(/usr)?/s?bin/|.*/python[\d.]*$")
"""Programs of the machine, and any Python, whose version is part of the environment."""
OUTPUT = re.compile(r">+&?\s*[^\s'\"`;&|<>()]+")
"""What a shell line writes to."""
SCRIPT_BYTES, LONGEST_NAME = 1 << 14, 4096
SHELLS = re.compile(rb"#!.*sh\b")


def _files_in_argv(options: Mapping[str, Any]) -> list[Path]:
    """Return the files of the user that argv names: the program itself, its scripts, its weights.

    Also in the midst of a word: --weights=w.bin, or a line for a shell, with the folders that it names; and
    in a shell script that is named. Not what such a line writes to. What a Python script imports from its
    own folder counts too, and a module that is named after -m. A program found on the PATH belongs to the
    system, like a library, unless it is the user's own.
    """
    folder = Path(options.get("cwd") or ".")
    words = [part for word in options["argv"] for part in (word, *_words(word))]
    named = _named(folder, words)
    scripts = [path for script in named for path in _named(folder, _words_of_script(script))]
    named = list(dict.fromkeys([*named, *scripts]))
    imported = {path for file in named if file.suffix == ".py" for path in imported_beside(file)}
    for option, module in itertools.pairwise(words):
        if option == "-m" and module.replace(".", "").isidentifier():
            imported |= module_files(folder, module)
    return [*named, *sorted(imported - set(named))]


def _named(folder: Path, words: Iterable[str]) -> list[Path]:
    """Return the files that words name: in a folder, in one that is named as well, or on the PATH."""
    # os.path, as for words that no path can be its answer is False
    short = [os.path.expandvars(word) for word in words if len(word) < LONGEST_NAME]
    names = [os.path.expanduser(word) for word in short]  # noqa: PTH111
    below = [folder / name for name in names if os.path.isdir(folder / name)]  # noqa: PTH112
    found: dict[Path, None] = {}
    for name in names:
        program = None if os.sep in name else shutil.which(name)
        if program is None:
            places = [place / name for place in (folder, *below)]
        else:
            places = [] if SYSTEM_PROGRAMS.match(os.path.realpath(program)) else [Path(program)]
        found |= dict.fromkeys(path for path in places if os.path.isfile(path))  # noqa: PTH113
    return list(found)


def _words_of_script(path: Path) -> list[str]:
    """Return the words of a shell script, none of any other file."""
    try:
        with path.open("rb") as file:
            start = file.read(SCRIPT_BYTES)
    except OSError:  # which is told where it is hashed
        return []
    is_script = path.suffix == ".sh" or SHELLS.match(start.partition(b"\n")[0])
    return list(dict.fromkeys(_words(start.decode(errors="replace")))) if is_script else []


def _words(line: str) -> list[str]:
    read = OUTPUT.sub(" ", line)
    return WORDS.findall(read) + [word[1:-1] for word in QUOTED.findall(read)]


def _environment(names: Iterable[str]) -> dict[str, str]:
    """Return the variables that a program gets: where things are, a few that count, and those named."""
    inherited = dict(os.environ)
    counted = {*HANDED_ON, *names}
    for name in sorted(counted):
        note_variable(name)
    return {
        name: value
        for name, value in inherited.items()
        if name in counted or NO_INPUT_VARIABLE.fullmatch(name)
    }


@sut(name="command", extra_files=_files_in_argv)
def command(
    argv: Annotated[list[str], Field(min_length=1)],
    *,
    cwd: Path | None = None,
    files: list[Path] | None = None,  # noqa: ARG001 - part of the fingerprint, which reads the options
    env: list[str] | None = None,
    start_timeout_s: Positive = 60,
    timeout_s: Positive = 60,
    memory_limit_mb: Annotated[int, Field(gt=0)] | None = None,
) -> Child:
    """Ask a long-lived program over pipes; it may crash, hang or reply with garbage without harm to the run.

    `argv` is the program and its arguments, run in the folder `cwd`. `files` names further files that
    decide its answers (weights, settings), so that results are kept apart when they change. `env` names the
    variables of the environment that it needs; their values count too. `timeout_s` is for one request, which
    holds the images that are asked about at once.
    """
    program = argv[0]
    if cwd is not None and os.sep in program:
        program = str((cwd / program).absolute())
    return Child(
        [program, *argv[1:]],
        name="command",
        cwd=cwd,
        env=functools.partial(_environment, env or ()),
        start_timeout_s=start_timeout_s,
        timeout_s=timeout_s,
        memory_limit_mb=memory_limit_mb,
    )
