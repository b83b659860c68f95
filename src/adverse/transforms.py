"""Mutations as training transforms, for pipelines of albumentations', torchvision's and MAITE's kind.

    dirt = Transform(["lens_mud(coverage=0.1)", "t.color_jitter(strength=0.3)"], p=0.5)
    dirt(image=image, bboxes=boxes, masks=masks)      # albumentations: a dict comes back
    dirt(image), dirt(image, target)                  # torchvision: numpy, Pillow or CHW tensors
    dirt.augment((images, targets, metadata))         # MAITE: a batch of CHW images

Mutations change what a camera sees, not where things are: boxes, masks and targets come back as they are.
None of the libraries is imported. The same seed and mutations draw the same in the same order; each worker
process draws its own, by its name, whether it was forked or spawned, and so does each rank of distributed
training, by the variables that torchrun and Lightning set. Transforms of other mutations draw independently;
two of the same need two seeds.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse import plugins
from adverse.errors import MutationError, StudyError
from adverse.mutations.settings import BASELINE, apply_setting, expand, parse, refuse_moving
from adverse.seeds import generator
from adverse.types import Depth, Image, Setting

__all__ = ["Transform"]

Layout = Literal["hwc", "chw"]
MAIN = "MainProcess"
KEY = "key"


@dataclass
class Transform:
    """Apply one of some mutations, drawn for each image, with chance `p`; else the image stays as it is.

    `mutations` are ids, batteries, or {name: {option: value or list}}, as in a study. `layout` says how plain
    arrays are laid out; None: numpy and Pillow images are (row, column, channel), others, such as tensors,
    (channel, row, column). Images are bytes, or floats from 0 to 1.

    >>> dark = Transform("brightness(scale=0.5)")
    >>> dark(np.full((2, 2, 3), 100, np.uint8))[0, 0]
    array([50, 50, 50], dtype=uint8)
    """

    mutations: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    p: float = 1.0
    seed: int = 0
    layout: Layout | None = None
    drawn: int = field(default=0, init=False)
    """Images that were drawn for in this process so far."""

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise StudyError(
                "the chance of a mutation is a share", where="p", got=str(self.p), wanted="0 to 1"
            )
        one = isinstance(self.mutations, str | Mapping)
        entries = [self.mutations] if one else list(self.mutations)
        registry = plugins.load()
        self._settings = [
            setting for entry in entries for setting in expand(entry, registry, where="mutations")
        ]
        refuse_moving(self._settings, registry)
        if not self._settings:
            raise StudyError(
                "there is no mutation to draw", where="mutations", fix='Give one, as "c.fog(severity=3)".'
            )

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings that are drawn from, each as often as the others."""
        return tuple(self._settings)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Change an image: by name (a dict comes back), or the first of some values (all come back).

        `key` makes the draw depend on the seed and this key alone; `depth_m` is for mutations that need it,
        and comes back too where it was given by name.
        """
        key, depth_m = named.pop("key", None), named.get("depth_m")
        if given and (set(named) - {"depth_m"}):
            raise StudyError("give the image by name, or first", got=", ".join(named), where="transform")
        if not given:
            if "image" not in named:
                raise StudyError("there is no image", where="transform", wanted="image=...")
            return {**named, "image": self._changed(named["image"], key, depth_m)}
        changed = self._changed(given[0], key, depth_m)
        return changed if len(given) == 1 else (changed, *given[1:])

    def augment(self, batch: tuple[Sequence[Any], Any, Sequence[Any]]) -> tuple[list[Any], Any, list[Any]]:
        """Change a MAITE batch of images (channel, row, column); metadata tell what was done: `mutation`.

        Mutations that need depth take it from the metadata, `depth_m`.
        """
        images, targets, metadata = batch
        changed, told = [], []
        for image, facts in zip(images, metadata, strict=True):
            setting = self._draw(None)
            made = self._apply(image, setting, None, facts.get("depth_m"), "chw")
            changed.append(made)
            told.append({**facts, "mutation": setting.id})
        return changed, targets, told

    def _changed(self, image: Any, key: str | None, depth_m: Depth | None) -> Any:
        setting = self._draw(key)
        return self._apply(image, setting, key, depth_m, self.layout)

    def _draw(self, key: str | None) -> Setting:
        if key is None:
            self.drawn += 1
        # Transforms of other mutations in the same pipeline draw by themselves, with the same seed too.
        rng = generator(self.seed, "transform", *(one.id for one in self._settings), *self._stream(key))
        if rng.random() >= self.p:
            return parse(BASELINE, plugins.load())
        return self._settings[int(rng.integers(len(self._settings)))]

    def _stream(self, key: str | None) -> tuple[str, str]:
        """Return what a draw depends on: a key, or the process and how many were drawn in it."""
        return (KEY, key) if key is not None else (_process(), str(self.drawn))

    def _apply(
        self, image: Any, setting: Setting, key: str | None, depth_m: Depth | None, layout: Layout | None
    ) -> Any:
        if setting.id == BASELINE:
            return image
        name, number = self._stream(key)
        place = number if name in (KEY, MAIN) else f"{name}/{number}"
        pixels = _Pixels(image, layout)
        made = apply_setting(
            pixels.image, setting, plugins.load(), seed=self.seed, key=place, depth_m=depth_m
        )
        return pixels.like_given(made)


def _process() -> str:
    """Return what tells this process from the others of a training: its name, with its rank if that is not 0.

    Ranks are processes of their own, whose workers have the same names.
    """
    name, told = multiprocessing.current_process().name, os.environ
    if told.get("WORLD_SIZE", "1") == "1":
        return name
    rank = told.get("RANK") or f"{told.get('NODE_RANK', '0')}.{told.get('LOCAL_RANK', '0')}"
    return name if rank in ("0", "0.0") else f"rank {rank}/{name}"


class _Pixels:
    """An image of any kind as ours, and ours as the given kind."""

    def __init__(self, given: Any, layout: Layout | None) -> None:
        self.given = given
        pillow = sys.modules.get("PIL.Image")  # whoever has such an image has imported it
        self.pillow = pillow if pillow is not None and isinstance(given, pillow.Image) else None
        plain = isinstance(given, np.ndarray) or self.pillow is not None
        self.planes = (layout or ("hwc" if plain else "chw")) == "chw" and self.pillow is None
        if self.pillow is not None and given.mode != "RGB":
            raise _no_image(f"a Pillow image of mode {given.mode}", 'Convert it: image.convert("RGB").')
        try:
            array = np.asarray(given)
        except (TypeError, ValueError, RuntimeError) as error:
            raise _no_image(str(error), "Bring it to the CPU, without a gradient.") from error
        if array.ndim != 3 or array.shape[0 if self.planes else 2] not in (1, 3) or not array.size:
            raise _no_image(f"shape {array.shape}", "Say layout='chw' or 'hwc'.")
        self.kind = array.dtype
        self.image = self._bytes(array.transpose(1, 2, 0) if self.planes else array)

    def _bytes(self, array: NDArray[Any]) -> Image:
        if array.dtype == np.uint8:
            return np.ascontiguousarray(array)
        if array.dtype.kind != "f" or not np.isfinite(array).all() or array.min() < 0 or array.max() > 1:
            got = f"{array.dtype} from {array.min()} to {array.max()}"
            raise _no_image(got, "Mutate before the image is normalised.")
        return np.ascontiguousarray(np.rint(array.astype(np.float64) * 255).astype(np.uint8))

    def like_given(self, image: Image) -> Any:
        """Return an image in the kind, layout and type of the given one."""
        if self.pillow is not None:
            made = self.pillow.fromarray(image)
            made.info = dict(self.given.info)
            return made
        array: NDArray[Any] = image if self.kind == np.uint8 else (image / 255).astype(self.kind)
        array = np.ascontiguousarray(array.transpose(2, 0, 1)) if self.planes else array
        own = getattr(self.given, "new_tensor", None)  # torch's tensors make others of their kind
        return array if own is None else own(array)


def _no_image(got: str, fix: str) -> MutationError:
    return MutationError(
        "this is not an image that a transform can change",
        got=got,
        wanted="bytes, or floats from 0 to 1, with 3 channels (or 1): an array, a Pillow image or a tensor",
        fix=fix,
    )
