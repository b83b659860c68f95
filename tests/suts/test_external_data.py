"""Weights that an ONNX model keeps in files beside it belong to the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data, uses_external_data

from adverse.errors import StudyError, SutError
from adverse.plugins import load
from adverse.suts.fingerprint import described, fingerprint
from adverse.suts.onnx import open_model
from adverse.suts.onnx_files import external_files


def tensor(name: str, location: str | None) -> Any:
    """Return a tensor whose values are in a file beside the model, or in the model itself."""
    made = numpy_helper.from_array(np.arange(4, dtype=np.float32), name)
    if location is not None:
        set_external_data(made, location, 0, 16)
        made.ClearField("raw_data")
    return made


def constant(location: str, attribute: str = "value") -> Any:
    return helper.make_node("Constant", [], ["out"], **{attribute: tensor("c", location)})


def graph_of(nodes: list[Any] | None = None, **parts: Any) -> Any:
    return helper.make_graph(nodes or [], "g", [], [], **parts)


def in_initializer(model: Any) -> None:
    model.graph.initializer.append(tensor("w", "w.bin"))


def in_sparse_initializer(model: Any) -> None:
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(tensor("v", "w.bin"))
    sparse.indices.CopyFrom(tensor("i", None))


def in_attribute(model: Any) -> None:
    model.graph.node.append(constant("w.bin"))


def in_list_of_attribute(model: Any) -> None:
    node = model.graph.node.add()
    node.op_type = "Custom"
    attribute = node.attribute.add()
    attribute.name, attribute.type = "all", onnx.AttributeProto.TENSORS
    attribute.tensors.append(tensor("w", "w.bin"))


def in_branch(model: Any) -> None:
    inner = graph_of([constant("w.bin")])
    model.graph.node.append(
        helper.make_node("If", ["x"], ["y"], then_branch=graph_of([constant("w.bin")]), else_branch=inner)
    )


def in_nested_loop(model: Any) -> None:
    body = graph_of(initializer=[tensor("w", "w.bin")])
    outer = graph_of([helper.make_node("Loop", ["n", ""], ["y"], body=body)])
    model.graph.node.append(helper.make_node("Loop", ["n", ""], ["y"], body=outer))


def in_function(model: Any) -> None:
    opsets = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("own", "F", [], ["out"], [constant("w.bin")], opsets))


def in_default_of_function(model: Any) -> None:
    opsets = [helper.make_opsetid("", 17)]
    made = helper.make_function("own", "F", [], ["out"], [], opsets)
    made.attribute_proto.append(helper.make_attribute("w", tensor("w", "w.bin")))
    model.functions.append(made)


PLACES: list[Callable[[Any], None]] = [
    in_initializer,
    in_sparse_initializer,
    in_attribute,
    in_list_of_attribute,
    in_branch,
    in_nested_loop,
    in_function,
    in_default_of_function,
]


def written(folder: Path, *changes: Callable[[Any], None]) -> Path:
    model = helper.make_model(graph_of(), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    for change in changes:
        change(model)
    (folder / "w.bin").write_bytes(bytes(16))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("place", PLACES)
def test_a_weight_file_is_found_wherever_a_tensor_can_be(tmp_path: Path, place: Any) -> None:
    path = written(tmp_path, place)
    assert external_files(path) == [tmp_path / "w.bin"]
    plugin = load().get("sut", "onnx")
    before = fingerprint(plugin, {"model": path, "decoder": "yolo"})
    (tmp_path / "w.bin").write_bytes(bytes(15) + b"1")
    assert fingerprint(plugin, {"model": path, "decoder": "yolo"}) != before
    (tmp_path / "w.bin").unlink()
    with pytest.raises(StudyError, match=r"w\.bin"):
        fingerprint(plugin, {"model": path, "decoder": "yolo"})


def test_each_file_counts_once_and_in_its_place(tmp_path: Path) -> None:
    """Exchanging the contents of two weight files makes another model of the same bytes."""

    def two(model: Any) -> None:
        for name, location in (("a", "w.bin"), ("b", "deep/v.bin"), ("c", "w.bin")):
            model.graph.initializer.append(tensor(name, location))

    path = written(tmp_path, two)
    (tmp_path / "deep").mkdir()
    files = [tmp_path / "w.bin", tmp_path / "deep" / "v.bin"]
    keys = set()
    for first, second in ((b"1", b"2"), (b"2", b"1")):
        files[0].write_bytes(first * 16)
        files[1].write_bytes(second * 16)
        assert external_files(path) == files
        for adapter in ("onnx", "opencv-dnn"):
            plugin = load().get("sut", adapter)
            options: dict[str, Any] = {"model": path, "decoder": "yolo"}
            keys.add(fingerprint(plugin, options))
            assert {one["path"] for one in described(plugin, options)["files"].values()} == {
                str(path) for path in (path, *files)
            }
    assert len(keys) == 4


@pytest.mark.parametrize("held", [None, b"short"])
def test_weights_that_are_missing_or_cut_are_named_as_what_to_mend(
    tmp_path: Path, held: bytes | None
) -> None:
    def added(model: Any) -> None:
        shape = [4]
        model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
        model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, shape))
        model.graph.node.append(helper.make_node("Add", ["x", "w"], ["y"]))
        model.graph.initializer.append(tensor("w", "w.bin"))

    path = written(tmp_path, added)
    (tmp_path / "w.bin").unlink()
    if held is not None:
        (tmp_path / "w.bin").write_bytes(held)
    with pytest.raises(SutError) as caught:
        open_model(path)
    assert ("w.bin (not there)" in str(caught.value.fix)) == (held is None)
    assert "weights are in files beside it (external data): w.bin" in str(caught.value.fix)
    path.write_bytes(path.read_bytes()[:9])
    with pytest.raises(SutError, match="opset that this onnxruntime supports"):
        open_model(path)


@pytest.mark.parametrize("location", ["../w.bin", "deep/../../w.bin", "/etc/hostname", ""])
def test_a_path_that_leaves_the_models_folder_is_refused(tmp_path: Path, location: str) -> None:
    path = written(tmp_path, lambda model: model.graph.initializer.append(tensor("w", location)))
    with pytest.raises(StudyError, match=r"model\.onnx") as caught:
        external_files(path)
    assert caught.value.fix
    assert repr(location) in str(caught.value.got)


def test_a_tensor_that_only_talks_of_a_file_reads_none(tmp_path: Path) -> None:
    def inside(model: Any) -> None:
        made = tensor("location", "w.bin")
        made.data_location = TensorProto.DEFAULT
        made.raw_data = bytes(16)
        assert not uses_external_data(made)
        model.graph.initializer.append(made)

    assert external_files(written(tmp_path, inside)) == []


def test_a_damaged_model_is_refused_and_another_format_is_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path, in_initializer)
    whole = path.read_bytes()
    for end in range(whole.index(b"location"), len(whole)):
        path.write_bytes(whole[:end])
        try:
            assert external_files(path) in ([], [tmp_path / "w.bin"])
        except StudyError as error:
            assert error.fix  # noqa: PT017 - most cuts are seen, none is a traceback
    for other in (b"", b"....ORTM location \xff\xff", b"weights"):
        path.write_bytes(other)
        assert external_files(path) == []
