"""Results of SUTs that did not change are taken from the run folder; every byte is as if they were not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import adverse.analysis.results as results_module
from adverse.analysis.kept_suts import packed, unpacked
from adverse.analysis.results import analyze, run_results
from adverse.analysis.sut import SutResults, analyze_sut
from adverse.store.finished_run import finished
from adverse.store.folder import RunFolder
from adverse.store.seals import EVERYTHING, state_of_all_suts
from adverse.store.verify import verify
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import study_from
from analysis.test_results import write_images
from watching import Quiet

TIMID = """
from adverse import Detections, sut
from square import Square

class Timid(Square):
    def look(self, image):
        sure = super().look(image)
        return sure if image.mean() > 30 else Detections.none()

@sut
def timid():
    \"\"\"Find it in bright images.\"\"\"
    return Timid()
"""

EMPTY: dict[str, Any] = {"operating_points": {}}


def run(folder: Path, *suts: str, **more: Any) -> Path:
    """Run SUTs on eight small images; what the folder has of them is kept."""
    study: dict[str, Any] = {
        "name": "kept",
        "plugins": ["square.py", "timid.py"],
        "data": {"format": "coco", "root": "data", "annotations": "truth.json"},
        "suts": [{"name": name, "adapter": name.partition("-")[0]} for name in suts],
        "mutations": ["brightness(scale=0.5)"],
        "robustness": {"bootstrap": 50},
        **more,
    }
    file = study_from(study, folder)
    return run_study(file, folder / "run", InlineEngine(), watch=Quiet(), stop=Stop()).folder.path


@pytest.fixture
def images(tmp_path: Path) -> Path:
    write_images(tmp_path)
    (tmp_path / "timid.py").write_text(TIMID)
    return tmp_path


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The SUTs that were worked out since the list was cleared."""
    names: list[str] = []

    def noted(store: Any, sut: str, *rest: Any, **options: Any) -> SutResults:
        names.append(sut)
        return analyze_sut(store, sut, *rest, **options)

    monkeypatch.setattr(results_module, "analyze_sut", noted)
    return names


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "results").iterdir()}


def assert_as_if_nothing_was_kept(folder: Path) -> None:
    store = finished(folder)
    assert verify(store.folder).problems == ()
    assert written(folder) == run_results(store).files
    assert len(list((folder / "analysis").iterdir())) == len(store.suts)


def test_of_more_suts_the_new_one_is_worked_out(images: Path, computed: list[str]) -> None:
    folder = run(images, "square", "timid")
    analyze(folder)
    assert sorted(computed) == ["square", "timid"]
    computed.clear()
    analyze(folder)
    assert computed == []
    assert_as_if_nothing_was_kept(folder)
    computed.clear()
    assert run(images, "square-2", "square", "timid") == folder  # the new one comes first
    analyze(folder)
    assert computed == ["square-2"]
    assert_as_if_nothing_was_kept(folder)
    computed.clear()
    run(images, "timid", "square-2")
    analyze(folder)
    assert computed == []
    assert_as_if_nothing_was_kept(folder)


def test_what_decides_the_figures_of_all_suts(images: Path, computed: list[str]) -> None:
    analyze(run(images, "square", "timid"))
    computed.clear()
    severe = [{"brightness": {"scale": 0.5}, "group": "severe"}]
    folder = run(images, "square", "timid", mutations=severe)  # the same detections, to be grouped anew
    analyze(folder)
    assert sorted(computed) == ["square", "timid"]
    assert_as_if_nothing_was_kept(folder)
    manifest = RunFolder(folder).read_manifest()
    states = {state_of_all_suts(manifest)}
    for part in ("data", "settings", "statistics", "adverse", "format", "files"):
        states.add(state_of_all_suts({**manifest, part: {**EMPTY, "other": 1}}))
    for name in set(manifest["statistics"]) - {"operating_points"}:
        states.add(state_of_all_suts({**manifest, "statistics": {**manifest["statistics"], name: "other"}}))
    assert len(states) == 6 + len(manifest["statistics"])  # each of them gives another one
    others = {**manifest, "suts": {}, "engine": {}, "environment": {}}
    assert state_of_all_suts(others) in states


def test_truth_that_is_the_answers_of_a_sut(images: Path, computed: list[str]) -> None:
    free = {"truth": {"from": "timid", "score": 0.5}}
    folder = run(images, "square", "timid", **free)
    analyze(folder)
    computed.clear()
    other = [{"name": "square", "adapter": "square"}, {"name": "timid", "adapter": "square"}]
    run(images, **free, suts=other)  # square answers as before, what it is compared with is another
    analyze(folder)
    assert sorted(computed) == ["square", "timid"]
    assert_as_if_nothing_was_kept(folder)


def test_the_operating_point_of_one_sut_decides_about_that_one(images: Path, computed: list[str]) -> None:
    analyze(run(images, "square", "timid"))
    computed.clear()
    folder = run(images, "square", "timid", operating_point={"score": {"timid": 0.8}})
    analyze(folder)
    assert computed == ["timid"]
    assert_as_if_nothing_was_kept(folder)


def test_a_file_that_was_changed_is_named_and_made_again(images: Path, computed: list[str]) -> None:
    folder = run(images, "square", "timid")
    analyze(folder)
    computed.clear()
    path = min((folder / "analysis").iterdir())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (problem,) = verify(RunFolder(folder)).problems
    assert path.name in str(problem)
    assert f"adverse analyze {folder}" in str(problem)
    analyze(folder)
    assert len(computed) == 1
    assert_as_if_nothing_was_kept(folder)
    shutil.rmtree(folder / "analysis")
    (missing, _) = verify(RunFolder(folder)).problems
    assert "missing" in str(missing)
    analyze(folder)
    assert_as_if_nothing_was_kept(folder)


def test_packing(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[SutResults] = []

    def noted(*given: Any, **options: Any) -> SutResults:
        made.append(analyze_sut(*given, **options))
        return made[-1]

    monkeypatch.setattr(results_module, "analyze_sut", noted)
    store = finished(run(images, "square", "timid"), rewrites=EVERYTHING)
    run_results(store)
    for result in made:
        data = packed(result, ("Any",))
        again = unpacked(data)
        assert packed(again, ("Any",)) == data
        assert again.rows == result.rows
        assert again.curves == result.curves
        assert again.confidence is not None
        assert {setting for _, setting in again.confidence.draws} == {"Any"}
    assert not (store.folder.path / "analysis").exists()
