"""Flip bytes anywhere in a finished, signed run folder: `verify` finds each, no reading command accepts one.

Every flip is of one bit of one file: half of them anywhere by bytes, half in a file drawn from all. Each is
followed by `verify` and by every command that reads a run, in this process; each must end with exit code 2
and name the file. Only a command that makes the file again may go on: what it leaves must verify, and not
hold the flipped byte. Such commands are run on a share of the flips (--makers), as they take seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import adverse
from adverse.cli import main as command
from adverse.errors import AdverseError
from adverse.pages.view.session import ExploredRun
from progress import Progress
from small_study import write_study

RULES = {"rules": [{"measure": "faults", "at_most": 0}]}
REFUSED = 2


def said(*args: str | Path) -> tuple[int, str]:
    """Run a command in this process; return its exit code and all that it printed."""
    heard = io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        try:
            command([str(arg) for arg in args])
        except SystemExit as end:
            code = end.code or 0
    return int(str(code)), heard.getvalue()


def opened(opener: Callable[[Path], object], run: Path) -> tuple[int, str]:
    """Open a run from Python; return what the command line would."""
    try:
        opener(run)
    except AdverseError as error:
        return error.exit_code, str(error)
    return 0, ""


def finished_run(home: Path) -> Path:
    """Make a run with everything in its folder: results, report, verdicts, a benchmark, a signature."""
    study = write_study(home, frames=3, logs=4, size=(64, 48), sleep_s=0, suffix=".png")
    text = study.read_text().replace("first-look", "gaussian_blur(sigma_px=2), brightness(scale=0.5)")
    study.write_text(text)
    run = home / "run"
    (home / "rules.yaml").write_text(json.dumps(RULES))
    for args in (
        ("run", study, "--out", run, "--workers", "1"),
        ("check", run, home / "rules.yaml", "--save"),
        ("report", run),
        ("seal", run, "--new-key", home / "key"),
        ("verify", run, "--key", home / "key.pub"),
    ):
        code, text = said(*args)
        if code:
            sys.exit(f"adverse {args[0]} ended with {code}:\n{text}")
    return run


def readers(run: Path) -> dict[str, tuple[Callable[[], tuple[int, str]], tuple[str, ...]]]:
    """Return every command that reads a run, and how the names of files begin that it makes again."""
    home = run.parent
    rules = home / "rules.yaml"
    return {
        "report": (lambda: said("report", run), ("report",)),
        "view": (lambda: opened(ExploredRun, run), ()),
        "open_run": (lambda: opened(adverse.open_run, run), ()),
        "export": (lambda: said("export", run, home / "coco"), ()),
        "compare": (lambda: said("compare", run, run), ()),
        "check": (lambda: said("check", run, rules), ()),
        "check --save": (lambda: said("check", run, rules, "--save"), ("verdicts/rules",)),
        "bench-table": (lambda: said("bench-table", run, "--partial"), ()),
        "predict": (
            lambda: said("predict", run, "--simple", "gaussian_blur", "--contextual", "brightness"),
            (),
        ),
        "analyze": (lambda: said("analyze", run), ("results/", "report")),
        "seal": (lambda: said("seal", run, "--key", home / "key"), ()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--makers", type=float, default=0.05, help="share of flips that makers are run on")
    parser.add_argument("--start", type=int, default=0, help="go on with this flip; --flips is the last")
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        run = finished_run(home)
        shutil.copytree(run, home / "pristine")
        sizes = {path: path.stat().st_size for path in sorted(run.rglob("*")) if path.is_file()}
        files = [path for path, size in sizes.items() if size]
        commands = readers(run)
        progress = Progress(chosen.flips, chosen.start)
        while progress.going:
            number = progress.number
            chance = random.Random(f"{chosen.seed}/{number}")
            path = (
                chance.choice(files)
                if number % 2
                else chance.choices(files, [sizes[file] for file in files])[0]
            )
            at, bit = chance.randrange(sizes[path]), 1 << chance.randrange(8)
            before = path.read_bytes()
            flipped = before[:at] + bytes([before[at] ^ bit]) + before[at + 1 :]
            path.write_bytes(flipped)
            name = path.relative_to(run).as_posix()
            what = f"{name}, byte {at}, bit {bit}"
            counts["flips"] += 1
            counts[f"in {name.split('/')[0]}"] += 1
            judge(
                said("verify", run, "--no-inputs"), path, f"verify: {what}", "found by verify", counts, wrong
            )
            for label, (call, makes) in commands.items():
                if not makes or not name.startswith(makes):
                    judge(call(), path, f"{label}: {what}", "refused by commands", counts, wrong)
                elif chance.random() < chosen.makers:
                    code, text = call()
                    mended = said("verify", run, "--no-inputs")[0] == 0 and path.read_bytes() != flipped
                    counts["made again by the command that makes it" if mended else "accepted"] += 1
                    if not mended:
                        wrong.append(f"{label}: {what}: {code} {text[:300]}")
                    shutil.rmtree(run)
                    shutil.copytree(home / "pristine", run)
                    path.write_bytes(flipped)
            path.write_bytes(before)
            progress.done(f"{len(wrong)} wrong")
        code, text = said("verify", run, "--no-inputs", "--key", home / "key.pub")
    print(f"seed {chosen.seed}, {len(files)} files, {sum(sizes.values())} bytes; {len(commands)} commands")
    for label, count in sorted(counts.items(), key=lambda item: (item[0].startswith("in "), item[0])):
        print(f"  {label}: {count}")
    print(f"put back, the run verifies: {'yes' if code == 0 else text}")
    for line in wrong[:20]:
        print(f"  {line}")
    progress.end(f"not found, accepted or internal error: {len(wrong)}")
    sys.exit(bool(wrong or code or progress.stopped))


def judge(
    ended: tuple[int, str], path: Path, what: str, good: str, counts: Counter[str], wrong: list[str]
) -> None:
    """Count a command that refused a file by name; remember one that did not."""
    code, text = ended
    if code == REFUSED and path.name in text and "internal error" not in text and "Traceback" not in text:
        counts[good] += 1
    else:
        wrong.append(f"{what}: exit code {code}: {text[:300]}")


if __name__ == "__main__":
    main()
