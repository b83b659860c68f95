"""Score cuts inside ONNX models, found in files that the onnx package wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from adverse.suts.score_cuts import declared_cuts, score_cut


def nms_model(path: Path, how: str, cut: float) -> Path:
    """Write a model of one NonMaxSuppression whose score threshold is said in one of the ways there are."""
    tensor = numpy_helper.from_array(np.array([cut], np.float32), "cut")
    if how == "float_data":
        tensor = helper.make_tensor("cut", TensorProto.FLOAT, [1], [cut])
    first: dict[str, list[Any]] = {
        "constant": [helper.make_node("Constant", [], ["cut"], value=tensor)],
        "value_float": [helper.make_node("Constant", [], ["cut"], value_float=cut)],
        "computed": [helper.make_node("ReduceMin", ["scores"], ["cut"], keepdims=0)],
    }
    inputs = ["boxes", "scores", "most", "iou", *([] if how == "none" else ["cut"])]
    nodes = [*first.get(how, []), helper.make_node("NonMaxSuppression", inputs, ["kept"])]
    constants = [
        numpy_helper.from_array(np.array([50], np.int64), "most"),
        numpy_helper.from_array(np.array([0.45], np.float32), "iou"),
        numpy_helper.from_array(np.full((40, 30), 0.75, np.float32), "weights"),
        *([tensor] if how in ("initializer", "float_data") else []),
    ]
    given = [
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, 9, 4]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 2, 9]),
    ]
    out = helper.make_tensor_value_info("kept", TensorProto.INT64, ["n", 3])
    graph = helper.make_graph(nodes, "nms", given, [out], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))
    return path


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("initializer", 0.25),
        ("float_data", 0.25),
        ("constant", 0.25),
        ("value_float", 0.25),
        ("computed", None),
        ("none", None),
    ],
)
def test_the_threshold_of_nms_is_found_however_it_is_said(
    tmp_path: Path, how: str, wanted: float | None
) -> None:
    model = nms_model(tmp_path / "m.onnx", how, 0.25)
    assert score_cut(model) == wanted
    said = declared_cuts({"model": model, "score_threshold": 0.001})
    assert [("0.25" in line, "inside the model" in line) for line in said] == [(True, True)] * bool(wanted)
    assert declared_cuts({"model": model, "score_threshold": 0.3}) == []  # the study cuts above it anyway


@pytest.mark.parametrize("content", [b"", b"\x07", b"no model at all", b"\x3a\xff\xff\xff\xff\x0f"])
def test_what_is_no_model_has_no_cut(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert score_cut(path) is None
    assert score_cut(tmp_path / "gone.onnx") is None
    assert declared_cuts({"model": "a name on a server"}) == []


def test_a_real_model_without_nms_has_no_cut(fastestdet: Path) -> None:
    assert score_cut(fastestdet) is None
