"""What the labels of well-known models mean.

The place in a list is the label. A model trained with a background class has it at its own index, and
numbers that a data set left out are kept as `unused-N`, so that no label ever shifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from adverse.errors import StudyError, suggestion

_COCO = (
    "person bicycle car motorcycle airplane bus train truck boat traffic_light fire_hydrant - stop_sign "
    "parking_meter bench bird cat dog horse sheep cow elephant bear zebra giraffe - backpack umbrella - - "
    "handbag tie suitcase frisbee skis snowboard sports_ball kite baseball_bat baseball_glove skateboard "
    "surfboard tennis_racket bottle - wine_glass cup fork knife spoon bowl banana apple sandwich orange "
    "broccoli carrot hot_dog pizza donut cake chair couch potted_plant bed - dining_table - - toilet - tv "
    "laptop mouse remote keyboard cell_phone microwave oven toaster sink refrigerator - book clock vase "
    "scissors teddy_bear hair_drier toothbrush"
)
"""COCO categories 1 to 90; a dash is a number that COCO never used."""
_VOC = (
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person "
    "pottedplant sheep sofa train tvmonitor"
)


def _coco_91() -> tuple[str, ...]:
    words = ["background", *_COCO.split()]
    return tuple(f"unused-{n}" if w == "-" else w.replace("_", " ") for n, w in enumerate(words))


def _imagenet() -> tuple[str, ...]:
    text = resources.files(__package__).joinpath("imagenet_classes.txt").read_text("utf-8")
    return tuple(text.splitlines())


_VOC_20 = tuple(_VOC.split())
LISTS = {
    "coco-80": tuple(name for name in _coco_91()[1:] if not name.startswith("unused-")),
    "coco-90": _coco_91()[1:],
    "coco-91": _coco_91(),
    "imagenet-1000": _imagenet(),
    "voc-20": _VOC_20,
    "voc-21": ("background", *_VOC_20),
}
"""coco-80: COCO's classes without gaps (YOLO, FastestDet). coco-91: label = COCO category id, 0 is
background (TensorFlow zoo, torchvision, DETR); coco-90: the same without background (TensorFlow
Lite). voc-20 and voc-21: Pascal VOC without and with background.
imagenet-1000: the classes of ILSVRC 2012 in the usual order, each under one name of its own."""


def class_names(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names that a list's name or an explicit list stands for.

    >>> class_names("coco-80")[:3], len(class_names("coco-91"))
    (('person', 'bicycle', 'car'), 91)
    >>> class_names(["person"])
    ('person',)
    """
    if isinstance(value, str):
        if value not in LISTS:
            raise StudyError(
                f"there is no list of classes called {value!r}",
                where="classes",
                wanted="the name of a list, or the names themselves",
                fix=suggestion(value, LISTS),
            )
        return LISTS[value]
    names = tuple(value)
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice or not all(names):
        raise StudyError(
            "class names must be given, and each once",
            where="classes",
            got=f"{twice[0]!r} twice" if twice else repr(list(names)),
            fix="List the classes in the order of the model's labels.",
        )
    return names
