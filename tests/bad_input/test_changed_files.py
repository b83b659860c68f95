"""Files that change where nobody expects it: beside a model, or while a study runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from .cases import CANNOT_RUN, PASS
from .good_study import BOX, HEIGHT, WIDTH, GoodStudy


def external_model(folder: Path, score: float) -> Path:
    """Write a detector that sees the figure on every picture; the answer is in a file beside it."""
    x, y, width, height = BOX
    table = np.array([[[x, y, x + width, y + height, score, 0]]], np.float32)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["dets"])],
        "constant",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 3, HEIGHT, WIDTH))],
        [helper.make_tensor_value_info("dets", TensorProto.FLOAT, table.shape)],
        [numpy_helper.from_array(table, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "model.onnx"
    (folder / "model.weights").unlink(missing_ok=True)
    onnx.save(model, str(path), save_as_external_data=True, location="model.weights", size_threshold=0)
    return path


@pytest.fixture
def external(coco: GoodStudy) -> GoodStudy:
    path = external_model(coco.folder, 0.9)
    coco.study["suts"] = [
        {"name": "net", "adapter": "onnx", "model": path.name, "decoder": "decoded", "classes": ["person"]}
    ]
    return coco


def test_other_weights_beside_a_model_are_another_model(external: GoodStudy) -> None:
    external.adverse().expect(PASS, "16/16 images done")
    weights = external.folder / "model.weights"
    before = (external.folder / "model.onnx").read_bytes(), weights.stat().st_size
    external_model(external.folder, 0.0001)  # under the threshold: no detections at all
    assert before == ((external.folder / "model.onnx").read_bytes(), weights.stat().st_size)
    external.adverse("verify").expect(CANNOT_RUN, str(weights), "changed")
    external.adverse().expect(PASS, "SUT net changed", "16/16 images done")
    assert {row["area"] for row in external.rows()} == {0.0}
    external.adverse("verify").expect(PASS)
