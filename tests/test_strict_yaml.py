"""Strict YAML: plain values, numbers as people write them, and the line of every value."""

from __future__ import annotations

from pathlib import Path

import pytest

from adverse.errors import StudyError
from adverse.strict_yaml import YamlFile, read_yaml


def read(tmp_path: Path, text: str) -> YamlFile:
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    return read_yaml(tmp_path / "study.yaml")


@pytest.mark.fault(27)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1E3", 1000.0),
        ("-2.5e2", -250.0),
        ("7", 7),
        ("0.5", 0.5),
        ("-0", 0),
        ("+1.5e3", 1500.0),
        ("'010'", "010"),
        (".inf", float("inf")),
        ("true", True),
        ("null", None),
        ("'7'", "7"),
        ("[1, a]", [1, "a"]),
        ("{a: {b: 1}}", {"a": {"b": 1}}),
        ("e5", "e5"),
        ("1e", "1e"),
    ],
)
def test_values(tmp_path: Path, text: str, value: object) -> None:
    assert read(tmp_path, f"x: {text}\n").data == {"x": value}


def test_lines_and_places(tmp_path: Path) -> None:
    file = read(tmp_path, "name: x\nsuts:\n  - name: a\n    model: b\n")
    path = tmp_path / "study.yaml"
    assert file.where(("suts", 0, "model")) == f"{path}, line 4, suts[0].model"
    assert file.where(("suts", 0, "decoder")) == f"{path}, line 3, suts[0].decoder"  # nearest that is there
    assert file.where(()) == f"{path}, line 1"


def test_aliases_are_fine_in_moderation(tmp_path: Path) -> None:
    assert read(tmp_path, "a: &a [1, 2]\nb: *a\n").data == {"a": [1, 2], "b": [1, 2]}


def test_a_byte_order_mark_is_no_key(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeffname: x\n").data == {"name": "x"}


@pytest.mark.fault(27)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3"),
        ("x: !!python/name:os.system\n", "no tags"),
        ("x: !!python/object/apply:os.system [ls]\n", "no tags"),
        ("x: !!python/object:os.Path {a: 1}\n", "no tags"),
        ("x: !!set {a, b}\n", "no tags"),
        ("x: !mine 1\n", "no tags"),
        ("x: 2020-01-01\n", "no tags"),
        ("x: !!binary aGk=\n", "no tags"),
        ("? [a]\n: 1\n", "a key must be a plain word"),
        ("x: !!int seven\n", "otherwise than people do"),
        ("x: 010\n", "plain digits"),
        ("x: {01: person}\n", "plain digits"),
        ("x: 1:30\n", "plain digits"),
        ("x: 1_000\n", "plain digits"),
        ("x: 0x10\n", "plain digits"),
        ("x: 1_0.5\n", "plain digits"),
        ("a: *nowhere\n", "not valid YAML"),
        ("a: 1\n--- \nb: 2\n", "not valid YAML"),
        ("x: [1\n", "not valid YAML"),
        ("x: &x [*x]\n", "too deeply"),
        (f"x: {'[' * 60}{']' * 60}\n", "too deeply"),
        (f"x: {'[' * 50_000}\n", "too deeply"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(1500)), "too deeply"),
    ],
)
def test_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        read(tmp_path, text)
    assert words in str(caught.value)
    assert str(tmp_path / "study.yaml") in str(caught.value.where)
    assert caught.value.fix
