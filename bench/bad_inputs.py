"""Thousands of spoilt inputs through the command line: each must end in one clear way.

Good studies of every data format, recorded predictions, rules and finished runs are made once. Each case
copies one of them, spoils one or two of its files (`spoiling.py`), and runs a command in a process forked
from this warm one. It must end with exit code 0, 1, 2 or 3, an error in the one shape we have, without a
traceback, a crash or a hang, and without taking much memory. A case that does not is printed with its number:
`--only NUMBER` with the same seed runs it again and shows what it said.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import random
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from adverse.cli import main as adverse
from bad_input.good_study import GoodStudy
from bad_input.test_recorded import record
from formats import write_cityscapes, write_kitti, write_kitti_tracking, write_nrec, write_voc, write_yolo
from progress import Progress
from spoiling import spoil

HANG_S = 60.0
"""A whole good case takes a hundredth of this, where it has a core for itself."""
MOST_GROWTH_MB = 400
RULES = {
    "rules": [{"measure": "area", "level": "image", "setting": "baseline", "at_least": 0.9, "bound": "point"}]
}
FORMATS: dict[str, tuple[Callable[[Path], Path], dict[str, object]]] = {
    "voc": (write_voc, {}),
    "yolo": (write_yolo, {}),
    "nrec": (write_nrec, {}),
    "kitti": (write_kitti, {"class_map": {"Pedestrian": "person"}}),
    "kitti tracking": (write_kitti_tracking, {"class_map": {"Pedestrian": "person"}}),
    "cityscapes": (write_cityscapes, {"logs": "sequence", "split": {"test": "val"}}),
}


@dataclass(frozen=True)
class Good:
    """A folder on which all is well, the files of it that are spoilt, and the commands that read them."""

    name: str
    folder: Path
    files: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    """With paths below the folder, led by `./`."""


def _study(study: GoodStudy, name: str, files: Sequence[Path]) -> Good:
    study.write()
    below = tuple(str(path.relative_to(study.folder)) for path in files)
    run = ("run", "./study.yaml", "--out", "./new", "--workers", "0")
    plan = ("plan", "./study.yaml", "--out", "./new", "--no-estimate")  # an estimate runs what run does
    check = ("data", "check", "./study.yaml")
    return Good(name, study.folder, below, (run, plan, plan, check))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def good_folders(home: Path) -> list[Good]:
    """Make all of them."""
    made = []
    for name in ("coco", "folder"):
        study = GoodStudy(home / name, name)
        study.write()
        made.append(_study(study, name, [study.file, study.annotations, *_files(study.data)]))
    made.append(_study(study, "study file", [study.file]))
    for name, (write, options) in FORMATS.items():
        study = GoodStudy(home / name.replace(" ", "-"), "coco")
        shutil.rmtree(study.data)
        root = write(study.folder / "data")
        study.study["data"] = {
            "format": name.partition(" ")[0],
            "root": str(root.relative_to(study.folder)),
            **options,
        }
        study.annotations = study.folder / "unused.json"
        made.append(_study(study, name, _files(study.folder / "data")))
    study = record(GoodStudy(home / "recorded", "coco"), lambda entries: entries)
    made.append(_study(study, "predictions", _files(study.folder / "vendor")))
    return [*made, *_finished(home)]


def _finished(home: Path) -> list[Good]:
    """A run, whose files are spoilt after it, and rules for it."""
    study = GoodStudy(home / "finished", "coco")
    study.write()
    (study.folder / "rules.yaml").write_text(yaml.safe_dump(RULES))
    with _silence(home / "said.txt"):
        for command in (
            ("run", str(study.file), "--out", str(study.run), "--workers", "0"),
            ("report", str(study.run)),
        ):
            with contextlib.suppress(SystemExit):
                adverse(command)
    files = [path for path in _files(study.run) if path.name not in ("lock", ".adverse")]
    rules = ("check", "./run", "./rules.yaml")
    commands = (
        ("report", "./run"),
        ("analyze", "./run"),
        ("verify", "./run"),
        ("compare", "./run", "./run"),
        ("bench-table", "./run", "--partial"),
        ("export", "./run", "./coco"),
        ("run", "./study.yaml", "--out", "./run", "--workers", "0"),
        ("plan", "./study.yaml", "--out", "./run", "--no-estimate"),
        ("run", "./study.yaml", "--out", "./run", "--workers", "0", "--fresh"),
        rules,
    )
    below = tuple(str(path.relative_to(study.folder)) for path in files)
    return [
        Good("run folder", study.folder, below, commands),
        Good("rules", study.folder, ("rules.yaml",), (rules,)),
    ]


@contextlib.contextmanager
def _silence(path: Path) -> Iterator[None]:
    """Send all that is printed to a file, C libraries included."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, handle in enumerate(kept, 1):
            os.dup2(handle, number)
            os.close(handle)


def fork_case(good: Good, at: Path, chance: random.Random) -> tuple[int, tuple[str, ...], list[str]]:
    """Copy, spoil, and start the command; return its process, the command and what was spoilt."""
    shutil.rmtree(at, ignore_errors=True)
    shutil.copytree(good.folder, at, symlinks=True)
    spoilt = []
    for name in chance.sample(good.files, min(len(good.files), chance.choice((1, 1, 2)))):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            spoilt.append(f"{name}: {spoil(at / name, chance)}")
    command = chance.choice(good.commands)
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process, command, spoilt
    code: object = 99
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(at)
        with Path("said.txt").open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        adverse(command)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 98)


def wait_for(process: int) -> tuple[int | None, float]:
    """Return how it ended (None: not in time) and the memory it took, in MB."""
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    handle = os.pidfd_open(process)
    try:
        ready, _, _ = select.select([handle], [], [], HANG_S * busy)
    finally:
        os.close(handle)
    if not ready:
        os.kill(process, signal.SIGKILL)
    _, status, usage = os.wait4(process, 0)
    return os.waitstatus_to_exitcode(status) if ready else None, usage.ru_maxrss / 1024


def complaint(code: int | None, text: str, growth_mb: float) -> str | None:
    """Return what is wrong with the way in which a case ended."""
    shape = re.search(r"^error: .+\n( +(where|got|wanted|fix) .*\n)*", text, re.MULTILINE)
    wrong = {
        "hang": code is None,
        f"exit code {code}": code not in (None, 0, 1, 2, 3),
        "traceback": "Traceback" in text,
        "internal error": "internal error" in text,
        "exit code 2 without an error": code == 2 and shape is None,
        "an error with exit code 0": code == 0 and shape is not None,
        f"{growth_mb:.0f} MB more memory": growth_mb > MOST_GROWTH_MB,
    }
    return next((what for what, holds in wrong.items() if holds), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="Go on with this case; --cases is the last.")
    parser.add_argument("--only", type=int, default=None, help="Run one case and show what it says.")
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    endings: Counter[str] = Counter()
    slowest = most_mb = 0.0
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        goods = good_folders(home / "good")
        _warm(goods, home)
        gc.collect()
        gc.freeze()  # what libraries with threads of their own left behind must not be finalised in a fork
        own_mb = psutil.Process().memory_info().rss / 2**20
        if chosen.only is not None:
            chosen.start, chosen.cases = chosen.only, chosen.only + 1
        progress = Progress(chosen.cases, chosen.start)
        while progress.going:
            number = progress.number
            chance = random.Random(f"{chosen.seed}/{number}")
            good = chance.choice(goods)
            at = home / "case"
            start = time.monotonic()
            process, command, spoilt = fork_case(good, at, chance)
            code, peak_mb = wait_for(process)
            if progress.stopped:
                break  # what stopped us may have stopped the case too: it is done again
            slowest, most_mb = max(slowest, time.monotonic() - start), max(most_mb, peak_mb - own_mb)
            text = (at / "said.txt").read_text(errors="replace") if (at / "said.txt").exists() else ""
            wrong = complaint(code, text, peak_mb - own_mb)
            endings[f"exit {code}"] += 1
            if wrong is not None or chosen.only is not None:
                failed += wrong is not None
                print(f"case {number}: {wrong}; {good.name}; {' '.join(command)}; {spoilt}", flush=True)
                print(text if chosen.only is not None else text[-600:], flush=True)
            progress.done(f"{failed} failed")
    ways = ", ".join(f"{ending}: {count}" for ending, count in sorted(endings.items()))
    print(f"seed {chosen.seed}; {endings.total()} cases; {ways}")
    print(f"slowest {slowest:.1f} s; most memory {most_mb:.0f} MB above the warm process")
    progress.end(f"failed: {failed}")
    sys.exit(1 if failed or progress.stopped else 0)


def _warm(goods: Sequence[Good], home: Path) -> None:
    """Run every command once unspoilt: what it imports and compiles is there for all cases."""
    here = Path.cwd()
    for good in goods:
        at = home / "case"
        for command in dict.fromkeys(good.commands):
            shutil.rmtree(at, ignore_errors=True)
            shutil.copytree(good.folder, at)
            os.chdir(at)
            code: object = 0
            with _silence(home / "said.txt"):
                try:
                    adverse(command)
                except SystemExit as end:
                    code = end.code
            if code not in (0, None, 3):
                sys.exit(f"{good.name}: {command} ended with {code}:\n{(home / 'said.txt').read_text()}")
    os.chdir(here)


if __name__ == "__main__":
    main()
