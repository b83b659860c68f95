"""What changes a result is noticed: files that code opens by itself, and the machine."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import sys
import tempfile
from pathlib import Path

import numba.core.config
import pyarrow.parquet as pq
import pytest

from adverse.file_access import FileAccess
from adverse.store.folder import RunFolder
from adverse.store.journal import RunJournal
from adverse.study.environment import environment, mixture
from adverse.user_files import load_python
from bad_input.cases import CANNOT_RUN, INCOMPLETE, PASS
from bad_input.good_study import GoodStudy

READER = '''
import os
import subprocess
import sys
from pathlib import Path

from adverse import mutation, sut

HERE = Path(__file__).parent
FACTOR = float((HERE / "factor").read_text())
CHILD = "import sys; print(open(sys.argv[1] + '/a child.txt').read())"


def below_a_folder_handle():
    return os.read(os.open("dir_fd.txt", os.O_RDONLY, dir_fd=os.open(HERE, os.O_RDONLY)), 9)


def in_a_child():
    return subprocess.check_output([sys.executable, "-c", CHILD, str(HERE)])


def perhaps():
    try:
        return (HERE / "perhaps.txt").read_text()
    except OSError:
        return 0.9


WAYS = {
    "dir_fd": below_a_folder_handle,
    "a child": in_a_child,
    "perhaps": perhaps,
    "loading": (HERE / "loading.txt").read_text,
    "detecting": (HERE / "detecting.txt").read_text,
}


class Reader:
    classes = ("person",)

    def __init__(self, way, change_at):
        self.way, self.change_at = WAYS[way], change_at
        if way != "detecting":
            score = self.way()
            self.way = lambda: score

    def look(self, image):
        if image[0, 0, 0] == self.change_at:
            os.system(f"echo 0.5 > {HERE}/detecting.txt")
        return [[20, 10, 32, 40]], [float(self.way()) * FACTOR], [0]

    def detect(self, images):
        return [self.look(image) for image in images]


@sut
def reader(way: str, table: str = "", change_at: int = -1):
    """Read a score from a file."""
    return Reader(way, change_at)


@mutation
def tint(image):
    """Colour an image."""
    return image * 0 + int((HERE / "tint").read_text())
'''
READ = ("loading", "detecting", "dir_fd", "a child")


@pytest.fixture
def study(tmp_path: Path) -> GoodStudy:
    good = GoodStudy(tmp_path, "coco")
    good.study |= {
        "plugins": ["reads.py"],
        "suts": [{"name": "reader", "adapter": "reader", "way": "detecting"}],
    }
    (tmp_path / "reads.py").write_text(READER)
    for way in READ:
        (tmp_path / f"{way}.txt").write_text("0.9")
    (tmp_path / "tint").write_text("90")
    (tmp_path / "factor").write_text("1.0")
    return good


def scores(study: GoodStudy) -> dict[str, set[float]]:
    """Return the scores of the detections that a run is made of, by SUT."""
    folder = RunFolder(study.run)
    found: dict[str, set[float]] = {}
    for cell in pq.read_table(folder.cells).to_pylist():
        for row in pq.read_table(folder.detections / cell["file"]).to_pylist():
            if (row["sut"], row["setting"]) == (cell["sut"], cell["setting"]):
                found.setdefault(row["sut"], set()).update(round(score, 3) for score in row["scores"])
    return found


@pytest.mark.fault(48)
def test_files_that_code_reads_by_itself_are_part_of_a_run(study: GoodStudy) -> None:
    """With worker processes, as users have it; equal size and time hide nothing."""
    ways = (*READ, "perhaps")
    study.study["suts"] = [{"name": way, "adapter": "reader", "way": way} for way in ways]
    study.study["mutations"] = ["tint"]
    study.adverse(workers=1).expect(PASS, "80/80 images done")
    study.adverse("plan").expect(PASS, "80 done, 0 to do")
    study.adverse("verify").expect(PASS)
    for way in ways:
        path = study.folder / f"{way}.txt"
        times = path.stat() if path.exists() else None
        path.write_text("0.5")
        if times is not None:
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        study.adverse("verify").expect(CANNOT_RUN, str(path), "a file was changed")
        study.adverse("plan").expect(PASS, f"{80 - 16 * (ways.index(way) + 1)} done")
    (study.folder / "loading.txt").write_text("0.9")  # put back: its results hold again
    study.adverse("plan").expect(PASS, "16 done, 64 to do")
    (study.folder / "tint").write_text("20")
    study.adverse("plan").expect(PASS, "8 done, 72 to do")
    said = study.adverse(workers=1)
    said.expect(
        PASS, f"{study.folder / 'a child.txt'}, read by SUT a child, was changed", "read by mutations"
    )
    assert scores(study) == {way: {0.9 if way == "loading" else 0.5} for way in ways}
    study.adverse("verify").expect(PASS)
    (study.folder / "factor").write_text("0.5")  # read when the plug-in is imported
    study.adverse("plan").expect(PASS, "0 done, 80 to do")


@pytest.mark.fault(48)
def test_a_file_that_changes_while_a_sut_reads_it(study: GoodStudy) -> None:
    """Two units, two contents: neither is kept as if it were of the other."""
    study.study["suts"][0]["change_at"] = 60
    study.adverse().expect(INCOMPLETE, f"{study.folder / 'detecting.txt'} was changed", "not kept")
    study.adverse().expect(PASS)
    assert scores(study) == {"reader": {0.5}}


@pytest.mark.fault(48)
def test_texts_that_name_files_and_files_of_any_sut_count(study: GoodStudy) -> None:
    names = ("labels.txt", "weights.bin")
    for name in names:
        (study.folder / name).write_text("a")
    study.study["suts"][0] |= {"table": "labels.txt", "files": ["weights.bin"]}
    study.adverse().expect(PASS)
    for name in names:
        (study.folder / name).write_text("b")
        study.adverse("verify").expect(CANNOT_RUN, str(study.folder / name))
    study.adverse().expect(PASS, "SUT reader changed", "16/16 images done")
    study.study["suts"][0]["files"] = ["nothing.bin"]
    study.rewrite()
    study.adverse().expect(CANNOT_RUN, "nothing.bin", "files[0]")


@pytest.mark.fault(49)
def test_mixed_environments_are_named(study: GoodStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    study.adverse().expect(PASS)
    assert list(json.loads((study.run / "manifest.json").read_text())["environments"].values()) == [
        dict(environment())
    ]
    study.study["mutations"].append("brightness(scale=0.8)")
    study.rewrite()
    other = {**environment(), "OpenCV CPU features": environment()["OpenCV CPU features"] + " AVX1024"}
    monkeypatch.setattr("adverse.study.worker.environment", lambda: other)
    differ = "OpenCV CPU features (without; AVX1024)"
    study.adverse().expect(PASS, "mixed environments", differ)
    study.adverse("verify").expect(PASS, "warning: mixed environments", differ)
    assert differ in (study.run / "report.html").read_text()
    assert len({entry.environment for entry in RunJournal(study.run / "journal").entries}) == 2
    monkeypatch.setattr("adverse.study.worker.environment", environment)
    study.adverse("run", "--fresh").expect(PASS)
    assert "mixed" not in study.adverse("verify").text


def test_an_environment_that_nobody_described_is_another_one() -> None:
    assert mixture({"a": environment(), "": {}})[0].startswith("mixed environments")
    assert mixture({"a": environment()}) == mixture({}) == []


def test_numba_looks_at_all_variables_and_reads_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a run after a first one that compiled would repeat everything in another shell."""
    for name in ("MAKELEVEL", "NUMBA_OPT"):
        monkeypatch.setenv(name, "1")
    access = FileAccess()
    with access.noted():
        numba.core.config.reload_config()  # type: ignore[no-untyped-call]
    access.settle()
    assert [name for name in access.hashes if "MAKELEVEL" in name] == []
    assert [name for name in access.hashes if "NUMBA_OPT" in name] != []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these ways to a file")
@pytest.mark.parametrize("way", ["/proc/self/cwd/", "/proc/self/root{}/", "/proc/thread-self/root{}/"])
@pytest.mark.parametrize("disk", ["/var/tmp", "/dev/shm"])
def test_a_file_counts_by_whatever_way_of_the_kernel_it_is_opened(
    way: str, disk: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path = Path(tempfile.mkdtemp(dir=disk))
    request.addfinalizer(lambda: shutil.rmtree(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("weights.bin").write_text("1")
    access = FileAccess()
    with access.noted():
        Path(way.format(tmp_path), "weights.bin").read_text()
        Path("/proc/self/stat").read_text()
        with os.fdopen(os.memfd_create("no file"), "wb") as file:
            Path(f"/proc/self/fd/{file.fileno()}").read_text()
    access.settle()
    assert list(access.hashes) == [str(tmp_path / "weights.bin")]


def test_a_module_edited_within_a_second_is_compiled_anew(tmp_path: Path) -> None:
    """Python would take the bytes in __pycache__: same size, same second."""
    beside, file = tmp_path / "beside_it.py", tmp_path / "edited.py"
    for value in (1, 2):
        beside.write_text(f"VALUE = {value}\n")
        file.write_text(f"from beside_it import VALUE\nOWN = {value}\n")
        for path in (beside, file):
            os.utime(path, (1_700_000_000, 1_700_000_000))
        module = load_python(file)
        found = module.VALUE, module.OWN
        assert found == (value, value)
        for path, name in ((beside, "beside_it"), (file, module.__name__)):
            py_compile.compile(str(path))
            del sys.modules[name]
