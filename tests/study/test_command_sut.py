"""A program as a system of a study: its limits come from the study, its failures cost one frame each."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import cv2
import numpy as np
import psutil
import pyarrow.parquet as pq

from adverse.study.engines import Stop
from adverse.study.engines.local import LocalEngine
from adverse.study.run import run_study
from adverse.study.spec import read_study
from small_study import write_study
from watching import Quiet

PROGRAM = """
import hashlib, json, os, signal, sys, time
def say(message):
    print("@adverse " + json.dumps(message), flush=True)
say({"protocol": 1, "classes": ["person"], "ready": True})
for line in iter(sys.stdin.buffer.readline, b""):
    request = json.loads(line)
    pixels = [sys.stdin.buffer.read(i["width"] * i["height"] * 3) for i in request["images"]]
    seen = hashlib.sha256(pixels[0]).hexdigest()
    if seen == sys.argv[1]:
        time.sleep(600)
    if seen == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGSEGV)
    say({"id": request["id"], "detections": [{"boxes": [], "scores": [], "labels": []} for _ in pixels]})
"""


def test_a_hang_and_a_crash_cost_one_frame_each_and_no_worker(tmp_path: Path) -> None:
    study = write_study(tmp_path, frames=6, logs=1, size=(64, 48), sleep_s=0, suffix=".png")
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    frames = [cv2.imread(str(tmp_path / "data" / "log0" / f"000{k}.png")) for k in (1, 3)]
    hang, crash = (hashlib.sha256(np.asarray(f, np.uint8)[:, :, ::-1].tobytes()).hexdigest() for f in frames)
    study.write_text(
        "name: limits\ndata: {format: folder, root: data}\n"
        f"suts: [{{name: mine, adapter: command, argv: ['{sys.executable}', program.py, '{hang}', '{crash}'],"
        " cwd: ., timeout_s: 2, memory_limit_mb: 2000}]\n",
        "utf-8",
    )
    watch = Quiet()
    ran = run_study(
        read_study(study),
        tmp_path / "run",
        LocalEngine(1, tmp_path / "run" / "logs"),
        watch=watch,
        stop=Stop(),
    )
    rows = [
        row for path in (tmp_path / "run" / "detections").iterdir() for row in pq.read_table(path).to_pylist()
    ]
    faults = {row["frame"]: row["reason"] for row in rows if row["status"] == "fault"}
    assert ran.status == "complete"
    assert len(rows) == 6
    assert sorted(faults) == ["log0/0001", "log0/0003"]
    assert "after 2 s" in faults["log0/0001"]
    assert "SIGSEGV" in faults["log0/0003"]
    assert not [note for note in watch.notes if "worker" in note]
    assert not [one for one in psutil.process_iter(["cmdline"]) if hang in (one.info["cmdline"] or [])]
