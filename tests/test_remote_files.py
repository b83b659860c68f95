"""Data and models by URL: the same results as from the disk, through whatever a store does on the way."""

from __future__ import annotations

import functools
import os
import pickle
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from adverse import remote_files
from adverse.cli import main
from adverse.content import content_hash, file_sha256
from adverse.errors import IncompleteError, StudyError
from adverse.remote_files import RemotePath, local_copies, named_path
from adverse.store.folder import RunFolder
from adverse.store.verify import verify
from adverse.suts.onnx import open_model
from adverse.suts.onnx_files import external_files
from object_store import KEY, SECRET, ObjectStore, object_store
from small_study import write_study

SUT = """
from pathlib import Path
from adverse import Detections, sut

class Weighted:
    classes = ("person",)
    def __init__(self, scale): self.scale = scale
    def detect(self, images):
        return [Detections([[10, 10, 50, 90]], [self.scale * float(image.mean()) / 255]) for image in images]

@sut
def weighted(model: Path):
    \"\"\"Answer one box, by a number in a file.\"\"\"
    return Weighted(float(model.read_text()))
"""


@pytest.fixture(scope="module")
def running() -> Iterator[ObjectStore]:
    with object_store() as store:
        yield store


@pytest.fixture
def store(running: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """A store with nothing wrong, a cache of our own, pauses of no length."""
    for name, value in running.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remote_files, "FIRST_PAUSE_S", 0.0)
    running.fails = lambda _method, _path, _time: None
    running.asked.clear()
    remote_files.forget()
    yield running
    remote_files.forget()


def run(study: Path, out: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", str(study), "--out", str(out), "--workers", "1"])
    assert ended.value.code == 0


def put(store: ObjectStore, folder: Path, bucket: str, **files: bytes) -> RemotePath:
    for name, data in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    store.upload(folder, bucket, "some/data")
    path = named_path(f"s3://{bucket}/some/data")
    assert isinstance(path, RemotePath)
    return path


def test_a_remote_path_is_a_path(store: ObjectStore, tmp_path: Path) -> None:
    here = tmp_path / "here"
    root = put(store, here, "paths", a_dot_png=b"1", data__b_dot_png=b"22", data__data__c_dot_json=b"3")

    def below(folder: Path) -> dict[str, tuple[bool, int]]:
        found = sorted(folder.rglob("*"))
        return {
            path.relative_to(folder).as_posix(): (path.is_dir(), 0 if path.is_dir() else path.stat().st_size)
            for path in found
        }

    assert below(root) == below(here)
    assert [path.name for path in root.iterdir()] == ["a.png", "data"]
    assert [path.name for path in root.glob("*/*.png")] == ["b.png"]
    assert (root / "data" / "b.png").read_bytes() == b"22"
    assert file_sha256(root / "a.png") == file_sha256(here / "a.png")
    assert content_hash(root / "nothing.png") == "missing"
    assert not (root / "nothing").exists()
    assert not (root / "a").is_file()  # the beginning of a name is no file
    with pytest.raises(FileNotFoundError):
        (root / "nothing.png").read_bytes()
    with pytest.raises(IsADirectoryError):
        os.fspath(root / "data")
    again = pickle.loads(pickle.dumps(root / "a.png"))
    assert type(again) is RemotePath
    assert again == root / "a.png"
    assert str(again) == "s3://paths/some/data/a.png"
    assert named_path(Path(str(again))) == again


@pytest.mark.parametrize("way", ["500", "truncated", "slow"])
def test_a_store_that_fails_at_first(store: ObjectStore, tmp_path: Path, way: str) -> None:
    data = np.random.default_rng(1).bytes(20_000)
    root = put(store, tmp_path / "here", f"first-{way}", a_dot_png=data)
    store.fails = lambda _method, path, time: way if "a.png" in path and time <= 2 else None
    assert (root / "a.png").read_bytes() == data
    assert content_hash(root / "a.png") == content_hash(tmp_path / "here" / "a.png")


@pytest.mark.parametrize(
    ("way", "words"),
    [("500", "cannot be fetched"), ("truncated", "cannot be fetched"), ("403", "does not let us read")],
)
def test_a_store_that_fails_for_good_is_no_missing_file(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, words: str
) -> None:
    root = put(store, tmp_path / "here", f"always-{way}", a_dot_png=b"12345678" * 100)
    monkeypatch.setattr(remote_files, "TRIES", 2)
    assert (root / "a.png").is_file()
    if way == "403":
        remote_files.forget()
    store.fails = lambda method, path, _time: (
        way if "a.png" in path and (way != "truncated" or method == "GET") else None
    )
    with pytest.raises(IncompleteError, match=words) as caught:
        content_hash(root / "a.png")  # which says `missing` of what is not there
    assert "a.png" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "text", ["https://me:word@host/data", "s3://bucket/a?X-Amz-Signature=1", "s3://k:s@b/a"]
)
def test_a_url_holds_no_credentials(text: str) -> None:
    with pytest.raises(StudyError, match="must not hold credentials") as caught:
        named_path(text)
    assert "word" not in str(caught.value)


def test_a_store_whose_package_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "find_spec", lambda name: None if name == "gcsfs" else object())
    with pytest.raises(StudyError, match=r"pip install 'adverse\[gs\]'"):
        named_path("gs://bucket/data/a.png").exists()


def test_a_web_server(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "web" / "inner").mkdir(parents=True)
    (tmp_path / "web" / "a.png").write_bytes(b"one")
    (tmp_path / "web" / "inner" / "b.png").write_bytes(b"two")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = named_path(f"http://127.0.0.1:{server.server_port}")
        assert [path.name for path in root.iterdir()] == ["a.png", "inner"]
        assert (root / "inner").is_dir()
        assert {path.read_bytes() for path in root.rglob("*.png")} == {b"one", b"two"}
        assert content_hash(root / "c.png") == "missing"
        server.shutdown()
    assert store.asked.total() == 0


def test_a_file_that_changes_is_fetched_again(store: ObjectStore, tmp_path: Path) -> None:
    root = put(store, tmp_path / "here", "changes", a_dot_png=b"one")
    assert (root / "a.png").read_bytes() == b"one"
    remote_files.forget()  # as in another process
    assert (root / "a.png").read_bytes() == b"one"
    assert store.asked["GET", "/changes/some/data/a.png"] == 1  # the copy served
    store.client.put_object(Bucket="changes", Key="some/data/a.png", Body=b"two")
    remote_files.forget()
    assert (root / "a.png").read_bytes() == b"two"


def test_copies_are_bounded(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number}_dot_png" for number in range(4)]
    root = put(store, tmp_path / "here", "bounded", **{name: os.urandom(1000) for name in names})
    monkeypatch.setenv("ADVERSE_REMOTE_CACHE_GB", "0.0000025")
    monkeypatch.setattr(remote_files, "FULL_CHECK_S", 0.0)

    def copies() -> list[str]:
        return sorted(path.name for path in (tmp_path / "cache").rglob("*.png"))

    for number in range(4):
        (root / f"{number}.png").read_bytes()
    assert len(copies()) == 4  # in use a moment ago
    for path in (tmp_path / "cache").rglob("*.png"):
        os.utime(path, (1000 + int(path.stem), 1000 + int(path.stem)))
    (root / "3.png").read_bytes()  # used again, no longer old
    remote_files._trim()
    assert copies() == ["2.png", "3.png"]
    monkeypatch.setenv("ADVERSE_REMOTE_CACHE_GB", "much")
    with pytest.raises(StudyError, match="is no size"):
        remote_files._trim()


def test_a_model_with_its_weights_beside_it(store: ObjectStore, tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.full((1, 3, 4, 4), 2, np.float32), "w")
    shape = [1, 3, 4, 4]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "here").mkdir()
    place = tmp_path / "here" / "net.onnx"
    onnx.save(model, place, save_as_external_data=True, location="w.bin", size_threshold=0)
    root = put(store, tmp_path / "here", "model")
    assert external_files(root / "net.onnx") == [root / "w.bin"]
    network = open_model(root / "net.onnx")
    ((_, found),) = network.run(np.ones(shape, np.float32), ["y"])
    assert (found == 2).all()
    assert Path(local_copies(place, [])) == place


def test_a_study_by_url_gives_what_it_gives_from_the_disk(
    store: ObjectStore, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    study = write_study(
        folder, frames=2, logs=3, size=(64, 48), sleep_s=0, mutations="[brightness(scale=0.5)]"
    )
    (folder / "weighted.py").write_text(SUT)
    (folder / "model.txt").write_text("0.75")
    local = study.read_text().replace("[nothing.py]", "[weighted.py]")
    local = local.replace("adapter: nothing, sleep_s: 0", "adapter: weighted, model: model.txt")
    study.write_text(local)
    store.upload(folder, "study", "of/mine")
    remote = local.replace("root: data", "root: s3://study/of/mine/data")
    remote = remote.replace("model.txt", "s3://study/of/mine/model.txt")
    assert remote.count("s3://") == 2
    (folder / "remote.yaml").write_text(remote)
    runs = {name: tmp_path / name for name in ("local", "remote")}
    run(study, runs["local"])
    store.fails = lambda method, _path, time: (
        {1: "500", 2: "truncated"}.get(time) if method == "GET" else None
    )
    run(folder / "remote.yaml", runs["remote"])
    detections = [
        {path.name: path.read_bytes() for path in (run / "detections").iterdir()} for run in runs.values()
    ]
    assert detections[0] == detections[1]
    assert verify(RunFolder(runs["remote"])).problems == ()
    printed = "".join(capfd.readouterr())
    written = b"".join(path.read_bytes() for path in runs["remote"].rglob("*") if path.is_file())
    assert b"s3://study/of/mine/data" in written
    for secret in (SECRET, KEY):
        assert secret.encode() not in written
        assert secret not in printed
    store.fails = lambda _method, _path, _time: None
    store.client.delete_object(Bucket="study", Key="of/mine/model.txt")
    remote_files.forget()
    (problem,) = verify(RunFolder(runs["remote"])).problems
    assert "s3://study/of/mine/model.txt" in str(problem)
