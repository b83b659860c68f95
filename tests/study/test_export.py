"""Exported copies hold the very pixels a study would show, and can be read back as a data set."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adverse import mutations, plugins
from adverse.data.coco import coco
from adverse.data.folder import folder
from adverse.data.images import ImageFile, write_image
from adverse.errors import StoreError, StudyError
from adverse.mutations.settings import parse
from adverse.study.export import STYLIZED, Exported, Mix, export, export_job, read_mix, stylizing_job
from adverse.study.spec import study_from
from adverse.stylize import Stylization, stylization
from adverse.stylize.transfer import made_style
from small_study import write_study
from stylize.test_transfer import network
from watching import Quiet

NAMES = ["gaussian_blur(sigma_px=2)", "salt_pepper(fraction=0.1)"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_study(root, frames=3, logs=2, size=(64, 48), sleep_s=0)
    return root / "data"


def exported(
    data: Path, target: Path, names: list[str], *, workers: int = 1, watch: Quiet | None = None
) -> Exported:
    study = {
        "name": "x",
        "seed": 5,
        "data": {"format": "folder", "root": str(data)},
        "mutations": names,
    }
    dataset, job = export_job(study_from(study, data))
    return export(dataset, job, target, suffix=".png", workers=workers, watch=watch or Quiet())


def contents(target: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(target)): path.read_bytes()
        for path in sorted(target.rglob("*"))
        if path.is_file() and path.name not in (".exported", ".adverse")
    }


def test_pixels_are_those_of_a_study(data: Path, tmp_path: Path) -> None:
    done = exported(data, tmp_path, NAMES)
    assert (done.files, done.made, done.refused) == (12, 12, ())
    for frame in (frame for log in folder(data).logs for frame in log.frames):
        for name in NAMES:
            wanted = mutations.apply(frame.image(), name, seed=5, key=frame.id)
            np.testing.assert_array_equal(ImageFile(tmp_path / name / f"{frame.id}.png")(), wanted)


def test_a_mix_holds_each_frame_once_clean_or_mutated(data: Path, tmp_path: Path) -> None:
    study = {"name": "x", "seed": 5, "data": {"format": "folder", "root": str(data)}, "mutations": NAMES}
    dataset, job = export_job(study_from(study, data))
    options = {"suffix": ".png", "workers": 1, "mix": read_mix("clean=1,mutated=1")}
    done = export(dataset, job, tmp_path, watch=Quiet(), **options)  # type: ignore[arg-type]
    assert (done.files, done.made) == (6, 6)
    rows = [line.split(",", 1) for line in (tmp_path / "mixed" / "mix.csv").read_text().splitlines()[1:]]
    drawn = {frame: name.strip('"') for frame, name in rows}
    assert set(drawn.values()) <= {"identity", *NAMES}
    assert len(set(drawn.values())) > 1
    for frame in (frame for log in folder(data).logs for frame in log.frames):
        wanted = mutations.apply(frame.image(), drawn[frame.id], seed=5, key=frame.id)
        np.testing.assert_array_equal(ImageFile(tmp_path / "mixed" / f"{frame.id}.png")(), wanted)
    again = export(dataset, job, tmp_path, watch=Quiet(), **options)  # type: ignore[arg-type]
    assert again.made == 0
    mix, total = read_mix("clean=1,mutated=3"), 4000
    clean = sum(mix.setting(str(n), replace(job, settings=job.settings * 2)) == 0 for n in range(total))
    assert abs(clean / total - 0.25) < 4 * (0.25 * 0.75 / total) ** 0.5


def stylized(data: Path, target: Path, how: Stylization, *, workers: int = 1) -> Exported:
    dataset = folder(data)
    job = stylizing_job(dataset, 5)
    mix = Mix(0, 0, stylized=1)
    return export(dataset, job, target, suffix=".png", workers=workers, watch=Quiet(), mix=mix, stylize=how)


def test_a_stylized_copy_has_the_truth_and_the_same_pixels_from_any_number_of_workers(
    data: Path, tmp_path: Path
) -> None:
    source = tmp_path / "data"
    shutil.copytree(data, source)
    (source / "log0" / "labels").mkdir()
    for number in range(3):
        write_image(source / "log0" / "labels" / f"{number:04d}.png", np.full((48, 64), 7 + number, np.uint8))
    (source / "pixel_classes.json").write_text('{"7": "road", "8": "sky"}')
    how = stylization(None, model=network(tmp_path / "mean.onnx"))
    done = stylized(source, tmp_path / "one", how)
    assert (done.files, done.made, done.refused) == (6, 6, ())
    assert stylized(source, tmp_path / "two", how, workers=2).made == 6
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    made = tmp_path / "one" / "stylized"
    rows = dict(line.split(",") for line in (made / "mix.csv").read_text().splitlines()[1:])
    again = folder(made, truth="annotations.json")
    assert again.pixel_classes == {7: "road", 8: "sky"}
    before = {frame.id: frame for log in folder(source).logs for frame in log.frames}
    for frame in (frame for log in again.logs for frame in log.frames):
        style = how.style(5, frame.id)
        assert rows[frame.id] == f"style:{style.name}"
        colour = made_style(int(style.content)).mean(axis=(0, 1))  # the network's closed form
        np.testing.assert_allclose(frame.image(), np.broadcast_to(colour, (48, 64, 3)), atol=0.501)
        np.testing.assert_allclose(frame.truth.boxes, before[frame.id].truth.boxes)
        wanted = before[frame.id].labels
        assert (frame.labels is None) == (wanted is None)
        if frame.labels is not None and wanted is not None:
            np.testing.assert_array_equal(frame.labels(), wanted())
    assert stylized(source, tmp_path / "one", how).made == 0
    next(made.rglob("0001.png")).unlink()
    assert stylized(source, tmp_path / "one", how).made == 1
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    other = stylization(None, model=network(tmp_path / "other.onnx", alpha=[1]))
    assert stylized(source, tmp_path / "one", other).made == 6


def test_a_mix_has_the_shares_that_were_asked_for(data: Path) -> None:
    mix, total = read_mix("clean=1, mutated=1, stylized=2"), 4000
    settings = tuple(parse(name, plugins.load()) for name in ("identity", NAMES[0]))
    job = replace(stylizing_job(folder(data), 5), settings=settings)
    drawn = Counter(mix.setting(str(n), job) for n in range(total))
    for setting, share in ((0, 0.25), (1, 0.25), (STYLIZED, 0.5)):
        assert abs(drawn[setting] / total - share) < 4 * (share * (1 - share) / total) ** 0.5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "clean=1",
        "mutated=1,mutated=2",
        "mutated=x",
        "painted=1,mutated=1",
        "mutated=-1",
        "mutated=inf",
        "stylized=nan",
    ],
)
def test_a_mix_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(StudyError, match="the mix cannot be read"):
        read_mix(text)


def test_what_lies_on_the_lens_stays_in_place_over_a_log(data: Path, tmp_path: Path) -> None:
    name = "lens_mud(coverage=0.3)"
    exported(data, tmp_path, [name])
    places: dict[str, set[bytes]] = {}
    for frame in (frame for log in folder(data).logs for frame in log.frames):
        made = ImageFile(tmp_path / name / f"{frame.id}.png")()
        wanted = mutations.apply(frame.image(), name, seed=5, key=frame.id, log=frame.log_id)
        np.testing.assert_array_equal(made, wanted)
        alone = mutations.apply(np.full_like(made, 255), name, seed=5, key=frame.id, log=frame.log_id)
        places.setdefault(frame.log_id, set()).add(alone.tobytes())
    assert [len(place) for place in places.values()] == [1, 1]
    assert len(set().union(*places.values())) == 2


def test_annotations_read_back_as_they_were(data: Path, tmp_path: Path) -> None:
    exported(data, tmp_path, NAMES[:1])
    again = coco(tmp_path / NAMES[0], annotations="annotations.json", images=".", missing_sizes="read")
    before = {frame.id: frame.truth for log in folder(data).logs for frame in log.frames}
    after = {frame.id: frame.truth for log in again.logs for frame in log.frames}
    assert before.keys() == after.keys()
    for name, truth in before.items():
        np.testing.assert_allclose(after[name].boxes, truth.boxes)
        np.testing.assert_array_equal(after[name].ids, truth.ids)


def test_any_number_of_workers_writes_the_same(data: Path, tmp_path: Path) -> None:
    exported(data, tmp_path / "one", NAMES)
    exported(data, tmp_path / "two", NAMES, workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_only_what_is_missing_is_made_again(data: Path, tmp_path: Path) -> None:
    exported(data, tmp_path, NAMES)
    before = contents(tmp_path)
    next(tmp_path.rglob("0001.png")).unlink()
    journal = tmp_path / ".exported"
    journal.write_text(journal.read_text()[:-20])  # a crash in the middle of a line
    again = exported(data, tmp_path, NAMES)
    assert 1 <= again.made <= 3
    assert contents(tmp_path) == before


def test_an_image_that_changes_while_it_is_exported_is_refused_and_made_when_it_is_back(
    tmp_path: Path,
) -> None:
    write_study(tmp_path, frames=3, logs=2, size=(64, 48), sleep_s=0)
    data, target = tmp_path / "data", tmp_path / "out"
    first_frame, *_, last_frame = [frame for log in folder(data).logs for frame in log.frames]
    path, other = last_frame.image.path, first_frame.image.path.read_bytes()
    old = path.read_bytes()

    class Meddler(Quiet):
        def begin(self, total: int, done: int) -> None:  # files are hashed by now, and none is read
            del total, done
            path.write_bytes(other)

    first = exported(data, target, NAMES, watch=Meddler())
    assert first.made == 10
    ((_, reason),) = first.refused
    assert f"was changed after the run was planned; where: {path}" in reason
    path.write_bytes(old)
    assert exported(data, target, NAMES).made == 2
    exported(data, tmp_path / "undisturbed", NAMES)
    assert contents(target) == contents(tmp_path / "undisturbed")


def test_nothing_to_apply_is_an_error(data: Path, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="at least one mutation"):
        exported(data, tmp_path, [])


def test_a_folder_of_others_is_not_written_into(data: Path, tmp_path: Path) -> None:
    mine = tmp_path / NAMES[0] / "annotations.json"
    mine.parent.mkdir()
    mine.write_text("mine")
    with pytest.raises(StoreError, match="not a folder of mutated images"):
        exported(data, tmp_path, NAMES)
    assert mine.read_text() == "mine"
