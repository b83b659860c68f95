"""No file operation of a run at which it may be stopped loses or changes a result."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bad_input.command import run_alone

PARTS = 2
SWEEP = Path(__file__).with_name("every_operation.py")


@pytest.mark.fault(42, 43, 44, 45)
@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of open files from /proc")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_run_that_is_stopped_anywhere_is_resumed_as_if_nothing_had_been(tmp_path: Path, part: int) -> None:
    """Kill, half write, power cut, ENOSPC, EIO and EACCES, at each operation; see `every_operation.py`."""
    said = run_alone(SWEEP, tmp_path, str(part), str(PARTS))
    assert said.code == 0, said.text
    swept = json.loads(said.text)
    assert swept["wrong"] == [], "\n".join(swept["wrong"][:5])
    assert swept["operations"] > 190
    assert swept["resumed"] > 45
