"""A SUT is called nondeterministic for different answers alone, never because it failed one of two times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adverse import Detections
from adverse.errors import SutError
from adverse.store.earlier_attempts import attempts_in, with_earlier
from adverse.store.records import Failure, Record, to_parquet
from adverse.study.sut_queue import _equal

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
