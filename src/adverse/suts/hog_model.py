"""What a HOG detector has learnt: the shape of its window and features, and the weights of its linear SVM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import cv2
import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adverse.errors import SutError
from adverse.strict_json import parse_json
from adverse.suts.hog_views import HogViews

_Pixels = Annotated[int, Field(ge=2, le=256)]
_Share = Annotated[float, Field(gt=0, le=1)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Pair = tuple[_Pixels, _Pixels]


class HogModel(BaseModel):
    """A HOG model; sizes are (width, height) in pixels, `person` is the part of the window a person fills.

    `weights` are those of OpenCV's descriptor of that shape, with the bias at the end.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    window: _Pair
    block: _Pair
    stride: _Pair
    cell: _Pair
    bins: Annotated[int, Field(ge=2, le=36)]
    person: tuple[_Share, _Share]
    weights: tuple[_Finite, ...]

    def descriptor(self) -> Any:
        """Return OpenCV's descriptor with the weights set."""
        hog = cv2.HOGDescriptor(self.window, self.block, self.stride, self.cell, self.bins)
        hog.setSVMDetector(np.array(self.weights, np.float32))
        return hog


def built_in() -> HogModel:
    """Return OpenCV's own people detector (Dalal, Triggs 2005).

    A person fills 96 of the window's 128 rows, with a margin as in the training images, and is as wide as
    somebody walking is on average, 0.4 of the height.
    """
    weights = np.asarray(cv2.HOGDescriptor.getDefaultPeopleDetector()).reshape(-1).tolist()
    sizes: dict[str, _Pair] = {"window": (64, 128), "block": (16, 16), "stride": (8, 8), "cell": (8, 8)}
    return HogModel(**sizes, bins=9, person=(0.6, 0.75), weights=tuple(weights))


def read_hog_model(path: Path) -> HogModel | HogViews:
    """Read a model from JSON: one window, or several views as `training/hog.py` writes them."""
    try:
        stored = parse_json(path.read_bytes(), path, "HOG model")
        if isinstance(stored, dict) and "views" in stored:
            return HogViews.model_validate(stored)
        model = HogModel.model_validate(stored)
        wanted = cv2.HOGDescriptor(model.window, model.block, model.stride, model.cell, model.bins)
        size = wanted.getDescriptorSize() + 1
    except OSError as error:
        raise _wrong(path, error.strerror or str(error), "a file that can be read") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _wrong(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}", "a HOG model") from error
    except cv2.error as error:
        raise _wrong(path, " ".join(str(error).split()), "sizes that fit into each other") from error
    if len(model.weights) != size:
        raise _wrong(path, f"{len(model.weights)} weights", f"{size}: one for each feature, and the bias")
    return model


def _wrong(path: Path, got: str, wanted: str) -> SutError:
    fix = "Write it again with training/hog.py."
    return SutError("the HOG model cannot be used", where=str(path), got=got, wanted=wanted, fix=fix)
