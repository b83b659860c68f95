"""A SUT is called nondeterministic for different answers alone, never because it failed one of two times.

And what else does not repeat: SUTs that remember the images before, and mutations that draw by themselves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import adverse
from adverse import Detections
from adverse.analysis.results import read_summary
from adverse.errors import SutError
from adverse.report.remarks import remarks
from adverse.requirements.run_figures import RunFigures
from adverse.store.earlier_attempts import attempts_in, with_earlier
from adverse.store.finished_run import finished
from adverse.store.records import Failure, Record, to_parquet
from adverse.study.sut_queue import _equal
from bad_input.good_study import GoodStudy

ONE, OTHER = Detections([[1, 1, 5, 5]], [0.5]), Detections([[1, 1, 5, 6]], [0.5])


def test_only_answers_are_compared() -> None:
    failed = SutError("no")
    assert _equal(ONE, ONE) is True
    assert _equal(ONE, OTHER) is False
    assert [_equal(ONE, failed), _equal(failed, ONE), _equal(failed, failed)] == [None] * 3


@pytest.mark.parametrize(
    "case",
    [
        (False, True, True, True),  # as earlier versions said of a SUT that failed one of the two times
        (False, False, True, False),  # two answers did differ: asked again or not, that has been seen
        (None, True, False, False),
        (None, True, None, None),
    ],
)
def test_the_claim_is_renewed_when_faults_are_asked_again(
    tmp_path: Path, case: tuple[bool | None, bool, bool | None, bool | None]
) -> None:
    before, failed, after, said = case  # repeats of the first run, whether it failed once; of the second
    failures = (Failure("exception", "no"),) if failed else ()
    again = Record("f", "identity", "s", status="ok", attempts=2, repeats=after)
    first = replace(again, status="fault", failed_attempts=1, failures=failures, repeats=before)
    (tmp_path / "first.parquet").write_bytes(to_parquet([first]))
    earlier = attempts_in(tmp_path / "first.parquet", [("identity", "s")])
    (tmp_path / "both.parquet").write_bytes(with_earlier(to_parquet([again]), earlier))
    (row,) = pq.read_table(tmp_path / "both.parquet").to_pylist()
    assert (row["repeats"], row["attempts"]) == (said, 4)


Answers = list[tuple[list[list[int]], list[float]]]


def steady() -> Callable[[Sequence[Any]], Answers]:
    return lambda images: [([[1, 1, 9, 9]], [float(image.mean()) / 255]) for image in images]


def tracker() -> Callable[[Sequence[Any]], Answers]:
    """Smooth over the image before; the same one twice in a row is one scene, and answered alike."""
    seen: list[tuple[bytes, float]] = [(b"", 0.0), (b"", 0.0)]

    def detect(images: Sequence[Any]) -> Answers:
        answers: Answers = []
        for image in images:
            if image.tobytes() != seen[-1][0]:
                seen.append((image.tobytes(), float(image.mean()) / 255))
            answers.append(([[1, 1, 9, 9]], [(seen[-2][1] + seen[-1][1]) / 2]))
        return answers

    return detect


def dice() -> Callable[[Sequence[Any]], Answers]:
    numbers = itertools.count()
    return lambda images: [([[1, 1, 9, 9]], [1 / (2 + next(numbers))]) for _ in images]


JITTERS = """
import numpy as np
from adverse import mutation

@mutation
def own(image):
    '''Draw from the generator that everybody shares.'''
    return image + np.random.randint(1, 9, image.shape, np.uint8)

@mutation
def given(image, *, rng):
    '''Draw from the generator of this image.'''
    return image + rng.integers(1, 9, image.shape, np.uint8)
"""


@pytest.mark.fault(38)
def test_what_does_not_repeat_is_said_everywhere(tmp_path: Path) -> None:
    """In one run: a SUT for each way, and a mutation of each kind. No verdict is without the remark."""
    coco = GoodStudy(tmp_path / "study", "coco")
    coco.rewrite()
    (coco.folder / "jitters.py").write_text(JITTERS)
    study = {
        "name": "again",
        "data": coco.study["data"] | {"root": str(coco.data)},
        "plugins": [str(coco.folder / "jitters.py")],
        "mutations": ["own", "given"],
        "unit_frames": 2,
        "robustness": {"bootstrap": 0},
    }
    detectors = {"steady": steady(), "tracker": tracker(), "dice": dice()}
    adverse.run(study, coco.run, detectors=detectors)
    store = finished(coco.run)
    counts = store.counts()
    asked = {sut: sum(row["attempts"] for row in counts if row["sut"] == sut) for sut in detectors}
    assert asked["steady"] == 8 * 3 + 8  # each clean image twice, whenever that is
    summary = read_summary(store)
    names = ("nondeterministic", "order_dependent")
    kinds = {sut: [row[name] > 0 for name in names] for sut, row in summary.data["counts"].items()}
    assert kinds == {"steady": [False, False], "tracker": [False, True], "dice": [True, False]}
    said = "\n".join(remarks(summary))
    assert "tracker: its answers depend on the order of images" in said
    assert "mutation own does not repeat: other pixels on 8 frames" in said
    assert "use the rng it is given" in said
    assert "mutation given does" not in said
    verdicts = RunFigures(store, summary=summary)
    assert any("does not repeat" in line for line in verdicts.remarks("steady"))
    assert any("order of images" in line for line in verdicts.remarks("tracker"))
    assert list(store.unrepeated_mutations()) == ["own"]
