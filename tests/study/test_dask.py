"""The Dask engine against the local ones: the same bytes, whatever is lost on the way."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from adverse.analysis.results import analyze
from adverse.cli import main
from adverse.errors import IncompleteError, StudyError
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import read_outcome
from adverse.fuzz.replay import replay_campaign
from adverse.report.fuzz_page import write_fuzz_page
from adverse.study.engines import Engine, Stop, dask
from adverse.study.engines.dask import DaskEngine
from adverse.study.engines.local import InlineEngine, LocalEngine
from adverse.study.run import StudyRun, run_study
from adverse.study.spec import read_study
from fuzz.whole_campaign import content, fuzz
from small_campaign import write_campaign
from small_study import results_hash, write_study
from watching import Quiet

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, about ports and closed loops

DEADLY = """
import os
from adverse import Detections, sut

class Deadly:
    classes = ("person",)
    def detect(self, images):
        for image in images:
            told = int(image[::7, ::5].sum()) % 9973 % 50
            if told == 3:
                os.abort()
            if told == 8:
                raise ValueError("eight")
        return [Detections([[10, 10, 50, 90]], [float(image.mean()) / 255]) for image in images]

@sut
def deadly():
    \"\"\"Dies of some images, refuses others.\"\"\"
    return Deadly()
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of a harmless SUT and of one that dies and raises."""
    folder = tmp_path_factory.mktemp("study")
    study = write_study(
        folder, frames=3, logs=4, size=(64, 48), sleep_s=0, mutations="[c.fog: {severity: [1, 3]}]"
    )
    (folder / "deadly.py").write_text(DEADLY)
    text = study.read_text().replace("[nothing.py]", "[nothing.py, deadly.py]")
    study.write_text(
        text.replace("sleep_s: 0}", "sleep_s: 0}, {name: deadly, adapter: deadly}") + "unit_frames: 2\n"
    )
    return study


@pytest.fixture(scope="module")
def straight(study: Path) -> str:
    out = study.parent / "straight"
    run(study, out, LocalEngine(2, out / "logs"))
    return finished_hash(out)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster


def run(
    study: Path, out: Path, engine: Engine, watch: Quiet | None = None, stop: Stop | None = None
) -> StudyRun:
    return run_study(read_study(study), out, engine, watch=watch or Quiet(), stop=stop or Stop())


def finished_hash(out: Path) -> str:
    analyze(out)
    return results_hash(out)


def test_the_same_bytes_with_a_sut_that_dies_and_raises(
    study: Path, straight: str, cluster: LocalCluster, tmp_path: Path
) -> None:
    watch = Quiet()
    with DaskEngine(cluster.scheduler_address, 0, paths=[study.parent]) as engine:
        assert engine.workers == 2
        assert run(study, tmp_path / "run", engine, watch).status == "complete"
    assert finished_hash(tmp_path / "run") == straight
    assert any("runs in a process of its own" in note for note in watch.notes)


def test_fuzz_campaigns_and_replays_have_the_same_bytes(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    study = write_campaign(tmp_path, frames=2, fuzz={"mutations": ["change_color"]})
    fuzz(study, tmp_path / "local", tests=24)
    local = CampaignFolder(tmp_path / "local")
    with DaskEngine(cluster.scheduler_address, 0, paths=[study.parent]) as engine:
        fuzz(study, tmp_path / "far", tests=24, engine=engine)
        for place, how in (("replay", InlineEngine()), ("far replay", engine)):
            file, out = read_study(study), tmp_path / place
            replay_campaign(local, file, out, how, watch=Quiet(), stop=Stop())
            write_fuzz_page(CampaignFolder(out), read_outcome(CampaignFolder(out)))
    for near, far in (("local", "far"), ("replay", "far replay")):
        assert content(tmp_path / near) == content(tmp_path / far)


class Killer(Quiet):
    """Kills a Dask worker with kill -9 after some units."""

    def __init__(self, cluster: LocalCluster, after: tuple[int, ...]) -> None:
        super().__init__()
        self.cluster, self.after, self.units = cluster, after, 0

    def advance(self, statuses: Counter[str]) -> None:
        super().advance(statuses)
        self.units += 1
        if self.units in self.after:
            nanny = self.cluster.workers[self.units % 2]
            os.kill(nanny.process.pid, signal.SIGKILL)


def test_workers_that_are_killed_and_stops_lose_nothing(
    study: Path, straight: str, cluster: LocalCluster, tmp_path: Path
) -> None:
    out, stop = tmp_path / "run", Stop()
    with DaskEngine(cluster.scheduler_address, 0) as engine:
        assert run(study, out, engine, Quiet(stop, after=2), stop).status == "interrupted"
        stop = Stop()
        assert run(study, out, engine, Quiet(stop, after=2, hard=True), stop).status == "interrupted"
        assert run(study, out, engine, Killer(cluster, after=(1, 2))).status == "complete"
    assert finished_hash(out) == straight


@contextlib.contextmanager
def scheduler(port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--no-dashboard",
    ]
    process = subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def joined(port: int) -> subprocess.Popen[bytes]:
    code = "from adverse.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "worker", f"tcp://127.0.0.1:{port}", "--workers", "1"],
        stderr=subprocess.DEVNULL,
    )


class Restarter(Quiet):
    """Kills the scheduler after the first unit, and starts another at the same address."""

    def __init__(self, first: subprocess.Popen[bytes], port: int, ends: contextlib.ExitStack) -> None:
        super().__init__()
        self.first, self.port, self.ends, self.units = first, port, ends, 0

    def advance(self, statuses: Counter[str]) -> None:
        super().advance(statuses)
        self.units += 1
        if self.units == 1:
            self.first.kill()
            self.first.wait()
            self.ends.enter_context(scheduler(self.port))
            self.ends.callback(joined(self.port).kill)


def test_a_scheduler_that_restarts_gets_what_is_left(study: Path, straight: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with contextlib.ExitStack() as ends:
        first = ends.enter_context(scheduler(port))
        ends.callback(joined(port).kill)
        watch = Restarter(first, port, ends)
        with DaskEngine(f"tcp://127.0.0.1:{port}", 0) as engine:
            assert run(study, tmp_path / "run", engine, watch).status == "complete"
    assert any("scheduler is back" in note for note in watch.notes)
    assert finished_hash(tmp_path / "run") == straight


def test_what_a_cluster_lacks_is_one_clear_error(
    study: Path, cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = cluster.scheduler_address
    elsewhere = tmp_path / "only-here"
    with (
        DaskEngine(address, 0, paths=[elsewhere]) as engine,
        pytest.raises(StudyError, match=r"cannot see a file of the study.*only-here is not there"),
    ):
        run(study, tmp_path / "hidden", engine)
    with monkeypatch.context() as patch:
        patch.setattr(dask, "versions", lambda: {"adverse": "9.9"})
        with (
            DaskEngine(address, 0) as engine,
            pytest.raises(StudyError, match=r"other versions.*wanted: adverse 9\.9"),
        ):
            run(study, tmp_path / "versions", engine)
    monkeypatch.setattr(dask, "CONNECT_S", 0.3)
    made: list[Client] = []

    class Kept(dask._Connection):
        def __init__(self, *args: Any, **options: Any) -> None:
            made.append(self)
            super().__init__(*args, **options)

    monkeypatch.setattr(dask, "_Connection", Kept)
    for wrong in ("tcp://127.0.0.1:9", "nowhere at all", "ftp://127.0.0.1:9"):
        with pytest.raises(IncompleteError, match="scheduler cannot be reached"):
            DaskEngine(wrong, 0)
    assert {client.status for client in made} <= {"closed", "newly-created"}  # none is left to the collector
    with Client(address) as client:
        before = client.run(lambda dask_worker: sorted(dask_worker.plugins))
    assert not any(name.startswith("adverse-") for names in before.values() for name in names)


DEVICE = """
import fcntl, os, time
from pathlib import Path
from adverse import Detections, sut

class OnDevice:
    classes = ("person",)
    def detect(self, images):
        here = Path(__file__).parent
        with (here / "device").open("a") as log:
            fcntl.flock(log, fcntl.LOCK_EX)  # one at a time, as kernels on a GPU
            begun = time.monotonic()
            time.sleep(0.002)
            log.write(f"{os.getppid()} {os.getpid()} {begun} {time.monotonic()}\\n")
            log.flush()
        return [Detections([[10, 10, 50, 90]], [float(image.mean()) / 255]) for image in images]

@sut
def device():
    \"\"\"A device that does one batch after the other, whoever asks.\"\"\"
    return OnDevice()
"""


async def has_gpus(count: int, dask_worker: Any) -> None:
    await dask_worker.set_resources(GPU=count)


def test_units_go_to_workers_with_a_gpu(cluster: LocalCluster, tmp_path: Path) -> None:
    study = write_study(
        tmp_path, frames=6, logs=2, size=(64, 48), sleep_s=0, mutations="[brightness(scale=0.5)]"
    )
    (tmp_path / "nothing.py").write_text(DEVICE)
    text = study.read_text().replace(
        "{name: nothing, adapter: nothing, sleep_s: 0}", "{name: a, adapter: device}"
    )
    study.write_text(text + "unit_frames: 1\n")
    straight = tmp_path / "straight"
    run(study, straight, InlineEngine())
    (tmp_path / "device").unlink()
    study.write_text(study.read_text().replace("device}", "device, gpu: true}"))
    with DaskEngine(cluster.scheduler_address, 0) as engine:
        with pytest.raises(IncompleteError, match=r"no worker of the Dask cluster has a GPU.*adverse worker"):
            run(study, tmp_path / "run", engine)
        one, other = sorted(engine.client.run(os.getpid).items())
        engine.client.run(has_gpus, 1, workers=[one[0]])
        assert (engine.slots({"GPU": 1}), engine.workers) == (1, 2)
        assert run(study, tmp_path / "run", engine).status == "complete"
        engine.client.run(has_gpus, 0, workers=[one[0]])
    lines = [line.split() for line in (tmp_path / "device").read_text().splitlines()]
    assert {int(parent) for parent, *_ in lines} == {one[1]} != {other[1]}
    times = sorted((float(begun), float(ended)) for *_, begun, ended in lines)
    assert all(ended <= begun for (_, ended), (begun, _) in itertools.pairwise(times))
    assert [path.read_bytes() for path in sorted((straight / "detections").iterdir())] == [
        path.read_bytes() for path in sorted((tmp_path / "run" / "detections").iterdir())
    ]  # where it ran is no part of the key


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scheduler", "tcp://127.0.0.1:9", "--workers", "2"], "--workers is for work on this machine"),
        (["--engine", "dask", "--workers", "0"], "without workers does nothing"),
    ],
)
def test_options_that_contradict_each_other(
    study: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", str(study), *options])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_an_engine_is_asked_for_by_name(study: Path, straight: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(study), "--out", str(out), "--engine", "dask", "--workers", "1", "--quiet"])
    assert ended.value.code in {0, 3}
    assert finished_hash(out) == straight
