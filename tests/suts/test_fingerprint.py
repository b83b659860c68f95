from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from adverse.content import file_sha256
from adverse.errors import StudyError
from adverse.plugins import Plugin, sut
from adverse.suts.fingerprint import described, fingerprint

LOADED: list[str] = []


@sut(name="model", libraries=("numpy",), extra_files=lambda options: options.get("more", []))
def model(
    weights: Path,
    *,
    threshold: float = 0.5,
    tables: list[Path] | None = None,
    more: list[str] | None = None,
    cwd: Path | None = None,
) -> None:
    LOADED.append(f"{weights}{threshold}{tables}{more}{cwd}")


def plugin() -> Plugin:
    found: Plugin = model.__adverse__  # type: ignore[attr-defined]
    return found


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def key(**options: Any) -> str:
    return fingerprint(plugin(), options)


def test_content_counts_and_place_does_not(tmp_path: Path) -> None:
    here = written(tmp_path / "a" / "w.bin", "weights")
    there = written(tmp_path / "b" / "renamed.bin", "weights")
    other = written(tmp_path / "c" / "w.bin", "weightz")
    assert key(weights=here) == key(weights=there)
    assert key(weights=here) != key(weights=other)
    assert not LOADED


def test_settings_count_and_their_order_does_not(tmp_path: Path) -> None:
    weights = written(tmp_path / "w.bin", "weights")
    base = key(weights=weights)
    assert fingerprint(plugin(), {"threshold": 0.25, "weights": weights}) == key(
        weights=weights, threshold=0.25
    )
    assert key(weights=weights, threshold=0.25) != base
    assert key(weights=weights, threshold=0.5) == base, "saying the default changes nothing"
    assert key(weights=weights, cwd=tmp_path) == base, "where a program runs is not what it is"


def test_files_in_lists_folders_templates_and_extra_files_count(tmp_path: Path) -> None:
    weights = written(tmp_path / "w.bin", "weights")
    table = written(tmp_path / "t.txt", "one")
    folder = written(tmp_path / "model" / "deep" / "part.bin", "part").parents[1]
    answers = written(tmp_path / "answers" / "identity.json", "[]")
    cases: list[tuple[Path, dict[str, Any]]] = [
        (table, {"weights": weights, "tables": [table]}),
        (folder / "deep" / "part.bin", {"weights": folder}),
        (answers, {"weights": tmp_path / "answers" / "{mutation}.json"}),
        (table, {"weights": weights, "more": [table]}),
    ]
    for file, options in cases:
        before = fingerprint(plugin(), options)
        content = file.read_text("utf-8")
        file.write_text(content + "!", "utf-8")
        assert fingerprint(plugin(), options) != before, file
        file.write_text(content, "utf-8")
        assert fingerprint(plugin(), options) == before


def test_swapped_files_of_a_template_are_another_system(tmp_path: Path) -> None:
    for folder, first, second in (("a", "1", "2"), ("b", "2", "1")):
        written(tmp_path / folder / "identity.json", first)
        written(tmp_path / folder / "blur(sigma_px=2).json", second)
    a, b = (key(weights=tmp_path / folder / "{mutation}.json") for folder in "ab")
    assert a != b


def test_a_missing_file_names_the_option_and_the_path(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        key(weights=tmp_path / "gone.onnx")
    assert "'weights'" in str(caught.value)
    assert "gone.onnx: No such file" in str(caught.value)
    assert caught.value.fix


def test_the_manifest_form_is_plain_and_holds_hashes_and_versions(tmp_path: Path) -> None:
    weights = written(tmp_path / "w.bin", "weights")
    form = json.loads(json.dumps(described(plugin(), {"weights": weights, "threshold": 0.25})))
    expected = hashlib.sha256(b"weights").hexdigest()
    assert form["files"] == {"weights": {"path": str(weights), "sha256": expected}}
    assert form["options"]["threshold"] == 0.25
    assert form["libraries"]["numpy"]
    assert str(tmp_path) not in json.dumps({**form, "files": None})


def test_large_files_are_hashed_in_pieces(tmp_path: Path) -> None:
    data = bytes(range(256)) * 9000
    (tmp_path / "big").write_bytes(data)
    assert file_sha256(tmp_path / "big") == hashlib.sha256(data).hexdigest()
