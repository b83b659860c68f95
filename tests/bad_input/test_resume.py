"""A second run on a folder: what changed is listed and only what it touches is run again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adverse.data.images import write_image

from .cases import CANNOT_RUN, PASS
from .command import run_alone
from .good_study import FinishedStudy, GoodStudy, picture

SINCE = "since the last run in this folder: "
ALL = 32
"""Images to judge: 8 pictures, 2 settings, 2 SUTs."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedStudy:
    study = GoodStudy(tmp_path_factory.mktemp("resumed") / "study", "coco")
    study.study["mutations"] = ["salt_pepper(fraction=0.01)"]
    study.study["suts"].append({"name": "other", "adapter": "probe"})
    return FinishedStudy(study)


@pytest.fixture
def done(finished: FinishedStudy) -> GoodStudy:
    return finished.put_back()


def changed_picture(study: GoodStudy) -> None:
    write_image(study.images[6], picture(5))


def lost_picture(study: GoodStudy) -> None:
    study.images[6].unlink()


def another_model(study: GoodStudy) -> None:
    (study.folder / "model.bin").write_text("better weights")


def renamed_model(study: GoodStudy) -> None:
    (study.folder / "model.bin").rename(study.folder / "copy.bin")
    study.sut(weights="copy.bin")


def another_truth(study: GoodStudy) -> None:
    study.truth["annotations"][0]["bbox"] = [1, 2, 3, 4]


def another_sut(study: GoodStudy) -> None:
    study.study["suts"].append({"name": "third", "adapter": "probe"})


CHANGES: dict[str, tuple[Callable[[GoodStudy], object], int, str]] = {
    "nothing": (lambda _: None, ALL, ""),
    "a picture": (changed_picture, ALL // 2, "6.png"),
    "a picture lost": (lost_picture, ALL // 2, "6.png"),
    "the model": (another_model, ALL // 2, "SUT probe changed"),
    "the model's place": (renamed_model, ALL, ""),
    "the truth": (another_truth, ALL, "the annotations changed"),
    "the seed": (lambda s: s.study.update(seed=5), ALL // 2, "the seed changed"),
    "an option of the SUT": (lambda s: s.sut(mood="empty"), ALL // 2, "SUT probe changed"),
    "a mutation more": (
        lambda s: s.study["mutations"].append("brightness(scale=2)"),
        ALL,
        "mutation brightness(scale=2) is new",
    ),
    "a mutation less": (
        lambda s: s.study.pop("mutations"),
        ALL // 2,
        "mutation salt_pepper(fraction=0.01) is gone",
    ),
    "a SUT more": (another_sut, ALL, "SUT third is new"),
    "a SUT less": (lambda s: s.study["suts"].pop(), ALL // 2, "SUT other is gone"),
    "the statistics": (lambda s: s.study.update(fpr_max=0.2), ALL, "the statistics settings changed"),
    "a data option": (lambda s: s.study["data"].update(exif="ignore"), 0, "the data options changed"),
}
"""What is changed, how many images are still good, and the words that say so."""


@pytest.mark.fault(48)
@pytest.mark.parametrize("name", CHANGES)
def test_only_what_a_change_touches_is_run_again(done: GoodStudy, name: str) -> None:
    change, kept, words = CHANGES[name]
    change(done)
    done.rewrite()
    said = done.adverse()
    told = f"{kept} of" if kept else ""
    assert said.code in (PASS, 3)
    assert told in said.text
    assert (SINCE in said.text) == bool(words), said.text
    assert words in said.text
    assert ("images were done before" in said.text) == bool(kept)


@pytest.mark.fault(48)
def test_a_changed_plug_in_is_run_again(coco: GoodStudy) -> None:
    """In processes of their own, as no process imports a file twice."""
    coco.write()
    command = ("-m", "adverse", "run", coco.file, "--out", coco.run, "--workers", "0")
    run_alone(*command).expect(PASS)
    probe = coco.folder / "probe.py"
    probe.write_text(probe.read_text().replace("> 150", "> 255"))
    said = run_alone(*command)
    said.expect(PASS, f"{SINCE}SUT probe changed", "16/16 images done")
    assert {row["area"] for row in coco.rows()} == {0.0}


def test_fresh_starts_over(done: GoodStudy) -> None:
    said = done.adverse("run", "--fresh")
    said.expect(PASS, "32/32 images done")
    assert "done before" not in said.text


def test_a_journal_cut_short(done: GoodStudy) -> None:
    """As kill -9 or a power cut leaves it: what was acknowledged counts, the rest is run again."""
    before = done.summary()
    journal = done.run / "journal"
    journal.write_bytes(journal.read_bytes()[:-20])
    done.adverse("plan").expect(PASS, "16 to do")
    assert not journal.read_bytes().endswith(b"\n")  # to plan changes nothing
    said = done.adverse()
    said.expect(PASS, "the last line of the journal was never finished", "16 of 32 images were done before")
    assert done.summary() == before
    done.adverse("verify").expect(PASS)


@pytest.mark.fault(50)
def test_a_journal_damaged_in_the_middle(done: GoodStudy) -> None:
    journal = done.run / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0].replace(b"salt", b"malt") + b"".join(lines[1:]))
    for command in ("run", "plan"):
        done.adverse(command).expect(CANNOT_RUN, "run/journal, line 1", "damaged", "--fresh")
    done.adverse("run", "--fresh").expect(PASS)


@pytest.mark.fault(50)
def test_detections_changed_by_hand_are_run_again_once(coco: GoodStudy) -> None:
    """Also when a SUT that wavers answers differently the second time."""
    coco.sut(mood="non-determinism")
    coco.adverse().expect(PASS)
    path = min((coco.run / "detections").iterdir())
    path.write_bytes(b"")
    words = f"detections/{path.name} was changed or lost; its part is run again"
    coco.adverse().expect(PASS, words, "8 of 16 images were done before")
    said = coco.adverse()
    said.expect(PASS, "16 of 16 images were done before")
    assert "changed or lost" not in said.text


def test_detections_that_are_lost_and_no_longer_needed(done: GoodStudy) -> None:
    """A model that changed makes its old detections worthless; damage to them must not matter for ever."""
    for path in (done.run / "detections").iterdir():
        path.write_bytes(b"")
    another_model(done)
    done.adverse().expect(PASS, "was changed or lost", "SUT probe changed", "32/32 images done")
    done.adverse("verify").expect(PASS)


@pytest.mark.fault(50)
def test_a_manifest_changed_by_hand(done: GoodStudy) -> None:
    manifest = done.run / "manifest.json"
    manifest.write_text(manifest.read_text().replace("bad day", "good day"))
    done.adverse().expect(CANNOT_RUN, str(manifest), "changed", "--fresh")
