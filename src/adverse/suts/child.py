"""A system under test in a process of its own, so that a crash, a hang or a leak costs one answer.

Crash, hang, garbage and too much memory each end that life of the program, with everything it started, and
become one SutError that says what happened. The next request starts it again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from adverse.errors import BadAnswerError, CrashError, OutOfMemoryError, SutError
from adverse.processes import not_outliving_us, our_environment, our_module, tied
from adverse.suts import wire
from adverse.suts.ask import MORE_MEMORY, as_bad_answer, check_answer, named
from adverse.suts.child_process import EXIT_S, LostError, Running
from adverse.types import Answer, Image, Task

KILLS = 3
"""So often killed for want of memory, a program is taken to bring it about: from then on it is at fault."""
OWN_KILLS = (
    f"There is no sign that memory ran out, or it did {KILLS} times, so it counts as failing. Find out who "
    "sends SIGKILL (the program itself, a watchdog, a limit on memory), and run again with --retry-faults."
)


class Child:
    """A system under test that passes images to a program speaking the command protocol.

    The program is started when it is first needed. The images of one call go in one request, for which
    it has `timeout_s`. `env` gives its environment each time it is started. Not for use by two threads at a
    time.
    """

    watches_itself = True

    def __init__(
        self,
        argv: Sequence[str],
        *,
        name: str,
        cwd: Path | None = None,
        env: Callable[[], Mapping[str, str]] = our_environment,
        start_timeout_s: float = 60,
        timeout_s: float = 60,
        memory_limit_mb: int | None = None,
        share_mb: int | None = None,
    ) -> None:
        self._running: Running | None = None
        self._owner = os.getpid()
        self._argv = list(argv)
        self._name = name
        self._cwd = cwd
        self._env = env
        self._start_timeout_s = start_timeout_s
        self._timeout_s = timeout_s
        self._memory_limit_mb = memory_limit_mb
        self._share_mb = share_mb
        self._classes: tuple[str, ...] = ()
        self._task: Task = "detection"
        self._kills = 0

    @property
    def task(self) -> Task:
        """What the program does, as it says itself; starts it if need be."""
        return self._task if self.classes else "detection"

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels, as the program gives them; starts it if need be."""
        if not self._classes:
            self._started()
        return self._classes

    @property
    def pid(self) -> int | None:
        """The program's process, while there is one."""
        return None if self._running is None else self._running.process.pid

    def detect(self, images: Sequence[Image]) -> list[Any]:
        """Return one answer for each image, or raise SutError saying what became of the program."""
        return self._asked(images) if len(images) else []

    segment = classify = detect  # what is answered is the program's affair, and the reply says which

    def close(self) -> None:
        """End the program: close its input, wait a little, then kill it. Safe to call twice."""
        self._end(grace_s=EXIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at exit, the modules this needs may be gone
            self._end(grace_s=0)

    def _asked(self, images: Sequence[Image]) -> list[Answer]:
        running = self._started()
        running.requests += 1
        request = wire.request_id(running.requests)
        try:
            reply = running.exchange(wire.request_parts(request, images), self._timeout_s)
            answers = wire.read_answer(wire.parse(reply), request, len(images), self._task)
            self._check(answers, images)
        except LostError as lost:
            raise self._buried(lost) from None
        except wire.GarbageError as error:
            raise self._buried(garbage(error)) from error
        except SutError as error:  # an error it reported, or an answer that cannot be: it can be asked again
            wrong = named(error, self._name)
            said = running.take_output()
            wrong.output = "\n".join(text for text in (wrong.output, said) if text) or None
            raise wrong from error
        except BaseException:  # interrupted in the middle of a reply
            self._end(grace_s=0)
            raise
        running.take_output()  # not about what fails later
        return answers

    def _check(self, answers: Sequence[Answer], images: Sequence[Image]) -> None:
        try:
            for answer, image in zip(answers, images, strict=True):
                check_answer(answer, image, self._classes)
        except SutError as error:
            raise as_bad_answer(error) from error

    def _started(self) -> Running:
        if self._running is not None:
            return self._running
        environment = tied(self._env())
        self._running = Running(
            self._spawn(environment), self._memory_limit_mb, self._share_mb, environment=environment
        )
        try:
            task, classes = wire.read_ready(wire.parse(self._running.exchange([], self._start_timeout_s)))
            if self._classes not in ((), classes):
                raise wire.GarbageError(
                    "the program changed its class names when it was started again",
                    got=", ".join(classes),
                    wanted=", ".join(self._classes),
                )
        except LostError as lost:
            raise self._buried(lost) from None
        except wire.GarbageError as error:
            raise self._buried(garbage(error)) from error
        except BaseException as error:
            self._end(grace_s=0)
            if isinstance(error, SutError):
                raise named(error, self._name) from error
            raise
        self._task, self._classes = task, classes
        return self._running

    def _spawn(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        try:
            if shutil.which(self._argv[0]) is None:
                raise FileNotFoundError(errno.ENOENT, "there is no such program")
            return subprocess.Popen(  # noqa: S603 - to run the program that the study names is the purpose
                not_outliving_us(self._argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=self._cwd,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise SutError(
                "the program cannot be started",
                where=self._name,
                got=f"{self._argv[0]!r}: {getattr(error, 'strerror', None) or error}",
                wanted="a program that exists and may be run",
                fix="Check argv and cwd; cwd: . runs it in the study's folder.",
            ) from error

    def _end(self, *, grace_s: float) -> tuple[str, str]:
        """End this life of the program, unless it belongs to the process we were forked from.

        Return how it ended, and its last output.
        """
        running, self._running = self._running, None
        if running is None or self._owner != os.getpid():
            return "", ""
        return running.end(grace_s=grace_s), running.last_words()

    def _buried(self, lost: LostError) -> SutError:
        running = self._running
        ending, words = self._end(grace_s=EXIT_S if lost.dying else 0)
        got = "; ".join(part for part in (lost.got, ending, words) if part)
        kind, fix = lost.kind, lost.fix
        if running is not None and running.killed:
            self._kills += running.out_of_memory
            outside = running.out_of_memory and self._kills < KILLS
            kind, fix = (OutOfMemoryError, MORE_MEMORY) if outside else (CrashError, OWN_KILLS)
        error = kind(lost.what, where=self._name, got=got, wanted=lost.wanted, fix=fix)
        error.output = None if running is None else running.output()
        return error


def garbage(error: wire.GarbageError) -> LostError:
    """Return that a program can no longer be used because of what it said."""
    return LostError(error.what, got=error.got, wanted=error.wanted, kind=BadAnswerError)


def isolated(
    adapter: str,
    options: Mapping[str, Any],
    plugin_files: Iterable[Path] = (),
    *,
    name: str | None = None,
    default_class: str,
    start_timeout_s: float = 120,
    timeout_s: float = 60,
    memory_limit_mb: int | None = None,
    share_mb: int | None = None,
) -> Child:
    """Return a Detector that gives the answers of an adapter, which lives in a child process.

    `options` are those that `plugins.bind` gave. The answers are equal to the bit to those of the
    adapter in this process: images are passed on in the same groups, numbers are not rounded.
    """
    description = {
        "adapter": adapter,
        "options": _plain(options),
        "plugins": [str(path.absolute()) for path in plugin_files],
        "name": name or adapter,
        "default_class": default_class,
    }
    return Child(
        our_module("adverse.suts.serve", json.dumps(description)),
        name=name or adapter,
        start_timeout_s=start_timeout_s,
        timeout_s=timeout_s,
        memory_limit_mb=memory_limit_mb,
        share_mb=share_mb,
    )


def _plain(value: Any) -> Any:
    """Return bound options as JSON can carry them and `plugins.bind` takes them back."""
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
