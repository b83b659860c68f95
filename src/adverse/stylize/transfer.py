"""An image in the style of another, by an AdaIN network in ONNX: the bundled one, or one of the user's.

A network takes `content` (1,3,H,W) and `style` (1,3,h,w), RGB in 0..1, and perhaps `alpha`, one number: 0 for
the content as it is, 1 for all of the style. It returns the stylized image, of the content's size.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.content import PlannedFiles, content_hashes, digest, file_sha256
from adverse.data.images import SUFFIXES, ImageFile
from adverse.errors import StudyError, one_line
from adverse.seeds import generator
from adverse.stylize import textures
from adverse.suts.onnx import open_session
from adverse.types import Image

BUNDLED = "adain.onnx"
MADE = 64
"""Styles that are made where no paintings are given."""
STYLE_PX = textures.SIZE_PX
LEAST_CROP, MOST_CROP = 0.3, 0.6
"""A style is a square of so much of a painting's shorter side, so that one gives many and brush strokes are
some pixels wide."""
BORDER_PX, STEP_PX = 16, 32
"""The content is mirrored beyond its edges, where networks know nothing, up to a size that they can halve."""


class Style(NamedTuple):
    """A painting's file and the hash of it; or a made style, by its number."""

    name: str
    source: Path | int
    content: str


@dataclass(frozen=True)
class Stylization:
    """What decides a stylized image besides content and seed."""

    styles: tuple[Style, ...]
    alpha: float
    model: Path
    key: str

    def style(self, seed: int, frame: str) -> Style:
        """Return the style that is drawn for a frame by the seed and the frame's id."""
        return self.styles[int(generator(seed, frame, "style").integers(len(self.styles)))]


def stylization(styles: Path | None, *, alpha: float = 1.0, model: Path | None = None) -> Stylization:
    """Return a stylization with the images below a folder, or without one with 64 made styles."""
    if not 0 <= alpha <= 1:  # nan is neither
        raise StudyError("alpha is out of range", where="--alpha", got=str(alpha), wanted="a number 0 to 1")
    file = Path(str(resources.files(__package__))) / "bundled" / BUNDLED if model is None else model
    if not file.is_file():
        raise StudyError("there is no such model", where="--model", got=str(file), wanted="an ONNX file")
    code = [file_sha256(Path(module)) for module in (__file__, textures.__file__)]
    key = digest(file_sha256(file), repr(float(alpha)), *code)
    chosen = _made() if styles is None else _paintings(styles)
    return Stylization(chosen, alpha, file, key)


def _made() -> tuple[Style, ...]:
    return tuple(Style(f"made-{number}", number, str(number)) for number in range(MADE))


def _paintings(folder: Path) -> tuple[Style, ...]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not paths:
        raise StudyError(
            "there are no styles in the folder",
            where="--styles",
            got=str(folder),
            wanted=f"images: {', '.join(sorted(SUFFIXES))}",
            fix="Give a folder of paintings, or leave --styles out for made ones.",
        )
    hashes = content_hashes(paths)
    return tuple(Style(path.relative_to(folder).as_posix(), path, hashes[path]) for path in paths)


class Stylizer:
    """A loaded network and the styles it takes."""

    def __init__(self, how: Stylization) -> None:
        self.how = how
        self._session = open_session(how.model)
        self._content, self._style, self._alpha = _inputs(self._session, how)
        hashes = {style.source: style.content for style in how.styles if isinstance(style.source, Path)}
        self._planned = PlannedFiles(hashes)

    def __call__(self, image: Image, seed: int, frame: str) -> Image:
        """Return an image (H,W,3) or (H,W) of a frame in the style drawn for it, (H,W,3)."""
        return self.stylized(image, self.style(seed, frame))

    def style(self, seed: int, frame: str) -> Image:
        """Return the part of a style that is drawn for a frame, 256 x 256 pixels."""
        source = self.how.style(seed, frame).source
        if isinstance(source, int):
            return made_style(source)
        return _crop(self._planned.read(source, ImageFile(source)), generator(seed, frame, "style crop"))

    def stylized(self, image: Image, style: Image) -> Image:
        """Return an image in a style, both uint8."""
        rows, columns = image.shape[:2]
        bottom, right = (-(side + 2 * BORDER_PX) % STEP_PX + BORDER_PX for side in (rows, columns))
        wide = cv2.copyMakeBorder(_rgb(image), BORDER_PX, bottom, BORDER_PX, right, cv2.BORDER_REFLECT_101)
        size = self._style.shape[2:]
        if all(isinstance(side, int) for side in size):
            style = np.asarray(cv2.resize(style, size[::-1], interpolation=cv2.INTER_AREA), np.uint8)
        values: dict[str, NDArray[np.float32]] = {
            self._content.name: _values(np.asarray(wide, np.uint8)),
            self._style.name: _values(_rgb(style)),
        }
        if self._alpha is not None:
            shape = [1 if not isinstance(side, int) else side for side in self._alpha.shape]
            values[self._alpha.name] = np.full(shape, self.how.alpha, np.float32)
        try:
            made = self._session.run(None, values)[0]
        except Exception as error:
            raise StudyError(
                "ONNX Runtime cannot run the model", where=str(self.how.model), got=one_line(error)
            ) from error
        finite = bool(np.isfinite(made).all())
        if made.shape != values[self._content.name].shape or not finite:
            raise StudyError(
                "the model does not return an image of the content's size",
                where=str(self.how.model),
                got=f"shape {made.shape}{'' if finite else ', numbers that are not finite'}",
                wanted=f"shape {values[self._content.name].shape}, RGB in 0..1",
            )
        cut = made[0, :, BORDER_PX : BORDER_PX + rows, BORDER_PX : BORDER_PX + columns]
        return np.ascontiguousarray(np.rint(np.clip(cut, 0, 1) * 255).astype(np.uint8).transpose(1, 2, 0))


@functools.lru_cache(maxsize=MADE)
def made_style(number: int) -> Image:
    """Return a made style, the same on every call."""
    style = textures.texture(generator(0, "made style", str(number)))
    style.flags.writeable = False
    return style


def _crop(painting: Image, rng: np.random.Generator) -> Image:
    """Return a square of a painting, mirrored half of the time, at the size of a style."""
    shorter = min(painting.shape[:2])
    side = max(1, math.ceil(shorter * rng.uniform(LEAST_CROP, MOST_CROP)))
    top, left = (int(rng.integers(length - side + 1)) for length in painting.shape[:2])
    square = painting[top : top + side, left : left + side]
    square = square[:, ::-1] if rng.random() < 0.5 else square
    how = cv2.INTER_AREA if side > STYLE_PX else cv2.INTER_LINEAR
    return np.asarray(
        cv2.resize(np.ascontiguousarray(square), (STYLE_PX, STYLE_PX), interpolation=how), np.uint8
    )


def _rgb(image: Image) -> Image:
    """Return an image with three channels; gray is repeated."""
    channels = image if image.ndim == 3 else image[..., None]
    return np.ascontiguousarray(np.broadcast_to(channels, (*channels.shape[:2], 3)))


def _values(image: Image) -> NDArray[np.float32]:
    return np.ascontiguousarray(image.transpose(2, 0, 1)[None], np.float32) / np.float32(255)


def _inputs(session: Any, how: Stylization) -> tuple[Any, Any, Any | None]:
    """Return the inputs for content, style and alpha: by their names, or in this order."""
    inputs = list(session.get_inputs())
    named = {found.name.lower(): found for found in inputs}
    images = [found for found in inputs if len(found.shape) == 4]
    rest = [found for found in inputs if len(found.shape) != 4]
    if len(images) != 2 or len(rest) > 1 or any(found.type != "tensor(float)" for found in inputs):
        raise StudyError(
            "the model is no AdaIN network",
            where=str(how.model),
            got="inputs " + ", ".join(f"{one.name} {one.shape} {one.type}" for one in inputs),
            wanted="content (1,3,H,W), style (1,3,h,w) and perhaps alpha, one number; float32, RGB in 0..1",
        )
    content, style = named.get("content", images[0]), named.get("style", images[1])
    if any(isinstance(side, int) for side in content.shape[2:]):
        raise StudyError(
            "the model takes contents of one size alone",
            where=str(how.model),
            got=f"{content.name} {content.shape}",
            wanted="open height and width",
            fix="Export it with dynamic axes.",
        )
    if not rest and how.alpha != 1:
        raise StudyError(
            "the model has no input for alpha",
            where=str(how.model),
            got=f"--alpha {how.alpha:g}",
            fix="Take --alpha 1, or export the model with alpha as its third input.",
        )
    return content, style, rest[0] if rest else None
