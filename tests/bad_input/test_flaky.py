"""SUTs that answer only when they are asked again, never, or not at present: none of them looks perfect."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from adverse.suts import free_memory

from .cases import CANNOT_RUN, INCOMPLETE, PASS
from .command import Said, adverse_here
from .good_study import GoodStudy


def requests(study: GoodStudy) -> list[str]:
    """Return what the SUT itself wrote down of every request that it got: the witness."""
    return (study.folder / "requests").read_text().split()


def held_to(study: GoodStudy, *rules: dict[str, Any]) -> Said:
    path = study.folder / "rules.yaml"
    path.write_text(json.dumps({"rules": rules}))
    return adverse_here("check", study.run, path, "--json", study.folder / "verdicts.json")


@pytest.mark.parametrize("mood", ["third nan", "third exception"])
def test_every_failed_attempt_is_counted_and_shown(coco: GoodStudy, mood: str) -> None:
    coco.sut(mood=mood)
    said = coco.adverse()
    failed, attempts = requests(coco).count("failed"), len(requests(coco))
    assert failed > 5
    flaky = f"{failed} of {attempts} attempts failed and were retried"
    said.expect(PASS, f"probe is flaky: {flaky}", " retried")
    counts = coco.summary()["counts"]["probe"]
    assert (counts["ok"], counts["fault"], counts["retried"]) == (16, 0, failed)
    kind = "bad answer" if "nan" in mood else "exception"
    said.expect(PASS, f"({failed / attempts:.1%})", f"Kinds: {failed} {kind}", "logs/sut-probe.log")
    assert (counts["attempts"], counts["failed_attempts"]) == (attempts, failed)
    assert flaky in (coco.run / "report.html").read_text()
    rows = pq.read_table(coco.run / "results" / "attempts.parquet").to_pylist()
    assert [(row["kind"], row["images"], row["answered"]) for row in rows] == [(kind, 1, True)] * failed
    log = (coco.run / "logs" / "sut-probe.log").read_text()
    assert log.count("== frame ") == failed
    assert 'href="logs/sut-probe.log"' in (coco.run / "report.html").read_text()
    assert ("Traceback (most recent call last)" in log) == ("exception" in mood)
    held_to(coco, {"measure": "faults", "at_most": 0}).expect(PASS, "fail even after retries")
    rules: list[dict[str, Any]] = [
        {"measure": "recall", "setting": "baseline", "at_least": 0.1},
        {"measure": "faults", "at_most": 0},
        {"measure": "quarantined", "at_most": 0},
    ]
    gate = held_to(coco, *rules)
    gate.expect(PASS, f"- probe is flaky: {flaky}")
    assert gate.text.count("flaky") == 1  # once for the SUT, however many rules
    *about_it, about_frames = json.loads((coco.folder / "verdicts.json").read_text())
    assert all(flaky in verdict["remarks"][0] for verdict in about_it)
    assert about_frames["remarks"] == []
    assert held_to(coco, {"measure": "fault_rate", "at_most": 0.05}).code == 1  # a third, of 16 images
    (verdict,) = json.loads((coco.folder / "verdicts.json").read_text())
    assert verdict["measured"] == failed / attempts


@pytest.mark.parametrize("mood", ["third segfault", "third hang"])
def test_an_attempt_that_takes_its_process_down_is_counted(coco: GoodStudy, mood: str) -> None:
    """Also the first one, which takes the worker down and has its unit done again."""
    coco.sut(mood=mood, timeout_s=1)
    coco.study.pop("mutations")
    coco.truth |= {name: coco.truth[name][2:6] for name in ("images", "annotations")}  # two show a person
    said = coco.adverse(workers=1)
    failed = requests(coco).count("failed")
    assert failed >= 3
    counts = coco.summary()["counts"]["probe"]
    assert counts["failed_attempts"] == failed == counts["retried"] + 2 * counts["fault"]
    assert counts["attempts"] == 4 + 4 + counts["retried"] + counts["fault"]  # each is asked about twice
    said.expect(PASS, f"probe is flaky: {counts['retried']} of {counts['attempts']} attempts", "a worker ")


def test_a_bad_picture_in_a_batch_makes_no_other_flaky(coco: GoodStudy) -> None:
    coco.sut(mood="exception", at=2, batch=3)
    said = coco.adverse()
    said.expect(PASS, "probe: failed on 2 of 16 images", "* in a table: the SUT failed on some")
    assert "flaky" not in said.text
    counts = coco.summary()["counts"]["probe"]
    assert (counts["failed_attempts"], counts["retried"]) == (6, 0)  # under identity its batch is asked twice


@pytest.mark.parametrize("mood", ["segfault", "exception"])
def test_attempts_do_not_depend_on_who_found_out(coco: GoodStudy, tmp_path: Path, mood: str) -> None:
    """In a worker that dies of it, beside others, or in a process of its own from the start."""
    coco.study["unit_frames"] = 2
    coco.study.pop("mutations")
    coco.sut(mood=mood, at=2, batch=2)
    coco.study["suts"].append({"name": "alone", "adapter": "probe", "mood": mood, "at": 2, "batch": 2})
    coco.study["suts"][1]["memory_limit_mb"] = 4000
    coco.write()
    found = []
    for workers in (1, 2):
        out = tmp_path / f"run{workers}"
        adverse_here("run", coco.file, "--out", out, "--workers", str(workers)).expect(PASS)
        found.append((out / "results" / "summary.json").read_bytes())
        counts = json.loads(found[-1])["counts"]
        assert counts["probe"] == counts["alone"]
        assert (counts["probe"]["fault"], counts["probe"]["failed_attempts"]) == (1, 4)
    assert found[0] == found[1]


def test_a_sut_that_never_answers_is_no_result(coco: GoodStudy) -> None:
    coco.sut(mood="exception")
    coco.study["suts"].append({"name": "good", "adapter": "probe"})
    clear = "probe: failed on 16 of 16 images, on every one; its figures are no result. Commonest fault:"
    coco.adverse().expect(INCOMPLETE, clear, "RuntimeError: no CUDA device", "Fix the system")
    coco.adverse("analyze").expect(INCOMPLETE, clear)
    area = {"measure": "area", "level": "image/ROC_B", "setting": "baseline", "at_least": 0, "bound": "point"}
    held_to(coco, area).expect(INCOMPLETE, "1 PASS", "1 INCONCLUSIVE", "failed on every image")


@pytest.mark.parametrize(
    ("mood", "workers", "words"),
    [
        ("refused", 0, ("has no connection", "the backend did not answer", "Start the server")),
        ("refused", 1, ("has no connection", "the backend did not answer", "Start the server")),
        ("no memory", 0, ("ran out of memory", "Unable to allocate 7 PiB", "memory_limit_mb")),
    ],
)
def test_what_the_machine_lacks_is_not_kept_as_an_answer(
    coco: GoodStudy, mood: str, words: tuple[str, ...], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_memory, "SHORT_SHARE", 1.0)
    coco.sut(mood=mood, at=2)
    coco.study["suts"].append({"name": "good", "adapter": "probe"})
    said = coco.adverse(workers=workers)
    said.expect(INCOMPLETE, "SUT 'probe' could not be reached; 8 of 16 images are left to ask", *words)
    assert "SUT 'good' could not" not in said.text
    coco.adverse("plan").expect(PASS, "32 images to judge, 24 done, 8 to do")
    if mood == "refused":
        (coco.folder / "go").touch()
        coco.adverse(workers=workers).expect(PASS, "24 of 32 images were done before")
        counts = coco.summary()["counts"]
        asked = {sut: counts[sut].pop("attempts") for sut in ("probe", "good")}
        assert counts["probe"].pop("outages") > counts["good"].pop("outages") == 0  # of the run before, too
        assert counts["probe"] == counts["good"]
        assert asked["probe"] > asked["good"]  # what it answered before the outage was asked again


@pytest.mark.fault(35)
@pytest.mark.skipif(free_memory.memory_is_short(), reason="a kill may be the machine's where memory is short")
def test_a_system_that_is_killed_while_memory_is_free_has_failed(coco: GoodStudy) -> None:
    """Its worker first, which tells nothing, then the process of its own."""
    coco.sut(mood="killed", at=2)
    coco.study.pop("mutations")
    coco.adverse(workers=1).expect(PASS, "probe: failed on 1 of 8 images", "SIGKILL")


@pytest.mark.parametrize("more", [{}, {"memory_limit_mb": 4000}])
def test_want_of_memory_is_the_fault_of_a_system_where_much_is_free(
    coco: GoodStudy, more: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever raises MemoryError in a good hour has failed, and the gate hears of it."""
    monkeypatch.setattr(free_memory, "SHORT_SHARE", 0.0)
    monkeypatch.setattr(free_memory, "SHORT_BYTES", 0)
    coco.sut(mood="no memory", at=2, **more)
    coco.study.pop("mutations")
    said = coco.adverse(workers=1 if more else 0)
    said.expect(PASS, "probe: failed on 1 of 8 images", "Unable to allocate 7 PiB", "memory")
    assert more or "of which much was free" in said.text
    assert held_to(coco, {"measure": "fault_rate", "at_most": 0, "bound": "point"}).code == 1


def test_memory_is_short_by_machine_container_and_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def machine(free_gb: float) -> None:
        facts = SimpleNamespace(available=free_gb * 2**30, total=16 * 2**30)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: facts)

    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (unlimited, unlimited))
    monkeypatch.setattr(free_memory, "CGROUPS", tmp_path)
    machine(1.5)
    assert free_memory.memory_is_short()  # a tenth of 16 GB is 1.6
    machine(1.7)
    assert not free_memory.memory_is_short()
    monkeypatch.setattr(Path, "read_text", lambda path: GROUP[path.name])
    assert free_memory.memory_is_short()  # 4 GB, of which 3.5 are used besides the cache
    monkeypatch.setitem(GROUP, "memory.max", "max")
    assert not free_memory.memory_is_short()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 40, 1 << 40))
    assert free_memory.memory_is_short()


GROUP = {
    "cgroup": "0::/job\n",
    "memory.max": str(4 << 30),
    "memory.current": str(9 << 29),
    "memory.stat": f"anon 1\nfile {1 << 30}\n",
}


def test_a_rate_is_from_0_to_1(done: GoodStudy) -> None:
    held_to(done, {"measure": "fault_rate", "at_most": 0, "bound": "point"}).expect(PASS, "1 PASS")
    held_to(done, {"measure": "fault_rate", "at_most": 0}).expect(CANNOT_RUN, "measure: faults, at_most: 0")
    held_to(done, {"measure": "outage_rate", "at_most": 0}).expect(CANNOT_RUN, "bound: point")
    held_to(done, {"measure": "outage_rate", "at_least": 0.1}).expect(CANNOT_RUN, "Write at_most: 0.1")
    assert (
        held_to(done, {"measure": "fault_rate", "at_most": 0.01}).code == INCOMPLETE
    )  # 0 of 24 shows little
    held_to(done, {"measure": "fault_rate", "at_most": 5}).expect(CANNOT_RUN, "from 0 to 1")
