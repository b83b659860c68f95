"""What a model is guessed to be from its outputs."""

from __future__ import annotations

import pytest

from adverse.errors import SutError
from adverse.suts.guess import class_map, decoder_of


@pytest.mark.parametrize(
    ("shapes", "categories", "decoder", "classes"),
    [
        ({"output0": (84, 8400)}, 80, "yolo-v8", 80),  # YOLOv8 and 11
        ({"output0": (24, 8400)}, 20, "yolo-v8", 20),
        ({"output": (25200, 85)}, 80, "yolo", 80),  # YOLOv5
        ({"output": (8400, 84)}, 3, "yolo-v8", 80),
        ({"output": (6300, 6)}, 1, "decoded", None),
        ({"o": (85, 22, 22)}, 80, "fastestdet", 80),
        ({"o": (19, 128, 256)}, 11, "segmentation", 19),
        ({"o": (11, 60, 80)}, 11, "segmentation", 11),
        ({"o": (257, 257, 21)}, 0, "segmentation", 21),
        ({"o": (1000,)}, 0, "classification", 1000),
        ({"boxes": (100, 4), "scores": (100,), "labels": (100,)}, 80, "decoded", None),
        ({"pred_logits": (100, 92), "pred_boxes": (100, 4)}, 80, "detr", 91),
        ({"output0": (116, 8400), "output1": (32, 160, 160)}, 80, "yolo-seg", 80),
        (
            {"boxes": (9, 4), "labels": (9,), "scores": (9,), "masks": (1, 28, 28)},
            80,
            "mask-rcnn",
            None,
        ),
        (
            {
                "num_detections": (1,),
                "detection_boxes": (100, 4),
                "detection_scores": (100,),
                "detection_classes": (100,),
            },
            80,
            "ssd",
            None,
        ),
    ],
)
def test_heads_are_told_by_their_shapes(
    shapes: dict[str, tuple[int, ...]], categories: int, decoder: str, classes: int | None
) -> None:
    assert decoder_of(shapes, categories)[:2] == (decoder, classes)


@pytest.mark.parametrize("shapes", [{"o": (1, 2, 3, 4)}, {"a": (5,), "b": (5,)}])
def test_what_is_like_nothing_is_refused(shapes: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(SutError, match="not recognised"):
        decoder_of(shapes)


def test_each_name_of_the_data_is_used_once() -> None:
    assert class_map(["person", "human"], ["Pedestrian"]) == {"person": "Pedestrian"}
    assert class_map(["person"], ["person", "pedestrian"]) == {}
    assert class_map(["dog"], ["cat"]) == {}
