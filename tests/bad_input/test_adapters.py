"""Model files and servers that a study names wrongly: it stops before it starts, and says which and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .cases import CANNOT_RUN, Case, case, table
from .good_study import GoodStudy


def sut(adapter: str, files: dict[str, str], **options: Any) -> Callable[[GoodStudy], object]:
    """Put one SUT of this adapter into the study, and these files beside it."""

    def spoil(study: GoodStudy) -> None:
        for name, text in files.items():
            (study.folder / name).write_text(text)
        study.study["suts"] = [{"name": "probe", "adapter": adapter, **options}]

    return spoil


HTML = "<html>not found</html>"
DNN: dict[str, Any] = {"decoder": "darknet", "size": [32, 32]}


@pytest.mark.fault(41, cases=["a model of no kind"])
@table(
    case(
        "no .cfg",
        sut("opencv-dnn", {"a.weights": HTML}, model="a.weights", **DNN),
        CANNOT_RUN,
        "a Darknet model has a second file",
        "Add config: a.cfg",
    ),
    case(
        "a web page for weights",
        sut("opencv-dnn", {"a.pb": HTML, "a.pbtxt": HTML}, model="a.pb", config="a.pbtxt", **DNN),
        CANNOT_RUN,
        "OpenCV cannot read the TensorFlow model",
        "a.pb",
    ),
    case(
        "a model of no kind",
        sut("opencv-dnn", {"a.pt": HTML}, model="a.pt", **DNN),
        CANNOT_RUN,
        "no reader for such a model",
        ".caffemodel (Caffe)",
    ),
    case(
        "no size",
        sut("opencv-dnn", {"a.onnx": HTML}, model="a.onnx", decoder="yolo"),
        CANNOT_RUN,
        "needs the option 'size'",
    ),
    case(
        "no such tflite file",
        sut("litert", {}, model="gone.tflite", decoder="ssd"),
        CANNOT_RUN,
        "suts[0], option 'model'",
        "gone.tflite",
    ),
    case(
        "a web page for a tflite file",
        sut("litert", {"a.tflite": HTML}, model="a.tflite", decoder="ssd"),
        CANNOT_RUN,
        "LiteRT cannot load the model",
        "a.tflite",
    ),
    case(
        "no address",
        sut("http", {}, url="localhost", model="m", decoder="yolo"),
        CANNOT_RUN,
        "not the address of a server",
        "url: localhost",
    ),
    case(
        "a password in an address",
        sut("http", {}, url="https://me:secret@localhost", model="m", decoder="yolo"),
        CANNOT_RUN,
        "suts[0].url",
        "no name or password in an address",
        "token_from:",
    ),
    case(
        "a MAITE file without the function",
        sut("maite", {"theirs.py": "x = 1"}, file="theirs.py", function="load"),
        CANNOT_RUN,
        "no function 'load'",
        "theirs.py",
    ),
    case(
        "a MAITE file that does not load",
        sut("maite", {"theirs.py": "import no_such_thing"}, file="theirs.py"),
        CANNOT_RUN,
        "does not load",
        "theirs.py",
        "no_such_thing",
    ),
    case(
        "a MAITE model without class names",
        sut("maite", {"theirs.py": "def model():\n    return list"}, file="theirs.py"),
        CANNOT_RUN,
        "what its labels mean",
        "Add classes:",
    ),
)
def test_adapter(row: Case, coco: GoodStudy) -> None:
    row.check(coco)
