"""The litert adapter: tiny models whose outputs are known, quantized or not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.errors import SutError
from adverse.plugins import bind, by_options, load
from adverse.suts.ask import ask
from adverse.suts.litert import litert_model as litert_adapter
from tiny_tflite import write_tflite

litert_model = by_options(litert_adapter)

NAMES = ["person", "car"]
IMAGE = np.full((50, 100, 3), 90, np.uint8)
POST = "TFLite_Detection_PostProcess"


def f32(values: Any) -> NDArray[np.float32]:
    return np.array(values, np.float32)


TABLE = f32([[[10, 5, 30, 15, 0.75, 1], [1, 1, 2, 2, 0.0005, 0]]])
YOLO = f32([[[20, 10, 20, 10, 1.0, 0.125, 0.75], [9, 9, 4, 4, 0.0005, 1, 0]]])
SSD = {
    POST: f32([[[0.2, 0.2, 0.6, 0.6], [0, 0, 1, 1]]]),
    f"{POST}:1": f32([[1, 0]]),
    f"{POST}:2": f32([[0.75, 0.5]]),
    f"{POST}:3": f32([1]),
}


@pytest.mark.parametrize(
    ("decoder", "outputs"), [("decoded", {"dets": TABLE}), ("yolo", {"out": YOLO}), ("ssd", SSD)]
)
def test_what_the_decoders_read(decoder: Any, outputs: dict[str, NDArray[Any]], tmp_path: Path) -> None:
    detector: Any = litert_model(write_tflite(tmp_path / "a.tflite", outputs), decoder, classes=NAMES)
    answers: Any = ask(detector, [IMAGE, IMAGE], name="tiny")
    assert detector.classes == tuple(NAMES)
    for answer in answers:
        np.testing.assert_allclose(answer.boxes, [[20, 10, 60, 30]], atol=1e-4)
        np.testing.assert_allclose(answer.scores, [0.75], atol=1e-6)
        assert answer.labels.tolist() == [1]
    assert detector.detect([]) == []


@pytest.mark.parametrize(
    ("kind", "steps", "scale"),
    [
        ("float32", None, 1 / 255),
        ("uint8", (1 / 255, 0), None),  # bytes as they are; the model itself makes 0..1 of them
        ("int8", (1 / 255, -128), 1 / 255),  # real numbers 0..1, quantized here
    ],
)
def test_each_image_is_seen_through_any_kind_of_input(
    kind: str, steps: tuple[float, int] | None, scale: float | None, tmp_path: Path
) -> None:
    arrays = {"boxes": TABLE[:, :1, :4], "scores": f32([[0]]), "labels": f32([[1]])}
    path = write_tflite(tmp_path / "a.tflite", arrays, kind=kind, steps=steps, sees="scores")
    detector: Any = litert_model(path, "decoded", classes=NAMES, scale=scale)
    images = [np.full((50, 100, 3), value, np.uint8) for value in (51, 102, 255)]
    scores = [float(answer.scores[0]) for answer in detector.detect(images)]
    np.testing.assert_allclose(scores, [0.2, 0.4, 1.0], atol=2e-3)


def test_quantized_outputs_become_real_numbers(tmp_path: Path) -> None:
    path = write_tflite(tmp_path / "a.tflite", {"dets": TABLE}, output_steps=(0.25, 0))
    detector: Any = litert_model(path, "decoded", classes=NAMES)
    (answer,) = detector.detect([IMAGE])
    np.testing.assert_allclose(answer.boxes, [[20, 10, 60, 30]], atol=1e-4)
    np.testing.assert_allclose(answer.scores, [0.75])


def test_not_a_number_is_a_fault(tmp_path: Path) -> None:
    table = TABLE.copy()
    table[0, 0, 4] = np.nan
    detector: Any = litert_model(
        write_tflite(tmp_path / "a.tflite", {"dets": table}), "decoded", classes=NAMES
    )
    with pytest.raises(SutError, match="finite"):
        ask(detector, [IMAGE], name="tiny")


@pytest.mark.parametrize(
    ("model", "options", "told"),
    [
        ({"outputs": {"a": TABLE, "b": TABLE}}, {}, "outputs a, b"),
        ({"shape": (1, 25, 50, 1)}, {}, "which axis holds the channels"),
        ({"shape": (1, 3750)}, {}, "not a batch of images"),
        ({"kind": "uint8", "steps": (1.0, 0)}, {"scale": 0.5}, "Take out scale:"),
        ({}, {"decoder": "yolo"}, "(N, 7)"),
        ({}, {"outputs": ["c"]}, "no output 'c'"),
    ],
)
def test_a_model_that_does_not_fit_is_found_when_it_is_built(
    model: dict[str, Any], options: dict[str, Any], told: str, tmp_path: Path
) -> None:
    path = write_tflite(tmp_path / "a.tflite", **{"outputs": {"dets": TABLE}, **model})
    with pytest.raises(SutError) as caught:
        litert_model(path, **{"decoder": "decoded", "classes": NAMES, **options})
    assert told in str(caught.value)


def test_bad_files_are_told_by_name(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tflite"
    bad.write_bytes(b"<html>not found</html>")
    for path in (bad, tmp_path / "gone.tflite"):
        with pytest.raises(SutError, match="cannot load") as caught:
            litert_model(path, "decoded")
        assert path.name in str(caught.value)


def test_without_the_extra_the_command_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = write_tflite(tmp_path / "a.tflite", {"dets": TABLE})
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(SutError, match="not installed") as caught:
        litert_model(path, "decoded")
    assert 'pip install "adverse[litert]"' in str(caught.value)


def test_a_study_can_say_it(tmp_path: Path) -> None:
    plugin = load().get("sut", "litert")
    write_tflite(tmp_path / "a.tflite", {"dets": TABLE})
    given = {"model": "a.tflite", "decoder": "decoded", "classes": NAMES, "mean": [0.5, 0, 0]}
    options = bind(plugin, given, where="suts[0]", base=tmp_path)
    assert len(plugin.function(**options).detect([IMAGE])[0]) == 1
