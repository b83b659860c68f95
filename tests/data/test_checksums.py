"""A data set that carries hashes is held to them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from adverse.content import content_hashes
from adverse.data.checksums import mismatches
from adverse.errors import DataError
from bad_input.command import adverse_here
from bad_input.good_study import GoodStudy


def listed(folder: Path, *names: str) -> None:
    """Write the list with the program that everybody uses."""
    made = subprocess.run(["sha256sum", *names], cwd=folder, check=True, capture_output=True)
    (folder / "SHA256SUMS").write_bytes(made.stdout)


def test_a_replaced_file_is_named_and_others_pass(tmp_path: Path) -> None:
    for name in ("a.png", "b c.png", "free.png"):
        (tmp_path / name).write_bytes(name.encode())
    listed(tmp_path, "a.png", "b c.png")
    paths = [tmp_path / name for name in ("a.png", "b c.png", "free.png")]
    assert list(mismatches(content_hashes(paths))) == []
    paths[1].write_bytes(b"another")
    (error,) = mismatches(content_hashes(paths))
    assert error.where == str(paths[1])
    paths[0].unlink()
    assert len(list(mismatches(content_hashes(paths)))) == 1, "a missing file costs its frame, as elsewhere"


def test_a_list_that_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"a")
    (tmp_path / "SHA256SUMS").write_text("md5 of something  a.png\n")
    with pytest.raises(DataError, match="line 1"):
        list(mismatches(content_hashes([tmp_path / "a.png"])))


@pytest.mark.fault(2)
def test_a_study_does_not_run_on_data_that_changed(tmp_path: Path) -> None:
    study = GoodStudy(tmp_path / "study", "coco")
    study.write()
    image = study.images[0]
    listed(image.parent, *(path.name for path in study.images if path.parent == image.parent))
    study.adverse("plan").expect(0)
    image.write_bytes(study.images[1].read_bytes())
    adverse_here("data", "check", study.file).expect(1, "is not what its data set says")
    study.adverse("run").expect(2, "is not what its data set says", image.name, "SHA256SUMS")
