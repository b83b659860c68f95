"""A run folder on an object store keeps its promises: the bytes of a local one, whatever the store does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import adverse
from adverse import remote_files
from adverse.cli import main
from adverse.errors import AdverseError, IncompleteError, LockedError, StoreError
from adverse.remote_files import RemotePath, named_path
from adverse.store import store_lock
from adverse.store.durable import append_line, write_file
from adverse.store.folder import RunFolder
from adverse.store.replica import working_copy
from adverse.store.store_lock import StoreLock
from object_store import KEY, SECRET, ObjectStore, object_store
from small_study import write_study

BUCKET = "fleet"
NAMES_OF_STORE = ("lock.d/", ".adverse", "journal.d/")


@pytest.fixture(scope="module")
def running() -> Iterator[ObjectStore]:
    with object_store() as store:
        store.client.create_bucket(Bucket=BUCKET)
        yield store


@pytest.fixture
def store(running: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    for name, value in running.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remote_files, "FIRST_PAUSE_S", 0.0)
    running.fails = lambda _method, _path, _time: None
    running.asked.clear()
    remote_files.forget()
    yield running
    running.fails = lambda _method, _path, _time: None
    remote_files.forget()


def objects(store: ObjectStore, prefix: str) -> dict[str, bytes]:
    """Return what the makers' client says is on the store, which does not fail for it."""
    failing, store.fails = store.fails, lambda _method, _path, _time: None
    listed = store.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/").get("Contents", [])
    found = {}
    for key in (entry["Key"] for entry in listed):
        body = store.client.get_object(Bucket=BUCKET, Key=key)["Body"]
        found[key.removeprefix(f"{prefix}/")] = body.read()
    store.fails = failing
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("lock", ".adverse")
    }


def units(journal: bytes) -> list[tuple[str, str]]:
    """Return the files that a journal acknowledges, each with its hash."""
    entries = [json.loads(line.partition(b" ")[2]) for line in journal.splitlines()]
    return sorted((entry["file"], entry["sha256"]) for entry in entries)


def given(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def study_in(folder: Path) -> Path:
    return write_study(
        folder, frames=2, logs=4, size=(64, 48), sleep_s=0, mutations="[brightness(scale=0.5)]"
    )


def unheard(_text: str) -> None:
    pass


def opened(name: str) -> AbstractContextManager[Path]:
    return working_copy(Path(f"s3://{BUCKET}/{name}"), writing=True, new=True, note=unheard)


def elsewhere(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Go on as another machine would, which has no copy."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))


def test_a_run_on_a_store_is_the_run_of_a_disk(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    study, local, url = study_in(tmp_path / "study"), tmp_path / "run", f"s3://{BUCKET}/runs/one"
    assert given("run", str(study), "--out", str(local), "--workers", "0", "--quiet") == 0
    ways = {1: "500", 2: "truncated"}
    store.fails = lambda method, path, time: (
        ways.get(time) if method in ("GET", "PUT") and "runs/one" in path else None
    )
    assert given("run", str(study), "--out", url, "--workers", "0", "--quiet") == 0
    there = objects(store, "runs/one")
    assert not [name for name in there if name.startswith("journal.d/")]
    assert json.loads(there["lock.d/00000001"])["released"]
    wanted = files(local)
    for name in wanted:
        if name.startswith(("detections/", "results/")) or name in ("frames.parquet", "truth.parquet"):
            assert there[name] == wanted[name], name
    assert {name for name in there if not name.startswith(NAMES_OF_STORE)} == set(wanted)
    for secret in (SECRET, KEY):
        assert secret.encode() not in b"".join(there.values())
    elsewhere(monkeypatch, tmp_path / "other")
    store.asked.clear()  # and so it fails again at first
    capfd.readouterr()
    assert given("verify", url, "--quiet") == 0
    assert given("status", url) == 0
    assert f"{url}: complete" in capfd.readouterr().out
    assert given("analyze", url, "--quiet") == 0
    assert given("report", url, "--quiet") == 0
    assert objects(store, "runs/one")["results/summary.json"] == wanted["results/summary.json"]
    assert adverse.open_run(url).rows == adverse.open_run(local).rows
    store.fails = lambda _method, _path, _time: None
    name = next(name for name in there if name.startswith("detections/"))
    store.client.put_object(Bucket=BUCKET, Key=f"runs/one/{name}", Body=b"changed")
    assert given("verify", url, "--quiet") == 2
    assert name in capfd.readouterr().err
    assert given("run", str(study), "--out", url, "--workers", "0", "--quiet") == 0  # done again
    assert objects(store, "runs/one")[name] == wanted[name]
    assert given("run", str(study), "--out", url, "--workers", "0", "--quiet", "--fresh") == 0
    again = objects(store, "runs/one")
    assert {name for name in again if name.startswith("detections/")} == {
        name for name in wanted if name.startswith("detections/")
    }


def test_a_unit_counts_once_its_line_is_on_the_store(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store goes away at every request in turn; what was acknowledged is there for another machine."""
    monkeypatch.setattr(remote_files, "TRIES", 1)
    monkeypatch.setattr(store_lock, "BEAT_S", 1e6)
    for cut in range(40):
        name, sent, lines = f"cut/{cut}", [0], [b"one\n", b"two\n", b"three\n"]

        def fails(
            method: str, _path: str, _time: int, *, cut: int = cut, sent: list[int] = sent
        ) -> str | None:
            sent[0] += method in ("PUT", "DELETE", "POST")
            return "500" if sent[0] > cut else None

        store.fails = fails
        kept: list[bytes] = []
        try:
            with opened(name) as copy:
                for number, line in enumerate(lines):
                    write_file(copy / "detections" / f"{number:016x}.parquet", line)
                    append_line(copy / "journal", line)
                    kept.append(line)
                write_file(copy / "journal", b"".join([*kept, b"four\n"]))
                kept.append(b"four\n")
        except AdverseError:
            pass
        store.fails = lambda _method, _path, _time: None
        elsewhere(monkeypatch, tmp_path / f"machine{cut}")
        monkeypatch.setattr(store_lock, "_running", lambda _pid: False)
        with opened(name) as copy:
            journal = copy / "journal"
            found = journal.read_bytes() if journal.exists() else b""
            assert found[: len(b"".join(kept))] == b"".join(kept)
            assert found in (b"".join([*lines, b"four\n"][:count]) for count in range(5))
            for number in range(min(len(kept), 3)):
                assert (copy / "detections" / f"{number:016x}.parquet").read_bytes() == lines[number]
        if sent[0] <= cut:
            break
    else:
        raise AssertionError("no request was the last")
    assert cut > 10


def test_one_of_two_writers_at_one_place_fails(store: ObjectStore) -> None:
    with opened("two") as copy:
        append_line(copy / "journal", b"ours\n")
        store.client.put_object(Bucket=BUCKET, Key="two/journal.d/0000000000000005", Body=b"another's\n")
        with pytest.raises(LockedError, match="another process is writing"):
            append_line(copy / "journal", b"lost\n")
        assert (copy / "journal").read_bytes() == b"ours\n"  # what was not acknowledged is not here either
    assert objects(store, "two")["journal"] == b"ours\n"


@pytest.mark.usefixtures("store")
def test_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = named_path(f"s3://{BUCKET}/locked")
    assert isinstance(folder, RemotePath)
    monkeypatch.setattr(store_lock, "BEAT_S", 0.02)
    monkeypatch.setattr(store_lock, "POLL_S", 0.02)
    held = StoreLock(folder, note=unheard)
    held.acquire()
    with pytest.raises(LockedError, match=f"process {os.getpid()} on {socket.gethostname()}"):
        StoreLock(folder, note=unheard).acquire()  # its file changes while we look
    held.release()
    after = StoreLock(folder, note=unheard)
    after.acquire()
    assert after.number == held.number + 1
    after._ended.set()  # as if its machine had gone to sleep
    after._thread.join()
    monkeypatch.setattr(store_lock, "LEASE_S", 0.1)
    notes: list[str] = []
    taker = StoreLock(folder, note=notes.append)
    taker.acquire()
    assert "which is gone" in notes[-1]
    after.renewed = -1e9
    with pytest.raises(LockedError):  # it wakes up, and writes nothing
        after.check()
    with pytest.raises(LockedError):
        after.check()
    taker.check()
    taker.release()


def test_a_process_of_this_machine_that_is_gone(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 in the middle: another machine resumes, and has the bytes of a run that was not killed."""
    folder = tmp_path / "study"
    study = write_study(
        folder,
        frames=2,
        logs=4,
        size=(64, 48),
        sleep_s=0.05,
        mutations="[brightness(scale=0.5)]",
        unit_frames=1,
    )
    words = ["run", str(study), "--workers", "0", "--quiet"]
    assert given(*words, "--out", str(tmp_path / "run")) == 0
    url = f"s3://{BUCKET}/runs/killed"
    child = subprocess.Popen(
        [sys.executable, "-m", "adverse", *words, "--out", url], stderr=subprocess.DEVNULL
    )
    while not any(name.startswith("journal.d/") for name in objects(store, "runs/killed")):
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    elsewhere(monkeypatch, tmp_path / "other")
    assert given(*words, "--out", url) == 0
    there, wanted = objects(store, "runs/killed"), files(tmp_path / "run")
    for name in wanted:
        if name.startswith(("detections/", "results/curves")):
            assert there[name] == wanted[name]
    assert units(there["journal"]) == units(wanted["journal"])


def test_what_is_no_run_folder(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "TRIES", 2)
    study = study_in(tmp_path / "study")
    store.client.put_object(Bucket=BUCKET, Key="theirs/holiday.jpg", Body=b"1")
    for url, error, words in (
        (f"s3://{BUCKET}/theirs", StoreError, "holds something that is not a run folder"),
        ("s3://no-such-bucket/run", StoreError, "no such bucket"),
        ("https://example.org/run", StoreError, "a run folder cannot be there"),
        ("s3://user:secret@host/run", AdverseError, "must not hold credentials"),
    ):
        with pytest.raises(error, match=words):
            adverse.run(study, url)
    assert list(objects(store, "theirs")) == ["holiday.jpg"]
    with pytest.raises(StoreError, match="no such folder"):
        adverse.open_run(f"s3://{BUCKET}/nothing")
    with pytest.raises(StoreError, match="folder of this machine"):
        RunFolder(Path(f"s3://{BUCKET}/nothing")).create()
    store.fails = lambda method, _path, _time: "403" if method == "PUT" else None
    with pytest.raises(IncompleteError, match="does not let us write"):
        adverse.run(study, f"s3://{BUCKET}/mine")
