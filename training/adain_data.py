"""What the larger style transfer is trained on: parts of photographs, and styles as large as in use."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from adain import BATCH, CROP_PX, Data, tensor
from adverse.stylize.transfer import LEAST_CROP, MOST_CROP, STYLE_PX

TEXTURES = 120
PAINTED, MADE = 0.5, 0.9
"""Shares of the styles: paintings, up to the second number made ones, the rest photographs."""
CONTENT_ZOOM = (1.0, 2.5)
"""So many pixels of a photograph make one."""


class StyledCrops(Data):
    """The same with styles as large as the product cuts them, and photographs in their own pixels."""

    least_px = math.inf
    made_textures = TEXTURES

    def batch(self) -> tuple[Tensor, Tensor]:
        """Return contents and styles."""
        rng = self.rng
        contents = [self._content() for _ in range(BATCH)]
        styles = []
        for _ in range(BATCH):
            kind = rng.random()
            if kind < PAINTED:
                styles.append(self._tinted(self._painted()))
            elif kind < MADE:
                styles.append(
                    self._tinted(self._cut(self._one(self.textures), CROP_PX * rng.uniform(1, 1.8)))
                )
            else:
                styles.append(self._content())
        return tensor(contents), tensor(styles)

    def _content(self) -> NDArray[np.uint8]:
        return self._cut(self._one(self.photos), CROP_PX * self.rng.uniform(*CONTENT_ZOOM))

    def _painted(self) -> NDArray[np.uint8]:
        """Return part of a style as the product cuts it, whose pixels are as large as there."""
        painting = self._one(self.paintings)
        style = min(painting.shape[:2]) * self.rng.uniform(LEAST_CROP, MOST_CROP)
        return self._cut(painting, style * CROP_PX / STYLE_PX)

    def _cut(self, image: NDArray[np.uint8], wanted: float) -> NDArray[np.uint8]:
        return self._square(image, max(1, min(round(wanted), *image.shape[:2])))

    def _tinted(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return a style in other colours or turned, half of the time: there are few of them."""
        if self.rng.random() < 0.5:
            return image
        image = np.rot90(image, int(self.rng.integers(4)))[:, :, self.rng.permutation(3)]
        return 255 - image if self.rng.random() < 0.25 else image
