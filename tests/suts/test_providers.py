"""Where an ONNX model runs: as the study says, or not at all; and the same bytes for batches of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime
import pytest

from adverse.errors import AdverseError, SutError
from adverse.plugins import bind, by_options, load
from adverse.suts.fingerprint import described, fingerprint_of
from adverse.suts.onnx import onnx_model as onnx_adapter
from adverse.suts.onnx import open_session
from adverse.types import Detector

BUNDLED = Path(onnx_adapter.__code__.co_filename).parent / "bundled"
MODEL = BUNDLED / "orchard-two-stage.onnx"
CUDA = "CUDAExecutionProvider"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"providers": ("cuda", "cpu")}, "no provider 'cuda'.*onnxruntime-gpu, or set providers: \\[cpu\\]"),
        ({"providers": ()}, "at least one provider"),
        ({"providers": ("cpu", "cpu")}, "each once"),
        ({"precision": "tf32"}, "tf32 is for GPUs.*Add cuda"),
    ],
)
def test_what_cannot_run_is_one_error_with_its_fix(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SutError, match=f"(?s){told}"):
        open_session(MODEL, **options)


def test_a_provider_that_does_not_start_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a GPU build on a machine without CUDA: ONNX Runtime would go on with the CPU."""
    whole = onnxruntime.InferenceSession
    asked: list[Any] = []

    def without_cuda(model: Any, options: Any, providers: Any) -> Any:
        asked.append(providers)
        return whole(model, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, "CPUExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", without_cuda)
    with pytest.raises(SutError, match=r"(?s)could not start.*'cuda'.*on CPUExecutionProvider"):
        open_session(MODEL, ("cuda", "cpu"), "tf32")
    (wanted,) = asked
    assert [name for name, _ in wanted[:1]] == [CUDA]
    assert wanted[0][1]["use_tf32"] == "1"
    assert wanted[1:] == ["CPUExecutionProvider"]


def test_provider_and_precision_are_part_of_the_key_and_named_in_the_manifest() -> None:
    plugin = load().get("sut", "onnx")

    def form(**given: Any) -> dict[str, Any]:
        options = {"model": str(MODEL), "decoder": "decoded", **given}
        return described(plugin, bind(plugin, options, where="study", base=Path()))

    plain, gpu, coarse = (
        form(),
        form(providers=["cuda", "cpu"]),
        form(providers=["cuda", "cpu"], precision="tf32"),
    )
    assert len({fingerprint_of(made) for made in (plain, gpu, coarse)}) == 3
    assert fingerprint_of(form(providers=["cpu"], precision="float32")) == fingerprint_of(plain)
    assert (plain["options"]["providers"], plain["options"]["precision"]) == (["cpu"], "float32")
    assert (coarse["options"]["providers"], coarse["options"]["precision"]) == (["cuda", "cpu"], "tf32")
    with pytest.raises(AdverseError, match="providers"):
        form(providers=["gpu"])


def test_detections_are_the_same_bytes_for_any_batch_on_the_cpu() -> None:
    """Written down for the bundled models; others may round differently, so the key has the batch size."""
    options = {"decoder": "decoded", "classes": ["person"], "nms_iou": 0.5, "score_threshold": 1e-6}
    detector = cast("Detector", by_options(onnx_adapter)(MODEL, **options))
    images = [np.random.default_rng(k).integers(0, 256, (120, 160, 3), np.uint8) for k in range(8)]
    alone = [_bytes(detector.detect([image])[0]) for image in images]
    assert all(boxes for boxes, *_ in alone)
    for size in (2, 3, 4, 8):
        together = [
            _bytes(one)
            for start in range(0, 8, size)
            for one in detector.detect(images[start : start + size])
        ]
        assert together == alone


def _bytes(answer: Any) -> tuple[bytes, bytes, bytes]:
    return answer.boxes.tobytes(), answer.scores.tobytes(), answer.labels.tobytes()
