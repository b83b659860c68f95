from __future__ import annotations

from pathlib import Path

import pytest

from adverse.errors import DataError
from adverse.strict_json import read_json


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": [1, 2.5, null, "\xc3\xa4"], "b": {"a": true}}')
    assert read_json(path) == {"a": [1, 2.5, None, "ä"], "b": {"a": True}}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"a": 1,\n "b": }', "line 2, column 7"),
        (b"", "line 1, column 1"),
        (b'[{"x": 1}, {"id": 1, "id": 2}]', "'id'"),
        (b"[NaN]", "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e999]", "1e999"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"[" * 200_000, "nested"),
    ],
)
def test_what_others_let_pass_is_refused_with_its_place(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_json(path)
    assert told in str(caught.value)
    assert "bad.json" in str(caught.value)


def test_numbers_that_are_not_finite_can_be_allowed(tmp_path: Path) -> None:
    path = tmp_path / "nan.json"
    path.write_text("[NaN, 1e999, 2]", "utf-8")
    first, second, third = read_json(path, allow_nan=True)
    assert first != first  # noqa: PLR0124 - NaN is what differs from itself
    assert (second, third) == (float("inf"), 2)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read") as caught:
        read_json(tmp_path / "gone.json")
    assert "gone.json" in str(caught.value)
