"""What SUTs were asked, by their own count and by ours, whatever becomes of the workers meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from numba.core import event

from adverse.step_clock import GO, HOLD, Steps, late_step
from adverse.study.engines import local

from .cases import INCOMPLETE, PASS
from .command import adverse_here
from .good_study import GoodStudy

SUTS = '''
import ctypes, os, signal, time
from pathlib import Path
import numpy as np
from adverse import mutation, sut

HERE = Path(__file__).parent
NOTHING = (np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64))


def write(name, word):
    descriptor = os.open(HERE / f"{name}.requests", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{word}\\n".encode())
    os.close(descriptor)


def requests(name):
    path = HERE / f"{name}.requests"
    return path.read_text().split() if path.exists() else []


class Witness:
    """Fails every third request, dies at a picture or once, or is killed; writes every request down."""

    classes = ("person",)

    def __init__(self, name, way):
        self.name, self.way = name, way

    def detect(self, images):
        pictures = [round(int(image[0, 0, 0]) / 10) for image in images]
        if self.way == "third" and len(requests(self.name)) % 3 == 2:
            write(self.name, "failed")
            raise RuntimeError("every third request")
        if self.way == "dies" and 5 in pictures:
            write(self.name, "failed")
            ctypes.string_at(0)
        if self.way == "dies at 5 and 7" and {5, 7} & set(pictures):
            write(self.name, "failed")
            ctypes.string_at(0)
        if self.way == "dies once" and 6 in pictures and "failed" not in requests(self.name):
            write(self.name, "failed")
            ctypes.string_at(0)
        if self.way == "interrupts" and 6 in pictures and "failed" not in requests(self.name):
            write(self.name, "failed")
            raise KeyboardInterrupt
        if self.way == "killed" and 3 in pictures and "cut" not in requests(self.name):
            write(self.name, "cut")
            os.kill(os.getpid(), signal.SIGKILL)
        if self.way == "mends" and 2 in pictures and not (HERE / "go").exists():
            write(self.name, "failed")
            raise RuntimeError("not yet")
        if self.way == "outage" and 4 in pictures and not (HERE / "go").exists():
            raise ConnectionRefusedError("the backend is away")
        if self.way == "outage" and len(requests(self.name)) % 3 == 2:
            write(self.name, "failed")
            raise RuntimeError("every third request")
        write(self.name, "answered")
        return [NOTHING for _ in images]


@sut
def witness(*, name_of_log: str, way: str) -> Witness:
    """Write down what is asked."""
    return Witness(name_of_log, way)


@mutation
def stuck(image):
    """Wait on picture 2 until the test says go."""
    while round(int(image[0, 0, 0]) / 10) == 2 and not (HERE / "go").exists():
        time.sleep(0.01)
    return 255 - image


@mutation
def hoards(image):
    """Take all memory on picture 3."""
    held = []
    while round(int(image[0, 0, 0]) / 10) == 3:
        held.append(np.ones(8 << 20))
        time.sleep(0.01)
    return 255 - image


@mutation
def compiles(image):
    """Take three seconds on picture 2, as numba says to compile."""
    if round(int(image[0, 0, 0]) / 10) == 2:
        from numba.core import event
        with event.trigger_event("numba:compile"):
            time.sleep(3)
    return 255 - image
'''


def witness(name: str, way: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "adapter": "witness", "name_of_log": name, "way": way, **more}


@pytest.fixture
def study(coco: GoodStudy) -> GoodStudy:
    (coco.folder / "witness.py").write_text(SUTS)
    coco.study["plugins"] = ["witness.py"]
    return coco


def own_counts(study: GoodStudy, name: str) -> tuple[int, int]:
    """Return the requests that a SUT got and finished, and those that it failed, by its own log."""
    words = (study.folder / f"{name}.requests").read_text().split()
    return len(words) - words.count("cut"), words.count("failed")


@pytest.mark.fault(34, 35)
@pytest.mark.parametrize(("workers", "batch"), [(0, 3), (2, 3), (2, 1)])
def test_attempts_are_the_requests_that_the_sut_got(study: GoodStudy, workers: int, batch: int) -> None:
    """A failed batch is one. None is lost or doubled when workers die beside it or are killed."""
    study.study["suts"] = [witness("flaky", "third", batch=batch)]
    if workers:
        study.study["suts"] += [witness("dies", "dies", batch=batch), witness("killed", "killed")]
        study.study.pop("mutations")  # one setting is enough: each death is a process to start
    said = study.adverse(workers=workers)
    counts = study.summary()["counts"]
    for sut in counts:
        assert (counts[sut]["attempts"], counts[sut]["failed_attempts"]) == own_counts(study, sut), sut
    attempts, failed = own_counts(study, "flaky")
    assert failed >= 2
    retried = counts["flaky"]["retried"]  # none where every failed batch had an image that failed alone too
    how = (
        f"flaky is flaky: {retried} of {attempts} " if retried else f"{failed} of {attempts} attempts failed"
    )
    said.expect(PASS, how, f"({failed / attempts:.1%})")
    rules = study.folder / "rules.yaml"
    rate = {"measure": "fault_rate", "at_most": 0.1, "sut": "flaky", "bound": "point"}
    rules.write_text(json.dumps({"rules": [rate]}))
    gate = adverse_here("check", study.run, rules, "--json", study.folder / "verdicts.json")
    (verdict,) = json.loads((study.folder / "verdicts.json").read_text())
    assert (gate.code, verdict["measured"]) == (1, failed / attempts)


def gate(study: GoodStudy) -> list[tuple[str, float]]:
    """Return the outcome for each SUT, none of which must fail once, and its fault rate."""
    rules = study.folder / "rules.yaml"
    rules.write_text(json.dumps({"rules": [{"measure": "fault_rate", "at_most": 0, "bound": "point"}]}))
    adverse_here("check", study.run, rules, "--json", study.folder / "verdicts.json")
    verdicts = json.loads((study.folder / "verdicts.json").read_text())
    return [(verdict["outcome"], verdict["measured"]) for verdict in verdicts]


@pytest.mark.fault(35)
@pytest.mark.parametrize(
    "beside", [{"way": "good"}, {"way": "dies at 5 and 7"}, {"way": "dies", "memory_limit_mb": 4000}]
)
def test_a_death_that_does_not_repeat_is_counted(study: GoodStudy, beside: dict[str, Any]) -> None:
    """Where others shared the worker, nobody can tell whose it was, and it counts for each of them.

    Who was in a process of its own did not do it, and takes no blame although it dies later.
    """
    study.study |= {"suts": [witness("once", "dies once"), witness("beside", **beside)], "unit_frames": 2}
    study.study.pop("mutations")
    said = study.adverse(workers=1)
    counts = study.summary()["counts"]
    attempts, failed = own_counts(study, "once")
    assert (counts["once"]["attempts"], counts["once"]["failed_attempts"], failed) == (attempts, 1, 1)
    kind = "unattributed" if beside["way"] == "good" else "crash"
    said.expect(PASS, f"once is flaky: 1 of {attempts} attempts", f"Kinds: 1 {kind}", "signal SIGSEGV")
    unattributed = int(beside["way"] == "good")
    attempts, failed = own_counts(study, "beside")
    beside_counts = counts["beside"]["attempts"], counts["beside"]["failed_attempts"]
    assert beside_counts == (attempts + unattributed, failed + unattributed)
    assert [outcome for outcome, _ in gate(study)] == ["FAIL", "FAIL"]
    adverse_here("verify", study.run).expect(PASS)


@pytest.mark.parametrize("more", [{}, {"memory_limit_mb": 4000}])
def test_an_interrupt_that_a_sut_raises_is_its_fault(study: GoodStudy, more: dict[str, Any]) -> None:
    study.study["suts"] = [witness("interrupts", "interrupts", **more)]
    said = study.adverse(workers=1)
    attempts, failed = own_counts(study, "interrupts")
    said.expect(PASS, f"flaky: 1 of {attempts} attempts", "Kinds: 1 exception", "KeyboardInterrupt")
    assert gate(study) == [("FAIL", failed / attempts)]


def test_a_mutation_that_does_not_end_costs_its_frame(study: GoodStudy) -> None:
    """Until the limit is raised: then it is tried again."""
    study.study |= {"suts": [witness("good", "good")], "mutations": ["stuck"], "mutation_timeout_s": 2}
    said = study.adverse("run", "--tables", workers=1)
    late = "the mutation was ended: it took longer than 2 s. Fix: Make the mutation faster, or raise"
    said.expect(3, "stuck: the mutation was ended on 1 frame", late, "Fix: mend the mutation stuck")
    assert "mend the frames" not in said.text
    study.adverse("plan").expect(PASS, "16 done, 0 to do")
    (study.folder / "go").touch()
    study.study |= {"mutation_timeout_s": 600}
    study.rewrite()
    study.adverse("plan").expect(PASS, "12 done, 4 to do")
    study.adverse(workers=1).expect(PASS, "16/16 images")
    assert study.summary()["counts"]["good"]["quarantined"] == 0


def test_a_mutation_that_takes_all_memory_costs_its_frame(
    study: GoodStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report does not try it either: there, nothing would end it."""
    monkeypatch.setattr(local, "MEMORY_SHARE", (700 << 20) / psutil.virtual_memory().total)
    study.study |= {"suts": [witness("good", "good")], "mutations": ["hoards"]}
    said = study.adverse("run", "--tables", workers=1)
    ended = ("hoards: the mutation was ended on 1 frame", "it used more than ", "MB of memory")
    said.expect(3, *ended, "Fix: mend the mutation hoards")


def test_faults_are_asked_again_on_request_only_and_no_attempt_is_forgotten(study: GoodStudy) -> None:
    """However often it is run, the gate sees every request: by the SUT's own log, over all runs."""
    study.study["suts"] = [witness("mends", "mends")]
    study.adverse().expect(PASS, "mends: failed on 2 of 16 images")
    before = own_counts(study, "mends")
    study.adverse().expect(PASS, "mends: failed on 2 of 16 images")
    assert own_counts(study, "mends") == before
    study.adverse("run", "--retry-faults").expect(PASS, "mends: failed on 2 of 16 images")
    (study.folder / "go").touch()
    said = study.adverse("run", "--retry-faults")
    attempts, failed = own_counts(study, "mends")
    said.expect(PASS, "8 of 16 images were done before", f"flaky: {failed} of {attempts} attempts failed")
    counts = study.summary()["counts"]["mends"]
    assert (counts["fault"], counts["attempts"], counts["failed_attempts"]) == (0, attempts, failed)
    rules = study.folder / "rules.yaml"
    rules.write_text(json.dumps({"rules": [{"measure": "fault_rate", "at_most": 0.01, "bound": "point"}]}))
    assert adverse_here("check", study.run, rules).code == 1
    adverse_here("verify", study.run).expect(PASS)
    study.adverse("run", "--retry-faults").expect(PASS, "nothing to ask again")


@pytest.mark.parametrize(("batch", "unit_frames"), [(1, 4), (3, 8)])
def test_what_was_asked_before_an_outage_counts(study: GoodStudy, batch: int, unit_frames: int) -> None:
    """Cells that it cut short are asked anew when it is over, also after two of them; each request counts."""
    study.study |= {"suts": [witness("flaky", "outage", batch=batch), witness("good", "", batch=batch)]}
    study.study["unit_frames"] = unit_frames
    for _ in range(2):
        assert study.adverse().code == INCOMPLETE
    (study.folder / "go").touch()
    study.adverse().expect(PASS)
    counts = study.summary()["counts"]
    assert own_counts(study, "flaky")[0] > own_counts(study, "good")[0]
    for sut in counts:
        assert (counts[sut]["attempts"], counts[sut]["failed_attempts"]) == own_counts(study, sut), sut
    adverse_here("verify", study.run).expect(PASS)


HANGS = {
    "loading": "import time\nwhile True:\n    print('still here', flush=True)\n    time.sleep(0.1)\n",
    "checking": "import time\nfrom adverse import mutation\n\n@mutation\ndef naps(image):\n"
    "    '''Nap.'''\n    time.sleep(1000)\n",
}


@pytest.mark.parametrize("when", HANGS)
def test_a_plug_in_that_hangs_is_ended(tmp_path: Path, when: str) -> None:
    """Also one that prints all the time."""
    file = tmp_path / "hangs.py"
    file.write_text(HANGS[when])
    words = {"loading": "loading the file", "checking": "the checks of mutation naps"}[when]
    said = adverse_here("check-plugin", file, "--timeout-s", "0.5")
    said.expect(2, "did not finish in time", f"no end of {words} after 0.5 s", "--timeout-s")


def test_start_up_and_compiling_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands until a first step is named, and while numba compiles, however long that takes."""
    heard, told = os.pipe()
    ended = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], text=True)

    def work() -> None:
        time.sleep(0.3)
        os.write(told, b"a step\n" + HOLD + b"\n")
        time.sleep(0.5)
        os.close(told)

    with ended, open(heard, "rb", buffering=0) as pipe:  # noqa: PTH123
        thread = threading.Thread(target=work)
        thread.start()
        assert late_step(pipe, ended, 0.2) is None
        thread.join()
        ended.kill()
    steps = Steps(os.open(os.devnull, os.O_WRONLY))
    told_lines: list[bytes] = []
    monkeypatch.setattr(steps, "_tell", told_lines.append)
    steps.hold_while_compiling()
    with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
        told_lines.append(b"compiling")
    assert told_lines == [HOLD, b"compiling", GO]


COMPILES = """
import sys
from adverse.step_clock import watch_compiling
told = []
watch_compiling(lambda: told.append("begins"), lambda: told.append("ends"))
assert "numba" not in sys.modules
import numba
numba.njit(lambda number: number + 1)(1)
print(told, [finder for finder in sys.meta_path if "adverse" in type(finder).__module__])
"""


def test_compiling_is_heard_of_also_where_numba_is_imported_later() -> None:
    ran = subprocess.run([sys.executable, "-c", COMPILES], capture_output=True, text=True, check=True)
    assert ran.stdout == "['begins', 'ends'] []\n"


def test_a_mutation_that_is_compiled_takes_no_longer_for_that(study: GoodStudy) -> None:
    """Compiling alone takes longer here than the mutation may; numba is imported by the mutation."""
    study.study |= {"suts": [witness("good", "good")], "mutations": ["compiles"], "mutation_timeout_s": 2}
    study.adverse(workers=1).expect(PASS, "16/16 images")
    assert study.summary()["counts"]["good"]["quarantined"] == 0
