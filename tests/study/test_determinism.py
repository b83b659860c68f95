"""The same study gives the same bytes, however it is run: workers, order, stops and resumes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from adverse.analysis.results import analyze
from adverse.errors import StoreError
from adverse.store.journal import RunJournal
from adverse.store.run import kill_remarks
from adverse.study.engines import Engine, Result, Stop, U, Watcher, Work
from adverse.study.engines.local import InlineEngine, LocalEngine
from adverse.study.run import KILLED, StudyRun, plan_study, run_study
from adverse.study.spec import read_study
from small_study import results_hash, write_study
from watching import Quiet


class Shuffled(InlineEngine):
    """Does the units in another order."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def run(
        self, work: Work, units: Sequence[U], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[U, Result]]:
        mixed = list(units)
        random.Random(self.seed).shuffle(mixed)
        yield from super().run(work, mixed, watch=watch, stop=stop)


class Mixed(InlineEngine):
    """Hands over each result under the name of the unit before."""

    def run(
        self, work: Work, units: Sequence[U], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[U, Result]]:
        results = list(super().run(work, units, watch=watch, stop=stop))
        yield from zip(units, [results[-1][1], *(result for _, result in results)], strict=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("study"), frames=10, logs=4, size=(64, 48), sleep_s=0)


@pytest.fixture(scope="module")
def straight(study: Path) -> str:
    out = study.parent / "straight"
    run(study, out, InlineEngine())
    return finished_hash(out)


def run(
    study: Path, out: Path, engine: Engine, watch: Quiet | None = None, stop: Stop | None = None
) -> StudyRun:
    return run_study(read_study(study), out, engine, watch=watch or Quiet(), stop=stop or Stop())


def finished_hash(out: Path) -> str:
    analyze(out)
    return results_hash(out)


@pytest.mark.fault(49)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers(study: Path, straight: str, tmp_path: Path, workers: int) -> None:
    assert run(study, tmp_path / "run", LocalEngine(workers, tmp_path / "run" / "logs")).status == "complete"
    assert finished_hash(tmp_path / "run") == straight


def test_progress_counts_every_image_within_a_unit(study: Path, tmp_path: Path) -> None:
    watch = Quiet()
    run(study, tmp_path / "run", InlineEngine(), watch)
    ends = [now for now, then in zip(watch.answered, [*watch.answered[1:], 0], strict=True) if then < now]
    assert ends == watch.done
    assert len(set(watch.answered)) > len(watch.done)


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_of_units(study: Path, straight: str, tmp_path: Path, seed: int) -> None:
    run(study, tmp_path / "run", Shuffled(seed))
    assert finished_hash(tmp_path / "run") == straight


@pytest.mark.fault(49)
@pytest.mark.parametrize("hard", [False, True])
def test_stopped_and_resumed(study: Path, straight: str, tmp_path: Path, hard: bool) -> None:  # noqa: FBT001
    out = tmp_path / "run"
    statuses = []
    for after in (1, 2, 99):
        stop = Stop()
        engine = LocalEngine(2, out / "logs")
        statuses.append(run(study, out, engine, Quiet(stop, after, hard=hard), stop).status)
    assert statuses[0] == "interrupted"
    assert statuses[-1] == "complete"
    assert finished_hash(out) == straight


def test_a_finished_run_does_nothing_again(study: Path, straight: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(study, out, InlineEngine())
    again = run(study, out, InlineEngine(), watch := Quiet())
    assert (again.units_run, again.status, watch.notes) == (0, "complete", [])
    again.folder.write_manifest({**again.folder.read_manifest(), "status": "running"})
    run(study, out, InlineEngine(), watch)  # as after kill -9
    assert watch.notes == [KILLED]
    journal = RunJournal(again.folder.journal)
    journal.replace(journal.entries[:-1])  # and with a unit under way
    journal.mend()
    again.folder.write_manifest({**again.folder.read_manifest(), "status": "running"})
    run(study, out, InlineEngine(), watch)
    kills = again.folder.read_manifest()["kills"]
    assert set(kills.values()) == {1}
    assert watch.notes[1:] == [KILLED, *(f"warning: {line}" for line in kill_remarks(kills))]
    assert finished_hash(out) == straight


def test_another_seed_or_common_noise_redoes_only_what_is_random(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = run(study, out, InlineEngine())
    other = study.with_name("other.yaml")
    other.write_text(study.read_text().replace("seed: 3", "seed: 3\nnoise: common"))
    planned = plan_study(read_study(other), out)
    assert planned.job.noise == "common"
    assert {planned.job.settings[cell.setting].id for unit in planned.to_do for cell in unit.cells} == {
        "salt_pepper(fraction=0.05)"
    }
    assert "the noise of random mutations changed" in planned.again
    other.write_text(study.read_text().replace("seed: 3", "seed: 4"))
    plan = run(other, out, InlineEngine()).plan
    redone = {plan.job.settings[cell.setting].id for unit in plan.to_do for cell in unit.cells}
    assert redone == {"salt_pepper(fraction=0.05)"}
    assert first.units_run == len(first.plan.units)


def test_adding_a_sut_keeps_what_the_others_did(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(study, out, InlineEngine())
    more = study.with_name("more.yaml")
    more.write_text(study.read_text().replace("suts: [", "suts: [{name: blobs, adapter: contrast-blobs}, "))
    watch = Quiet()
    plan = run(more, out, InlineEngine(), watch).plan
    assert {plan.job.suts[cell.sut].name for unit in plan.to_do for cell in unit.cells} == {"blobs"}
    assert any("SUT blobs is new" in note for note in watch.notes)
    whole = tmp_path / "whole"
    run(more, whole, InlineEngine())
    analyze(out)
    analyze(whole)
    for name in ("summary.json", "curves.parquet", "outcomes.parquet"):
        assert (out / "results" / name).read_bytes() == (whole / "results" / name).read_bytes()


def test_a_result_under_the_wrong_unit_is_refused(study: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not those of the unit that it was asked for"):
        run(study, tmp_path / "run", Mixed())
    assert not list((tmp_path / "run" / "detections").iterdir())
