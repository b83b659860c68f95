from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from adverse.data.files import read_json, read_model
from adverse.errors import DataError


@pytest.mark.fault(26)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": [1, 2}', ["line 1 column 12"]),
        ('{"a": 1,\n "b": }', ["line 2 column 7"]),
        ("", ["line 1 column 1"]),
        ('{"a": 1}\n{"b": 2}', ["line 2 column 1"]),
        ('{"ok": {"k": "}{"},\n  "bad": {"k": 1, "k": 2}}', ["'k' twice", "line 2 column 10"]),
        ('{"a": 1, "a": {"b": "{"}}', ["'a' twice", "line 1 column 1"]),
        ('{"s": "NaN \\" NaN",\n "x": NaN}', ["NaN at line 2 column 7"]),
        ("[1,\n -Infinity]", ["-Infinity at line 2 column 2"]),
        ("[" * 200_000, ["nested too deeply"]),
        ("9" * 5000, ["digits"]),
    ],
)
def test_broken_json_names_file_and_place(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "truth.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_json(path, "annotation")
    for word in [*words, str(path), "annotation file"]:
        assert word in str(caught.value)
    assert caught.value.fix


@pytest.mark.fault(26)
def test_text_that_is_not_utf8_is_refused_and_a_byte_order_mark_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(DataError, match="byte 7 is not UTF-8"):
        read_json(path, "camera")
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(path, "camera") == {"a": 1}


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=50, deadline=None)
@given(PLAIN)
def test_what_json_writes_is_read_back(value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_text(json.dumps(value))
        assert read_json(path, "any") == value


class Point(BaseModel):
    x: int


class Points(BaseModel):
    points: list[Point]


@pytest.mark.parametrize(
    ("text", "field", "got"),
    [
        ("{}", "field points", "nothing"),
        ('{"points": [{"x": 1}, {"x": "2"}]}', "field points[1].x", "'2'"),
        ('{"points": {}}', "field points", "{}"),
        ("[]", "field (top)", "[]"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, text: str, field: str, got: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_model(path, "point", Points)
    assert caught.value.where == f"{path}, {field}"
    assert caught.value.got == got
    assert caught.value.fix
