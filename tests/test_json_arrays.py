"""The compiled scan against Python's own parser: they accept the same texts and read the same values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adverse import json_arrays
from adverse.errors import DataError
from adverse.json_arrays import JsonArrays
from adverse.strict_json import parse_json

PATH = Path("annotations.json")
ANY: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[Any])


@pytest.fixture(autouse=True, scope="module")
def every_file_is_large() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_arrays, "SMALL_BYTES", -1)
        yield


def elements(arrays: JsonArrays, name: str | None) -> list[Any]:
    found: list[Any] = []
    for first, entries, values in arrays.blocks(name, ANY):
        assert first == len(found)
        found += values if entries is None else entries
    return found


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(PLAIN, st.booleans(), st.sampled_from([None, 1]))
def test_what_json_writes_is_read_back(value: Any, ascii_only: bool, indent: int | None) -> None:  # noqa: FBT001
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    for data in (text, b"\xef\xbb\xbf" + text):
        arrays = JsonArrays(data, PATH, "any")
        outline = arrays.outline()
        if isinstance(value, list):
            assert outline == []
            assert elements(arrays, None) == value
        elif isinstance(value, dict):
            assert outline == {key: [] if isinstance(part, list) else part for key, part in value.items()}
            for key, part in value.items():
                if isinstance(part, list):
                    assert elements(arrays, key) == part
                    assert arrays.first(key) == (part[0] if part else None)
        else:
            assert outline == value


SYNTAX = st.text(st.sampled_from('{}[]",:\\u0d8Dc1.-+eE tfnNaI\n\x01é'), max_size=12)


@pytest.mark.fault(26)
@settings(max_examples=400, deadline=None)
@given(PLAIN.map(json.dumps), st.integers(0, 200), st.integers(0, 4), SYNTAX, st.booleans())
@example('{"a": 1, "\\u0061": 2}', 0, 0, "", True)
@example('["\\ud83d\\ude00", "\\ud83d"]', 0, 0, "", True)
@example("[-Infinity, NaN, -0, 01]", 0, 0, "", True)
@example("[-Infinity, NaN, -0, 1e999]", 0, 0, "", True)
@example("[1,]", 0, 0, "", True)
@example("[" * 200_000, 0, 0, "", False)
def test_it_refuses_what_the_slow_parser_refuses(
    text: str,
    at: int,
    cut: int,
    put: str,
    nan: bool,  # noqa: FBT001
) -> None:
    at = min(at, len(text))
    data = (text[:at] + put + text[at + cut :]).encode()
    try:
        wanted = parse_json(data, PATH, "any", allow_nan=nan)
    except DataError:
        with pytest.raises(DataError):
            JsonArrays(data, PATH, "any", allow_nan=nan)
    else:
        outline = JsonArrays(data, PATH, "any", allow_nan=nan).outline()
        assert type(outline) is type(wanted)


@pytest.mark.fault(26)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"a": [1, 2}', ["unexpected '}'", "line 1 column 12"]),
        (b'{"a": 1,\n "b": }', ["line 2 column 7"]),
        (b'{"images": [{"id": 1}, {"id', ["too early", "line 1 column 28", "byte 27"]),
        (b'{"a": 1}\n{"b": 2}', ["line 2 column 1"]),
        (b'{"ok": {"k": "}{"},\n  "bad": {"k": 1, "k": 2}}', ["'k' twice", "line 2 column 10"]),
        (json.dumps({str(n): 0 for n in range(60)})[:-1].encode() + b', "7": 1}', ["'7' twice", "column 1 "]),
        (b'{"s": "NaN \\" NaN",\n "x": NaN}', ["NaN at line 2 column 7"]),
        (b"[1,\n -Infinity]", ["-Infinity at line 2 column 2"]),
        (b"[" * 200_000, ["nested too deeply"]),
        (b"9" * 5000, ["digits"]),
        (b'["\xc3\xa9", "\xff"]', ["byte 8 is not UTF-8"]),
        (b'["\\ud83d"]', ["half a character", "column 3"]),
    ],
)
def test_errors_name_file_and_place(text: bytes, words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        JsonArrays(text, PATH, "annotation")
    for word in [*words, str(PATH), "annotation file"]:
        assert word in str(caught.value)


def test_arrays_come_in_blocks_and_only_odd_blocks_as_values() -> None:
    count = 5000
    entries: list[Any] = [{"id": number} for number in range(count)]
    entries[3000]["id"] = "three thousand"
    text = json.dumps({"other": 1, "rows": entries, "none": []}).encode()
    arrays = JsonArrays(text, PATH, "any")

    class Row(msgspec.Struct):
        id: int

    blocks = list(arrays.blocks("rows", msgspec.json.Decoder(list[Row])))
    assert len(blocks) == 3
    assert [block.entries is None for block in blocks] == [False, True, False]
    found = [row.id if isinstance(row, Row) else row["id"] for b in blocks for row in b.entries or b.values]
    assert found == [entry["id"] for entry in entries]
    assert arrays.outline() == {"other": 1, "rows": [], "none": []}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1" * 4300, None),
        ("0." + "3" * 5000, None),
        ('"' + "1" * 5000 + '"', None),
        ('"' + "[" * 5000 + '"', None),
        ("1" * 4301, "a number of more than 4300 digits at line 1 column 8"),
        ("-" + "1" * 5000 + ".5", "a number of more than 4300 digits at line 1 column 8"),
        ("[" * 498 + "]" * 498, None),
        ("[" * 499 + "]" * 499, "objects nested too deeply"),
        ("[" * 5000 + "]" * 5000, "objects nested too deeply"),
    ],
)
def test_small_and_large_files_have_the_same_limits(
    value: str, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str | None] = []
    for small in (2**21, -1):
        monkeypatch.setattr(json_arrays, "SMALL_BYTES", small)
        try:
            JsonArrays(f'{{"a": [{value}]}}'.encode(), Path("a.json"), "annotation")
        except DataError as error:
            said.append(str(error))
        else:
            said.append(None)
    assert said[0] == said[1]
    assert (said[0] is None) == (message is None)
    assert (message or "") in (said[0] or "")
