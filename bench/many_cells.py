"""A study of ten million cells, planned and resumed without running it: CPU time and memory of each step.

The run folder is generated: its journal holds every cell but those of the last units, as a run that was
stopped shortly before its end leaves it. Its detections are one file of a few bytes for each unit, which a
resume hashes as those of any run. Nothing is asked of any SUT.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from adverse.store.folder import RunFolder
from adverse.store.journal import RunEntry, RunJournal, checked
from adverse.study.engines import Silent, Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.environment import environment, environment_id
from adverse.study.run import plan_study, run_study
from adverse.study.spec import read_study

UNIT_FRAMES = 8

PLUGIN = '''
from pathlib import Path

import numpy as np
from adverse import Dataset, Detections, Frame, Log, Truth, dataset, sut

class Drawn:
    """Stands where a frame has an image; nobody looks."""

    def __init__(self, path, number):
        self.path = path
        self.recipe = self.number = str(number)

    def __call__(self):
        return np.full((8, 8, 3), int(self.recipe) % 251, np.uint8)

@dataset
def nowhere(root: Path, logs: int = 10, frames: int = 100):
    """Logs of frames that are in no file."""
    path, truth = root / "one", Truth.none()

    def frame(log, n):
        number = log * frames + n
        return Frame(f"log{log}/{n}", f"log{log}", n, Drawn(path, number), truth, number)

    made = (Log(f"log{log}", tuple(frame(log, n) for n in range(frames))) for log in range(logs))
    return Dataset("nowhere", ("person",), tuple(made))

class Nothing:
    classes = ("person",)
    def detect(self, images):
        return [Detections.none() for _ in images]

@sut
def nothing(number: int = 0):
    """See nothing."""
    return Nothing()
'''
STUDY = """name: many
plugins: [nowhere.py]
data: {{format: nowhere, root: ., logs: {logs}, frames: {frames}}}
suts: [{suts}]
mutations: [{{brightness: {{scale: [{scales}]}}}}]
"""
FRAMES_PER_LOG = 1000
LEFT = 100
"""Units that a resume finds to be done."""


class Stopped(Stop):
    """A wish to stop that comes before anything is done."""

    def __init__(self) -> None:
        super().__init__()
        self.soft = True


def write_study(folder: Path, *, cells: int, settings: int, suts: int) -> Path:
    """Write a study of about so many cells."""
    logs = max(round(cells / settings / suts * UNIT_FRAMES / FRAMES_PER_LOG), 1)
    (folder / "nowhere.py").write_text(PLUGIN)
    (folder / "one").write_bytes(b"one")
    path = folder / "study.yaml"
    path.write_text(
        STUDY.format(
            logs=logs,
            frames=FRAMES_PER_LOG,
            suts=", ".join(f"{{name: sut{k}, adapter: nothing, number: {k}}}" for k in range(suts)),
            scales=", ".join(f"{0.05 * (k + 1):g}" for k in range(settings - 1)),
        )
    )
    return path


def planned(study: Path, out: Path) -> str:
    """Do what `adverse plan` does, and say what there is."""
    plan = plan_study(read_study(study), out)
    cells = sum(len(unit.cells) for unit in plan.units)
    left = sum(1 for _ in plan.to_do)
    return f"{cells} cells in {len(plan.units)} units, {left} units to do"


def begun(study: Path, out: Path) -> str:
    """Do what `adverse run` does before the first unit and after the last."""
    done = run_study(read_study(study), out, InlineEngine(), watch=Silent(), stop=Stopped())
    cells = pq.read_metadata(RunFolder(out).cells).num_rows
    return f"{done.status}, {cells} cells finished"


def fill(study: Path, out: Path) -> str:
    """Write the journal and the files of a run that was stopped shortly before its end."""
    plan, folder = plan_study(read_study(study), out), RunFolder(out)
    settings, suts = ([one.id for one in plan.job.settings], [one.name for one in plan.job.suts])
    journal = RunJournal(folder.journal)
    name = environment_id(environment())
    with folder.journal.open("ab") as lines:
        for unit in plan.units[:-LEFT]:
            data = unit.id.encode()
            (folder.detections / f"{unit.id}.parquet").write_bytes(data)
            cells = tuple((cell.key, settings[cell.setting], suts[cell.sut]) for cell in unit.cells)
            entry = RunEntry(f"{unit.id}.parquet", hashlib.sha256(data).hexdigest(), cells, {}, name)
            lines.write(checked(json.dumps(journal.plain(entry), separators=(",", ":"))))
    return f"{folder.journal.stat().st_size / 1e6:.0f} MB of journal"


STEPS = {"plan": planned, "begin": begun, "fill": fill, "plan again": planned, "resume": begun}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000_000)
    parser.add_argument("--settings", type=int, default=20)
    parser.add_argument("--suts", type=int, default=12)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        print(f"{STEPS[chosen.step](chosen.folder / 'study.yaml', chosen.folder / 'run')}")
        return
    with tempfile.TemporaryDirectory() as name:
        write_study(Path(name), cells=chosen.cells, settings=chosen.settings, suts=chosen.suts)
        for step in STEPS:
            command = [sys.executable, __file__, "--step", step, "--folder", name]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            said = process.stdout.read().strip() if process.stdout else ""
            _, status, used = os.wait4(process.pid, 0)
            if status:
                raise SystemExit(f"{step} failed")
            cpu_s, memory_gb = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
            print(f"{step:10}  {said:55}  {cpu_s:7.1f} s of CPU  {memory_gb:5.2f} GB", flush=True)


if __name__ == "__main__":
    main()
