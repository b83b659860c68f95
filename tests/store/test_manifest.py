"""A run folder of another version is named as such."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adverse.errors import StoreError
from adverse.store import folder
from adverse.store.finished_run import finished
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import read_study
from small_study import write_study
from watching import Quiet


@pytest.mark.fault(50)
def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = write_study(tmp_path, frames=2, logs=1, size=(32, 24), sleep_s=0)
    monkeypatch.setattr(folder, "FORMAT", 0)
    run_study(read_study(study), tmp_path / "run", InlineEngine(), watch=Quiet(), stop=Stop())
    monkeypatch.undo()
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["format"] == 0
    with pytest.raises(StoreError, match="another version"):
        finished(tmp_path / "run")
