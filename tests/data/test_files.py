from __future__ import annotations

from pathlib import Path

import pytest

from adverse.data.files import inside, read_bytes
from adverse.errors import DataError


@pytest.mark.fault(24)
@pytest.mark.parametrize(
    ("relative", "word"),
    [
        ("../secret.png", "leaves"),
        ("a/../../secret.png", "leaves"),
        ("/etc/passwd", "absolute"),
        ("~/secret.png", "absolute"),
        ("", "empty"),
        ("a\0.png", "NUL"),
        ("x" * 300 + ".png", "304 characters"),
        ("link/secret.png", "symlink"),
        ("file.png", "symlink"),
        ("dangling.png", "symlink"),
        ("loop.png", "cannot be used"),
    ],
)
def test_a_path_that_leaves_its_root_is_refused(tmp_path: Path, relative: str, word: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret.png").write_bytes(b"x")
    (root / "link").symlink_to(outside)
    (root / "file.png").symlink_to(outside / "secret.png")
    (root / "dangling.png").symlink_to(tmp_path / "nowhere.png")
    (root / "loop.png").symlink_to(root / "loop.png")
    with pytest.raises(DataError) as caught:
        inside(root, relative, where="truth.json, field images[3].file_name")
    assert word in str(caught.value)
    assert "images[3].file_name" in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize(
    "relative", ["a.png", "row 3/写真-é.png", "./a.png", "alias/a.png", "not/there.png", "a..b.png"]
)
def test_a_path_below_its_root_is_kept(tmp_path: Path, relative: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    assert inside(tmp_path, relative, where="x") == tmp_path / relative


def test_a_root_that_is_itself_a_symlink_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.png").write_bytes(b"x")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    assert read_bytes(inside(tmp_path / "alias", "a.png", where="x"), what="image") == b"x"


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read") as caught:
        read_bytes(tmp_path / ("y" * 300), what="pose")
    assert "too long" in str(caught.value)
    assert caught.value.fix
