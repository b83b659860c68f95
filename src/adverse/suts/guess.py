"""Guess from an ONNX model how to use it: which decoder, which classes, and what was assumed.

A guess from shapes and names can be wrong, so everything assumed is said, and `adverse init` draws what the
model finds on a few images: a wrong guess is seen at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adverse.errors import SutError
from adverse.suts.classes import LISTS
from adverse.suts.decoders import DECODERS
from adverse.suts.onnx import open_model
from adverse.suts.onnx_shape import assign_outputs

DEFAULT_SIZE = (640, 640)
MANY = 50
"""Rows of candidates from which an output is taken for a list of them."""
SEGMENTS = (19, 21, 34, 150, 171)
"""Numbers of classes that segmentation models have and detection grids have not."""
LETTERBOXED = frozenset({"stride", "imgsz", "names"})
"""Metadata that the exporter of YOLOv5 and later writes; such models see letterboxed RGB / 255."""
ALIKE = (
    ("person", "pedestrian", "people", "human"),
    ("motorcycle", "motorbike"),
    ("airplane", "aeroplane"),
    ("couch", "sofa"),
    ("tv", "tvmonitor", "tv monitor"),
    ("potted plant", "pottedplant"),
    ("dining table", "diningtable"),
    ("bicycle", "bike"),
)
"""Synonyms of class names among data sets."""


@dataclass(frozen=True)
class GuessedModel:
    """The options of the `onnx` adapter, the classes they stand for, and what they rest on.

    `named` tells whether the classes have names that mean something, `floats` whether pixels can be scaled,
    `letterboxed` whether the model's own metadata say that it sees letterboxed RGB / 255.
    """

    options: Mapping[str, Any]
    classes: tuple[str, ...]
    assumed: tuple[str, ...]
    named: bool
    floats: bool
    letterboxed: bool


def guess_onnx(model: Path, categories: Sequence[str]) -> GuessedModel:
    """Look at a model and say how to use it on data with these categories."""
    assumed: list[str] = []
    options: dict[str, Any] = {}
    try:
        network = open_model(model)
    except SutError as error:
        if "size" not in error.what:
            raise
        network = open_model(model, size=DEFAULT_SIZE)
        options["size"] = list(DEFAULT_SIZE)
        assumed.append(f"the model takes any size: {DEFAULT_SIZE[0]}x{DEFAULT_SIZE[1]} is tried")
    port = network.port
    shape = (port.batch or 1, 3, port.size[1], port.size[0])
    grey = np.full(shape, 0.5 if port.dtype.kind == "f" else 128, port.dtype)
    outputs = network.run(grey if port.layout == "nchw" else grey.transpose(0, 2, 3, 1), network.output_names)
    shapes = {
        output.name: output.array.shape[1:] if output.array.ndim > 1 else output.array.shape
        for output in outputs
    }
    decoder, count, words = decoder_of(shapes, len(categories))
    assumed.append(f"decoder {decoder}: {words}")
    names, listed = _classes(count, categories)
    if listed is not None:
        options["classes"] = listed
    if count is None:
        assumed.append("the outputs do not tell how many classes there are; coco-80 is assumed")
    elif listed is None:
        options["classes"] = list(names)
        assumed.append(f"nothing tells what its {count} classes are called: fill in their names")
    else:
        assumed.append(
            f"classes {listed if isinstance(listed, str) else 'as in the data set'}: there are {count}"
        )
    return GuessedModel(
        {"decoder": decoder, **options},
        names,
        tuple(assumed),
        named=listed is not None,
        floats=port.dtype.kind == "f",
        letterboxed=network.metadata.keys() >= LETTERBOXED,
    )


def decoder_of(  # noqa: PLR0911 - one line for each kind of output
    shapes: Mapping[str, tuple[int, ...]], categories: int = 0
) -> tuple[str, int | None, str]:
    """Return decoder, number of classes (None: unknown) and why, from the outputs' shapes for one image.

    >>> decoder_of({"output0": (84, 8400)})
    ('yolo-v8', 80, 'one output (84, 8400) is 4 + 80 rows of candidates')
    >>> decoder_of({"logits": (1000,)})[:2]
    ('classification', 1000)
    """
    if len(shapes) > 1:
        return _of_several(shapes)
    ((name, shape),) = shapes.items()
    evidence = f"one output {_shape(shape)}"
    if len(shape) == 1:
        return "classification", shape[0], f"{evidence} is one score for each class"
    if len(shape) == 3:
        if shape[0] in SEGMENTS or shape[0] == categories:
            return "segmentation", shape[0], f"{evidence} is one map for each class"
        if shape[2] in SEGMENTS:
            return "segmentation", shape[2], f"{evidence} is one score for each class and pixel"
        return "fastestdet", shape[0] - 5, f"{evidence} is a grid of 5 + {shape[0] - 5} values"
    if len(shape) == 2:
        rows, columns = shape
        if columns == 6:
            return "decoded", None, f"{evidence} is box, score and label"
        if rows < columns and columns >= MANY:
            return "yolo-v8", rows - 4, f"{evidence} is 4 + {rows - 4} rows of candidates"
        counts = {len(names) for names in LISTS.values()} | {categories}
        if columns - 5 in counts or columns - 4 not in counts:
            return "yolo", columns - 5, f"{evidence} is candidates of 5 + {columns - 5} values"
        return "yolo-v8", columns - 4, f"{evidence} is candidates of 4 + {columns - 4} values"
    raise SutError(
        "the format of the model's output is not recognised",
        where=f"output {name!r}",
        got=_shape(shape),
        wanted="detections, a segmentation or class scores",
        fix="Write the decoder by hand (docs/suts.md), or use a Python plug-in.",
    )


def class_map(classes: Iterable[str], categories: Iterable[str]) -> dict[str, str]:
    """Return what the data set calls those classes of a SUT that it calls otherwise.

    >>> class_map(["person", "car", "sofa"], ["Pedestrian", "Car", "sofa"])
    {'person': 'Pedestrian', 'car': 'Car'}
    """
    wanted_names = tuple(categories)
    by_word = {_word(name): name for name in wanted_names}
    names: dict[str, str] = {}
    for name in classes:
        if name in wanted_names:
            continue
        words = next((group for group in ALIKE if _word(name) in map(_word, group)), (name,))
        other = next((by_word[_word(word)] for word in words if _word(word) in by_word), None)
        if other is not None and other not in names.values():
            names[name] = other
    return names


def _of_several(shapes: Mapping[str, tuple[int, ...]]) -> tuple[str, int | None, str]:
    names = list(shapes)
    listed = ", ".join(f"{name} {_shape(shape)}" for name, shape in shapes.items())
    logits = [shape for shape in shapes.values() if len(shape) == 2 and shape[1] != 4]
    prototypes = [shape for shape in shapes.values() if len(shape) == 3]
    if len(names) == 2 and len(prototypes) == len(logits) == 1:
        count = min(logits[0]) - 4 - prototypes[0][0]
        if count > 0:
            return "yolo-seg", count, f"outputs {listed}: candidates with coefficients, and prototypes"
    if any(len(shape) >= 3 and "mask" in name.lower() for name, shape in shapes.items()):
        return "mask-rcnn", None, f"outputs {listed}: boxes, scores, labels and masks"
    if any("num" in name.lower() for name in names):
        return "ssd", None, f"outputs {listed}, as TensorFlow's detection models have them"
    if logits and any(shape[-1] == 4 for shape in shapes.values() if len(shape) == 2):
        return "detr", logits[0][1] - 1, f"outputs {listed}: logits with 'nothing here', and boxes"
    try:
        assign_outputs(DECODERS["decoded"], names, None, "")
    except SutError as error:
        raise SutError(
            "the format of the model's outputs is not recognised",
            got=listed,
            wanted="boxes, scores and labels; logits and boxes; or one output",
            fix="Write the decoder by hand (docs/suts.md), or use a Python plug-in.",
        ) from error
    return "decoded", None, f"outputs {listed}: boxes, scores and labels"


def _classes(count: int | None, categories: Sequence[str]) -> tuple[tuple[str, ...], str | list[str] | None]:
    """Return the class names, and how to say them; None where they are made up."""
    if count is None:
        return LISTS["coco-80"], "coco-80"
    for name, listed in LISTS.items():
        if len(listed) == count and (len(categories) != count or set(listed) == set(categories)):
            return listed, name
    if count == len(categories):
        return tuple(categories), list(categories)
    return tuple(f"class-{number}" for number in range(count)), None


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"
